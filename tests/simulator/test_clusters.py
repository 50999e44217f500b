"""Clusters of thread blocks: launches, each other's shared memory, barriers, and their faults with line and words."""

from pathlib import Path

import pytest
from cudart import run_program
from fault_marks import HOPPER, cases, check_clean, check_fault, check_mended

FOLDER = Path(__file__).parent / "programs" / "clusters"
FAULTS = FOLDER / "faults.cu"


@pytest.mark.simulator_only
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", cases(FAULTS))
def test_fault_and_mended_twin(name, seed):
    env = {"WARPSIM_SCHEDULE": seed} if seed else {}
    hazard, lines = check_fault(FAULTS, name, env)
    named = [f"{FAULTS.name}:{line}" in hazard["message"] for line in lines]
    assert all(named) or ("has exited" in hazard["message"] and any(named)), hazard["message"]
    check_mended(FAULTS, name, env)


@pytest.mark.parametrize("program", ["kernels.cu", "boxes.cu", "cooperative_groups.cu", "launches.cu"])
@pytest.mark.parametrize("seed", [0, 7])
def test_correct_programs_are_clean(program, seed):
    check_clean(FOLDER / program, seed)


@pytest.mark.simulator_only
def test_results_and_counters_do_not_depend_on_host_threads():
    reports = []
    for threads in (1, 2, 5):
        env = {"WARPSIM_THREADS": threads}
        result = run_program(FOLDER / "kernels.cu", env=env, report=True, architecture=HOPPER).check()
        reports.append((result.stdout, result.report))
    assert reports[0] == reports[1] == reports[2]
