"""Puzzles: kernels of ten lines with one idea each, before the large ones. stages/NN_name/exercises.toml has them; the
solution stands in the kernel between two marks, and a reader's lines take its place.

A file to write one in (work/puzzles/05_no_conflicts.cu) holds the kernel with the stub between the marks.
"""

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from flashladder.classroom.exercise import entries, place
from flashladder.classroom.lexing import without_comments
from flashladder.core import toml
from flashladder.core.errors import FlashLadderError, named
from flashladder.core.expression import RELATIONS
from flashladder.core.paths import work_directory
from flashladder.ladder import stages
from flashladder.ladder.stage import Stage

OPEN, CLOSE = "// >>> yours", "// <<<"
_NEEDED = {"name", "title", "minutes", "task", "hints", "threads", "input", "output", "code", "stub"}
_OTHERS = {"arch", "includes", "input_scale", "tolerance", "expected"}


@dataclass(frozen=True)
class Expected:
    """What the simulator's counters show (ladder/technique.py lists their names)."""

    left: str
    relation: str
    right: str
    failure: str


@dataclass(frozen=True)
class Puzzle:
    stage: Stage
    name: str  # unique in the whole ladder: `%%puzzle no_conflicts`
    title: str
    minutes: int
    task: str
    hints: tuple[str, ...]
    threads: int  # of the one block
    input: int  # floats, random normal ones
    output: int  # floats
    code: str = field(repr=False)  # the solved kernel, with its marks
    stub: str = field(repr=False)
    arch: str = "75"
    includes: tuple[str, ...] = ()  # of common/include
    input_scale: float = 1.0
    tolerance: float = 0.0  # of an element that is off by so much of itself; 0: the same to the bit
    expected: tuple[Expected, ...] = ()

    @property
    def indent(self) -> str:
        return re.search(rf"^( *){re.escape(OPEN)}", self.code, re.M)[1]

    @property
    def solution(self) -> str:
        return answer(self.code)[0]

    @property
    def head(self) -> str:
        return "".join(f'#include "{name}"\n' for name in self.includes)

    def kernel(self, text: str) -> str:
        """The whole kernel with these lines between the marks."""
        before, rest = self.code.split(f"{OPEN}\n", 1)
        after = rest.split(f"{CLOSE}\n", 1)[1]
        return f"{self.head}{before}{OPEN}\n{text.rstrip()}\n{self.indent}{CLOSE}\n{after}"

    def page(self) -> str:
        """The file to write it in."""
        told = textwrap.wrap(f"{self.title}. {self.task}", 116)
        told += ["", f"`make puzzle-{self.stage.id} check` judges what stands between the marks, `hint` helps."]
        heading = "".join(f"// {line}".rstrip() + "\n" for line in told)
        return f"{heading}\n{self.kernel(textwrap.indent(self.stub, self.indent))}"

    @property
    def first_line(self) -> int:
        """The line of kernel(text) that is the text's first."""
        return self.kernel("").splitlines().index(f"{self.indent}{OPEN}") + 2

    def is_stub(self, text: str) -> bool:
        return _bare(text) in ("", _bare(self.stub))

    @property
    def file(self) -> Path:
        return work_directory() / "puzzles" / f"{self.stage.id}_{self.name}.cu"


def _bare(text: str) -> str:
    return " ".join(without_comments(text).split())


def answer(text: str) -> tuple[str, int]:
    """What stands between the marks of a file, and the number of its first line. FlashLadderError where one is gone."""
    lines = text.splitlines()
    opened = [number for number, line in enumerate(lines) if line.strip() == OPEN]
    closed = [number for number, line in enumerate(lines) if line.strip() == CLOSE]
    if len(opened) != 1 or len(closed) != 1 or closed[0] < opened[0]:
        raise FlashLadderError(f"the lines `{OPEN}` and `{CLOSE}` stand once each around your lines: put them back.")
    return "\n".join(lines[opened[0] + 1 : closed[0]]), opened[0] + 2


def puzzles(which: Stage | int | str) -> list[Puzzle]:
    """A stage's puzzles; FlashLadderError says what is wrong with its file."""
    stage = stages.entry(which)
    return [_puzzle(stage, entry, place(stage)) for entry in entries(stage, "puzzle")]


def every_puzzle() -> list[Puzzle]:
    return [one for stage in stages.every_stage() for one in puzzles(stage)]


def get(stage: Stage | int | str, name: str) -> Puzzle:
    """FlashLadderError lists those that there are."""
    known, stage = puzzles(stage), stages.entry(stage)
    if not known:
        there = sorted({one.stage.id for one in every_puzzle()})
        raise FlashLadderError(f"Stage {stage.id} has no puzzles; stages {', '.join(there)} have.")
    return named(known, name, f"Stage {stage.id}", "puzzle")


def _puzzle(stage: Stage, entry: dict, where: str) -> Puzzle:
    name = entry.get("name", "?")
    toml.check_keys(entry, _NEEDED, _OTHERS, f"{where}: puzzle {name}")
    code = entry["code"].strip("\n") + "\n"
    try:
        answer(code)
    except FlashLadderError as error:
        raise FlashLadderError(f"{where}: puzzle {name}: {error}") from error
    expected = tuple(Expected(**one) for one in entry.get("expected", ()))
    if any(one.relation not in RELATIONS for one in expected):
        raise FlashLadderError(f"{where}: puzzle {name}: relation is one of {', '.join(RELATIONS)}.")
    return Puzzle(
        stage=stage,
        name=name,
        title=entry["title"],
        minutes=entry["minutes"],
        task=entry["task"].strip(),
        hints=tuple(hint.strip() for hint in entry["hints"]),
        threads=entry["threads"],
        input=entry["input"],
        output=entry["output"],
        code=code,
        stub=textwrap.dedent(entry["stub"]).strip("\n"),
        arch=str(entry.get("arch", "75")),
        includes=tuple(entry.get("includes", ())),
        input_scale=entry.get("input_scale", 1.0),
        tolerance=entry.get("tolerance", 0.0),
        expected=expected,
    )
