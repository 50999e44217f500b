"""Judges what a reader wrote, on the reader's own machine: does it compile, is the result right at several sizes, does
anything race, is the stage's technique used. Every line that is named is one of the reader's own text.

A submission of unknown origin is another matter: its host code may not run at all.
"""

import hashlib
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from flashladder.building import build
from flashladder.classroom.cases import Case, cases, larger
from flashladder.classroom.diagnosis import diagnose
from flashladder.classroom.exercise import CHECKS, Exercise, Mend, fill, techniques
from flashladder.core import device
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import place
from flashladder.core.problem import Problem
from flashladder.ladder import host_streams, kernels, overlap, stages, technique
from flashladder.ladder.kernels import Kernel, WithKernel
from flashladder.ladder.launches import configurations
from flashladder.ladder.stage import Stage
from flashladder.running.job import Result, StageError
from warpsim import counters

# A run of these small problems takes a fifth of a second: what takes this long does not end by itself.
SECONDS = 30
MOST = 3  # things of a kind that are told
COUNTED = ((128, "bf16"), (64, "fp16"))  # d_head and type of what the technique is judged by: it may lack in one alone
# What the toolchain repairs, so that the numbers are right, by the kind of the simulator's note: why it is wrong.
REPAIRED = {
    "async_pending": "the wait that should stand before it is missing, or leaves one batch too many in flight, and "
    "what was to run under the products waits for them",
    "wgmma": "the fence that should stand before the wgmma is missing, and PTX promises nothing without it",
    "setmaxnreg": "no thread gives registers back or gets more of them",
    "global_race": "the same rows are computed twice, and nothing says which of the writes is the last",
}
_ERROR = re.compile(r"^(?P<file>[^\s(:][^(:\n]*)[(:](?P<line>\d+)(?:\)|:\d+): (?:fatal )?error: (?P<text>.*)$", re.M)
_PLACE = re.compile(r"\b(?P<file>\w+\.(?:cu|cpp)):(?P<line>\d+)")

Lines = Callable[[int], str]  # words for a line of the source that was judged


@dataclass(frozen=True)
class Finding:
    """One check: "builds", "correct", "hazards" or "technique"."""

    check: str
    passed: bool
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wrong:
    """A problem with a wrong output, for a map of its errors."""

    problem: Problem
    inputs: dict
    output: np.ndarray


@dataclass(frozen=True)
class Judgement:
    """What came of an answer. Checks behind one that failed may be missing: what does not compile has no result."""

    findings: tuple[Finding, ...]
    written: bool = True  # False: the stub stands there still, and nothing was done
    wrong: Wrong | None = field(default=None, compare=False, repr=False)

    @property
    def passed(self) -> bool:
        return self.written and all(one.passed for one in self.findings)

    @property
    def built(self) -> bool:
        return self.written and self._passed("builds")

    @property
    def correct(self) -> bool:
        return self.built and self._passed("correct")

    @property
    def hazards(self) -> list[str]:
        return self._words("hazards")

    @property
    def technique(self) -> list[str]:
        return self._words("technique")

    @property
    def words(self) -> list[str]:
        """All that is to be said, what matters most first."""
        return [text for one in self.findings if not one.passed for text in one.words]

    @property
    def summary(self) -> str:
        """A few words, such as "right, but without the technique"."""
        failed = {one.check for one in self.findings if not one.passed}
        if not self.written:
            return "not written yet"
        if "builds" in failed:
            return "does not compile"
        if "correct" in failed:
            return "wrong, and with a hazard" if "hazards" in failed else "wrong"
        if "hazards" in failed:
            return "right numbers, but with a hazard"
        return "right, but without the technique" if failed else "right"

    def _passed(self, name: str) -> bool:
        return any(one.check == name and one.passed for one in self.findings)

    def _words(self, name: str) -> list[str]:
        return [text for one in self.findings if one.check == name and not one.passed for text in one.words]


NOT_WRITTEN = Judgement((), written=False)


def silent(words: str) -> None:
    """Says nothing."""


def attempt(
    exercise: Exercise | Mend,
    text: str,
    line: Lines = "line {}".format,
    shipped: Lines | None = None,
    say: Callable[[str], None] = silent,
) -> Judgement:
    """Judges an answer to one exercise; of one to mend, the whole source.

    line: words for a line of the answer, numbered from 1. shipped: for a line of the shipped source that is not the
    answer's; "kernel.cu:39" by default. say: is told what is done.
    """
    if exercise.is_stub(text):
        return NOT_WRITTEN
    if isinstance(exercise, Mend):
        return judge(exercise.stage, text, exercise.checks, line, say=say)
    filled, name = fill(exercise.stage, {exercise.name: text}), exercise.stage.source.name

    def words(number: int) -> str:
        if number in filled.lines:
            return line(filled.lines[number][1])
        at = filled.others.get(number, 0)
        return shipped(at) if shipped and at else f"{name}:{at or '?'}"

    return judge(exercise.stage, filled.source, exercise.checks, words, say=say)


