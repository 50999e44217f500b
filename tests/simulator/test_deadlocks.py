"""Threads that wait for ever are reported once for each cause, by who waits for what; programs that go on are not."""

import random
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cudart import run_program, run_ptx

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
def test_threads_that_wait_by_the_clock(ptx, env):
    assert (ends(ptx, "gives_up_after_minutes", 3, 64, [zeros()], env)[2:5] == 7).all()
    ends(ptx, "naps", 3, 64, [zeros(), 1], env)
    found = stuck(ptx, "naps", 3, 64, [zeros(), 0], env)
    assert "reads 0 again and again" in found["message"]
    assert "blocks 0 to 2, warps 0 to 1, all lanes: ld.volatile.global" in found["message"]
    assert (ends(ptx, "naps_in_shared", 1, 64, [zeros(), 1], env) == 1).all()
    found = stuck(ptx, "naps_in_shared", 1, 64, [zeros(), 0], env)
    assert (
        found["line"] == line_of("// napping in shared memory") and "warp 1, all lanes: ld.volatile" in found["message"]
    )


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


LATCH = r"""
#include <cuda/latch>
#include <cstdio>
using Latch = cuda::latch<cuda::thread_scope_device>;
__global__ void meet(Latch *latch, int stays_away) {
    if (threadIdx.x == 0 && int(blockIdx.x) != stays_away) latch->arrive_and_wait();
}
int main(int, char **argv) {
    const Latch four(4);
    Latch *latch;
    cudaMalloc(&latch, sizeof four);
    cudaMemcpy(static_cast<void *>(latch), &four, sizeof four, cudaMemcpyHostToDevice);
    meet<<<4, 32>>>(latch, argv[1][0] - '0');
    std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
"""


BY_THE_CLOCK = r"""
#include <cstdio>
__global__ void wait(volatile unsigned *p) {
    const long long begin = clock64();
    while (p[0] == 0) {
        if (clock64() - begin > 1ll << 36) {
            p[1] = 99;
            return;
        }
        __nanosleep(100);
    }
    __threadfence();
    p[1] = p[2];
}
__global__ void tell(volatile unsigned *p) {
    p[2] = 7;
    __threadfence();
    p[0] = 1;
}
int main(int, char **argv) {
    unsigned *p, seen = 0;
    cudaStream_t waits, tells;
    cudaStreamCreateWithFlags(&waits, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&tells, cudaStreamNonBlocking);
    cudaMalloc(&p, 64);
    cudaMemset(p, 0, 64);
    cudaDeviceSynchronize();
    wait<<<1, 1, 0, waits>>>(p);
    for (int i = 0; i < argv[1][0] - '0'; ++i) cudaStreamQuery(waits);
    if (argv[2][0] == '1') tell<<<1, 1, 0, tells>>>(p);
    while (cudaStreamQuery(waits) == cudaErrorNotReady) {
    }
    cudaMemcpy(&seen, p + 1, 4, cudaMemcpyDeviceToHost);
    std::printf("%u\n", seen);
}
"""


@pytest.mark.parametrize("queries", [0, 3])
def test_a_kernel_that_gives_up_by_the_clock_lets_other_streams_come_first(queries):
    for tells, seen in [(1, "7\n"), (0, "99\n")]:
        assert run_program(BY_THE_CLOCK, [queries, tells], report=True).check().stdout == seen


def test_a_latch_that_one_block_does_not_come_to():
    assert run_program(LATCH, [9], report=True).check().stdout == "cudaSuccess\n"
    (hazard,) = run_program(LATCH, [2], report=True).hazards
    assert hazard["kind"] == "deadlock" and "blocks 0 to 1 and 3, warp 0, lane 0: ld." in hazard["message"]


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
def test_who_asks_for_a_phase_again_and_again(ptx, env):
    assert (ends(ptx, "asks_for_phase", 1, 64, [zeros(), 1], env) == 1).all()
    found = stuck(ptx, "asks_for_phase", 1, 64, [zeros(), 0], env)
    assert "warps 0 to 1, all lanes: mbarrier.test_wait" in found["message"]
    assert "phase 0 of the mbarrier" in found["message"] and "1 arrival outstanding" in found["message"]


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


