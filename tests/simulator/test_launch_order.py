"""Launches, copies and frees that nothing orders, and touch the same bytes: on one device."""

from pathlib import Path

import pytest
from cudart import run_program
from fault_marks import HOPPER, cases, check_fault, check_host_threads, check_mended

pytestmark = pytest.mark.simulator_only

FOLDER = Path(__file__).parent / "programs" / "launch_order"
FAULTS = FOLDER / "faults.cu"
SCHEDULES = [0, 1, 6, "last:1", "last:2"]
# A query that answers cudaSuccess, a host function that has run and what a kernel has written to the host's memory order
# what comes next, and whether they came first depends on the schedule.
SEEN_BY_THE_HOST = ("asks_once", "waits_for_a_host_function", "polls_its_own_memory")


@pytest.mark.parametrize("name", cases(FAULTS))
def test_fault_and_mended_twin(name):
    """Whatever ran first: the verdict, the places and the words are the same under each schedule."""
    said = set()
    for schedule in SCHEDULES[: 1 if name in SEEN_BY_THE_HOST else None]:
        env = {"WARPSIM_SCHEDULE": schedule}
        said.add(check_fault(FAULTS, name, env)[0]["message"].split(" of global memory")[0])
        check_mended(FAULTS, name, env)
    assert len(said) == 1, said


CHAINS = FOLDER / "chains.cu"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", cases(CHAINS))
def test_chain_of_dependent_launches_and_mended_twin(name, schedule):
    env = {"WARPSIM_SCHEDULE": schedule}
    check_fault(CHAINS, name, env)
    check_mended(CHAINS, name, env)


@pytest.mark.parametrize("name", ["two_streams", "a_plain_and_an_atomic_update", "branches_of_a_graph"])
def test_reports_do_not_depend_on_host_threads(name):
    check_host_threads(FAULTS, name)


def test_warnings_let_the_program_go_on():
    result = run_program(FAULTS, ["two_streams", 0], env={"WARPSIM_HAZARDS": "warn"}, report=True, architecture=HOPPER)
    assert result.check().stdout == "cudaSuccess\n"
    assert [hazard["kind"] for hazard in result.hazards] == ["launch_race"]
    copies = run_program(
        FAULTS, ["copies_to_one_place", 0], env={"WARPSIM_HAZARDS": "warn"}, report=True, architecture=HOPPER
    )
    assert copies.check().stdout == "cudaSuccess\n" and "race between launches" in copies.stderr


def test_without_hazards_nothing_is_looked_at():
    env = {"WARPSIM_HAZARDS": "off"}
    assert run_program(FAULTS, ["two_streams", 0], env=env, architecture=HOPPER).check().stdout == "cudaSuccess\n"


def test_the_same_fill_from_two_streams_is_no_conflict():
    """host_script fills one byte with the same value in each stream."""
    script = FOLDER.parent / "runtime" / "host_script.cu"
    run_program(script, ["1:op", "2:op", "4:op", "0:op", "sync"], report=True).check()
