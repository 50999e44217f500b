"""Clocks of one turn of the loop over K and V: what the timeline's model says beside what was measured."""

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
