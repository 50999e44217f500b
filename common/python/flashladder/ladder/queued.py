"""What the stages have in common whose kernels do something else than compute attention from whole Q, K and V: those
that compute gradients (ladder/backward.py), those of decode (ladder/decode.py) and those for several GPUs
(ladder/ring.py). They are tested, run, timed, broken and written as the others are; blank pages and assignments are of
stages that compute attention."""

from pathlib import Path
from typing import ClassVar

import numpy as np

from flashladder.core.device import Device
from flashladder.core.problem import Problem
from flashladder.ladder.kernels import WithKernel
from flashladder.running.job import Options, OutputsResult, run_outputs
from flashladder.running.verify import Comparison


class Queued(WithKernel):
    KIND: ClassVar[str]  # of running.job.KINDS
    WHAT: ClassVar[str]  # what such a stage does, after its number
    RUNS = 2  # a workspace serves both, so that what one leaves in it shows in the next

    def check(self, problem: Problem, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> Comparison:
        """Compares a run's outputs with the reference."""
        raise NotImplementedError

    def compared(self, problem: Problem, inputs: dict[str, np.ndarray], result: OutputsResult) -> Comparison:
        return self.check(problem, inputs, result.bits)

    def _launched(
        self, place: tuple[Path, Device], problem: Problem, inputs: dict | None, options: Options
    ) -> OutputsResult:
        return run_outputs(f"stage {self.id}", self.KIND, place, problem, inputs, options)

    @property
    def tests(self) -> list[str]:
        return [f"tests/stages/test_{self.KIND}.py"]
