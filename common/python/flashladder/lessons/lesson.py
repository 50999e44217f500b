"""What the cells of a notebook call. Short calls that show what they do, and fail loudly.

from flashladder.lessons import Lesson, predict
lesson = Lesson(5)
lesson.show("tile_offset")
guess = predict("wavefronts of ldmatrix in stage 05", None)
lesson.build()
lesson.verify()
guess.score(lesson.count("shared ldmatrix wavefronts"))
"""

from typing import ClassVar

from flashladder import plot
from flashladder.building import build
from flashladder.core import device
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import diff, host_streams, mistakes, source, stages, sweep
from flashladder.ladder.host_streams import VARIANTS
from flashladder.ladder.kernels import compile_kernel
from flashladder.lessons import throughput as short_runs
from flashladder.lessons.display import code, note, show, slider, step, table, whole
from flashladder.lessons.display import diff as diff_of
from flashladder.lessons.prediction import Prediction, predict, scorecard
from flashladder.lessons.trial import Trial, changed_kernel, plant, show_verdict
from flashladder.lessons.writing import Writing
from flashladder.measuring import profile, recorded, stream_times
from flashladder.running.job import Result
from warpsim.counters import by_name, executed


class HostLesson(Writing):
    """Stage 00. Prints where it runs."""

    def __init__(self):
        self.stage = host_streams.stage()
        self.begin_writing()
        where = device.choose(self.stage.min_compute).in_a_sentence
        show(note(f"runs on {where}.", f"Stage {self.stage.id}, {self.stage.title},"))

    @property
    def on_gpu(self) -> bool:
        return device.choose(self.stage.min_compute).kind == "gpu"

    def show(self, *names: str) -> None:
        """Named parts of host_streams.cpp with their line numbers, e.g. "copy_in" or "many streams"."""
        for name in names:
            part = source.find(self.stage.source, name)
            show(code(part.text, part.first, f"stages/{self.stage.name}/host_streams.cpp, {name}"))

    def program(self) -> None:
        """The whole host_streams.cpp, folded, below the command that the build compiles it with."""
        show(whole(self.stage.source))

    def build(self) -> None:
        with step("Building stage 00, stage 03 and the simulator", "Built stage 00, stage 03 and the simulator."):
            build.build([*self.stage.targets, "stage_09"])

    def verify(self, chunks: int = 4, streams: int = 2, **options) -> None:
        """Runs every variant and compares each result with the reference. AssertionError where one is wrong."""
        with step("Running the variants", f"The variants, with {chunks} chunks and {streams} streams:"):
            result = host_streams.run(VARIANTS, chunks, streams, **options)
        columns = ("variant", "what it does", "host memory", "chunks", "streams", "ms", "")
        rows = [
            [one.variant, one.title, one.memory, one.chunks, one.streams, f"{one.ms['median']:.2f}" if one.ms else "-",
             "verified" if one.passed else "WRONG"]
            for one in result.runs
        ]  # fmt: skip
        show(table(f"On {result.device.short}", columns, rows, right=(3, 4, 5)))
        if not result.passed:
            raise AssertionError(f"stage 00 is wrong.\n{result.message}")

    def timeline(self, *variants: str, chunks: int = 4, streams: int = 2, simulator: bool = False, **options):
        """A picture of what overlaps, one panel for each variant: CUDA events on a GPU, order on the simulator."""
        where = "sim" if simulator else None
        shown = [host_streams.run(one, chunks, streams, where, **options).timeline() for one in variants]
        return plot.timeline(shown)

    def recorded(self):
        """A picture of what was recorded on a GPU: bandwidths, and time by chunks and streams."""
        record = recorded.first("host-streams")
        if not record:
            show(note("no results of stage 00 are recorded yet."))
            return None
        return plot.transfers(record)

    def recorded_timeline(self, case: int = 1):
        """A picture of what overlapped on a GPU when it was recorded; case: 0, 1 or 2, as in recorded()."""
        return plot.timeline(stream_times.recorded_timelines(recorded.first("host-streams"), case))

    def break_it(self, name: str) -> None:
        """Plants a classic mistake and shows who catches it and how. AssertionError if nobody does."""
        plant(mistakes.get(0, name))


__all__ = ["HostLesson", "Lesson", "Prediction", "Trial", "predict", "scorecard", "slider"]


