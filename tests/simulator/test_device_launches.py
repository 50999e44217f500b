"""Dynamic parallelism: kernels that launch kernels, in streams, as tail launches, and what is wrong with some."""

import re

import pytest
from cudart import PROGRAMS, run_program

pytestmark = pytest.mark.simulator_only

PROGRAM = PROGRAMS / "device_launches" / "device_launches.cu"
CASES = re.findall(r"CASE\((\w+)\),", PROGRAM.read_text())
FLAGS = ("-rdc=true", "-lcudadevrt")


def line_of(text):
    return 1 + [line.strip() for line in PROGRAM.read_text().splitlines()].index(text)


def run(case, **options):
    return run_program(PROGRAM, [case], flags=FLAGS, **options).check()


def test_all_cases_are_found():
    assert len(CASES) >= 18


@pytest.mark.parametrize("case", CASES)
def test_case(case):
    assert run(case).stdout == "passed\n"


@pytest.mark.parametrize("case", ["each_block_launches", "tail_launches_come_last", "recursion", "too_many_pending"])
@pytest.mark.parametrize("settings", [{"WARPSIM_SCHEDULE": 7}, {"WARPSIM_THREADS": 1}, {"WARPSIM_SCHEDULE": "last:0"}])
def test_under_other_schedules(case, settings):
    assert run(case, env=settings).stdout == "passed\n"


@pytest.mark.parametrize("architecture", ["80", "90"])
def test_other_architectures(architecture):
    options = ("-gencode", f"arch=compute_{architecture},code=compute_{architecture}")
    assert run("streams_and_events", architecture=options).stdout == "passed\n"


def test_on_another_device():
    assert run("on_another_device", env={"WARPSIM_DEVICES": 2}).stdout == "passed\n"


def test_a_childs_hazard_is_reported_with_its_line():
    said = run("a_child_with_a_hazard").stderr
    assert f"device_launches.cu:{line_of('values[n + threadIdx.x] = 1;')}" in said
    assert "past the end of the 400-byte allocation" in said
    assert "past_the_end(int*, int)<<<(1, 1, 1), (4, 1, 1), 0>>> failed with cudaErrorIllegalAddress" in said


def test_a_parent_that_waits_for_what_it_launched_hangs_and_is_told():
    said = run("a_parent_that_waits").stderr
    assert f"device_launches.cu:{line_of('while (atomicAdd(values, 0) == 0) {')}" in said


def test_what_says_why():
    assert "25 launches deep, and 24 are possible" in run("launches_too_deep").stderr
    assert "128 threads: __launch_bounds__ allows 64" in run("a_child_that_the_device_refuses").stderr


def test_the_report_has_parents_and_children():
    launches = run("order_in_a_stream", report=True).report["launches"]
    names = [re.match(r"\w+", launch["kernel"])[0] for launch in launches]
    assert names == ["add_then_multiply", "add", "multiply", "add", "multiply"]
