"""How far off the timeline's model is: clocks of one turn of the loop over K and V, and what instructions take beside
products of the tensor cores, as the model has it and as measured on a GPU.

The program that was measured beside products: one warpgroup issues eight wgmma (m64n128k16), waits for them and looks
at a flag in shared memory, over and over; the other repeats one instruction, 32 of them on as many registers and then
a branch. So a scheduler has one warp of each. Here the model replays the same.
"""

import math
from dataclasses import dataclass
from functools import cache
from statistics import mean

from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.kernels import MULTIPROCESSORS
from flashladder.measuring import recorded
from flashladder.simulator import clocks, replay, steps, trace

FIRST, FIRST_HOPPER = 4, 14  # the first stage with tensor cores, and the first with wgmma or TMA
# Of the model's two runs; what they differ by are turns. In the shorter one all warps have found their places already.
_LENGTHS = (768, 1792)
_MEASURED = (1024, 8192)


@dataclass(frozen=True)
class Step:
    """A turn in which each resident block visits one tile of K and V."""

    stage: stages.Stage
    d_head: int
    blocks: int  # resident
    tile: tuple[int, int]  # Br, Bc
    floor: float  # clocks of the tensor cores at their full rate
    model: float
    measured: float
    row: dict  # of the record, of the longer length

    @property
    def stale(self) -> bool:
        """The kernel has changed since it was measured."""
        return recorded.is_stale(self.row)

    @property
    def error(self) -> float:
        return self.model / self.measured - 1


def clock_khz(results: dict, clocked: dict, d_head: int, length: int) -> float:
    """Clocks in a millisecond while a round of kernels ran. The peers are the watch: how many clocks their kernels need
    is recorded, and the round says how long they took. The clock that a round's record names is one that was read
    after it, and higher."""
    wanted = {"dtype": "bf16", "d_head": d_head, "causal": False, "Nq": length}
    found = []
    for known in recorded.pick(clocked, **wanted):
        rows = recorded.pick(results, name=known["name"], **wanted)
        found += [1e3 * known["mhz"]["median"] * known["ms"]["median"] / row["ms"]["median"] for row in rows]
    if not found:
        raise FlashLadderError(f"no peer with known clocks in the round of d = {d_head}, N = {length}")
    return mean(found)


def measured(rows: dict[int, dict], khz: dict[int, float]) -> float:
    """Rows and clocks by length: what two lengths differ by are turns. All blocks but the last ones run in full
    waves."""
    spent, turns = [], []
    for length in _MEASURED:
        row = rows[length]
        tiles = row["B"] * row["Hq"] * math.ceil(row["Nq"] / row["Br"])
        waves = math.ceil(tiles / (MULTIPROCESSORS * row["resident_blocks"]))
        spent.append(row["ms"]["median"] * khz[length])
        turns.append(waves * math.ceil(row["Nkv"] / row["Bc"]))
    return (spent[1] - spent[0]) / (turns[1] - turns[0])


def predicted(stage: stages.Stage, row: dict) -> float:
    numbers = clocks.load()
    ends = []
    # What runs where it was measured; at the model's lengths the stage may choose another.
    timed = Problem(B=row["B"], Hq=row["Hq"], Nq=row["Nq"], d_head=row["d_head"], dtype=row["dtype"])
    configuration = stage.describe(timed, "sim")["configuration"] or None
    for length in _LENGTHS:
        problem = Problem(B=1, Hq=1, Nq=length, d_head=row["d_head"], dtype=row["dtype"])
        launch = _traced(stage, problem, row["resident_blocks"], configuration)
        ends.append(replay.replay(steps.programs(launch, numbers), numbers).end)
    return (ends[1] - ends[0]) * row["Bc"] / (_LENGTHS[1] - _LENGTHS[0])


@cache
def _traced(stage: stages.Stage, problem: Problem, blocks: int, configuration: str | None) -> trace.Launch:
    # As many multiprocessors as the device has: a block of a persistent kernel, too, has one query tile then.
    return trace.of(stage, problem, blocks, {"WARPSIM_MULTIPROCESSORS": "0"}, configuration)


