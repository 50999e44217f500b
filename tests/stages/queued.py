"""What the tests of gradients, of decode and of several GPUs share: how such a stage is run, verified and launched."""

import pytest

from flashladder.core.device import choose
from flashladder.core.problem import Problem
from flashladder.ladder import launches
from flashladder.running.job import Result


def each(some: list) -> pytest.MarkDecorator:
    """For a test of each of these stages."""
    return pytest.mark.parametrize("one", some, ids=lambda one: one.name)


def only_simulated(one, why: str) -> None:
    if choose(one.min_compute).kind == "gpu":
        pytest.skip(why)


def verified(one, problem: Problem, inputs: dict | None = None, **options) -> Result:
    """Runs the stage and compares its outputs with the reference."""
    inputs = one.random_inputs(problem, 3) if inputs is None else inputs
    result = one.run(problem, inputs, **options)
    comparison = one.compared(problem, inputs, result)
    assert comparison, f"stage {one.id}, {problem}: {comparison.message}"
    return result


def in_order(one, schedule: str, run, problem: Problem, **options) -> None:
    """Another order of warps, blocks and streams, under which there is no hazard; run: verified() or a test's own."""
    only_simulated(one, "the simulator's schedules")
    environment = {"WARPSIM_SCHEDULE": schedule, "WARPSIM_HAZARDS": "strict"}
    result = run(one, problem, device="sim", environment=environment, **options)
    assert not [hazard for launch in result.report["launches"] for hazard in launch["hazards"]]


def check_launches(one, problem: Problem, **more) -> None:
    """What flash_describe() says is what stage.toml says, and so is what the launcher queues. more: of its kind."""
    configuration = one.configuration(problem)
    described = one.describe(problem, configuration=configuration)
    planned = launches.launches(one, problem)
    main = planned[one.main_launch]
    wanted = {
        "title": one.title,
        "min_compute": one.min_compute,
        "threads": main.threads,
        "shared_bytes": main.shared_bytes,
        "grid": list(main.grid),
        "workspace_bytes": launches.workspace_bytes(one, problem),
    } | more
    assert {name: described[name] for name in wanted} == wanted
    queued = one.run(problem, device="sim", configuration=configuration).report["launches"]
    kernels = [(launch["grid"], launch["block"][0]) for launch in queued]
    assert kernels == [(list(plan.grid), plan.threads) for plan in planned]
