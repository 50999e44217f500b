"""Threads that wait for ever are reported once for each cause, by who waits for what; programs that go on are not."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cudart import run_program, run_ptx
from waiting_kernels import waiting_kernel

SOURCE = Path(__file__).parent / "programs" / "deadlocks" / "kernels.cu"
LINES = SOURCE.read_text().splitlines()
ENVIRONMENTS = [
    {},
    {"WARPSIM_THREADS": 1},
    {"WARPSIM_THREADS": 2, "WARPSIM_SCHEDULE": 3},
    {"WARPSIM_MULTIPROCESSORS": 3, "WARPSIM_SCHEDULE": 11},
]


@pytest.fixture(scope="module")
def ptx(tmp_path_factory):
    out = tmp_path_factory.mktemp("deadlocks") / "kernels.ptx"
    command = ["nvcc", "-std=c++17", "-arch=sm_90", "-ptx", "-lineinfo", "-o", out, SOURCE]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out.read_text()


def line_of(text):
    found = [i for i, line in enumerate(LINES, 1) if text in line]
    assert len(found) == 1, (text, found)
    return found[0]


def zeros(n=64):
    return np.zeros(n, np.int32)


def ends(ptx, kernel, grid, block, args, env=None, **options):
    """What the kernel leaves in its first array, which must go on to its end without a report."""
    result = run_ptx(ptx, kernel, grid, block, args, env={"WARPSIM_TIMEOUT_S": 100, **(env or {})}, **options)
    return result.check().outputs[0]


def stuck(ptx, kernel, grid, block, args, env=None, kind="deadlock", **options):
    """The one report of a kernel in which somebody waits for ever."""
    env = {"WARPSIM_TIMEOUT_S": 100, **(env or {})}
    result = run_ptx(ptx, kernel, grid, block, args, report=True, env=env, **options)
    assert not result.ok
    assert [h["kind"] for h in result.hazards] == [kind], result.hazards
    return result.hazards[0]


# ---- flags ----


@pytest.mark.long
@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_a_flag_that_nobody_sets(ptx, env):
    found = stuck(ptx, "flag_nobody_sets", 4, 64, [zeros()], env)
    assert found["line"] == line_of("while (p[3] == 0)") and found["block"] == [1, 0, 0] and found["lane"] == 5
    assert "block 1, warp 0, lane 5: ld.volatile.global.u32" in found["message"]
    assert "reads 0 again and again" in found["message"]
    assert "(byte 12 of the 256 bytes allocated at 0x" in found["message"]


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_a_chain_of_blocks(ptx, env):
    assert ends(ptx, "chain", 150, 32, [zeros(), 0], env)[0] == 150
    start = np.full(64, -1, np.int32)
    found = stuck(ptx, "chain", 9, 32, [start, 1], env)
    assert found["line"] == line_of("// the turn of this block")
    assert "blocks 0 to 8, warp 0, lane 0" in found["message"] and "reads 4294967295 again" in found["message"]


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_a_producer_of_another_block(ptx, env):
    n = 100
    out = ends(ptx, "producer", 40, 64, [zeros(n + 1), n, 0], env)
    np.testing.assert_array_equal(out[1:], 3 * np.arange(n) + 39)
    found = stuck(ptx, "producer", 40, 64, [zeros(n + 1), n, 1], env)
    assert found["line"] == line_of("// nothing is added")
    assert "blocks 0 to 38, warp 0, lane 0: atom" in found["message"] and "finds 0" in found["message"]
    assert "blocks 0 to 38, warps 0 to 1, 2457 threads: bar" in found["message"], "who waits for those"


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_a_loop_that_sleeps_ever_longer(ptx, env):
    found = stuck(ptx, "slower_and_slower", 2, 32, [zeros()], env)
    assert found["line"] == line_of("// backoff")


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_who_gives_up_goes_on(ptx, env):
    assert (ends(ptx, "gives_up_by_clock", 3, 64, [zeros(), 300_000], env)[2:5] == 7).all()
    assert (ends(ptx, "gives_up_by_count", 3, 64, [zeros(), 20_000], env)[2:5] == 7).all()


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize(
    "kernel, line",
    [
        ("asks_by_barriers", "// asked for all"),
        ("asks_by_votes", "// one flag of each lane"),
        ("asks_by_calls", "// in a function"),
        ("lanes_apart", "// lane 0's"),
    ],
)
def test_loops_of_many_threads(ptx, kernel, line, env):
    ends(ptx, kernel, 2, 32 if kernel == "asks_by_votes" else 96, [zeros(128), 1], env)
    found = stuck(ptx, kernel, 2, 32 if kernel == "asks_by_votes" else 96, [zeros(128), 0], env)
    assert found["line"] == line_of(line)


def test_each_cause_is_named(ptx):
    found = stuck(ptx, "lanes_apart", 2, 32, [zeros(), 0])
    assert "lane 0: ld" in found["message"] and "lane 1: ld" in found["message"]
    assert "lanes 2-31: bar.warp.sync" in found["message"] and "waits for lanes 0-1" in found["message"]


# ---- locks ----


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize(
    "kernel, at, line",
    [
        ("takes_lock", 1, "// taken"),
        ("takes_lock_by_exchange", 1, "// stores what is there"),
        ("tickets", 2, "// tickets come in order"),
    ],
)
def test_locks(ptx, kernel, at, line, env):
    assert ends(ptx, kernel, 80, 32, [zeros(), 0], env)[at] == 80
    assert stuck(ptx, kernel, 80, 32, [zeros(), 1], env)["line"] == line_of(line)


# ---- barriers of the grid ----


@pytest.mark.parametrize("multiprocessors", [1, 2, 3])
@pytest.mark.parametrize("schedule", [0, 7])
def test_a_barrier_of_more_blocks_than_fit(ptx, multiprocessors, schedule):
    env = {"WARPSIM_MULTIPROCESSORS": multiprocessors, "WARPSIM_SCHEDULE": schedule}
    fit = 2 * multiprocessors
    assert ends(ptx, "hand_made_barrier", fit, 1024, [zeros(), 3], env)[0] == 3 * fit
    found = stuck(ptx, "hand_made_barrier", fit + 3, 1024, [zeros(), 3], env)
    assert found["line"] == line_of("// until all blocks are here")
    assert f"reads {fit} again" in found["message"]
    assert f"blocks {fit} to {fit + 2} have not started: the device holds {fit} blocks" in found["message"]


def test_a_barrier_that_one_block_leaves_out(ptx):
    assert ends(ptx, "grid_sync", 12, 64, [zeros(), 0], cooperative=True)[12] == 12
    found = stuck(ptx, "grid_sync", 12, 64, [zeros(), 1], cooperative=True)
    assert "blocks 0 and 2 to 11, warp 0, lane 0" in found["message"]


# ---- plain locations and endless loops ----


@pytest.mark.parametrize("kernel", ["polls_plain", "polls_plain_beside_turns"])
def test_polling_a_plain_location(ptx, kernel):
    found = stuck(ptx, kernel, 1, 64, [zeros()])
    assert "a plain location" in found["message"] and "cuda::atomic_ref" in found["message"]
    assert "(byte 0 of the 256 bytes allocated at 0x" in found["message"]


def test_long_loops_that_go_on(ptx):
    x = np.int32(1)
    with np.errstate(over="ignore"):
        for _ in range(100_000):
            x = (x ^ np.int32(1)) * np.int32(5) + np.int32(1)
    assert ends(ptx, "runs_for_long", 1, 64, [np.ones(2, np.int32), 100_000])[1] == x


def test_polling_shared_memory(ptx):
    found = stuck(ptx, "polls_shared", 2, 96, [])
    assert found["line"] == line_of("// in shared memory") and "warps 1 to 2, all lanes" in found["message"]


def test_a_loop_that_reads_nothing(ptx):
    found = stuck(ptx, "endless", 1, 32, [zeros()])
    assert "lane 0: a loop at kernels.cu:" in found["message"] and "runs for ever" in found["message"]


HOST = r"""
#include <chrono>
#include <thread>
__global__ void kernel(volatile int *flag, int *out) {
    while (*flag == 0) {
    }
    *out = *flag;
}
int main() {
    int *flag, *out, found;
    cudaMALLOC;
    cudaMalloc(&out, 4);
    *flag = 0;
    std::thread host([=] {
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
        *(volatile int *)flag = 7;
    });
    kernel<<<1, 32>>>(flag, out);
    const cudaError_t error = cudaMemcpy(&found, out, 4, cudaMemcpyDeviceToHost);
    host.join();
    return error != cudaSuccess || found != 7;
}
"""


@pytest.mark.long
@pytest.mark.parametrize("allocate", ["HostAlloc(&flag, 4, cudaHostAllocMapped)", "MallocManaged(&flag, 4)"])
def test_what_the_host_may_write_is_waited_for(allocate):
    run_program(HOST.replace("MALLOC", allocate), env={"WARPSIM_TIMEOUT_S": 100}).check()


# ---- in a block ----


def test_a_deadlock_is_reported_once_for_each_cause(ptx):
    found = stuck(ptx, "two_barriers", 3, 256, [])
    assert found["message"].count("waits at barrier 1") == found["message"].count("waits at barrier 2") == 1
    assert "warps 0 to 3, all lanes: bar.sync" in found["message"]
    assert "warps 4 to 7, all lanes: bar.sync" in found["message"]
    assert found["count"] == 1


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_a_phase_that_nobody_completes(ptx, env):
    assert ends(ptx, "waits_for_phase", 1, 64, [zeros(), 300], env)[0] == 1
    found = stuck(ptx, "waits_for_phase", 1, 64, [zeros(), 0], env)
    assert "warp 0, all lanes: mbarrier.try_wait" in found["message"]
    assert "warp 1, all lanes: ld.volatile.global" in found["message"]


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_clusters(ptx, env):
    ends(ptx, "cluster_waits", 4, 64, [zeros(), 1], env)
    found = stuck(ptx, "cluster_waits", 4, 64, [zeros(), 0], env)
    assert found["line"] == line_of("// a block of another cluster") and found["block"] == [1, 0, 0]


# ---- what goes on after a report ends in time ----


def test_lanes_that_are_missing_for_ever_end_the_launch(ptx):
    found = stuck(ptx, "lanes_missing_behind_atomics", 3, 32, [zeros()], {"WARPSIM_HAZARDS": "warn"}, "missing_lanes")
    assert "waits for lanes 16-31" in found["message"]


@pytest.mark.parametrize("schedule", [0, 5])
def test_reports_do_not_outlast_the_time_limit(ptx, schedule):
    env = {"WARPSIM_HAZARDS": "warn", "WARPSIM_TIMEOUT_S": 1, "WARPSIM_SCHEDULE": schedule}
    result = run_ptx(ptx, "reports_for_ever", 2, 1024, [zeros(), 64], report=True, env=env, timeout=60)
    assert "budget" in {h["kind"] for h in result.hazards}, result


@pytest.mark.long
def test_no_block_begins_after_the_time_limit(ptx):
    env = {"WARPSIM_TIMEOUT_S": 0.2, "WARPSIM_SCHEDULE": 1}
    result = run_ptx(ptx, "many_blocks", 1 << 24, 32, [zeros()], report=True, env=env, timeout=60)
    assert [h["kind"] for h in result.hazards] == ["budget"], result


@pytest.mark.parametrize("seed", [s if s < 12 else pytest.param(s, marks=pytest.mark.long) for s in range(300)])
def test_whatever_is_waited_for_ends_in_time(seed):
    """The process has far more time than the launch: it must come back, by an error or not."""
    text, grid, block = waiting_kernel(seed)
    env = {"WARPSIM_HAZARDS": "warn", "WARPSIM_TIMEOUT_S": 1, "WARPSIM_SCHEDULE": seed % 3, "WARPSIM_THREADS": 2}
    result = run_ptx(text, "kernel", grid, block, [zeros()], env=env, timeout=90)
    assert result.error_name not in ("workerDied", "cudaErrorInvalidPtx"), f"{result}\n{text}"


def test_nothing_depends_on_the_number_of_threads(ptx):
    reports = [
        stuck(ptx, "producer", 40, 64, [zeros(101), 100, 1], {"WARPSIM_THREADS": threads}) for threads in (1, 2, 5)
    ]
    places = [re.sub("0x[0-9a-f]+", "0x", str(report)) for report in reports]
    assert len(set(places)) == 1
