"""Clocks and power on a GPU: at how many MHz each kernel runs, in turn with the others and alone, and on numbers that
cost less energy.

Near its power limit a GPU lowers its clock, by what the kernel before has taken as much as by what this one takes. So
a throughput has two factors: clocks that a kernel needs, and clocks that it is given. Here both are measured.
"""

import time

import numpy as np

from flashladder.core.console import say
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.measuring import bench, peers, provenance
from flashladder.measuring.nvml import Nvml
from flashladder.measuring.sm_clocks import SmClocks

FIRST = 14  # the first stage for Hopper
STEP = 128  # rows of Q, and of K and V: what clocks are given for
ALONE_LENGTHS = (1024, 4096, 16384)
ONES_LENGTHS = (4096, 16384)
WARM_SECONDS, ALONE_SECONDS, CHUNK_SECONDS = 0.6, 0.8, 0.02
KINDS = {"normal": "Q, K and V standard normal, as everywhere else", "ones": "all numbers of Q, K and V are 1"}


def clocks_a_step(row: dict, multiprocessors: int) -> float:
    """Clocks that one multiprocessor has for 128 rows of Q and 128 of K and V, on an average over the whole kernel.

    row: of a record's measurements. Causal, half of all such steps are counted, as with FLOPs. The tensor cores alone
    need floor() of them.
    """
    steps = row["B"] * row["Hq"] * row["Nq"] * row["Nkv"] / STEP**2 / (2 if row["causal"] else 1)
    return row["ms"]["median"] * 1e3 * row["mhz"]["median"] * multiprocessors / steps


def floor(d_head: int) -> float:
    """Clocks of a step's products at the full rate of 16-bit types, 4096 FLOPs a clock (Hopper)."""
    return 4 * STEP * STEP * d_head / 4096


def alone_tflops(row: dict) -> float:
    """TFLOP/s of a kernel alone, of a row that has "alone"."""
    return row["tflops"] * row["ms"]["median"] / row["alone"]["ms"]


class Clocked(bench.Bench):
    """A benchmark that knows the clock of every run."""

    def __init__(self, settings: bench.Settings, device: Device):
        super().__init__(settings, device)
        self.clocks = SmClocks(self.cudart, device.gpu.compute)
        try:
            self.joules = Nvml().joules
        except FlashLadderError as error:
            say(f"power: no watts: {error}")
            self.joules = float  # 0.0: a counter that stands still has no ticks
        self._seen: dict[str, list[float]] = {}
        self._problem: Problem | None = None
        self.alone_names: tuple[str, ...] = ()

    def time_once(self, candidate: bench.Candidate) -> float:
        self.cudart.fill(self.flush_buffer, 0, self.flush_bytes)
        self.clocks.before()
        self.cudart.record(self.start)
        candidate.launch()
        self.cudart.record(self.stop)
        self.clocks.after()
        self._seen.setdefault(candidate.name, []).append(self.clocks.mhz())
        return self.cudart.elapsed_ms(self.start, self.stop)

    def bench_problem(self, *problems: Problem) -> None:
        self._problem = problems[0]
        super().bench_problem(*problems)

    def measure(self, candidates: list[bench.Candidate]) -> None:
        super().measure(candidates)
        for candidate in candidates:
            if candidate.name in self.alone_names and self._problem.Nq in ALONE_LENGTHS:
                candidate.facts["alone"] = self._alone(candidate)

    def _alone(self, candidate: bench.Candidate) -> dict:
        """Launches without a gap, from when the clock has settled: milliseconds of one, MHz, and watts between the
        first and the last time that the counter of energy moves on."""
        launches = max(1, round(CHUNK_SECONDS * 1e3 / float(np.median(candidate.times_ms))))
        ring = [self.cudart.event() for _ in range(3)]  # behind the chunk that is over, the one that runs, the next
        took, ticks = [], []

        def run(seconds: float) -> None:
            end, chunk = time.monotonic() + seconds, 0
            self.cudart.record(ring[0])
            while chunk == 0 or time.monotonic() < end:  # one chunk is always queued behind the one that is waited for
                for _ in range(launches):
                    candidate.launch()
                self.cudart.record(ring[(chunk + 1) % 3])
                if chunk:
                    before, over = ring[(chunk - 1) % 3], ring[chunk % 3]
                    self.cudart.wait(over)
                    took.append(self.cudart.elapsed_ms(before, over) / launches)
                    joules = self.joules()
                    if not ticks or joules != ticks[-1][1]:
                        ticks.append((time.monotonic(), joules))
                chunk += 1

        run(WARM_SECONDS)
        took.clear(), ticks.clear()
        self.clocks.before()
        run(ALONE_SECONDS)
        self.clocks.after()
        settled = {"ms": round(float(np.median(took)), 5), "mhz": round(self.clocks.mhz())}
        if len(ticks) > 2:  # the first is no tick, but where the reading began
            (first, before), (last, after) = ticks[1], ticks[-1]
            settled["watts"] = round((after - before) / (last - first))
        return settled

    def record(self, candidate: bench.Candidate, problem: Problem | None, clocks: dict | None) -> None:
        p20, median, p80 = np.percentile(self._seen.pop(candidate.name), [20, 50, 80])
        candidate.facts["mhz"] = {"median": round(median), "p20": round(p20), "p80": round(p80)}
        super().record(candidate, problem, clocks)


def _ones(problem: Problem, tensors: dict) -> None:
    for name in "QKV":
        tensors[name].fill_(1)


def measure(device: Device) -> dict:
    """A record: Hopper's stages and the peers in bf16, each run with its clock; the last stage, stage 22 and the peers
    alone besides; and numbers that are all the same."""
    if device.kind != "gpu" or device.gpu.compute != 90:
        raise FlashLadderError(f"The part power is about Hopper's stages, compute capability 9.0; this is {device}.")
    which = tuple(one.number for one in stages.all_stages() if one.number >= FIRST and "bf16" in one.dtypes)
    settings = bench.Settings(dtypes=("bf16",), stages=which, seconds=0.06)
    timing = Clocked(settings, device)
    if not timing.torch:
        raise FlashLadderError("The part power needs PyTorch.")
    timing.alone_names = (stages.get(22).name, stages.get(which[-1]).name, *peers.BACKENDS)
    timing.bench_ceiling()
    for kind in KINDS:
        begun = len(timing.measurements)
        timing.prepare = _ones if kind == "ones" else None
        for problem in settings.problems():
            if kind == "normal" or (problem.d_head == 128 and problem.Nq in ONES_LENGTHS):
                timing.bench_problem(problem)
        for row in timing.measurements[begun:]:
            row["inputs"] = kind
    timing.cudart.free(timing.flush_buffer)
    return {
        "version": 1,
        "provenance": provenance.collect(device) | {"runtime": timing.cudart.version(), **peers.versions()},
        "multiprocessors": timing.multiprocessors(),
        "inputs": KINDS,
        "measurements": timing.measurements,
        "skipped": timing.skipped,
    }