def judge(
    stage: Stage | int | str,
    source: str,
    checks: Sequence[str] = CHECKS,
    line: Lines = "line {}".format,
    sizes: Sequence[Problem] = (),
    say: Callable[[str], None] = silent,
) -> Judgement:
    """Builds a whole source of a stage and runs it on the simulator, and where there is a GPU for it, there, too.

    checks: CHECKS, or "technique:NAME" for one expectation of stage.toml. line: words for a line of the source. sizes:
    problems to be tried besides those of cases(). say: is told what is done.
    """
    stage = stages.entry(stage)
    is_kernel = isinstance(stage, WithKernel)
    build.build(["warpsim_cudart"] if is_kernel else stage.targets)  # the stage's own library is of no use here
    if not is_kernel:
        digest = hashlib.sha256(source.encode()).hexdigest()[:16]
        file = place("exercises", f"{stage.id}-{digest}", stage.source.name, source)
        return _judged_as_a_program(stage, file, checks, line)
    every = all_cases(stage, checks, sizes)
    first = [one for one in every if same_instance(one, every[0])]
    runs = _Runs(stage, line)
    for some, alone in ((first, True), ([one for one in every if one not in first], False)):
        if not some:
            continue
        try:
            library = _compiled(stage, source, some, alone)
        except kernels.CompileError as error:
            words = compiler_words(error.said, stage.source.name, line)
            return Judgement((Finding("builds", False, tuple(words + _brace(words, stage.source.name))),))
        say(f"compiled; running it at {len(some)} {'sizes' if alone else 'more sizes'} on the simulator")
        for case in some:
            if not runs.go_on(library, case):
                break
        found = runs.findings(checks)
        if not runs.clean:
            break
        if technique.all_failures(stage, runs.counted, techniques(checks)):
            break
    where = device.choose(stage.min_compute)
    if where.kind == "gpu" and runs.clean:
        say(f"running it on {where}")
        runs.on_a_gpu(_compiled(stage, source, every, False), where)
        found = runs.findings(checks)
    if all(one.passed for one in found):  # what the counters of a wrong kernel say is beside the point
        found += _technique(stage, runs.counted, checks, line)
    return Judgement((Finding("builds", True), *found), wrong=runs.wrong)


def same_instance(case: Case, first: Case) -> bool:
    """Whether the instance of the kernel that runs the first case runs this one, too."""
    kind = (first.problem.dtype, first.problem.d_head, first.configuration)
    return (case.problem.dtype, case.problem.d_head, case.configuration) == kind


def _compiled(stage: WithKernel, source: str, some: Sequence[Case], alone: bool) -> Path:
    """The library that runs these cases. alone: one instance runs them all, so that nothing else is compiled: a mistake
    is known in a quarter of the time."""
    table = _table(stage, [one.configuration for one in some], alone)
    digest = hashlib.sha256("\0".join([source, table or ""]).encode()).hexdigest()[:16]
    file = place("exercises", f"{stage.id}-{digest}", stage.source.name, source)
    if table:
        place("exercises", file.parent.name, kernels.TABLE, table)
    return kernels.compile_kernel(file, stage, only=None if alone or "only_instance" in stage.data else "")


def all_cases(stage: WithKernel, checks: Sequence[str], sizes: Sequence[Problem] = ()) -> list[Case]:
    """Those of cases(), of further sizes, and the runs by which the techniques that are asked for are judged."""
    found = cases(stage)
    found += [Case(problem, one) for problem in sizes for one in configurations(stage, problem)]
    names = techniques(checks)
    counted = [] if names == [] else [run for kind in COUNTED for run in technique.runs(stage, names, *kind)]
    counted = [Case(run.problem, run.configuration(stage), counted=run) for run in counted]
    d_heads = stage.data.get("d_heads", ())  # of one instance alone (classroom/blank.py)
    return [one for one in dict.fromkeys([*found, *counted]) if not d_heads or one.problem.d_head in d_heads]


