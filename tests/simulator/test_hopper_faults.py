"""What Hopper's asynchronous units read and relaxed arrivals hand over: each fault is named, its mended twin is clean."""

from pathlib import Path

import pytest
from fault_marks import HOPPER_A, cases, check_clean, check_fault_and_twin

FOLDER = Path(__file__).parent / "programs" / "hopper"
FAULTS = FOLDER / "faults.cu"


@pytest.mark.simulator_only
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", cases(FAULTS))
def test_fault_and_mended_twin(name, seed):
    # The peer's exit comes before the read in some schedules, and after it in others.
    check_fault_and_twin(FAULTS, name, seed, names_lines="left" not in name, architecture=HOPPER_A)


@pytest.mark.parametrize("program", ["relaxed_arrivals.cu", "partial_tiles.cu"])
@pytest.mark.parametrize("seed", [0, 7])
def test_right_programs_are_clean(program, seed):
    check_clean(FOLDER / program, seed, HOPPER_A)
