"""Verifies a stage over data types, head dims, layouts and sizes: what `make demo` and `make stage-NN test` show."""

from dataclasses import dataclass

from flashladder.core.problem import Problem
from flashladder.ladder.kernels import WithKernel
from flashladder.running.job import Result, StageError
from flashladder.running.verify import Comparison


@dataclass
class Verdict:
    problem: Problem
    result: Result | None
    comparison: Comparison | None
    error: str = ""

    @property
    def passed(self) -> bool:
        return self.comparison is not None and self.comparison.passed

    @property
    def message(self) -> str:
        return self.error or self.comparison.message


def demo_problems() -> list[Problem]:
    """One problem of each data type and head dim, small enough for the simulator: FLASH_ONLY_ONE_EACH of launch.h."""
    return [
        Problem(B=1, Hq=2, Nq=256, d_head=128, dtype="bf16"),
        Problem(B=1, Hq=2, Nq=256, d_head=64, dtype="fp16", layout="bnhd"),
    ]


def verify(stage: WithKernel, problem: Problem, seed: int = 0, **options) -> Verdict:
    """Runs the stage on random inputs and compares with the float64 reference; options: of running.job.Options."""
    problem = stage.own(problem)
    inputs = stage.random_inputs(problem, seed)
    try:
        result = stage.run(problem, inputs, **options)
    except StageError as error:
        return Verdict(problem, None, None, str(error))
    return Verdict(problem, result, stage.compared(problem, inputs, result))
