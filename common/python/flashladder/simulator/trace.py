"""What the warps of a launch's first blocks did on the simulator, in their order (WARPSIM_TRACE). It has no times:
simulator/replay.py computes them by a model."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages

VERSION = 1
KINDS = ("run", "arrive", "sync", "wait", "arrive_phase", "arrive_copies", "copy", "warpgroup")
MOST_BLOCKS = 32


class Event(NamedTuple):
    """One of KINDS; common/simulator/core/trace.h says what each means."""

    kind: str
    op: int  # of a run: its piece
    which: int = 0  # the barrier's or the mbarrier's number
    phase: int = 0
    count: int = 0
    bytes: int = 0


class Op(NamedTuple):
    cls: str  # the report's class, e.g. "tensor"
    text: str  # e.g. "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
    file: str
    line: int
    imm: int  # of what waits for groups: how many may be in flight
    calls: tuple[tuple[str, int], ...] = ()  # of a header's code: the calls that lead there, the innermost first


class Cost(NamedTuple):
    """What an instruction that touches memory cost."""

    wavefronts: int
    sectors: int
    bytes: int


@dataclass(frozen=True)
class Piece:
    """Instructions that a warp executes one behind the other: ops first to last."""

    first: int
    last: int
    costs: tuple[tuple[int, Cost], ...]  # by op


@dataclass(frozen=True)
class Mbarrier:
    op: int  # that initialised it
    address: int  # offset in shared memory
    expected: int


@dataclass(frozen=True)
class Block:
    place: tuple[int, int, int]
    pieces: tuple[Piece, ...]
    mbarriers: tuple[Mbarrier, ...]
    warps: tuple[tuple[Event, ...], ...]


@dataclass(frozen=True)
class Launch:
    kernel: str
    grid: tuple[int, int, int]
    threads: tuple[int, int, int]
    ops: dict[int, Op]
    blocks: tuple[Block, ...]


def _block(data: dict, ops: dict[int, Op], kernel: str) -> Block:
    if data["cut"]:
        place = ", ".join(map(str, data["block"]))
        raise FlashLadderError(f"Block ({place}) of {kernel} did more than a trace holds: take a smaller problem.")
    pieces = tuple(
        Piece(first, last, tuple((op, Cost(*cost)) for op, *cost in costs)) for first, last, costs in data["pieces"]
    )
    mbarriers = tuple(Mbarrier(*one) for one in data["mbarriers"])
    warps = tuple(tuple(Event(*event) for event in warp) for warp in data["warps"])
    for warp in warps:
        for event in warp:
            if event.kind not in KINDS:
                raise FlashLadderError(f"the trace has an event of an unknown kind, '{event.kind}'")
            if event.kind == "run" and event.op >= len(pieces) or event.kind != "run" and event.op not in ops:
                raise FlashLadderError(f"the trace has an event that names nothing in it: {tuple(event)}")
            if event.kind in KINDS[3:7] and event.which >= len(mbarriers):
                raise FlashLadderError(f"the trace has an event of an mbarrier that is not in it: {tuple(event)}")
    return Block(tuple(data["block"]), pieces, mbarriers, warps)


def _op(files: list[str], fields: Sequence) -> Op:
    cls, text, file, line, imm, *calls = fields
    return Op(cls, text, files[file], line, imm, tuple((files[other], at) for one in calls for other, at in one))


def read(data: dict) -> list[Launch]:
    """The launches of a trace. FlashLadderError says what is wrong with one."""
    if not isinstance(data, dict) or data.get("version") != VERSION or "launches" not in data:
        raise FlashLadderError(f"this is no trace of version {VERSION}, as WARPSIM_TRACE=file writes it")
    found = []
    try:
        for one in data["launches"]:
            files = one["files"]
            ops = {op: _op(files, fields) for op, *fields in one["ops"]}
            blocks = tuple(_block(block, ops, one["kernel"]) for block in one["traced"])
            found.append(Launch(one["kernel"], tuple(one["grid"]), tuple(one["block"]), ops, blocks))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise FlashLadderError(f"the trace is damaged: {type(error).__name__} {error}") from error
    return found


def load(file: Path) -> list[Launch]:
    try:
        return read(json.loads(file.read_text()))
    except (OSError, json.JSONDecodeError) as error:
        raise FlashLadderError(f"the trace {file} cannot be read: {error}") from error


def of(
    stage: stages.Stage | int | str,
    problem: Problem,
    blocks: int = 1,
    more: dict | None = None,
    configuration: str | None = None,
) -> Launch:
    """The first `blocks` blocks of the stage's longest kernel, on the simulator; more: variables of its environment;
    configuration: the short form of an instance, where the stage has some; None: its own choice for the problem."""
    if not 1 <= blocks <= MOST_BLOCKS:
        raise FlashLadderError(f"a trace is of 1 to {MOST_BLOCKS} blocks, not of {blocks}")
    with tempfile.TemporaryDirectory(prefix="flashladder-") as folder:
        file = Path(folder) / "trace.json"
        variables = {"WARPSIM_TRACE": str(file), "WARPSIM_TRACE_BLOCKS": str(blocks)}
        found = stages.with_timeline(stage)
        found.run(problem, device="sim", environment=variables | (more or {}), configuration=configuration)
        launches = load(file)
    traced = [launch for launch in launches if launch.blocks]
    if not traced:
        raise FlashLadderError(f"stage {found.id} leaves no trace: kernels of clusters have none yet")
    return max(traced, key=lambda launch: sum(len(warp) for block in launch.blocks for warp in block.warps))
