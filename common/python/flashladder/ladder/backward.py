"""The stages whose kernels compute gradients: stages/NN_name/kernel.cu with a flash_backward() of
common/include/attention_backward.h, and `backward = true` in stage.toml. They are tested, run, timed and broken as the
others are; exercises and blank pages are for stages that compute attention alone."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from flashladder.core.device import Device, choose
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import stage_library
from flashladder.core.problem import Problem
from flashladder.ladder.kernels import WithKernel, compile_kernel, judged_by
from flashladder.ladder.stage import Verdict
from flashladder.running import gradients
from flashladder.running.job import BackwardResult, Options, StageError, run_backward_library


class Backward(WithKernel):
    @property
    def tests(self) -> list[str]:
        return ["tests/stages/test_backward.py"]

    def judge(self, source: Path) -> Verdict:
        """The verdict of the first problem at which the simulator or the verification objects, else of the last. A
        workspace serves two runs, so that what one leaves in it shows in the next."""
        library = compile_kernel(source, self)
        for problem, configuration in judged_by(self):
            verdict = self._judge(library, problem, configuration)
            if verdict.caught:
                break
        return verdict

    def _judge(self, library: Path, problem: Problem, configuration: str | None) -> Verdict:
        inputs = gradients.random_inputs(problem, 1)
        strict = {"WARPSIM_HAZARDS": "strict"}  # what ptxas would repair is a mistake, too
        options = {"environment": strict, "timeout": 300, "repeat": 2, "configuration": configuration}
        try:
            result = run(self, problem, inputs, "sim", library, **options)
        except StageError as error:
            reported = (error.report or {"launches": []})["launches"]
            hazards = [hazard for launch in reported for hazard in launch["hazards"]]
            return Verdict(True, hazards[0]["kind"] if hazards else "error", str(error), problem)
        comparison = gradients.check(problem, inputs, result.bits)
        return Verdict(not comparison, "" if comparison else "verification", comparison.message, problem)


def run(
    stage: Backward,
    problem: Problem,
    inputs: dict[str, np.ndarray] | None = None,
    device: str | None = None,
    library: Path | None = None,
    **options,
) -> BackwardResult:
    """Runs a stage on bit patterns: Q, K, V, O, dO and log_sum_exp as gradients.random_inputs() gives them, which it
    takes where none are given. device, library and options as for ladder.run.run_problem()."""
    inputs = gradients.random_inputs(problem) if inputs is None else inputs
    return _work(stage, problem, inputs, (choose(stage.min_compute, device), library), Options(**options))


def describe(stage: Backward, problem: Problem | None = None, device: str | None = None) -> dict:
    """What the stage would do with the problem."""
    where = choose(stage.min_compute, device)
    return _work(stage, problem or Problem(), None, (where, None), Options()).description


def _work(
    stage: Backward, problem: Problem, inputs, place: tuple[Device, Path | None], options: Options
) -> BackwardResult:
    where, library = place
    library = library or stage_library(stage.number)
    if not library.exists():
        raise FlashLadderError(f"{library} does not exist: run `make stage-{stage.id}`.")
    options = replace(options, environment=stage.simulated | options.environment)
    return run_backward_library(f"stage {stage.id}", library, problem, inputs, where, options)
