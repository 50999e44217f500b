"""Every kernel that a stage has: one for each type and head dim, or for each instance of its table."""

from dataclasses import dataclass

from flashladder.core.problem import Problem
from flashladder.ladder import launches, stages
from flashladder.ladder.run import run_problem

HEAD_DIMS = (64, 128)


@dataclass(frozen=True)
class Built:
    stage: stages.Kernel
    dtype: str
    d_head: int
    Br: int
    Bc: int
    configuration: str | None = None

    def __str__(self) -> str:
        return f"{self.stage.slug}, {self.configuration or f'{self.dtype}, d = {self.d_head}'}"

    def run(self, problem: Problem, inputs: dict, **environment: str):
        """On the simulator, where notes are errors."""
        strict = self.stage.simulated | {"WARPSIM_HAZARDS": "strict"}
        return run_problem(
            self.stage, problem, inputs, "sim", environment=strict | environment, configuration=self.configuration
        )


def built(stage: stages.Kernel) -> list[Built]:
    found = launches.instances(stage)
    if found:
        return [Built(stage, c.dtype, c.d_head, c.Br, c.Bc, c.configuration) for c in found]
    launch = stage.data["launch"][-1]
    return [Built(stage, dtype, d, launch["Br"], launch["Bc"]) for dtype in stage.dtypes for d in HEAD_DIMS]
