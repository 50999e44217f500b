"""Launches, copies and frees that nothing orders, and touch the same bytes: on one device."""

from pathlib import Path

import pytest
from cudart import run_program
from fault_marks import HOPPER, cases, marks

pytestmark = pytest.mark.simulator_only

FOLDER = Path(__file__).parent / "programs" / "launch_order"
FAULTS = FOLDER / "faults.cu"
SCHEDULES = [0, 1, 6, "last:1", "last:2"]
# A query that answers cudaSuccess, a host function that has run and what a kernel has written to the host's memory order
# what comes next, and whether they came first depends on the schedule.
SEEN_BY_THE_HOST = ("asks_once", "waits_for_a_host_function", "polls_its_own_memory")


def check_fault(program, name, env):
    """The faulty run fails as its marks say."""
    kinds, words, lines = marks(program, name)
    result = run_program(program, [name, 0], env=env, report=True, architecture=HOPPER)
    assert result.returncode == 3, f"nothing failed: {result.stdout}{result.stderr}"
    hazard = result.hazards[0]
    assert hazard["kind"] in kinds, hazard
    # A copy has no line; code of a function is charged there, with the calls that lead to it.
    places = {hazard["line"], *(call["line"] for call in hazard.get("inlined", []))}
    assert places == {0} or places & lines, hazard
    for alternatives in words:
        assert any(word in hazard["message"] for word in alternatives), hazard["message"]
    assert hazard["message"] in result.stderr
    return hazard


@pytest.mark.parametrize("name", cases(FAULTS))
def test_fault_and_mended_twin(name):
    """Whatever ran first: the verdict, the places and the words are the same under each schedule."""
    said = set()
    for schedule in SCHEDULES[: 1 if name in SEEN_BY_THE_HOST else None]:
        env = {"WARPSIM_SCHEDULE": schedule}
        said.add(check_fault(FAULTS, name, env)["message"].split(" of global memory")[0])
        mended = run_program(FAULTS, [name, 1], env=env, report=True, architecture=HOPPER).check()
        assert mended.stdout == "cudaSuccess\n" and mended.hazards == [], schedule
    assert len(said) == 1, said


@pytest.mark.parametrize("name", ["two_streams", "a_plain_and_an_atomic_update", "branches_of_a_graph"])
def test_reports_do_not_depend_on_host_threads(name):
    reports = []
    for threads in (1, 2, 5):
        reports.append(
            run_program(FAULTS, [name, 0], env={"WARPSIM_THREADS": threads}, report=True, architecture=HOPPER).hazards
        )
    for hazard in (h for report in reports for h in report):
        hazard["address"] = hazard["message"] = None  # addresses are those of this run
    assert reports[0] and reports[0] == reports[1] == reports[2]


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
