"""Clocks of one turn of the loop over K and V: what the timeline's model says beside what was measured."""

import math
from dataclasses import dataclass
from functools import cache
from statistics import median

from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.measuring import recorded
from flashladder.simulator import clocks, replay, steps, trace

MULTIPROCESSORS = 132  # of an H200
FIRST = 4  # the first stage with tensor cores
_LENGTHS = (256, 512)  # of the model's two runs; what they differ by are turns alone
_MEASURED = (4096, 16384)


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
    stale: bool  # the kernel has changed since it was measured

    @property
    def error(self) -> float:
        return self.model / self.measured - 1


def clock_khz(results: dict, profiled: dict) -> float:
    """Clocks in a millisecond while the stages run: cycles that the profiler counted, over the time without it. The
    clock that a record names is one that was read before or after."""
    found = []
    for kernel in profiled["kernels"]:
        rows = recorded.pick(results, name=kernel["name"], dtype="bf16", d_head=128, causal=False, Nq=4096)
        found += [kernel["figures"]["cycles"] / row["ms"]["median"] for row in rows]
    return median(found)


def measured(rows: dict[int, dict], khz: float) -> float:
    """Rows by length: what two lengths differ by are turns. All blocks but the last ones run in full waves."""
    short, long = (rows[length] for length in _MEASURED)
    tiles = short["B"] * short["Hq"] * math.ceil(short["Nq"] / short["Br"])
    waves = math.ceil(tiles / (MULTIPROCESSORS * short["resident_blocks"]))
    turns = (long["Nkv"] - short["Nkv"]) / short["Bc"]
    return (long["ms"]["median"] - short["ms"]["median"]) * khz / (waves * turns)


def predicted(stage: stages.Stage, row: dict) -> float:
    numbers = clocks.load()
    ends = []
    # What runs where it was measured; at the model's lengths the stage may choose another.
    timed = Problem(B=row["B"], Hq=row["Hq"], Nq=row["Nq"], d_head=row["d_head"], dtype="bf16")
    configuration = stage.describe(timed, "sim")["configuration"] or None
    for length in _LENGTHS:
        problem = Problem(B=1, Hq=1, Nq=length, d_head=row["d_head"], dtype="bf16")
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
    wanted = {"name": stage.name, "dtype": "bf16", "d_head": d_head, "causal": False}
    results, profiled = recorded.first(), recorded.first("profiler")
    rows = {row["Nq"]: row for row in recorded.pick(results, **wanted)} if results and profiled else {}
    if stage.number < FIRST or "cluster" in stage.launch or not all(length in rows for length in _MEASURED):
        return None
    row = rows[_MEASURED[0]]
    Br, Bc, blocks = row["Br"], row["Bc"], row["resident_blocks"]
    floor = blocks * 4 * Br * Bc * d_head / 4096
    model, timed = predicted(stage, row), measured(rows, clock_khz(results, profiled))
    return Step(stage, d_head, blocks, (Br, Bc), floor, model, timed, recorded.is_stale(row))


def all_steps(d_head: int) -> tuple[Step, ...]:
    """Of every recorded stage with tensor cores; empty where nothing is recorded."""
    return tuple(step for stage in stages.all_stages() if (step := step_of(stage, d_head)))


def deviation(found: tuple[Step, ...]) -> float:
    """Root mean square of the errors."""
    return math.sqrt(sum(step.error**2 for step in found) / len(found)) if found else 0.0
