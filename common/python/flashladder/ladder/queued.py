"""What the stages have in common whose kernels do something else than compute attention from whole Q, K and V: those
that compute gradients (ladder/backward.py), those of decode (ladder/decode.py) and those for several GPUs
(ladder/ring.py). They are tested, run, timed and broken as the others are; lessons, exercises and blank pages are for
stages that compute attention."""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from flashladder.core.device import Device, choose
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import stage_library
from flashladder.core.problem import Problem
from flashladder.ladder.kernels import WithKernel, compile_kernel, judged_by
from flashladder.ladder.stage import Verdict
from flashladder.running.job import Options, OutputsResult, StageError, run_outputs
from flashladder.running.verify import Comparison


class Queued(WithKernel):
    KIND: ClassVar[str]  # of running.job.KINDS
    WHAT: ClassVar[str]  # what such a stage does, after its number

    def random_inputs(self, problem: Problem, seed: int = 0) -> dict[str, np.ndarray]:
        """Bit patterns and arrays by name, all that a run needs."""
        raise NotImplementedError

    def check(self, problem: Problem, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> Comparison:
        """Compares a run's outputs with the reference."""
        raise NotImplementedError

    @property
    def tests(self) -> list[str]:
        return [f"tests/stages/test_{self.KIND}.py"]

    @property
    def judged_options(self) -> dict:
        """More of running.job.Options for those runs."""
        return {}

    def judged_by(self) -> list[tuple[Problem, str | None]]:
        """As ladder.kernels.judged_by()."""
        return judged_by(self)

    def run(
        self,
        problem: Problem,
        inputs: dict[str, np.ndarray] | None = None,
        device: str | None = None,
        library: Path | None = None,
        **options,
    ) -> OutputsResult:
        """Runs the stage on inputs as random_inputs() gives them, which it takes where none are given. device, library
        and options as for ladder.run.run_problem()."""
        inputs = self.random_inputs(problem) if inputs is None else inputs
        return self._work(problem, inputs, choose(self.min_compute, device), library, Options(**options))

    def describe(self, problem: Problem, device: str | None = None) -> dict:
        """What the stage would do with the problem."""
        return self._work(problem, None, choose(self.min_compute, device), None, Options()).description

    def _work(self, problem: Problem, inputs, where: Device, library: Path | None, options: Options) -> OutputsResult:
        library = library or stage_library(self.number)
        if not library.exists():
            raise FlashLadderError(f"{library} does not exist: run `make stage-{self.id}`.")
        options = replace(options, environment=self.simulated | options.environment)
        return run_outputs(f"stage {self.id}", self.KIND, (library, where), problem, inputs, options)

    def judge(self, source: Path) -> Verdict:
        """The verdict of the first problem at which the simulator or the verification objects, else of the last. A
        workspace serves two runs, so that what one leaves in it shows in the next."""
        library = compile_kernel(source, self)
        for problem, configuration in self.judged_by():
            verdict = self._judge(library, problem, configuration)
            if verdict.caught:
                break
        return verdict

    def _judge(self, library: Path, problem: Problem, configuration: str | None) -> Verdict:
        inputs = self.random_inputs(problem, 1)
        strict = {"WARPSIM_HAZARDS": "strict"}  # what ptxas would repair is a mistake, too
        options = {"environment": strict, "timeout": 300, "repeat": 2, "configuration": configuration}
        options |= self.judged_options
        try:
            result = self.run(problem, inputs, "sim", library, **options)
        except StageError as error:
            reported = (error.report or {"launches": []})["launches"]
            hazards = [hazard for launch in reported for hazard in launch["hazards"]]
            return Verdict(True, hazards[0]["kind"] if hazards else "error", str(error), problem)
        comparison = self.check(problem, inputs, result.bits)
        return Verdict(not comparison, "" if comparison else "verification", comparison.message, problem)
