"""Threads that meet in global memory: within a block, and between blocks of one launch."""

from pathlib import Path

import pytest
from cudart import run_program
from fault_marks import cases, marks

FOLDER = Path(__file__).parent / "programs" / "global_memory"
FAULTS = FOLDER / "faults.cu"


@pytest.mark.simulator_only
@pytest.mark.parametrize("seed", [0, 1, 5])
@pytest.mark.parametrize("name", cases(FAULTS))
def test_fault_and_mended_twin(name, seed):
    """Which side is told depends on the order in which the blocks ran; both lines are always named."""
    env = {"WARPSIM_SCHEDULE": seed} if seed else {}
    kinds, words, lines = marks(FAULTS, name)
    result = run_program(FAULTS, [name, 0], env=env, report=True)
    assert result.returncode == 3, f"the launch did not fail: {result.stdout}{result.stderr}"
    hazard = result.hazards[0]
    assert hazard["kind"] in kinds and hazard["line"] in lines, hazard
    for alternatives in words:
        assert any(word in hazard["message"] for word in alternatives), hazard["message"]
    assert f"{FAULTS.name}:{hazard['line']}" in hazard["message"]
    mended = run_program(FAULTS, [name, 1], env=env, report=True).check()
    assert mended.stdout == "cudaSuccess\n" and mended.hazards == []
