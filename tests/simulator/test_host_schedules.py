"""WARPSIM_SCHEDULE=last:K over all streams K tries every pair of operations that nothing orders both ways."""

import itertools
import random
from pathlib import Path

import pytest
from cudart import run_program

pytestmark = pytest.mark.simulator_only

PROGRAMS = Path(__file__).parent / "programs" / "runtime"
SCRIPTED = PROGRAMS / "host_script.cu"
STREAMS, EVENTS = 5, 4  # of host_script.cu; 0 is the default stream, the odd ones join it
ALL_LAST = [f"last:{stream}" for stream in range(STREAMS)]


def blocking(stream):
    return stream % 2 == 1


def random_script(seed, length=36):
    """Mostly operations; records, waits and, now and then, a wait of the host. Ends with a wait for everything."""
    draw = random.Random(seed)
    script = []
    for _ in range(length):
        # The default stream joins two of the others: rare, so that something is left without order.
        stream = 0 if draw.random() < 0.06 else draw.randrange(1, STREAMS)
        script.append(
            draw.choices(
                [f"{stream}:op", f"{stream}:record:{draw.randrange(EVENTS)}", f"{stream}:wait:{draw.randrange(EVENTS)}",
                 f"{stream}:sync", f"sync:{draw.randrange(EVENTS)}", "sync"],
                [12, 5, 5, 0.7, 0.7, 0.3],
            )[0]
        )  # fmt: skip
    return [*script, "sync"]


def happens_before(script):
    """For each operation (by the number of its command) those that CUDA promises to be over when it begins."""
    before: dict[int, set[int]] = {}
    last: dict[int, int] = {}  # by stream: its latest operation
    event: dict[str, int] = {}  # the operation that is its latest record
    host: set[int] = set()  # what the host has waited for

    def closed(operations):
        return set().union(*(before[one] | {one} for one in operations))

    def ahead_of(stream):
        """What a new operation of the stream comes after: those of its own and of streams that it joins."""
        joined = [one for one in range(1, STREAMS) if blocking(one)] if stream == 0 else [0] if blocking(stream) else []
        return closed(last[one] for one in (stream, *joined) if one in last)

    for number, command in enumerate(script):
        words = command.split(":")
        if words == ["sync"]:
            host |= closed(last.values())
        elif words[0] == "sync":
            host |= closed([event[words[1]]] if words[1] in event else [])
        elif words[1] == "sync":
            stream = int(words[0])
            host |= ahead_of(0) if stream == 0 else closed([last[stream]] if stream in last else [])
        elif words[1] != "wait" or words[2] in event:  # an event that was never recorded is no obstacle
            stream = int(words[0])
            before[number] = host | ahead_of(stream) | closed([event[words[2]]] if words[1] == "wait" else [])
            last[stream] = number
            if words[1] == "record":
                event[words[2]] = number
    return before


def order_of(script, schedule):
    """Commands of the operations, in the order in which they took effect."""
    report = run_program(SCRIPTED, script, report=True, env={"WARPSIM_SCHEDULE": schedule}).check().report
    calls = [call["call"] for call in report["host_calls"]]
    assert len(calls) == len(script), "one call for each command, or the numbers below mean something else"
    return [one["queued"] for one in report["operations"]]


def seen_orders(script, schedules):
    """Pairs (a, b) of operations of which a was seen before b."""
    orders = [order_of(script, schedule) for schedule in schedules]
    return {pair for order in orders for pair in itertools.combinations(order, 2)}


def unordered(before):
    return {(a, b) for a, b in itertools.permutations(before, 2) if a not in before[b] and b not in before[a]}


