"""The stages whose kernels compute gradients: stages/NN_name/kernel.cu with a flash_backward() of
common/include/attention_backward.h, and `backward = true` in stage.toml."""

import numpy as np

from flashladder.core.problem import Problem
from flashladder.ladder.kernels import WithKernel
from flashladder.running import gradients
from flashladder.running.job import Result
from flashladder.running.verify import Comparison


class Backward(WithKernel):
    KIND = "backward"
    WHAT = "computes gradients"
    LESSON = "BackwardLesson"

    def random_inputs(self, problem: Problem, seed: int = 0) -> dict[str, np.ndarray]:
        return gradients.random_inputs(problem, seed)

    def wanted(self, problem: Problem, inputs: dict[str, np.ndarray]) -> dict[str, gradients.Expected]:
        return gradients.expected(problem, inputs)

    def compared_with(self, problem: Problem, wanted: dict[str, gradients.Expected], result: Result) -> Comparison:
        return gradients.check_with(problem, wanted, result.outputs)
