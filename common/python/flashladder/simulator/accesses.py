"""The lane addresses of a stage's memory instructions, as the simulator saw them (WARPSIM_ACCESSES)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages

PROBLEM = Problem(B=1, Hq=1, Nq=128, d_head=128, dtype="bf16")
LANES = 32


@dataclass(frozen=True)
class Access:
    """One execution of an instruction by a warp."""

    file: str
    line: int
    space: str  # "shared" or "global"
    kind: str  # "load", "store", "ldmatrix", "stmatrix", "cp_async", "atomic"
    bytes: int  # of each lane; of a matrix's row
    matrices: int  # of ldmatrix and stmatrix, else 0
    addresses: tuple[int | None, ...]  # by lane: offsets in shared memory or global addresses; None: took no part
    cost: int  # wavefronts or sectors
    ideal: int
    source: str  # the line's text
    stage: str = ""
    callers: tuple[tuple[int, str], ...] = ()  # of a header's code: line and text of the calls that lead there

    @cached_property
    def groups(self) -> list[list[int]]:
        """Lanes that share a wavefront at best: what the 32 banks can serve at once.

        All lanes for up to 4 bytes, 16 for 8 bytes, 8 for 16 bytes; the 8 rows of each matrix. Twice as many of a load
        of 8 or 16 bytes where all lanes i and i ^ 1, or all i and i ^ 2, read one place.
        """
        size = 8 if self.matrices else min(LANES, LANES * 4 // max(self.bytes, 4))
        if self.kind == "load" and self.bytes in (8, 16) and (self._partners_agree(1) or self._partners_agree(2)):
            size *= 2
        active = [
            [lane for lane in range(first, first + size) if self.addresses[lane] is not None]
            for first in range(0, LANES, size)
        ]
        return [group for group in active if group]

    def _partners_agree(self, apart: int) -> bool:
        pairs = ((self.addresses[lane], self.addresses[lane ^ apart]) for lane in range(LANES))
        return all(mine == other or mine is None or other is None for mine, other in pairs)

    def banks(self, lane: int) -> range:
        """The banks of 4 bytes that a lane's bytes lie in (shared memory)."""
        first = self.addresses[lane] // 4
        return range(first % 32, first % 32 + max(1, self.bytes // 4))

    @cached_property
    def passes(self) -> dict[int, int]:
        """By lane, which wavefront of its group serves it, from 0: lanes that want the same word share one."""
        unit = max(self.bytes, 4)
        served: dict[int, int] = {}
        for group in self.groups:
            words: dict[int, list[int]] = {}  # by bank (of the unit's size): the words asked for, in order of lanes
            for lane in group:
                word = self.addresses[lane] // unit
                queue = words.setdefault(word % (128 // unit), [])
                if word not in queue:
                    queue.append(word)
                served[lane] = queue.index(word)
        return served

    def wavefronts(self, group: list[int]) -> int:
        """That the lanes of one group take."""
        return 1 + max(self.passes[lane] for lane in group)

    @property
    def where(self) -> str:
        return f"{self.stage + '/' if self.stage else ''}{Path(self.file).name}:{self.line}"


def _text(file: str, line: int) -> str:
    lines = Path(file).read_text().splitlines() if Path(file).exists() else []
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def of(stage: stages.Stage | int | str, where: int | str = "", problem: Problem | None = None) -> list[Access]:
    """The first execution of each memory instruction by the first warp of a stage's kernels, on the simulator.

    where: a line of kernel.cu, or text that the line contains, e.g. of(4, "ldmatrix_x4(piece"); all where empty.
    problem: a small one by default. FlashLadderError where no such access was made.
    """
    stage = stages.get(stage)
    result = stage.run(problem or stage.own(PROBLEM), device="sim", environment={"WARPSIM_ACCESSES": "1"})
    found = in_report(result.report, stage.name, _text)
    chosen = [one for one in found if any(_is_at(where, *at) for at in ((one.line, one.source), *one.callers))]
    if not chosen:
        lines = sorted({one.line for one in found})
        raise FlashLadderError(f"{stage.name} makes no memory access at '{where}'. Lines with accesses: {lines}.")
    return chosen


def _is_at(where: int | str, line: int, text: str) -> bool:
    return line == where if isinstance(where, int) else where in text


def _callers(entry: dict, text: Callable[[str, int], str]) -> tuple[tuple[int, str], ...]:
    return tuple((call["line"], text(call["file"], call["line"])) for call in entry.get("inlined", []))


def in_report(report: dict, stage: str, text: Callable[[str, int], str]) -> list[Access]:
    """The accesses of a report that was made with WARPSIM_ACCESSES. text: a source line's, by its file and number."""
    return [
        Access(
            file=one["file"],
            line=one["line"],
            space=one["space"],
            kind=one["kind"],
            bytes=one["bytes"],
            matrices=one["matrices"] or 0,
            addresses=tuple(one["addresses"]),
            cost=one["wavefronts"] if one["space"] == "shared" else one["sectors"],
            ideal=one["ideal"],
            source=text(one["file"], one["line"]),
            stage=stage,
            callers=_callers(one, text),
        )
        for launch in report["launches"]
        for one in launch.get("accesses", [])
    ]