@pytest.mark.parametrize("seed", [*range(1, 9), *(pytest.param(s, marks=pytest.mark.long) for s in range(9, 41))])
def test_each_pair_of_unordered_operations_is_tried_both_ways(seed):
    script = random_script(seed)
    before = happens_before(script)
    free = unordered(before)
    assert len(free) >= 20, "a script in which hardly anything is free shows nothing"
    seen = seen_orders(script, ALL_LAST)
    missed = free - seen
    assert not missed, f"never seen in this order: {sorted(missed)[:5]}, commands of {' '.join(script)}"
    broken = {(a, b) for b, others in before.items() for a in others if (b, a) in seen}
    assert not broken, f"against the rules: {sorted(broken)[:5]} the other way round, commands of {' '.join(script)}"


@pytest.mark.parametrize("schedule", [0, 1, 2, 3, 4, "last:1"])
def test_no_schedule_breaks_an_order_that_cuda_promises(schedule):
    script = random_script(99, length=120)
    seen = seen_orders(script, [schedule])
    broken = {(a, b) for b, others in happens_before(script).items() for a in others if (b, a) in seen}
    assert not broken, f"against the rules: {sorted(broken)[:5]} the other way round, commands of {' '.join(script)}"


def test_the_stream_that_comes_last_waits_for_the_host_and_the_others_do_not():
    script = ["1:op", "2:op", "1:op", "2:op", "2:sync", "1:sync"]
    assert order_of(script, 0) == [1, 3, 0, 2], "the default: as late as possible, what is needed alone"
    assert order_of(script, "last:1") == [1, 3, 0, 2]
    assert order_of(script, "last:2") == [0, 2, 1, 3]
    assert order_of(script, "last:9") == [0, 1, 2, 3], "no stream has that number: everything at once"


def test_work_that_nobody_waits_for_runs_too():
    """The default leaves stream 2 alone until somebody asks for it; the others also run it before stream 1."""
    script = ["1:op", "2:op", "1:sync", "sync"]
    assert order_of(script, 0) == [0, 1]
    assert order_of(script, "last:1") == [1, 0]
    orders = {tuple(order_of(script, seed)) for seed in range(1, 13)}
    assert orders == {(0, 1), (1, 0)}, "of 12 seeds none runs stream 2, which nobody waits for, before stream 1"


def test_a_launch_that_fails_at_once_names_its_error():
    """`everything at once` runs a launch within its own call: its error is that call's, and stays."""
    source = r"""
    #include <cstdio>
    __global__ void reach(int *p) { *p = 1; }
    int main() {
        reach<<<1, 1>>>(nullptr);
        std::printf("%s ", cudaGetErrorName(cudaGetLastError()));
        std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    }
    """
    late = run_program(source, [])
    assert late.stdout == "cudaSuccess cudaErrorIllegalAddress\n"
    at_once = run_program(source, [], env={"WARPSIM_SCHEDULE": "last:1"})
    assert at_once.stdout == "cudaErrorIllegalAddress cudaErrorIllegalAddress\n"


@pytest.mark.parametrize("schedule", ["last:0", "last:1", "last:2", "last:9"])
@pytest.mark.parametrize(
    "case", ["final_values", "many_threads", "graph_by_hand", "stream_ordered_memory", "default_streams_of_threads",
             "use_after_stream_ordered_free", "waiting_spoils_a_capture", "pageable_destination_is_written_at_once",
             "legacy_stream_joins_blocking_streams"],
)  # fmt: skip
def test_programs_are_right_whichever_stream_comes_last(case, schedule):
    flags = ["--default-stream", "per-thread"] if case == "default_streams_of_threads" else []
    done = run_program(PROGRAMS / "host_async.cu", [case], env={"WARPSIM_SCHEDULE": schedule}, flags=flags).check()
    assert done.stdout.endswith("passed\n")


@pytest.mark.parametrize("value", ["last", "last:", "last:x", "last:-1", "last:1x", "early", "1x", "9" * 30])
def test_a_schedule_that_is_none_is_refused(value):
    done = run_program(SCRIPTED, ["sync"], env={"WARPSIM_SCHEDULE": value})
    assert done.returncode and f"WARPSIM_SCHEDULE={value}: must be a seed" in done.stderr
