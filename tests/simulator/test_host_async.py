"""What the host sees of streams, events, copies and graphs: late, until something waits."""

import re
from pathlib import Path

import pytest
from cudart import run_program

pytestmark = pytest.mark.simulator_only

PROGRAM = Path(__file__).parent / "programs" / "runtime" / "host_async.cu"
CASES = [
    name
    for name in re.findall(r"CASE\((\w+)\)", PROGRAM.read_text().split("#define CASE")[1])
    if name not in ("name", "order_of_streams", "default_streams_of_threads", "nothing_waits")
]


def test_all_cases_are_found():
    assert len(CASES) >= 24


@pytest.mark.parametrize("case", CASES)
def test_case(case):
    assert run_program(PROGRAM, [case]).check().stdout == "passed\n"


@pytest.mark.parametrize("seed", range(1, 9))
def test_order_is_kept_under_every_schedule(seed):
    run_program(PROGRAM, ["final_values"], env={"WARPSIM_SCHEDULE": seed}).check()


def test_independent_streams_run_in_the_order_of_the_calls():
    assert run_program(PROGRAM, ["order_of_streams"]).check().stdout.split()[0] == "abcdABCD"


def test_schedules_permute_independent_streams():
    orders = set()
    for seed in range(1, 7):
        order, _ = run_program(PROGRAM, ["order_of_streams"], env={"WARPSIM_SCHEDULE": seed}).check().stdout.split()
        again, _ = run_program(PROGRAM, ["order_of_streams"], env={"WARPSIM_SCHEDULE": seed}).check().stdout.split()
        assert order == again, "one seed, one order"
        for first, second in zip("abcd", "ABCD"):
            assert order.index(first) < order.index(second), "each stream keeps its own order"
        orders.add(order)
    assert len(orders) >= 3


def test_threads_share_the_default_stream():
    assert run_program(PROGRAM, ["default_streams_of_threads"]).check().stdout == "1\npassed\n"


@pytest.mark.long
def test_threads_have_default_streams_of_their_own():
    flags = ["--default-stream", "per-thread"]
    assert run_program(PROGRAM, ["default_streams_of_threads"], flags=flags).check().stdout == "0\npassed\n"
    for case in ("missing_wait", "pageable_destination_is_written_at_once", "events_have_times", "graph_by_hand"):
        assert run_program(PROGRAM, [case], flags=flags).check().stdout == "passed\n"


def test_launches_that_nothing_waits_for_are_named():
    result = run_program(PROGRAM, ["nothing_waits"]).check()
    assert "2 kernel launches were still queued when the program ended" in result.stderr
