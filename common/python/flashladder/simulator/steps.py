"""From a trace to the steps that the timeline's model replays: what each instruction asks of which unit."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from flashladder.core.errors import FlashLadderError
from flashladder.simulator import replay, trace
from flashladder.simulator.clocks import Clocks

SECTOR = 32  # bytes
_PRODUCT = ("tensor",)
_ARITHMETIC = ("fp16", "fp32", "fp64", "special_function", "shuffle", "vote")
_COPY = ("load_global", "store_global", "load_shared", "store_shared", "load_generic", "store_generic", "ldmatrix",
         "stmatrix", "atomic", "async_copy", "bulk_copy", "tensor_copy", "texture", "surface")  # fmt: skip
# What is neither: addresses, moves, conversions, branches go with whatever stands around them.
_KIND = {cls: kind for kind, group in (("product", _PRODUCT), ("arithmetic", _ARITHMETIC), ("copy", _COPY))
         for cls in group}  # fmt: skip
_ALU = ("integer", "predicate", "conversion")  # and maxima of fp32
_UNITS = (*replay.OF_SCHEDULER, "shared")
_LOADS = ("load_global", "load_generic", "texture")
# A stretch of fewer instructions than this becomes part of what stands before it.
_FEWEST = 6
_MMA = re.compile(r"\.m(\d+)n(\d+)k(\d+)\.")
_BITS = {
    "bf16": 16,
    "f16": 16,
    "tf32": 32,
    "f64": 64,
    "e4m3": 8,
    "e5m2": 8,
    "s8": 8,
    "u8": 8,
    "s4": 4,
    "u4": 4,
    "b1": 1,
}
_PRODUCTS = 16 * 8 * 16  # of mma.sync.m16n8k16


class Place(NamedTuple):
    """Where in the source a span comes from."""

    file: str
    line: int
    text: str  # of the instruction
    calls: tuple[tuple[str, int], ...] = ()  # of a header's code: the calls that lead there, the innermost first


class _Work:
    """What a run of instructions of one kind asks for."""

    def __init__(self, kind: str):
        self.kind = kind
        self.issue = self.tensor = self.special = self.alu = self.shared = 0.0
        self.pace = self.latency = self.bytes = 0.0
        self.count = self.fp32 = 0
        self.lines: dict[tuple, int] = {}

    def add(self, op: trace.Op, cost: trace.Cost | None, clocks: Clocks) -> None:
        self.count += 1
        self.issue += clocks.issue
        key = (op.file, op.line, op.calls)
        self.lines[key] = self.lines.get(key, 0) + 1
        if op.cls in _ALU or op.cls == "fp32" and op.text.startswith(("max.", "min.")):
            self.alu += clocks.alu
        elif op.cls == "fp32":
            self.fp32 += 1
        if cost:
            self.shared += cost.wavefronts * clocks.shared_wavefront
        if op.cls == "tensor":
            share = products(op.text) / _PRODUCTS
            self.tensor += share * clocks.mma_sync
            self.pace += share * clocks.mma_pace
            self.latency = clocks.shared_latency
        elif op.cls == "ldmatrix":
            self.latency = clocks.shared_latency
            self.pace += clocks.issue
        elif op.cls == "special_function":
            self.special += clocks.special
            self.pace += clocks.arithmetic_pace
        elif op.cls in ("shuffle", "vote"):
            self.pace += clocks.shuffle
        else:
            self.pace += clocks.issue if self.kind == "product" else clocks.arithmetic_pace
            if op.cls in ("load_shared",):
                self.latency = clocks.shared_latency
        # An atomic that returns the old value is waited for as a load is; `red` is not.
        if cost and (op.cls in _LOADS or op.text.startswith("atom.")):
            self.bytes += cost.sectors * SECTOR

    def join(self, other: "_Work") -> None:
        for name in (*_UNITS, "fp32", "pace", "bytes", "count"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.latency = max(self.latency, other.latency)
        for key, count in other.lines.items():
            self.lines[key] = self.lines.get(key, 0) + count

    def steps(self) -> Iterator:
        if not self.count:
            return
        (file, line, calls), _ = max(self.lines.items(), key=lambda item: item[1])
        units = {unit: getattr(self, unit) for unit in _UNITS if getattr(self, unit)}
        place = Place(file, line, f"{self.count} instructions", calls)
        yield replay.Stretch(self.kind, units, self.pace, self.latency, self.fp32, place=place)
        if self.bytes:
            yield replay.Load(self.bytes, place=place)


def products(text: str) -> float:
    """Multiplications of 16-bit numbers that a tensor instruction is worth, of one warp."""
    shape = _MMA.search(text)
    if not shape:
        raise FlashLadderError(f"the timeline's model does not know the tensor instruction {text}")
    m, n, k = map(int, shape.groups())
    bits = next((_BITS[word] for word in reversed(text.split(".")[:-1]) if word in _BITS), 16)
    return m * n * k * bits / 16


def wgmma_clocks(text: str, clocks: Clocks) -> float:
    """Of each tensor core: k has 32 bytes whatever the type is, so n alone counts."""
    shape = _MMA.search(text)
    if not shape:
        raise FlashLadderError(f"the timeline's model does not know the instruction {text}")
    return int(shape[2]) * clocks.wgmma_column


class Translation:
    """Of one block's trace; block: its number among those on the multiprocessor."""

    def __init__(self, launch: trace.Launch, block: int, clocks: Clocks):
        self.launch, self.number, self.block, self.clocks = launch, block, launch.blocks[block], clocks
        self._pieces: dict[int, list] = {}
        # What ldmatrix brings goes into the next mma.sync, so the two are one stretch. wgmma finds its tiles itself.
        feeds = any(op.text.startswith("mma.") for op in launch.ops.values())
        self._kind = _KIND | ({"ldmatrix": "product"} if feeds else {})

    def warps(self) -> list[replay.Warp]:
        return [
            replay.Warp(self.number, number, tuple(self._steps(events)))
            for number, events in enumerate(self.block.warps)
        ]

    def _steps(self, events: tuple[trace.Event, ...]) -> Iterator:
        carried = _Work("arithmetic")  # not yet a stretch: what follows may belong to it
        for event in events:
            for part in self._piece(event.op) if event.kind == "run" else [self._step(event)]:
                if not isinstance(part, _Work):
                    if part is not None:
                        yield from carried.steps()
                        carried = _Work(carried.kind)
                        yield part
                elif part.kind in (carried.kind, "") or part.count < _FEWEST or not carried.count:
                    if not carried.count:
                        carried = _Work(part.kind or carried.kind)
                    carried.join(part)
                else:
                    yield from carried.steps()
                    carried = _Work(part.kind)
                    carried.join(part)
        yield from carried.steps()

    def _place(self, op: trace.Op) -> Place:
        return Place(op.file, op.line, op.text, op.calls)

    def _step(self, event: trace.Event):
        """A step for an event that is none of a piece; None where nothing has to be waited for."""
        op = self.launch.ops[event.op]
        place = self._place(op)
        if event.kind in ("arrive", "sync"):
            return replay.Barrier(("barrier", self.number, event.which, event.phase), event.kind == "sync", place=place)
        if event.kind == "warpgroup":
            tensor = op.cls == "tensor"
            return replay.Together(wgmma_clocks(op.text, self.clocks) if tensor else 0.0, place=place)
        key = ("mbarrier", self.number, event.which, event.phase)
        if event.kind == "wait":
            return replay.WaitPhase(key, place=place) if event.phase >= 0 else None
        if event.kind == "copy":
            return replay.Copy(key, event.bytes, place=place)
        return replay.Arrive(key, event.kind == "arrive_copies", place=place)

    def _piece(self, number: int) -> list:
        """Works and steps of a piece, in its order."""
        if number in self._pieces:
            return self._pieces[number]
        piece = self.block.pieces[number]
        costs = dict(piece.costs)
        parts: list = []
        work = _Work("")
        for index, op in self._instructions(piece):
            kind = self._kind.get(op.cls, "")
            if kind and work.kind and kind != work.kind:
                parts.append(work)
                work = _Work(kind)
            work.kind = work.kind or kind
            cost = costs.get(index)
            work.add(op, cost, self.clocks)
            if step := self._background(op, cost):
                parts += [work, step]
                work = _Work(work.kind)
        parts.append(work)
        self._pieces[number] = _merged(parts)
        return self._pieces[number]

    def _instructions(self, piece: trace.Piece) -> Iterator[tuple[int, trace.Op]]:
        """What the assembler leaves of a piece: no moves between registers, which get one name, and of two maxima of
        integers one, of three numbers."""
        before = None
        for index in range(piece.first, piece.last + 1):
            op = self.launch.ops.get(index)
            if op is None or op.text.startswith("mov."):
                continue
            if before and op.text == before.text == "max.s32" and op.line == before.line:
                before = None
                continue
            before = op
            yield index, op

    def _background(self, op: trace.Op, cost: trace.Cost | None):
        """What the instruction starts, closes or waits for besides."""
        place = self._place(op)
        queue = {"async_copy": "cp.async", "bulk_copy": "bulk", "warpgroup": "wgmma"}.get(op.cls)
        if queue and ".commit_group" in op.text:
            return replay.Commit(queue)
        if queue and ".wait_group" in op.text:
            return replay.WaitGroups(queue, op.imm, place=place)
        if op.cls == "async_copy":
            if op.text.startswith("cp.async.wait_all"):
                return replay.WaitGroups(queue, 0, place=place)
            return replay.Async(cost.sectors * SECTOR, place=place) if cost and cost.sectors else None
        store = op.cls in ("bulk_copy", "tensor_copy") and ".shared::cta" in op.text and ".bulk_group" in op.text
        return replay.Store(cost.bytes, place=place) if store and cost and cost.bytes else None


def _merged(parts: list) -> list:
    """Neighbours of one kind in one, and short stretches in what stands before them."""
    merged: list = []
    for part in parts:
        if not isinstance(part, _Work):
            merged.append(part)
        elif part.count:
            before = merged[-1] if merged and isinstance(merged[-1], _Work) else None
            if before and (before.kind == part.kind or part.count < _FEWEST):
                before.join(part)
            else:
                merged.append(part)
    return merged


def programs(launch: trace.Launch, clocks: Clocks) -> list[replay.Warp]:
    """The warps of all traced blocks, as if they shared a multiprocessor."""
    return [warp for block in range(len(launch.blocks)) for warp in Translation(launch, block, clocks).warps()]
