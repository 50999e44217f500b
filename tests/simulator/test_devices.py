"""Several devices in one process (WARPSIM_DEVICES): the API, what a device reaches, and what orders two of them."""

from pathlib import Path

import pytest
from cudart import run_program
from fault_marks import HOPPER, cases, check_fault, check_mended

pytestmark = pytest.mark.simulator_only

FOLDER = Path(__file__).parent / "programs" / "devices"
API, FAULTS = FOLDER / "api.cu", FOLDER / "faults.cu"
SCHEDULES = [0, 1, 6, "last:4", "last:5", "last:6", "last:7"]
RINGS = [name for name in cases(FAULTS) if "ring" in name]


def run_api(case, devices=3, **env):
    return run_program(API, [case], env={"WARPSIM_DEVICES": devices, **env}, architecture=HOPPER)


@pytest.mark.parametrize("case", cases(API))
def test_case(case):
    assert run_api(case).check().stdout == "passed\n"


@pytest.mark.parametrize("schedule", [1, 2, 3, "last:3", "last:4"])
@pytest.mark.parametrize(
    "case", ["events_across_devices", "a_blocking_copy_orders_both_devices", "devices_meet_in_memory_of_the_host"]
)
def test_devices_keep_their_order_under_every_schedule(case, schedule):
    assert run_api(case, WARPSIM_SCHEDULE=schedule).check().stdout == "passed\n"


def test_there_is_one_device_unless_more_are_asked_for():
    result = run_program(API, ["count_and_current"], architecture=HOPPER)
    assert result.returncode == 1 and "devices == kDevices" in result.stdout
    for wrong in ("0", "17", "two"):
        refused = run_api("count_and_current", devices=wrong)
        assert refused.returncode != 0 and f"WARPSIM_DEVICES={wrong}: must be a number of devices" in refused.stderr


def test_a_device_that_is_not_there_is_named():
    assert "there are 3 devices (WARPSIM_DEVICES sets how many)" in run_api("count_and_current").check().stderr


def test_ipc_is_refused_with_a_reason():
    said = run_api("nothing_is_shared_with_other_processes").check().stderr
    assert "cudaIpcGetMemHandle: the simulated devices are those of one process" in said
    assert "cudaDeviceEnablePeerAccess" in said


@pytest.mark.parametrize("name", cases(FAULTS))
def test_fault_and_mended_twin(name):
    """Whatever ran first: the verdict is the same under each schedule."""
    # What is disabled under a launch shows where the launch has not run yet.
    for schedule in SCHEDULES[: 1 if name == "disabled_too_early" else None]:
        env = {"WARPSIM_DEVICES": 3, "WARPSIM_SCHEDULE": schedule}
        check_fault(FAULTS, name, env)
        check_mended(FAULTS, name, env)


@pytest.mark.parametrize("devices", [2, 3, 4])
@pytest.mark.parametrize("name", RINGS)
def test_rings(name, devices):
    for threads in (1, 2, 5):
        env = {"WARPSIM_DEVICES": max(devices, 3), "WARPSIM_THREADS": threads}
        check_fault(FAULTS, name, env)
        check_mended(FAULTS, name, env, arguments=[devices])


def test_failed_launches_name_their_device():
    result = run_program(FAULTS, ["no_peer_access", 0], env={"WARPSIM_DEVICES": 3}, architecture=HOPPER)
    assert ">>> on device 0 failed with cudaErrorIllegalAddress" in result.stderr
