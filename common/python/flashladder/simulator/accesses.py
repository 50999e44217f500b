"""The lane addresses of a stage's memory instructions, as the simulator saw them (WARPSIM_ACCESSES)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.run import run_problem

PROBLEM = Problem(B=1, Hq=1, Nq=128, d_head=128, dtype="bf16")
LANES = 32
CHUNK_BYTES = 16


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

        All lanes for up to 4 bytes, 16 for 8 bytes, 8 for 16 bytes; the 8 rows of each matrix.
        """
        size = 8 if self.matrices else min(LANES, LANES * 4 // max(self.bytes, 4))
        active = [
            [lane for lane in range(first, first + size) if self.addresses[lane] is not None]
            for first in range(0, LANES, size)
        ]
        return [group for group in active if group]

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


@dataclass(frozen=True)
class Box:
    """One copy of a box of a tensor by TMA."""

    file: str
    line: int
    kind: str  # "load", "store", "reduce", "prefetch"
    shared: int  # its offset in shared memory
    swizzle: int  # bytes of a swizzled row, 0: none
    element: int  # bytes
    coordinates: tuple[int, ...]  # of its first element, the inner one first
    counts: tuple[int, ...]  # elements that are copied, by dimension
    rows: tuple[int | None, ...]  # global address of each row's first element inside the tensor; None: none is
    sectors: int  # of 32 bytes that the rows touch in global memory
    source: str  # the line's text
    stage: str = ""
    callers: tuple[tuple[int, str], ...] = ()  # of a header's code: line and text of the calls that lead there

    @property
    def row_bytes(self) -> int:
        return self.counts[0] * self.element

    def place(self, row: int, chunk: int) -> int:
        """Where 16 bytes of a row lie in shared memory: the swizzle takes bits of the address, not of the offset."""
        address = self.shared + row * self.row_bytes + CHUNK_BYTES * chunk
        spans = self.swizzle // CHUNK_BYTES
        return address ^ (address >> 7 & spans - 1) << 4 if spans else address

    def wavefronts(self, chunk: int) -> int:
        """That ldmatrix takes for one chunk of the first eight rows."""
        groups = [self.place(row, chunk) // CHUNK_BYTES % 8 for row in range(min(8, len(self.rows)))]
        return max(groups.count(group) for group in groups)

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
    return _chosen(stage, where, problem, in_report, "memory access", "accesses")


def boxes_of(stage: stages.Stage | int | str, where: int | str = "", problem: Problem | None = None) -> list[Box]:
    """The same of the boxes that the first warp copies by TMA."""
    return _chosen(stage, where, problem, boxes_in_report, "copy of a box", "such copies")


def _chosen(stage, where, problem, read, what: str, several: str) -> list:
    stage = stages.get(stage)
    result = run_problem(
        stage, problem or stages.get(stage).own(PROBLEM), device="sim", environment={"WARPSIM_ACCESSES": "1"}
    )
    found = read(result.report, stage.name, _text)
    chosen = [one for one in found if any(_is_at(where, *at) for at in ((one.line, one.source), *one.callers))]
    if not chosen:
        lines = sorted({one.line for one in found})
        raise FlashLadderError(f"{stage.name} makes no {what} at '{where}'. Lines with {several}: {lines}.")
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


def boxes_in_report(report: dict, stage: str, text: Callable[[str, int], str]) -> list[Box]:
    """The boxes of a report that was made with WARPSIM_ACCESSES. text: a source line's, by its file and number."""
    kept = ("file", "line", "kind", "shared", "swizzle", "element", "sectors")
    return [
        Box(
            **{name: one[name] for name in kept},
            **{name: tuple(one[name]) for name in ("coordinates", "counts", "rows")},
            source=text(one["file"], one["line"]),
            stage=stage,
            callers=_callers(one, text),
        )
        for launch in report["launches"]
        for one in launch.get("boxes", [])
    ]
