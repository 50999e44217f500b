"""Judges a whole kernel that was written from a blank page: its subgoals one by one, by what it shows of itself, and O
as every answer is judged (classroom/judge.py). Lines are those of the reader's file."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flashladder.building import build
from flashladder.classroom import blank, done, judge, shown
from flashladder.classroom.blank import WHOLE, Page, Subgoal
from flashladder.classroom.exercise import CHECKS
from flashladder.classroom.judge import Judgement, Lines
from flashladder.classroom.lexing import without_comments
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import place
from flashladder.core.problem import Problem
from flashladder.ladder import kernels, launches
from flashladder.running.job import Options, Result, StageError, run_library

SECONDS = 60  # of one run, a small problem: what takes this long does not end by itself
MOST = 3  # hazards that are told
_NOTHING_WRITTEN = "the launch reported success, but its kernel wrote nothing", "nothing is written to O"
_ENTRY = re.compile(r"\bflash_forward\s*\(")


@dataclass(frozen=True)
class Part:
    """What came of a subgoal. words: what is wrong; empty where it is right or where nothing was shown yet."""

    subgoal: Subgoal
    passed: bool
    words: tuple[str, ...] = ()
    begun: bool = True  # False: the file shows nothing of it
    wrong: str = "wrong"  # how it is, where it has not passed
    judgement: Judgement | None = None  # of the whole

    @property
    def summary(self) -> str:
        if not self.begun:
            calls = ", ".join(f"show_{kind}" for kind in self.subgoal.shows)
            return f"not shown yet ({calls})"
        if self.judgement:
            return self.judgement.summary.replace("wrong", "wrong numbers", 1)
        return "right" if self.passed else self.wrong


def parts(page: Page, text: str, line: Lines, only: str = "") -> Iterator[Part]:
    """Each subgoal in its order, as soon as it is judged. only: the name of one. FlashLadderError where the text cannot
    be a kernel of the stage at all."""
    if not _ENTRY.search(text):
        raise FlashLadderError(
            "flash_forward is not in it: a whole kernel has the functions of common/include/attention.h. "
            f"`make new STAGE={page.stage.id}` writes a file that has them."
        )
    chosen = [page.subgoal(only)] if only else page.subgoals
    runs = _Runs(page, text, line)
    for one in chosen:
        if not runs.compiles:  # all others would have the same to say
            return
        yield _whole(page, one, text, line) if one.name == WHOLE else _part(one, text, runs)


def sizes(stage: kernels.Kernel) -> list[Problem]:
    """What a whole kernel is tried with: what changed kernels are, several batches, heads and tiles along every axis,
    both types, head dims and layouts, scores beyond what exp() takes. None of a stage with a table of instances."""
    if launches.instances(stage):  # which of them are tried with what, the judge says
        return []
    launch = stage.data["launch"][-1]
    Br, Bc = launch.get("Br", 64), launch.get("Bc", 64)
    more = [
        Problem(B=2, Hq=4, Nq=3 * Br, Nkv=5 * Bc, d_head=128, dtype="fp16", layout="bnhd"),
        Problem(B=1, Hq=4, Nq=Br, Nkv=Bc, d_head=64, dtype="bf16"),
        Problem(B=2, Hq=1, Nq=2 * Br, Nkv=2 * Bc, d_head=64, dtype="fp16"),
        Problem(B=1, Hq=1, Nq=Br, Nkv=4 * Bc, d_head=128, dtype="bf16", scale=16.0),
    ]
    return [*kernels.problems_for(stage), *map(stage.own, more)]


def shown_sizes(stage: kernels.Kernel) -> list[Problem]:
    """One head, several tiles along both axes, both head dims."""
    launch = stage.data["launch"][-1]
    rows, columns = 2 * launch["Br"], 3 * launch["Bc"]
    d_heads = stage.data.get("d_heads", (128, 64))
    return [stage.own(Problem(B=1, Hq=1, Nq=rows, Nkv=columns, d_head=d_head)) for d_head in d_heads]


def _whole(page: Page, one: Subgoal, text: str, line: Lines) -> Part:
    found = judge.judge(page.stage, text, CHECKS, line, sizes(page.stage))
    return Part(one, found.passed, tuple(text.replace(*_NOTHING_WRITTEN) for text in found.words), judgement=found)


def _part(one: Subgoal, text: str, runs: "_Runs") -> Part:
    code = without_comments(text)
    if not any(re.search(rf"\bshow_{kind}\s*\(", code) for kind in one.shows):
        return Part(one, False, begun=False)
    faults = runs.faults(one)
    hazards = list(runs.hazards.values())[:MOST]
    if not faults:
        return Part(one, not hazards, tuple(hazards), wrong="right numbers, but with a hazard")
    wrong = "does not compile" if not runs.compiles else "wrong, and with a hazard" if hazards else "wrong"
    return Part(one, False, (*hazards, *faults), wrong=wrong)


class _Runs:
    """The kernel as it is and built to show its insides, and what came of both: built and run when that is first asked
    for. Of a kernel that has come as far as O, hazards are those of the first build: the second one reads more."""

    def __init__(self, page: Page, text: str, line: Lines):
        self._page, self._text, self._line = page, text, line
        self.compiles = True  # as far as it is known
        self.hazards: dict[tuple, str] = {}  # each kind once for each set of lines
        self._failed: list[str] = []  # why nothing was shown
        self._found: list[tuple[Problem, dict, object]] = []
        self._run = False

    def faults(self, one: Subgoal) -> list[str]:
        """What is wrong besides hazards."""
        if not self._run:
            self._run = True
            self._show()
        words = list(self._failed)
        for problem, inputs, bits in self._found:
            Bc = self._page.stage.data["launch"][-1]["Bc"]
            for kind in one.shows:
                wrong = shown.faults(problem, inputs, bits, kind, Bc)
                words += [
                    f"{text} (d = {problem.d_head})" if number == 0 else text for number, text in enumerate(wrong)
                ]
            if words:  # the other head dim has most likely the same to say
                break
        return words

    def _show(self) -> None:
        stage, line = self._page.stage, self._line
        build.build(["warpsim_cudart"])
        digest = hashlib.sha256(self._text.encode()).hexdigest()[:16]
        file = place("exercises", f"{stage.id}-shown-{digest}", stage.source.name, self._text)
        alone = stage.data.get("only_instance")
        if alone:
            place("exercises", file.parent.name, kernels.TABLE, kernels.table_of(stage, {alone}))
        only = None if alone else "BF16"
        try:
            plain = kernels.compile_kernel(file, stage, only=only)
            showing = kernels.compile_kernel(file, stage, "-DFLASH_SHOW", only=only)
        except kernels.CompileError as error:
            self._failed, self.compiles = judge.compiler_words(error.said, file.name, line), False
            return
        for problem in shown_sizes(stage):
            inputs = problem.random(1)
            result = self._ran(plain, problem, inputs, hazards_count=True)
            if not result:
                return
            # What is shown stands for what will use it, until the kernel does: the compiler leaves out what nothing
            # uses, and with it the hazard.
            seen = self._ran(showing, problem, inputs, hazards_count=not _has_O(result))
            if not seen:
                return
            self._found.append((problem, inputs, seen.shown))

    def _ran(self, library: Path, problem: Problem, inputs: dict, hazards_count: bool) -> Result | None:
        """A run on the simulator, in which a kernel goes on after a hazard. None: something else stopped it."""
        stage = self._page.stage
        more = stage.simulated | {"WARPSIM_HAZARDS": "warn", "WARPSIM_TIMEOUT_S": str(SECONDS)}
        options = Options(environment=more, timeout=4 * SECONDS, shown_bytes=shown.buffer_bytes(problem))
        result = report = None
        try:
            result = run_library(f"stage {stage.id}", library, problem, inputs, Device("sim", None), options)
            report = result.report
        except StageError as error:
            said = str(error).splitlines()[0].removeprefix(f"stage {stage.id}, {problem}: ")
            self._failed, report = [f"stopped at {problem}: {judge.told(said, self._line)}"], error.report
        if hazards_count:
            self.hazards |= judge.hazards_in(report, self._line)
        return result


def _has_O(result: Result) -> bool:
    """Whether a kernel has come as far as O: until then it leaves O as it was, or writes zeros or what 0 / 0 gives."""
    values = result.O.astype(np.float32)
    return bool((np.isfinite(values) & (values != 0)).any())


def right(page: Page, found: list[Part]) -> list[str]:
    """The names of the subgoals that are right; where the whole is, all of them, shown or not."""
    passed = [one.subgoal.name for one in found if one.passed]
    return [one.name for one in page.subgoals] if WHOLE in passed else passed


def note(page: Page, found: list[Part], text: str) -> None:
    """Keeps what is right, but for what was given on the page."""
    given = blank.given(text)
    done.note(page.stage, done.BLANK, [name for name in right(page, found) if name not in given])