def _table(stage: WithKernel, used: list[str | None], alone: bool = False) -> str | None:
    """Of a stage that has a table of instances, that of those that the runs use: to compile the others takes most of
    the time. None: all of them, also where a run leaves the choice to the kernel."""
    if "only_instance" in stage.data:
        return kernels.table_of(stage, {stage.data["only_instance"]})
    if not (stage.folder / kernels.TABLE).exists():  # its configurations are numbers that the kernel is given
        return None
    if not alone:
        used = used + [stage.configuration(problem) for problem in (larger(stage), kernels.problem_for(stage))]
    return kernels.table_of(stage, set(used)) if None not in used else None


def _technique(
    stage: WithKernel, counted: list[tuple[technique.Run, dict]], checks: Sequence[str], line: Lines
) -> list[Finding]:
    """What the counters say of the techniques that are asked for, and at which lines most is wasted."""
    names = techniques(checks)
    if names == []:
        return []
    failed = technique.all_failures(stage, counted, names)
    if failed:
        words = [f"right, but {text}" for text in failed]
        return [Finding("technique", False, (*words, *_waste(stage, counted[0][1], line)))]
    return [Finding("technique", True, tuple(one.says for one in technique.chosen(stage, names)))]


class _Runs:
    """The runs of one library: what was wrong, and what raced."""

    def __init__(self, stage: WithKernel, line: Lines):
        self.stage, self.line = stage, line
        self.wrong: Wrong | None = None
        self.right: list[str] = []  # problems
        self.faults: list[str] = []  # the first wrong result, or what ended a run, and what it is likely to come from
        self.also: list[str] = []  # problems with further wrong results
        self.hazards: dict[tuple, str] = {}
        self.counted: list[tuple[technique.Run, dict]] = []  # the runs by which the technique is judged, with reports

    @property
    def clean(self) -> bool:
        return not (self.faults or self.hazards)

    def go_on(self, library: Path, case: Case) -> bool:
        """One more run on the simulator, in which a hazard is noted and the kernel goes on. False: this is the last,
        since a result says little of a kernel that races."""
        inputs, traced = case.arrays(self.stage), bool(case.counted and case.counted.traced)
        more = {"WARPSIM_HAZARDS": "warn", "WARPSIM_TIMEOUT_S": str(SECONDS)}
        try:
            with tempfile.TemporaryDirectory(prefix="flashladder-") as name:
                more |= overlap.variables(Path(name)) if traced else {}
                result = self._run(library, case.problem, inputs, "sim", case.configuration, more)
                if traced:
                    overlap.complete(result.report, Path(name))
        except StageError as error:
            self._note_hazards(error.report)
            begin = f"stage {self.stage.id}, {case.problem}: "
            text = told(str(error).splitlines()[0].removeprefix(begin), self.line)
            self.faults.append(f"stopped at {case}: {text}")
            return False
        self._note_hazards(result.report)
        self._compare(case.problem, inputs, result, str(case))
        if case.counted:
            self.counted.append((case.counted, result.report))
        return not self.hazards

    def _run(
        self, library: Path, problem: Problem, inputs: dict, kind: str, configuration: str | None, more=()
    ) -> Result:
        options = {"environment": dict(more), "timeout": 4 * SECONDS, "configuration": configuration}
        return self.stage.run(problem, inputs, kind, library, **options)

    def on_a_gpu(self, library: Path, where: Device) -> None:
        problem = larger(self.stage)
        inputs = self.stage.random_inputs(problem, 1)
        try:
            result = self._run(library, problem, inputs, where.kind, self.stage.configuration(problem))
        except StageError as error:
            self.faults.append(f"stopped on {where} at {problem}: {str(error).splitlines()[0]}")
            return
        self._compare(problem, inputs, result, f"{problem}, on {result.device}")

    def _compare(self, problem: Problem, inputs: dict, result: Result, at: str) -> None:
        with np.errstate(invalid="ignore"):  # what was never written is a NaN
            comparison = self.stage.compared(problem, inputs, result)
        if comparison:
            self.right.append(at)
        elif self.faults:
            self.also.append(at)
        else:
            self.faults.append(f"wrong at {at}: {comparison.message}")
            if isinstance(self.stage, Kernel):
                self.wrong = Wrong(problem, inputs, result.bits)
                launch = self.stage.launch
                words = diagnose(problem, inputs, result.bits, launch.get("Br", 64), launch.get("Bc", 64))
                self.faults += [words] if words else []

    def _note_hazards(self, report: dict | None) -> None:
        self.hazards |= hazards_in(report, self.line)

    def findings(self, checks: Sequence[str]) -> list[Finding]:
        """Hazards come first: a kernel that races is often wrong on account of it."""
        found = []
        if "hazards" in checks:
            shown = list(self.hazards.values())[:MOST]
            more = len(self.hazards) - len(shown)
            found.append(Finding("hazards", not self.hazards, tuple(shown + ([f"and {more} more"] if more else []))))
        if "correct" in checks:
            words = [*self.faults]
            words += [f"wrong also at {_some(self.also)}"] if self.also else []
            words += [f"right at {_some(self.right)}"] if self.right else []
            found.append(Finding("correct", not self.faults, tuple(words)))
        return found


