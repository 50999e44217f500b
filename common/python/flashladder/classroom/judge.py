"""Judges what a reader wrote, on the reader's own machine: does it compile, is the result right at several sizes, does
anything race, is the stage's technique used. Every line that is named is one of the reader's own text.

A submission of unknown origin is another matter: its host code may not run at all.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from flashladder.building import build
from flashladder.classroom.exercise import Exercise, Mend, fill, techniques
from flashladder.core import device
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import place
from flashladder.core.problem import Problem
from flashladder.ladder import host_streams, kernels, stages, technique
from flashladder.ladder.launches import configurations
from flashladder.ladder.run import run_problem
from flashladder.ladder.stage import Stage
from flashladder.running.job import Result, StageError, run_library
from flashladder.running.verify import check
from flashladder.simulator import counters

# A run of these small problems takes a fifth of a second: what takes this long does not end by itself.
SECONDS = 30
MOST = 3  # things of a kind that are told
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


def attempt(exercise: Exercise | Mend, text: str, line: Lines = "line {}".format) -> Judgement:
    """Judges an answer to one exercise; of one to mend, the whole source.

    line: words for a line of the answer, numbered from 1.
    """
    if exercise.is_stub(text):
        return NOT_WRITTEN
    if isinstance(exercise, Mend):
        return judge(exercise.stage, text, exercise.checks, line)
    filled, name = fill(exercise.stage, {exercise.name: text}), exercise.stage.source.name

    def words(number: int) -> str:
        return line(filled.lines[number][1]) if number in filled.lines else f"{name}:{filled.others.get(number, '?')}"

    return judge(exercise.stage, filled.source, exercise.checks, words)


def judge(
    stage: Stage | int | str,
    source: str,
    checks: Sequence[str] = ("correct", "hazards"),
    line: Lines = "line {}".format,
    sizes: Sequence[Problem] = (),
) -> Judgement:
    """Builds a whole source of a stage and runs it on the simulator, and where there is a GPU for it, there, too.

    checks: as in exercises.toml. line: words for a line of the source. sizes: default: those of _cases().
    """
    stage = stages.entry(stage)
    is_kernel = isinstance(stage, kernels.Kernel)
    build.build(["warpsim_cudart"] if is_kernel else stage.targets)  # the stage's own library is of no use here
    cases = [(problem, configuration) for problem in sizes for configuration in configurations(stage, problem)]
    cases = cases or (_cases(stage) if is_kernel else [])
    table = _table(stage, [configuration for _, configuration in cases], checks) if is_kernel else None
    digest = hashlib.sha256("\0".join([source, table or ""]).encode()).hexdigest()[:16]
    file = place("exercises", f"{stage.id}-{digest}", stage.source.name, source)
    if table:
        place("exercises", file.parent.name, kernels.TABLE, table)
    if not is_kernel:
        return _judged_as_a_program(stage, file, checks, line)
    try:
        library = kernels.compile_kernel(file, stage, only="")
    except kernels.CompileError as error:
        words = compiler_words(error.said, file.name, line)
        return Judgement((Finding("builds", False, tuple(words + _brace(words, file.name))),))
    runs = _Runs(stage, line)
    for problem, configuration in cases:
        if not runs.go_on(library, problem, configuration):
            break
    where = device.choose(stage.min_compute)
    if where.kind == "gpu" and runs.clean:
        runs.on_a_gpu(library, where)
    found = runs.findings(checks)
    if all(one.passed for one in found):  # what the counters of a wrong kernel say is beside the point
        found += _technique(stage, library, checks, line)
    return Judgement((Finding("builds", True), *found), wrong=runs.wrong)


def _table(stage: kernels.Kernel, used: list[str | None], checks: Sequence[str]) -> str | None:
    """Of a stage that has a table of instances, that of those that the runs use: to compile the others takes most of
    the time. None: all of them, also where a run leaves the choice to the kernel."""
    names = techniques(checks)
    if names != []:
        used = used + [run.configuration(stage) for run in technique.runs(stage, names)]
    used = used + [stage.configuration(problem) for problem in (_larger(stage), kernels.problem_for(stage))]
    return kernels.table_of(stage, set(used)) if None not in used else None


def _technique(stage: kernels.Kernel, library: Path, checks: Sequence[str], line: Lines) -> list[Finding]:
    """What the counters say of the techniques that are asked for, and at which lines most is wasted."""
    names = techniques(checks)
    if names == []:
        return []
    try:
        failed = technique.judge(stage, library, names)
    except StageError as error:  # its runs have other sizes than those of the result
        return [
            Finding("technique", False, (f"stopped when it was counted: {told(str(error).splitlines()[0], line)}",))
        ]
    if failed:
        words = [f"right, but {text}" for text in failed]
        return [Finding("technique", False, (*words, *_waste(stage, library, line)))]
    return [Finding("technique", True, tuple(one.says for one in technique.chosen(stage, names)))]


def _cases(stage: kernels.Kernel) -> list[tuple[Problem, str | None]]:
    """What an answer is verified at: what changed kernels are judged by (odd tiles), two batches of the other type,
    head dim and layout, and scores far beyond what exp() takes; each with the configuration that runs it."""
    launch = stage.data["launch"][-1]
    Br, Bc = launch.get("Br", 64), launch.get("Bc", 64)
    more = [
        Problem(B=2, Hq=2, Nq=2 * Br, Nkv=2 * Bc, d_head=64, dtype="fp16", layout="bnhd"),
        Problem(B=1, Hq=1, Nq=Br, Nkv=4 * Bc, d_head=64, dtype="bf16", scale=16.0),
    ]
    more = [stage.own(problem) for problem in more]
    return [*kernels.judged_by(stage), *((problem, stage.configuration(problem)) for problem in more)]


def _larger(stage: kernels.Kernel) -> Problem:
    """What the simulator would take long for, and a GPU runs."""
    return stage.own(Problem(B=2, Hq=4, Nq=8 * stage.data["launch"][-1].get("Br", 64), d_head=128))


class _Runs:
    """The runs of one library: what was wrong, and what raced."""

    def __init__(self, stage: kernels.Kernel, line: Lines):
        self.stage, self.line = stage, line
        self.wrong: Wrong | None = None
        self.right: list[str] = []  # problems
        self.faults: list[str] = []  # the first wrong result, or what ended a run
        self.also: list[str] = []  # problems with further wrong results
        self.hazards: dict[tuple, str] = {}

    @property
    def clean(self) -> bool:
        return not (self.faults or self.hazards)

    def go_on(self, library: Path, problem: Problem, configuration: str | None) -> bool:
        """One more run on the simulator, in which a hazard is noted and the kernel goes on. False: this is the last,
        since a result says little of a kernel that races."""
        inputs, at = problem.random(1), f"{problem}, {configuration}" if configuration else str(problem)
        more = {"WARPSIM_HAZARDS": "warn", "WARPSIM_TIMEOUT_S": str(SECONDS)}
        try:
            result = self._run(library, problem, inputs, Device("sim", None), configuration, more)
        except StageError as error:
            self._note_hazards(error.report)
            text = told(str(error).splitlines()[0].removeprefix(f"stage {self.stage.id}, {problem}: "), self.line)
            self.faults.append(f"stopped at {at}: {text}")
            return False
        self._note_hazards(result.report)
        self._compare(problem, inputs, result, at)
        return not self.hazards

    def _run(self, library: Path, problem: Problem, inputs: dict, where: Device, configuration: str | None, more=None):
        name = f"stage {self.stage.id}"
        return run_library(name, library, problem, inputs, where, more, 4 * SECONDS, configuration=configuration)

    def on_a_gpu(self, library: Path, where: Device) -> None:
        problem = _larger(self.stage)
        inputs = problem.random(1)
        try:
            result = self._run(library, problem, inputs, where, self.stage.configuration(problem))
        except StageError as error:
            self.faults.append(f"stopped on {where} at {problem}: {str(error).splitlines()[0]}")
            return
        self._compare(problem, inputs, result, f"{problem}, on {result.device}")

    def _compare(self, problem: Problem, inputs: dict, result: Result, at: str) -> None:
        with np.errstate(invalid="ignore"):  # what was never written is a NaN
            comparison = check(problem, inputs, result.bits, result.log_sum_exp)
        if comparison:
            self.right.append(at)
        elif self.faults:
            self.also.append(at)
        else:
            self.faults.append(f"wrong at {at}: {comparison.message}")
            self.wrong = Wrong(problem, inputs, result.bits)

    def _note_hazards(self, report: dict | None) -> None:
        """Each kind of hazard once for each set of lines that it names."""
        for hazard in counters.hazards(report) if report else ():
            message = re.sub(r" \[[^\[\]]*(\[[^\]]*\][^\[\]]*)*\]$", "", hazard["message"])
            key = (hazard["kind"], frozenset(_PLACE.findall(message)))
            kind = f"{hazard['kind'].replace('_', ' ')}: "
            self.hazards.setdefault(key, kind + told(message.removeprefix(kind), self.line))

    def findings(self, checks: Sequence[str]) -> list[Finding]:
        """Hazards come first: a kernel that races is often wrong on account of it."""
        found = []
        if "hazards" in checks:
            shown = list(self.hazards.values())[:MOST]
            more = len(self.hazards) - len(shown)
            found.append(Finding("hazards", not self.hazards, tuple(shown + ([f"and {more} more"] if more else []))))
        if "correct" in checks:
            words = [*self.faults]
            words += [f"wrong also at {'; '.join(self.also)}"] if self.also else []
            words += [f"right at {'; '.join(self.right)}"] if self.right else []
            found.append(Finding("correct", not self.faults, tuple(words)))
        return found


def _waste(stage: kernels.Kernel, library: Path, line: Lines) -> list[str]:
    """The lines of the source with the most wavefronts and sectors beyond what the same bytes need, one of each."""
    problem = kernels.problem_for(stage)
    report = run_problem(
        stage, problem, device="sim", library=library, configuration=stage.configuration(problem)
    ).report
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
