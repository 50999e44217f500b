"""What the host sees of streams, events, copies and graphs: late, until something waits."""

import re
from pathlib import Path

import pytest
from cudart import run_program

pytestmark = pytest.mark.simulator_only

PROGRAM = Path(__file__).parent / "programs" / "runtime" / "host_async.cu"
LATE_SOURCE = "pinned_source_is_read_late"
CASES = [
    name
    for name in re.findall(r"CASE\((\w+)\)", PROGRAM.read_text().split("#define CASE")[1])
    if name not in ("name", LATE_SOURCE, "order_of_streams", "default_streams_of_threads", "nothing_waits")
]


def test_all_cases_are_found():
    assert len(CASES) >= 24


@pytest.mark.parametrize("case", CASES)
def test_case(case):
    assert run_program(PROGRAM, [case]).check().stdout == "passed\n"


def test_calls_in_host_functions_are_told():
    assert (
        run_program(PROGRAM, ["host_functions_call_nothing"]).stderr.count("a host function has made a CUDA call") == 1
    )


def test_a_pinned_source_is_read_late():
    """That the host has changed it meanwhile is a hazard; without hazards the copy brings what stands there."""
    assert run_program(PROGRAM, [LATE_SOURCE], env={"WARPSIM_HAZARDS": "off"}).check().stdout == "passed\n"
    result = run_program(PROGRAM, [LATE_SOURCE], report=True)
    (hazard,) = result.hazards
    assert result.returncode and hazard["kind"] == "launch_race"
    assert "cudaMemcpyAsync in stream 1 reads byte 0 of the 4 bytes" in hazard["message"]
    assert "the host has changed since that call" in hazard["message"]


# A buffer of the host's that is filled for each tile.
FILLED_AGAIN = r"""
#include <cstdio>
#include <cstring>
__global__ void add(int *sum, const int *tile) { sum[threadIdx.x] += tile[threadIdx.x]; }
int main(int, char **argv) {
    const bool waits = argv[2][0] == '1';
    int *buffer, *tile, *sum, sums[64];
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    if (!std::strcmp(argv[1], "managed")) cudaMallocManaged(&buffer, 256); else cudaMallocHost(&buffer, 256);
    cudaMalloc(&tile, 256);
    cudaMalloc(&sum, 256);
    cudaMemset(sum, 0, 256);
    cudaDeviceSynchronize();
    cudaError_t error = cudaSuccess;
    for (int k = 1; k < 4 && !error; ++k) {
        for (int i = 0; i < 64; ++i) buffer[i] = i % 8 < 4 ? k : 7;
        if (!std::strcmp(argv[1], "rows")) cudaMemcpy2DAsync(tile, 32, buffer, 32, 16, 8, cudaMemcpyDefault, stream);
        else cudaMemcpyAsync(tile, buffer, 256, cudaMemcpyDefault, stream);
        add<<<1, 64, 0, stream>>>(sum, tile);
        if (waits) error = cudaStreamSynchronize(stream);
    }
    if (!error) error = cudaMemcpyAsync(sums, sum, 256, cudaMemcpyDeviceToHost, stream);
    std::printf("%s %d\n", cudaGetErrorName(error), sums[0]);
}
"""


@pytest.mark.parametrize("kind", ["pinned", "managed", "rows"])
def test_a_source_that_is_filled_again_while_it_is_copied(kind):
    (hazard,) = run_program(FILLED_AGAIN, [kind, 0], report=True).hazards
    assert hazard["kind"] == "launch_race" and "wait for the copy" in hazard["message"]
    done = run_program(FILLED_AGAIN, [kind, 1], report=True).check()
    assert done.stdout == "cudaSuccess 6\n" and done.hazards == []


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