@cache
def step_of(stage: stages.Stage, d_head: int) -> Step | None:
    """Of a recorded stage with tensor cores; None of another, of clusters, which leave no trace to model, or where
    nothing is recorded."""
    wanted = {"name": stage.name, "dtype": stage.measured_dtype, "d_head": d_head, "causal": False}
    results, clocked = recorded.first(), recorded.first("clocks")
    rows = {row["Nq"]: row for row in recorded.pick(results, **wanted)} if results and clocked else {}
    if stage.number < FIRST or "cluster" in stage.launch or not all(length in rows for length in _MEASURED):
        return None
    row = rows[_MEASURED[-1]]
    Br, Bc, blocks = row["Br"], row["Bc"], row["resident_blocks"]
    # Tensor cores multiply numbers of 8 bits twice as fast.
    floor = blocks * 4 * Br * Bc * d_head / (8192 if stage.measured_dtype == "e4m3" else 4096)
    khz = {length: clock_khz(results, clocked, d_head, length) for length in _MEASURED}
    model, timed = predicted(stage, row), measured(rows, khz)
    return Step(stage, d_head, blocks, (Br, Bc), floor, model, timed, row)


def all_steps(d_head: int) -> tuple[Step, ...]:
    """Of every recorded stage with tensor cores; empty where nothing is recorded."""
    return tuple(step for stage in stages.all_stages() if (step := step_of(stage, d_head)))


def for_hopper(found: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple(step for step in found if step.stage.number >= FIRST_HOPPER)


def worst(found: tuple[Step, ...]) -> Step:
    return max(found, key=lambda step: abs(step.error))


_BATCH, _INSTRUCTIONS, _BRANCH_CLOCKS = 8, 32, 8.0  # wgmma before a wait; of a round; until a branch is taken
_BATCHES = 60
_WGMMA = "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"
_ALU = ("max.f32", "max3.s32", "cvt.bf16x2")


@dataclass(frozen=True)
class Row:
    instruction: str  # "" for none
    products: bool
    recorded: dict[str, float]  # "clocks" of an instruction, "clocks_of_a_product"
    model: dict[str, float]


def rows() -> list[Row]:
    """Of the instructions whose costs the model has; empty where nothing is recorded."""
    record = recorded.first("beside")
    found = []
    for row in record["rows"] if record else []:
        name, products = row["instruction"], row["products"] == "bf16"
        if row["products"] != "e4m3" and name != "cvt.e4m3x2":
            said = {key: value for key, value in row.items() if key.startswith("clocks")}
            found.append(Row(name, products, said, replayed(name, products)))
    return found


def replayed(instruction: str, products: bool) -> dict[str, float]:
    """Clocks of an instruction and of a product, by the model."""
    numbers = clocks.load()
    batches = _batches(numbers) if products else ()
    rounds = _rounds(instruction, numbers) if instruction else ()
    warps = [replay.Warp(0, number, batches if number < replay.WARPGROUP else rounds) for number in range(8)]
    done = replay.replay(warps, numbers)
    # For as long as both are there.
    until = min(end for end in (done.ends[0], done.ends[replay.WARPGROUP]) if end)
    found = {}
    if instruction:
        ends = [span.end for span in done.spans if span.warp == replay.WARPGROUP and span.end <= until]
        found["clocks"] = ends[-1] / len(ends) / _INSTRUCTIONS
    if products:
        ends = [span.end for span in done.spans if (span.warp, span.kind) == (0, "wait") and span.end <= until]
        found["clocks_of_a_product"] = ends[-1] / len(ends) / _BATCH
    return found


def _batches(numbers: clocks.Clocks) -> tuple:
    look = replay.Stretch("arithmetic", {"issue": 5 * numbers.issue, "alu": 3 * numbers.alu},
                          5 * numbers.arithmetic_pace, numbers.shared_latency)  # fmt: skip
    product = replay.Together(steps.wgmma_clocks(_WGMMA, numbers))
    wait = (replay.Commit("wgmma"), replay.WaitGroups("wgmma", 0))
    return (look, replay.Together(), *[product] * _BATCH, *wait) * _BATCHES


def _rounds(instruction: str, numbers: clocks.Clocks) -> tuple:
    """Enough to last as long as the batches do. Nothing waits for anything but the branch."""
    units = {"issue": (_INSTRUCTIONS + 3) * numbers.issue, "alu": 2 * numbers.alu}
    if instruction in _ALU:
        units["alu"] += _INSTRUCTIONS * numbers.alu
    if instruction == "ex2.f32":
        units["special"] = _INSTRUCTIONS * numbers.special
    fp32 = _INSTRUCTIONS if instruction in ("fma.f32", "add.f32") else 0
    one = replay.Stretch("arithmetic", units, 0.0, _BRANCH_CLOCKS, fp32)
    return (one,) * (1100 if fp32 else 150 if instruction == "ex2.f32" else 450)
