"""What is timed of several GPUs, and how it is told: settings, rows of the record, and the time that is left."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

from flashladder.core.ring_problem import RingProblem
from flashladder.measuring import bench

PARTS = ("numbers", "links", "stages", "peers")
LONG_MS = 100.0  # a call that takes so long has a clock of its own power, and is timed without work before it


@dataclass(frozen=True)
class Settings:
    ranks: int = 0  # 0: all GPUs
    lengths: tuple[int, ...] = (16384, 65536, 131072, 32768, 262144, 524288)  # the most telling ones first
    heads: tuple[tuple[int, int], ...] = ((16, 16), (32, 8))
    masks: tuple[bool, ...] = (True, False)
    d_head: int = 128
    dtype: str = "bf16"
    stages: tuple[str, ...] = ()  # none: all
    parts: tuple[str, ...] = PARTS
    rounds: int = 5
    series_ms: float = 40.0  # of one time, about
    filler_ms: float = 25.0  # of work before it
    budget_s: float = 360.0  # of all parts

    def problems(self, ranks: int) -> list[RingProblem]:
        return [
            RingProblem(
                B=1, Hq=Hq, Hkv=Hkv, Nq=N, Nkv=N, d_head=self.d_head, dtype=self.dtype, causal=causal, ranks=ranks
            )
            for N in self.lengths
            for Hq, Hkv in self.heads
            for causal in self.masks
        ]

    @classmethod
    def read(cls, text: str) -> "Settings":
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(text).items()}
        return cls(**values | {"heads": tuple(map(tuple, values["heads"]))})


def fields_of(problem: RingProblem) -> dict:
    """What a row says of its problem."""
    return {name: getattr(problem, name) for name in ("ranks", "Hq", "Hkv", "d_head", "dtype", "causal")} | {
        "N": problem.Nq
    }


def flops(problem: RingProblem) -> float:
    return 4.0 * problem.Hq * problem.Nq**2 * problem.d_head * (0.5 if problem.causal else 1.0)


def least_seconds(problem: RingProblem, calls: int) -> float:
    """What is begun only where so much time is left: for so many calls, at some 600 TFLOP/s, and the host's part."""
    return 5 + calls * flops(problem) / problem.ranks / 6e14


def row_of(problem: RingProblem, name: str, kind: str, times: list[float], facts: dict) -> dict:
    ms = bench.spread(times, 4)
    per_gpu = flops(problem) / ms["median"] / 1e9 / problem.ranks
    return {"name": name, "kind": kind, **fields_of(problem), "ms": ms, "tflops_per_gpu": round(per_gpu, 1)} | facts


class Told:
    """Rows of a part, one a line, written as they come."""

    def __init__(self, file: Path, seconds: float):
        self.file, self._end = file, time.monotonic() + seconds

    def left(self) -> float:
        return self._end - time.monotonic()

    def row(self, kind: str, row: dict) -> None:
        with self.file.open("a") as file:
            file.write(json.dumps({kind: row}) + "\n")

    def skip(self, name: str, problem: RingProblem | None, reason: str) -> None:
        lines = reason.strip().splitlines() or ["without words"]
        self.row("skipped", {"name": name, **(fields_of(problem) if problem else {}), "reason": lines[0][:300]})


@dataclass(frozen=True)
class Pace:
    """How something is timed whose call takes about so long: calls in a series, work before it, and how often."""

    calls: int
    filler_ms: float
    rounds: int

    @classmethod
    def of(cls, settings: Settings, ms: float) -> "Pace":
        if ms < LONG_MS:
            return cls(max(1, int(settings.series_ms / max(ms, 1e-3))), settings.filler_ms, settings.rounds)
        return cls(1, 0.0, min(settings.rounds, 3 if ms < 4 * LONG_MS else 2))

    def seconds(self, ms: float) -> float:
        """Of a round, with what the host needs."""
        return 1.2e-3 * (self.calls * ms + self.filler_ms)


def rounds_that_fit(wanted: int, seconds_a_round: float, left: float) -> int:
    """At least two, where there is time for them; 0: none."""
    fit = int(left / max(seconds_a_round, 1e-6))
    return min(wanted, fit) if fit >= 2 else 0
