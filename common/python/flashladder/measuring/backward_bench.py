"""Throughput of the backward stages on a GPU beside PyTorch's FlashAttention-2 and cuDNN, by the rules of bench.py.

TFLOP/s count 2.5 times the forward pass's operations, and the time of all kernels that a stage queues. O and the
log-sum-exp are those of a forward stage of this ladder, FORWARD; of the peers their own forward pass is not timed.
"""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np

from flashladder.core.abi import BackwardLibrary, StageLibrary
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

    def load(self, stage: stages.Stage) -> BackwardLibrary:
        return BackwardLibrary(stage_library(stage.number))

    def stages_for(self, problem: Problem) -> list[stages.Stage]:
        return [one for one in self.stages if problem.dtype in one.dtypes]

    def stage_candidate(self, stage: stages.Stage, problem: Problem, memory) -> Candidate | None:
        description = self.described(stage, problem, problem.params({}, kind=BackwardLibrary.PARAMS))
        if description is None:
            return None
        needed, library = description["workspace_bytes"], self.libraries[stage.number]

        def launch():
            scratch = memory.scratch(stage.name, needed, description["zeroed_workspace"])
            library.launch(problem.params(memory.pointers(), scratch, needed, kind=library.PARAMS))

        def output():
            return {name: memory.bits(name) for name in GRADIENTS}

        facts = self.facts(stage, description)
        return Candidate(stage.name, "stage", launch, output, problem.backward_flops(), facts)

    def peer_candidates(self, problem: Problem, memory) -> list[Candidate]:
        if not (self.torch and self.settings.peers):
            return []
        found = []
        for name in peers.BACKENDS:
            try:
                call, kept = peers.gradient_call(name, problem, memory.tensors), {}
            except RuntimeError as error:  # a peer that has no kernel for this problem
                self.skip(name, problem, str(error).splitlines()[0])
                continue

            def launch(call=call, kept=kept):
                kept["gradients"] = call()

            def output(kept=kept):
                return dict(zip(GRADIENTS, map(gpu_memory.host_bits, kept["gradients"]), strict=True))

            found.append(Candidate(name, "peer", launch, output, problem.backward_flops()))
        return found

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

    def bench_ceiling(self) -> None:
        """cuBLAS stands in the forward pass's record."""

    def run(self) -> dict:
        results = super().run()
        kernels = {stage.name: stage.kernel_hash() for stage in self.stages}
        results["provenance"] |= {"kernels": kernels}
        return results | {"pass": "backward"}


def run(settings: Settings, device: Device | None = None) -> Path:
    """Times the backward stages of settings.stages, all where none is named; returns the JSON file."""
    types = tuple(dtype for dtype in settings.dtypes if dtype != "e4m3")
    return run_bench(replace(settings, dtypes=types), device, BackwardBench)