# Random kernels whose threads wait for each other, rightly or not, and do what is reported in between.

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 where)
{
    .reg .pred %p<3>;
    .reg .b32 %r<8>;
    .reg .b64 %a<3>;
    .shared .align 8 .b8 memory[64];
    ld.param.u64 %a0, [where];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
"""

# {n}, {m}: small numbers; {flag}: the offset of a flag; {count}: threads; {mask}: lanes; {id}: of the statement
STATEMENTS = [
    "bar.sync {n};",
    "bar.sync {n}, {count};",
    "bar.arrive {n}, {count};",
    "barrier.sync {n}, {count};",
    "barrier.cluster.arrive;",
    "barrier.cluster.wait;",
    "bar.warp.sync {mask};",
    "shfl.sync.idx.b32 %r2, %r0, 1, 31, {mask};",
    "vote.sync.any.pred %p1, %p0, {mask};",
    "mbarrier.init.shared.b64 [memory], {m};",
    "mbarrier.inval.shared.b64 [memory];",
    "mbarrier.arrive.shared.b64 _, [memory];",
    "mbarrier.arrive.expect_tx.shared.b64 _, [memory], 16;",
    "again{id}: mbarrier.try_wait.parity.shared.b64 %p1, [memory], {n}; @!%p1 bra again{id};",
    "mov.u32 %r3, 0; again{id}: mbarrier.test_wait.parity.shared.b64 %p1, [memory], {n}; add.u32 %r3, %r3, 1;"
    " setp.gt.u32 %p2, %r3, 100; or.pred %p1, %p1, %p2; @!%p1 bra again{id};",
    "again{id}: ld.volatile.global.u32 %r2, [%a0+{flag}]; setp.eq.u32 %p1, %r2, 0; @%p1 bra again{id};",
    "again{id}: ld.global.u32 %r2, [%a0+{flag}]; setp.eq.u32 %p1, %r2, 0; @%p1 bra again{id};",
    "again{id}: atom.global.cas.b32 %r2, [%a0+{flag}], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra again{id};",
    "again{id}: ld.acquire.gpu.global.u32 %r2, [%a0+{flag}]; nanosleep.u32 20; setp.lt.u32 %p1, %r2, {m};"
    " @%p1 bra again{id};",
    "again{id}: mov.u32 %r2, %clock; setp.ne.u32 %p1, %r2, 0; @%p1 bra again{id};",
    "again{id}: ld.volatile.shared.u32 %r2, [memory+32]; setp.ne.u32 %p1, %r2, {n}; @%p1 bra again{id};",
    "again{id}: bra again{id};",
    "again{id}: atom.global.add.u32 %r2, [%a0+{flag}], 1; st.global.u32 [%a0+1048576], %r2; bra again{id};",
    "again{id}: st.shared.u32 [memory+4096], %r0; add.u32 %r0, %r0, 1; setp.ne.u32 %p1, %r0, 0; @%p1 bra again{id};",
    "st.volatile.global.u32 [%a0+{flag}], {m};",
    "atom.global.add.u32 %r2, [%a0+{flag}], 1;",
    "atom.global.exch.b32 %r2, [%a0+{flag}], 0;",
    "membar.gl;",
    "st.global.u32 [%a0+1048576], %r0;",
    "ld.global.u32 %r2, [%a0+2];",
    "st.shared.u32 [memory+32], %r0;",
    "ld.shared.u32 %r2, [memory+36]; st.global.u32 [%a0+128], %r2;",
    "cp.async.ca.shared.global [memory+16], [%a0], 4; cp.async.commit_group;",
    "cp.async.wait_group 0;",
    "exit;",
]
GUARDS = [
    "",
    "setp.lt.u32 %p0, %r0, {n}; @!%p0 bra behind{id};",
    "and.b32 %r4, %r0, 31; setp.gt.u32 %p0, %r4, {m}; @!%p0 bra behind{id};",
    "setp.ge.u32 %p0, %r0, 32; @!%p0 bra behind{id};",
    "setp.eq.u32 %p0, %r1, {n}; @!%p0 bra behind{id};",
]


def waiting_kernel(seed):
    """PTX of `kernel`, which takes the address of 256 bytes, and the numbers of its blocks and threads."""
    rng = random.Random(seed)
    lines = []
    for number in range(rng.randint(2, 9)):
        names = {
            "id": number,
            "n": rng.randint(0, 2),
            "m": rng.randint(1, 30),
            "flag": 4 * rng.randint(0, 7),
            "count": rng.choice([32, 64, 96, 4096, 40]),
            "mask": rng.choice([-1, -1, 0xFFFF, 1]),
        }
        text = rng.choice(GUARDS) + " " + rng.choice(STATEMENTS) + " behind{id}:"
        lines.append("    " + text.format(**names))
    text = HEAD + "\n".join(lines) + "\n    ret;\n}\n"
    return text, rng.choice([1, 2, 70]), rng.choice([32, 64, 96, 160])


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
