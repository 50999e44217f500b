"""The stages whose kernels compute gradients: stages/NN_name/kernel.cu with a flash_backward() of
common/include/attention_backward.h, and `backward = true` in stage.toml. They are tested, run, timed and broken as the
others are, and have exercises; blank pages and assignments are of stages that compute attention."""

from pathlib import Path

import numpy as np

from flashladder.core.problem import Problem
from flashladder.ladder.queued import Queued
from flashladder.running import gradients
from flashladder.running.job import OutputsResult
from flashladder.running.verify import Comparison


class Backward(Queued):
    KIND = "backward"
    WHAT = "computes gradients"

    def random_inputs(self, problem: Problem, seed: int = 0) -> dict[str, np.ndarray]:
        return gradients.random_inputs(problem, seed)

    def check(self, problem: Problem, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> Comparison:
        return gradients.check(problem, inputs, outputs)


def run(
    stage: Backward,
    problem: Problem,
    inputs: dict[str, np.ndarray] | None = None,
    device: str | None = None,
    library: Path | None = None,
    **options,
) -> OutputsResult:
    """As Backward.run()."""
    return stage.run(problem, inputs, device, library, **options)


def describe(stage: Backward, problem: Problem | None = None, device: str | None = None) -> dict:
    """What the stage would do with the problem."""
    return stage.describe(problem or Problem(), device)
