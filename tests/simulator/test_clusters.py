"""Clusters of thread blocks: launches, each other's shared memory, barriers, and their faults with line and words."""

import re
from pathlib import Path

import pytest
from cudart import ON_GPU, run_program

FOLDER = Path(__file__).parent / "programs" / "clusters"
FAULTS = FOLDER / "faults.cu"
HOPPER = ("-gencode", "arch=compute_90,code=compute_90")
CASES = re.findall(r"CASE\((\w+)\),", FAULTS.read_text())


def marks(name):
    """(kinds, words, the lines that are named) of a fault; words: lists of alternatives"""
    kinds, words, lines = None, None, set()
    for number, line in enumerate(FAULTS.read_text().splitlines(), 1):
        if match := re.search(rf"//! {name} ([a-z_ ]+): (.+)", line):
            kinds, words = match[1].split(" or "), [w.split(" or ") for w in match[2].split(" | ")]
        if re.search(rf"//[!~] {name}\b", line):
            lines.add(number)
    return kinds, words, lines


@pytest.mark.simulator_only
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", CASES)
def test_fault_and_mended_twin(name, seed):
    env = {"WARPSIM_SCHEDULE": seed} if seed else {}
    kinds, words, lines = marks(name)
    result = run_program(FAULTS, [name, 0], env=env, report=True, architecture=HOPPER)
    assert result.returncode == 3, f"the launch did not fail: {result.stdout}{result.stderr}"
    hazard = result.hazards[0]
    assert hazard["kind"] in kinds and hazard["line"] in lines, hazard
    for alternatives in words:
        assert any(word in hazard["message"] for word in alternatives), hazard["message"]
    named = [f"{FAULTS.name}:{line}" in hazard["message"] for line in lines]
    assert all(named) or ("has exited" in hazard["message"] and any(named)), hazard["message"]
    mended = run_program(FAULTS, [name, 1], env=env, report=True, architecture=HOPPER).check()
    assert mended.stdout == "cudaSuccess\n" and mended.hazards == []


@pytest.mark.parametrize("program", ["kernels.cu", "boxes.cu", "cooperative_groups.cu", "launches.cu"])
@pytest.mark.parametrize("seed", [0, 7])
def test_correct_programs_are_clean(program, seed):
    env = {"WARPSIM_SCHEDULE": seed} if seed and not ON_GPU else {}
    result = run_program(FOLDER / program, env=env, report=not ON_GPU, architecture=HOPPER).check()
    assert result.stdout == "OK\n" and result.hazards == []


@pytest.mark.simulator_only
def test_results_and_counters_do_not_depend_on_host_threads():
    reports = []
    for threads in (1, 2, 5):
        env = {"WARPSIM_THREADS": threads}
        result = run_program(FOLDER / "kernels.cu", env=env, report=True, architecture=HOPPER).check()
        reports.append((result.stdout, result.report))
    assert reports[0] == reports[1] == reports[2]
