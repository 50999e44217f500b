"""Faults with mbarriers and bulk copies are named with kind, line and words; the mended kernels are clean."""

from pathlib import Path

import pytest
from cudart import run_program
from fault_marks import HOPPER, cases, check_clean, check_fault_and_twin

PROGRAM = Path(__file__).parent / "programs" / "arrivals" / "faults.cu"

pytestmark = pytest.mark.simulator_only


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", cases(PROGRAM))
def test_fault_and_mended_twin(name, seed):
    check_fault_and_twin(PROGRAM, name, seed, names_lines=name not in ("never_initialised", "not_made_visible"))


WAITS = PROGRAM.with_name("waits.cu")


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", cases(WAITS))
def test_wait_that_tells_too_little_and_mended_twin(name, seed):
    check_fault_and_twin(WAITS, name, seed)


LIBRARIES = PROGRAM.with_name("memcpy_async.cu")


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", cases(LIBRARIES))
def test_fault_over_libraries_and_mended_twin(name, seed):
    check_fault_and_twin(LIBRARIES, name, seed)


@pytest.mark.parametrize("settings", [{}, {"WARPSIM_SCHEDULE": 7}, {"WARPSIM_HAZARDS": "strict"}])
def test_aligned_copies_by_libraries_are_clean(settings):
    """An init has no fence behind it there, only a barrier of the block or of its warp."""
    result = run_program(LIBRARIES, env=settings, report=True, architecture=HOPPER)
    assert result.check().stdout == "OK\n" and result.hazards == []
    assert all(launch["notes"] == [] for launch in result.report["launches"])


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 7])
def test_correct_kernels_are_clean_and_counted(seed):
    ring, copies, _, stores, _ = check_clean(PROGRAM.with_name("pipelines.cu"), seed)["launches"]
    assert ring["bulk"] == {"load": {"copies": 2 * 2 * 8, "bytes": 2 * 8 * 512}}
    assert ring["mbarriers"]["waits"] == 2 * (8 + 4 * 8), "one of each warp that waits, in each of two blocks"
    assert 0 < ring["mbarriers"]["waited"] <= ring["mbarriers"]["waits"]
    assert copies["bulk"] == {}
    assert stores["bulk"]["store"] == stores["bulk"]["reduce"] == {"copies": 8, "bytes": 8 * 512}