def _some(texts: list[str]) -> str:
    more = len(texts) - MOST
    return "; ".join(texts[:MOST]) + (f"; and at {more} more" if more > 0 else "")


def hazards_in(report: dict | None, line: Lines) -> dict[tuple, str]:
    """Words for each kind of hazard, once for each set of lines that it names, and for what the toolchain repairs."""
    found = {}
    for hazard in [*counters.hazards(report), *counters.notes(report)] if report else ():
        message = in_short(hazard["message"])
        key = (hazard["kind"], frozenset(_PLACE.findall(message)))
        found.setdefault(key, hazard_words(hazard | {"message": message}, line))
    return found


def in_short(message: str) -> str:
    """The message of a hazard without the list of lanes and bytes at the end."""
    return re.sub(r" \[[^\[\]]*(\[[^\]]*\][^\[\]]*)*\]$", "", message)


def hazard_words(hazard: dict, line: Lines) -> str:
    """A hazard or a note of a report, with the reader's lines. A note says what the toolchain repaired; why the code is
    wrong all the same is added here."""
    kind = f"{hazard['kind'].replace('_', ' ')}: "
    text = kind + told(hazard["message"].removeprefix(kind), line)
    if not hazard.get("note"):
        return text
    return f"{text}. The numbers are right all the same, but the code is wrong: {REPAIRED[hazard['kind']]}"


def _waste(stage: WithKernel, report: dict, line: Lines) -> list[str]:
    """The lines of the source with the most wavefronts and sectors beyond what the same bytes need, one of each."""
    own = [one for one in counters.lines(report) if one.line_in(stage.source.name)]
    words = []
    for what, excess in (
        ("wavefronts of shared memory", "shared_excess"),
        ("sectors of global memory", "global_excess"),
    ):
        worst = max(own, key=lambda one: getattr(one, excess), default=None)
        if worst and getattr(worst, excess):
            place = line(worst.line_in(stage.source.name))
            words.append(f"most {what} are wasted at {place}: {getattr(worst, excess):,} too many")
    return words


def _judged_as_a_program(stage: Stage, file: Path, checks: Sequence[str], line: Lines) -> Judgement:
    """Stage 00: a program of the host, judged as its planted mistakes are; its technique is that streams overlap."""
    try:
        verdict = stage.judge(file)
    except FlashLadderError as error:
        words = compiler_words(str(error), file.name, line)
        return Judgement((Finding("builds", False, tuple(words)),))
    said = tuple(told(text, line) for text in verdict.words())
    found = [Finding("builds", True), Finding("correct", not verdict.caught, said)]
    if "technique" in checks and not verdict.caught:
        together = host_streams.streams_in_flight(host_streams.compile_program(file, file.parent.name))
        alone = [
            f"right, but the variant {name} never has work of two streams in flight"
            for name in together
            if together[name] < 2
        ]
        found.append(Finding("technique", not alone, tuple(alone)))
    return Judgement(tuple(found))


def compiler_words(said: str, name: str, line: Lines) -> list[str]:
    """The first errors of a compiler, one sentence each; those in the file `name` with the reader's lines."""
    found = []
    for error in _ERROR.finditer(said):
        file = error["file"].rpartition("/")[2]
        place_of = line(int(error["line"])) if file == name else f"{file}:{error['line']}"
        text = f"{place_of}: {error['text']}"
        if text not in found:
            found.append(text)
    if not found:
        return [text.strip() for text in said.strip().splitlines()[-MOST:]] or ["the compiler says nothing"]
    more = len(found) - MOST
    return found[:MOST] + ([f"and {more} more, which may follow from these"] if more > 0 else [])


def _brace(words: list[str], name: str) -> list[str]:
    """A sentence where a compiler complains of lines that are not the reader's."""
    if words[0].startswith(f"{name}:"):
        return ["no error is in your own lines: does each brace, parenthesis and semicolon in them have its place?"]
    return []


def told(message: str, line: Lines) -> str:
    """A message of the simulator, with the reader's own lines for those of the source that was judged."""

    def words(match: re.Match) -> str:
        return line(int(match["line"])) if match["file"] in ("kernel.cu", "host_streams.cpp") else match[0]

    return _PLACE.sub(words, message)