class Lesson(Writing):
    """One stage with the one before it. Prints where it runs."""

    OUTPUTS = "{} against the float64 reference"  # what verify() compares with what, {} for the stage
    PROBLEMS: tuple[Problem, ...] = tuple(sweep.demo_problems())  # that verify() looks at
    OPTIONS: ClassVar[dict] = {}  # of running.job.Options, for these runs

    def __init__(self, number: int | str):
        self.stage = self._find(number)
        self.before = stages.previous_of(self.stage)
        self.trial: Trial | None = None  # of the last try_it()
        self._results: dict[tuple[str, Problem], Result] = {}
        self.begin_writing()
        where = device.choose(self.stage.min_compute).in_a_sentence
        show(note(f"runs on {where}.", f"Stage {self.stage.id}, {self.stage.title},"))

    def _find(self, which: int | str) -> stages.Stage:
        return stages.get(which)

    def _pair(self) -> list[stages.Stage]:
        return [one for one in (self.before, self.stage) if one]

    def _of(self, stage: int | str | None) -> stages.Stage:
        return self.stage if stage is None else self._find(stage)

    def show(self, *names: str, stage: int | str | None = None) -> None:
        """Named parts of kernel.cu with their line numbers: a function ("load_tile"), a phase ("S = QKᵀ"), "top".

        stage: another one than the lesson's.
        """
        one = self._of(stage)
        for name in names:
            part = source.find(one.kernel, name)
            show(code(part.text, part.first, f"stages/{one.name}/kernel.cu, {name}"))

    def kernel(self) -> None:
        """The whole kernel.cu, folded, below the command that the build compiles it with (in the project's folder)."""
        show(whole(self.stage.kernel))

    def parts(self, stage: int | str | None = None) -> list[str]:
        """The names that show() knows."""
        return [part.name for part in source.parts(self._of(stage).kernel)]

    def diff(self, context: int = 2) -> None:
        """What this stage's kernel changes in the one before."""
        if not self.before:
            raise FlashLadderError(f"{self.stage.name} is the first of its line: there is no kernel to compare with.")
        added, removed = diff.changed_lines(self.before, self.stage)
        show(diff_of(diff.unified(self.before, self.stage, context), f"{self.before.name} to {self.stage.name}"))
        show(note(f"{max(added, removed)} lines changed ({added} added, {removed} removed)."))

    def build(self) -> None:
        """Builds this stage, the one before, and the simulator; a compiler's error is told in its own words."""
        targets = sorted({target for one in self._pair() for target in one.targets})
        names = " and ".join(one.name for one in self._pair())
        with step(f"Building {names}", f"Built {names}."):
            build.build(targets)

    def verify(self, *problems: Problem, **options) -> None:
        """Runs the stage and compares what it wrote with the float64 reference. AssertionError where it is wrong.

        problems: PROBLEMS by default, one of each data type and head dim. options: of the runs, over OPTIONS.
        """
        options = {**self.OPTIONS, **options}
        verdicts = [sweep.verify(self.stage, problem, **options) for problem in problems or self.PROBLEMS]
        rows = []
        for verdict in verdicts:
            found = verdict.comparison
            figures = [f"{found.frobenius:.1e}", f"{found.worst_ratio:.2f}"] if found else ["", ""]
            where = verdict.result.device.short if verdict.result else ""
            rows.append([verdict.problem, where, *figures, "verified" if verdict.passed else "WRONG"])
        columns = ("problem", "ran on", "relative error", "worst element / its bound", "")
        show(table(self.OUTPUTS.format(self.stage.name), columns, rows, right=(2, 3)))
        wrong = [f"{verdict.problem}: {verdict.message}" for verdict in verdicts if not verdict.passed]
        if wrong:
            raise AssertionError(f"{self.stage.name} is wrong. " + "\n".join(wrong))

    def result(self, stage: int | str | None = None, problem: Problem = profile.PROBLEM) -> Result:
        """The run of a stage on the simulator whose counters the lesson shows; each is run once."""
        one = self._of(stage)
        key = (one.name, problem)
        if key not in self._results:
            with step(f"Running {one.name} on the simulator", f"Counters of {one.name} on the simulator, {problem}."):
                self._results[key] = profile.measure([one], problem)[one.name]
        return self._results[key]

    def counts(self, stage: int | str | None = None, problem: Problem = profile.PROBLEM) -> dict[str, float | None]:
        """All counters by name; instructions by class as "tensor instructions"."""
        return by_name(self.result(stage, problem).report)

    def count(self, name: str, stage: int | str | None = None, problem: Problem = profile.PROBLEM) -> float:
        """One counter of the simulator, e.g. count("shared ldmatrix wavefronts", stage=4)."""
        counted = self.counts(stage, problem)
        if counted.get(name) is None:
            raise FlashLadderError(f'There is no counter "{name}". There are: {", ".join(counted)}.')
        return counted[name]

    def count_at(self, text: str, problem: Problem = profile.PROBLEM) -> int:
        """PTX instructions, by warp, of this stage's run on the simulator at the lines of kernel.cu with this text.

        Code of headers counts at the line that calls it."""
        source_lines = self.stage.kernel.read_text().splitlines()
        numbers = {number for number, line in enumerate(source_lines, 1) if text in line}
        if not numbers:
            raise FlashLadderError(f"No line of {self.stage.name}'s kernel.cu has the text {text!r}.")
        return executed(self.result(problem=problem).report, "kernel.cu", numbers)

    def counters(self, lines: int = 6, classes: bool = False, problem: Problem = profile.PROBLEM) -> None:
        """Totals before and after on the simulator, then the lines with the most waste and work.

        classes: also the instructions by class. The lines of the stage before are shown where the waste differs, else
        they say the same twice.
        """
        results = {one.name: self.result(one.number, problem) for one in self._pair()}
        rows = profile.totals(results, classes)
        show(table(f"{problem}; PTX instructions, by warp", ["", *results], rows, right=range(1, len(results) + 1)))
        waste = {name: profile.waste(result.report) for name, result in results.items()}
        for name, result in results.items():
            if name != self.stage.name and waste[name] == waste[self.stage.name]:
                continue
            body = profile.by_line(result.report, lines)
            show(table(f"{name}: most waste first, then most work", profile.LINE_COLUMNS, body, right=range(1, 7)))

    def resources(self) -> None:
        """Registers, spills, shared memory and resident blocks: of the GPU here, else recorded."""
        where = device.choose(self.stage.min_compute)
        if where.kind == "gpu":
            title = f"On {where}"
            facts = [(one, one.describe(profile.PROBLEM, "gpu")) for one in self._pair()]
            rows = [[one.name, *(fact[key] for key in profile.RESOURCES)] for one, fact in facts]
        else:
            recorded_on, rows = profile.recorded_resources(self._pair())
            title = f"Recorded: {recorded_on}"
        show(table(f"{title}; bf16, d = 128", ["", *profile.RESOURCES.values()], rows, right=range(1, 6)))

    def throughput(self, d: int = 128, dtype: str = "bf16", causal: bool = False) -> None:
        """The stages so far and the peers: measured here where there is a GPU, and recorded. Never the simulator.

        causal: of those that mask. FlashLadderError where there is no figure to show.
        """
        number, shown = self.stage.number, short_runs.recorded_until(self.stage.number)
        where = device.choose(self.stage.min_compute)
        if where.kind == "gpu":
            with step(f"Measuring the stages up to {self.stage.id} on {where}", f"Measured on {where}, and recorded:"):
                shown = [(short_runs.measure(number, d, dtype, causal), True), *shown]
        else:
            show(note("a time of the simulator says nothing about a GPU, so these figures are recorded ones.",
                      f"No GPU runs stage {self.stage.id} here:"))  # fmt: skip
        show(plot.throughput(shown, dtype, d, causal))

    def ablations(self, d: int = 128, causal: bool = False) -> None:
        """The recorded throughput of this stage with one idea changed at a time, in percent of the stage itself."""
        records, one = recorded.shipped(kind="ablations"), self.stage
        show(plot.ablations(records, one.number, one.measured_dtype, d, causal))

    def recorded_tflops(
        self, length: int = 4096, d: int = 128, stage: int | str | None = None, causal: bool = False
    ) -> float:
        """The recorded throughput in bf16, on the GPU that the lesson quotes."""
        results, wanted = recorded.of(self.stage.name), {"dtype": "bf16", "d_head": d, "Nq": length, "causal": causal}
        for row in recorded.pick(results, name=self._of(stage).name, **wanted) if results else ():
            return row["tflops"]
        raise FlashLadderError(f"{self._of(stage).name} has no recorded throughput for N = {length}, d = {d}.")

    def break_it(self, name: str, picture: bool = True) -> None:
        """Plants a mistake of stages/NN/mistakes.toml, and shows who catches it and how. AssertionError if nobody does.

        picture: where the output is wrong, a map of its errors.
        """
        verdict = plant(mistakes.get(self.stage, name))
        if picture and verdict.output is not None:
            Br = self.stage.data["launch"][-1].get("Br", 0)
            show(plot.error_map(verdict.problem, verdict.inputs, verdict.output, Br=Br))

    def try_it(self, *changes: tuple[str, str], counts: tuple[str, ...] = ()) -> None:
        """Replaces text in a copy of the kernel, builds it, and runs it on the simulator beside the original.

        changes: (text in kernel.cu, what to put there). counts: counters to show; by default all that differ. A wrong
        result is shown and no error; afterwards `lesson.trial.count(name)` gives counters.
        """
        kernel = changed_kernel(self.stage, changes)
        original = self.counts()
        with step(f"Building and running a changed {self.stage.name}", f"{self.stage.name} with this change:"):
            self.trial = Trial.of(self.stage, compile_kernel(kernel, self.stage), profile.PROBLEM)
        show(diff_of(self.trial.difference(self.stage, kernel)))
        show_verdict(self.trial.verdict)
        rows = self.trial.rows(original, counts)
        if rows:
            show(table(f"{profile.PROBLEM}", ["", self.stage.name, "changed"], rows, right=(1, 2)))
