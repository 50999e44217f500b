"""Throughput of the backward stages on a GPU beside PyTorch's FlashAttention-2 and cuDNN, by the rules of bench.py.

TFLOP/s count 2.5 times the forward pass's operations, and the time of all kernels that a stage queues. O and the
log-sum-exp are those of a forward stage of this ladder, FORWARD; of the peers their own forward pass is not timed. A
peer that is asked for the same bits in each run is timed only where several runs had them.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from flashladder.core.abi import StageLibrary
from flashladder.core.device import Device
from flashladder.core.paths import stage_library
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.measuring import gpu_memory, peers
from flashladder.measuring.bench import Bench, Candidate, Settings, run_bench
from flashladder.running import gradients
from flashladder.running.gradients import GRADIENTS
from flashladder.running.verify import POISON, Comparison

FORWARD = "masking"  # it takes any length and mask on any GPU from sm_80 on
REPEATS = 3  # further runs of a peer that is to be deterministic
LONG = 4096  # from where on one head is compared, and not two: the reference takes the square of the length


class BackwardBench(Bench):
    SUFFIX = "-backward"

    def __init__(self, settings: Settings, device: Device):
        super().__init__(settings, device)
        self.shuffle = random.Random(0).shuffle
        self.forward = StageLibrary(stage_library(stages.get(FORWARD).number))

    def wanted_stages(self) -> list[stages.Stage]:
        every = stages.backward_stages()
        return [one for one in every if not self.settings.stages or one.number in self.settings.stages]

    def stages_for(self, problem: Problem) -> list[stages.Stage]:
        return [one for one in self.stages if problem.dtype in one.dtypes]

    def written(self, memory) -> dict[str, np.ndarray]:
        return {name: memory.bits(name) for name in GRADIENTS}

    def flops(self, problem: Problem) -> float:
        return problem.backward_flops()

    def peer_names(self, dtype: str) -> tuple[str, ...]:
        return peers.gradient_names()

    def peer_call(self, name: str, problem: Problem, tensors: dict) -> Callable:
        return peers.gradient_call(name, problem, tensors)

    def of_peer(self, problem: Problem, output) -> dict[str, np.ndarray]:
        return dict(zip(GRADIENTS, map(gpu_memory.host_bits, output), strict=True))

    def prepared(self, problem: Problem):
        memory = gpu_memory.BackwardMemory(problem, problem.Nq, self.cudart)
        self.forward.launch(problem.params(memory.pointers()))
        self.cudart.synchronize()
        inputs = {name: memory.bits(name) for name in ("Q", "K", "V", "dO")}
        rows = np.unique(np.linspace(0, problem.Nq - 1, 97).astype(int))
        heads = [(problem.B - 1, problem.Hq - 1)] + [(0, 0)] * (problem.Nq < LONG)
        part = gradients.Part(tuple(dict.fromkeys(heads)), rows, rows)
        return memory, (part, gradients.expected(problem, inputs, part))

    def compared(self, candidate: Candidate, problem: Problem, expected) -> tuple[Comparison, int]:
        part, wanted = expected
        got = {name: problem.to_bhnd(bits) for name, bits in candidate.output().items()}
        picked = {name: np.stack([got[name][b, h][part.rows] for b, h in part.heads]) for name in GRADIENTS}
        unwritten = sum(int((bits == POISON).sum()) for bits in got.values())
        return gradients.compare_all(picked, wanted, problem.dtype), unwritten

    def accepts(self, candidate: Candidate, problem: Problem, unwritten: int = 0) -> bool:
        if not super().accepts(candidate, problem, unwritten):
            return False
        if not candidate.name.endswith(peers.DETERMINISTIC) or self.repeats(candidate):
            return True
        self.skip(candidate.name, problem, f"its gradients have other bits in one of {REPEATS + 1} runs")
        return False

    def repeats(self, candidate: Candidate) -> bool:
        """Whether more runs have the bits of the one before."""
        first = candidate.output()
        for _ in range(REPEATS):
            candidate.launch()
            self.cudart.synchronize()
            again = candidate.output()
            if not all(np.array_equal(first[name], again[name]) for name in GRADIENTS):
                return False
        return True

    def bench_ceiling(self) -> None:
        """cuBLAS stands in the forward pass's record."""

    def results(self) -> dict:
        return super().results(self.stages) | {"pass": "backward"}


def run(settings: Settings, device: Device | None = None) -> Path:
    """Times the backward stages of settings.stages, all where none is named; returns the JSON file."""
    types = tuple(dtype for dtype in settings.dtypes if dtype != "e4m3")
    return run_bench(replace(settings, dtypes=types), device, BackwardBench)
