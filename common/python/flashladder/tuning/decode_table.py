"""The table of a decode stage that says how many blocks share the work, its lines anew from a record of a GPU.

`PARTS=tune STAGES=lean make gpu-report` records, `make tune ARGS="--decode FILE"` prints; of paged_kv likewise. Which
problems a line is for stays. For each line and head dim those blocks are taken with which its shapes lose the least
against their best ones.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from flashladder.core.console import say
from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.measuring import decode_bench, recorded

TABLES = {"lean": "choices", "paged_kv": "choices_by_length"}  # of decode_plan.cuh
NAMED_LENGTH = "any_length", 1 << 30
Blocks = tuple[int, float, int]  # warps, blocks for each multiprocessor or 0, resident blocks or 0
_BLOCKS = r"\{(\d+), ([\d.]+), (\d+)\}"
_LINE = re.compile(rf"^    \{{([\d.e]+), ([\d.e]+), (\w+), (true|false), {_BLOCKS}, {_BLOCKS}\}},$", re.M)


@dataclass(frozen=True)
class Line:
    least_heads: str  # as they stand there
    most_heads: str
    most_keys: str
    any_lengths: str
    blocks: dict[int, Blocks]  # by head dim

    def fits(self, problem: DecodeProblem, multiprocessors: int) -> bool:
        heads, tiles = decode_bench.heads_and_tiles(problem)
        name, any_length = NAMED_LENGTH
        most_keys = any_length if self.most_keys == name else int(self.most_keys)
        return (
            float(self.least_heads) <= heads / multiprocessors <= float(self.most_heads)
            and problem.Nkv <= most_keys
            and (self.any_lengths == "true" or problem.equal_lengths)
            and (tiles == 1 or all(warps >= 8 for warps, _, _ in self.blocks.values()))
        )

    def __str__(self) -> str:
        told = ", ".join(_told(self.blocks[d]) for d in (128, 64))
        return f"    {{{self.least_heads}, {self.most_heads}, {self.most_keys}, {self.any_lengths}, {told}}},"


def text_of(slug: str) -> str:
    """The stage's table, as it stands in decode_plan.cuh."""
    text = (ROOT / "common/include/decode_plan.cuh").read_text()
    return re.search(rf"^constexpr Choice {TABLES[slug]}\[\] = \{{$.*?^\}};$", text, re.M | re.S)[0]


def lines_of(text: str) -> list[Line]:
    """The table's lines, in order."""
    found = []
    for *head, w128, e128, r128, w64, e64, r64 in _LINE.findall(text):
        blocks = {128: (int(w128), float(e128), int(r128)), 64: (int(w64), float(e64), int(r64))}
        found.append(Line(*head, blocks))
    if not found:
        raise FlashLadderError(f"The table has no line of the form that {__name__} reads.")
    return found


@dataclass(frozen=True)
class Shape:
    """What a problem took on a GPU, in microseconds, with each entry of the table that was tried."""

    problem: DecodeProblem
    times: dict[Blocks, float]

    @property
    def best(self) -> Blocks:
        return min(self.times, key=self.times.get)

    def loss(self, blocks: Blocks) -> float:
        """Time over the best one; infinite where it was not tried."""
        return self.times.get(blocks, math.inf) / self.times[self.best]

    def told(self, blocks: Blocks) -> str:
        return f"{_told(blocks)} {self.times[blocks]:.1f}" if blocks in self.times else f"{_told(blocks)} not tried"


def stage_of(record: dict) -> str:
    """The stage that was timed."""
    slugs = {row["name"].split()[0] for row in _rows(record)}
    if len(slugs) != 1 or not slugs <= TABLES.keys():
        raise FlashLadderError(f"The record is to have times of one of {', '.join(TABLES)}; it has {sorted(slugs)}.")
    return slugs.pop()


def _rows(record: dict) -> list[dict]:
    return [row for row in [*record["measurements"], *record.get("other_caches", ())] if row["kind"] == "stage"]


def shapes_of(record: dict, multiprocessors: int) -> list[Shape]:
    found: dict[DecodeProblem, dict[Blocks, float]] = {}
    for row in _rows(record):
        fields = ("B", "Hq", "Hkv", "Nq", "Nkv", "d_head", "dtype", "page_size")
        problem = DecodeProblem(**{name: row[name] for name in fields}, lengths=tuple(row.get("lengths", ())))
        for blocks in decode_bench.tries(problem, multiprocessors).get(row["configuration"], ()):
            times = found.setdefault(problem, {})
            times[blocks] = min(row["us"]["median"], times.get(blocks, math.inf))
    return [Shape(problem, times) for problem, times in found.items()]


def chosen(shapes: Iterable[Shape], before: Blocks) -> Blocks:
    """Of those that all shapes have tried the one with the least mean loss. What stood there before stays if it loses
    less than half a percent more."""
    shapes = list(shapes)
    tried = set.intersection(*(set(shape.times) for shape in shapes))
    if not tried:
        return before

    def loss(blocks: Blocks) -> float:
        return sum(math.log(shape.loss(blocks)) for shape in shapes) / len(shapes)

    best = min(sorted(tried), key=loss)
    return before if before in tried and loss(before) < loss(best) + 0.005 else best


def lines_from(record: dict) -> list[str]:
    """The new table, and below it what each shape takes with the old entry, the new one and its best one."""
    multiprocessors = record["multiprocessors"]
    lines, notes = lines_of(text_of(stage_of(record))), []
    own: dict[tuple[int, int], list[Shape]] = {}  # by number of the line and head dim
    for shape in shapes_of(record, multiprocessors):
        number = next(at for at, line in enumerate(lines) if line.fits(shape.problem, multiprocessors))
        own.setdefault((number, shape.problem.d_head), []).append(shape)
    for (number, d), shapes in sorted(own.items()):
        before = lines[number].blocks[d]
        now = lines[number].blocks[d] = chosen(shapes, before)
        for shape in shapes:
            parts = (shape.told(one) for one in (before, now, shape.best))
            notes.append(f"line {number + 1}, {shape.problem}: " + "; ".join(parts))
    return ["the table's lines (d = 128, d = 64):", *map(str, lines), "before; now; best:", *notes]


def _told(blocks: Blocks) -> str:
    warps, each, resident = blocks
    return f"{{{warps}, {each:g}, {resident}}}"


def show(file: Path) -> None:
    for line in lines_from(recorded.load(file)):
        say(line)
