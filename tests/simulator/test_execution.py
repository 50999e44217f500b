"""How the simulator runs warps, blocks and grids: divergence and reconvergence, calls, barriers, locks, printf and
assert, budgets, deadlocks, and that the same launch always gives the same result."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import cudart
import numpy as np
import pytest
from cudart import run_program, run_ptx

SOURCE = Path(__file__).parent / "programs" / "execution" / "kernels.cu"
SOURCE_LINES = SOURCE.read_text().splitlines()


@pytest.fixture(scope="module")
def ptx():
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    folder = cudart.BUILD / "tests" / "execution"
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"kernels.{os.getpid()}.ptx"
    done = subprocess.run(
        [nvcc, "-std=c++17", "-arch=sm_80", "-ptx", "-lineinfo", "-o", out, SOURCE], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    text = out.read_text()
    out.unlink()
    return text


def zeros(n=64):
    return np.zeros(n, np.int32)


def line_of(text):
    """1-based line of the only line of kernels.cu that holds this text."""
    found = [i for i, line in enumerate(SOURCE_LINES, 1) if text in line]
    assert len(found) == 1, (text, found)
    return found[0]


def ints(ptx, kernel, grid=1, block=64, n=None, args=(), **options):
    size = n or (block if isinstance(block, int) else 64)
    return run_ptx(ptx, kernel, grid, block, [zeros(size), *args], **options).check().outputs[0]


def hazard(ptx, kernel, kind, grid=1, block=64, args=None, **options):
    """Runs a kernel that must fail with one hazard of this kind; returns it."""
    result = run_ptx(ptx, kernel, grid, block, [zeros()] if args is None else args, report=True, **options)
    assert not result.ok
    assert [h["kind"] for h in result.hazards] == [kind], result.hazards
    return result.hazards[0]


# ---- divergence ----


def test_loops_of_different_length(ptx):
    def steps(x):
        n = 0
        while x != 1:
            x = 3 * x + 1 if x & 1 else x // 2
            n += 1
        return n

    np.testing.assert_array_equal(ints(ptx, "collatz", block=96), [steps(t + 1) for t in range(96)])


def test_continue_break_and_return(ptx):
    def expected(t, n):
        total = 0
        for i in range(n):
            if (i + t) % 3 == 0:
                continue
            for j in range(i):
                if j * t > 40:
                    break
                if total > 500 and t & 1:
                    return -total
                total += j ^ t
        return total

    got = ints(ptx, "nested", args=[np.int32(40)])
    np.testing.assert_array_equal(got, [expected(t, 40) for t in range(64)])


def test_switch(ptx):
    def expected(t):
        x = t * 7
        k = t % 11
        table = {0: x + 5, 1: x * 3, 2: x ^ 0x55, 3: -x, 4: (x - 100) << 2, 5: x << 2, 6: x | 1024, 7: 0, 8: x % 13}
        return table.get(k, 999)

    np.testing.assert_array_equal(ints(ptx, "choose"), [expected(t) for t in range(64)])


PTX_HEAD = '.version 8.0\n.target sm_80\n.address_size 64\n.file 1 "by_hand.cu"\n'


def by_line(text, kernel="k", block=32, args=None):
    """Warp instructions by line of the report."""
    result = run_ptx(PTX_HEAD + text, kernel, 1, block, args or [zeros(block)], report=True).check()
    launch = result.report["launches"][0]
    return {line["line"]: line["instructions"] for line in launch["lines"]}, launch


@pytest.mark.simulator_only
def test_paths_meet_where_the_compiler_laid_one_of_them_out_of_line():
    text = """
    .visible .entry k(.param .b64 p) {
        .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<4>;
        .loc 1 1 0
        mov.u32 %r1, %tid.x;
        and.b32 %r2, %r1, 1;
        setp.eq.s32 %p1, %r2, 0;
        @%p1 bra FAR;
        .loc 1 2 0
        mul.lo.s32 %r3, %r1, 3;
    JOIN:
        .loc 1 3 0
        ld.param.u64 %d1, [p];
        mul.wide.u32 %d2, %r1, 4;
        add.s64 %d3, %d1, %d2;
        st.global.u32 [%d3], %r3;
        ret;
    FAR:
        .loc 1 4 0
        add.s32 %r3, %r1, 1000;
        bra JOIN;
    }"""
    lines, launch = by_line(text)
    assert lines == {1: 4, 2: 1, 3: 5, 4: 2}
    assert launch["divergent_branches"] == 1


@pytest.mark.simulator_only
def test_a_loop_with_two_back_edges_meets_in_each_iteration():
    # Odd iterations of odd lanes go straight back to the head; the others do the work of line 3 together.
    text = """
    .visible .entry k(.param .b64 p) {
        .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<4>;
        mov.u32 %r1, %tid.x;
        mov.u32 %r2, 0;
        mov.u32 %r5, 0;
    HEAD:
        .loc 1 2 0
        add.s32 %r2, %r2, 1;
        setp.gt.s32 %p1, %r2, 10;
        @%p1 bra DONE;
        and.b32 %r3, %r1, %r2;
        and.b32 %r3, %r3, 1;
        setp.eq.s32 %p2, %r3, 1;
        @%p2 bra HEAD;
        .loc 1 3 0
        add.s32 %r5, %r5, %r2;
        bra HEAD;
    DONE:
        .loc 1 4 0
        ld.param.u64 %d1, [p];
        mul.wide.u32 %d2, %r1, 4;
        add.s64 %d3, %d1, %d2;
        st.global.u32 [%d3], %r5;
        ret;
    }"""
    lines, launch = by_line(text)
    assert lines[2] == 10 * 7 + 3
    assert lines[3] == 10 * 2
    assert lines[4] == 5
    out = run_ptx(PTX_HEAD + text, "k", 1, 32, [zeros(32)]).check().outputs[0]
    np.testing.assert_array_equal(out, [30 if t & 1 else 55 for t in range(32)])


@pytest.mark.simulator_only
def test_a_guarded_instruction_counts_only_where_a_lane_executes_it():
    text = """
    .visible .entry k(.param .b64 p) {
        .reg .pred %p<4>; .reg .b32 %r<9>;
        mov.u32 %r1, %tid.x;
        setp.lt.u32 %p1, %r1, 40;
        .loc 1 2 0
        @%p1 add.s32 %r2, %r1, 1;
        .loc 1 3 0
        @!%p1 add.s32 %r2, %r1, 1;
        .loc 1 4 0
        ret;
    }"""
    lines, _ = by_line(text, block=96)
    assert lines[2] == 2 and lines[3] == 2 and lines[4] == 3


@pytest.mark.simulator_only
def test_indirect_branch_and_its_range():
    text = """
    .visible .entry k(.param .b64 p, .param .b32 bias) {
        .reg .b32 %r<9>; .reg .b64 %d<4>;
        mov.u32 %r1, %tid.x;
        ld.param.u32 %r4, [bias];
        and.b32 %r2, %r1, 3;
        add.s32 %r2, %r2, %r4;
    table: .branchtargets A, B, C, A;
        brx.idx %r2, table;
    A:  mov.u32 %r3, 10; bra END;
    B:  mov.u32 %r3, 20; bra END;
    C:  mov.u32 %r3, 30;
    END:
        ld.param.u64 %d1, [p];
        mul.wide.u32 %d2, %r1, 4;
        add.s64 %d3, %d1, %d2;
        st.global.u32 [%d3], %r3;
        ret;
    }"""
    out = run_ptx(PTX_HEAD + text, "k", 1, 32, [zeros(32), np.int32(0)]).check().outputs[0]
    np.testing.assert_array_equal(out, [10, 20, 30, 10] * 8)
    bad = run_ptx(PTX_HEAD + text, "k", 1, 32, [zeros(32), np.int32(1)], report=True)
    assert [h["kind"] for h in bad.hazards] == ["illegal_instruction"]


def test_an_instruction_that_is_not_known_is_named_with_its_line():
    text = """
    .visible .entry k(.param .b64 p) {
        .reg .b32 %r<9>;
        .loc 1 77 0
        frobnicate.b32 %r1, %r2, %r3;
        ret;
    }"""
    if cudart.ON_GPU:
        pytest.skip("the real driver has its own message")
    result = run_ptx(PTX_HEAD + text, "k", 1, 32, [zeros(32)])
    assert not result.ok
    assert re.search(r"frobnicate\.b32 \(PTX line \d+, by_hand\.cu:77\)", result.stderr + result.error_string)


# ---- calls ----


def test_recursion(ptx):
    fibonacci = [0, 1]
    while len(fibonacci) < 13:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    np.testing.assert_array_equal(ints(ptx, "recursion"), [fibonacci[t % 13] for t in range(64)])


@pytest.mark.simulator_only
def test_endless_recursion_is_an_error(ptx):
    found = hazard(ptx, "overflow", "illegal_instruction", block=1)
    assert "stack overflow" in found["message"] and found["line"] == line_of("bottomless(n + 1, p)")


def test_calls_through_pointers(ptx):
    expected = [[2 * t, t + 100, -t][t % 3] for t in range(64)]
    np.testing.assert_array_equal(ints(ptx, "pointers"), expected)


@pytest.mark.simulator_only
def test_a_call_through_a_wild_pointer_is_an_error(ptx):
    found = hazard(ptx, "wild_pointer", "illegal_instruction", args=[zeros(), np.uint64(0x1234)])
    assert "no function" in found["message"]


def test_structs_by_value(ptx):
    expected = [1000 * t + (t % 40 + t + 3) % 40 for t in range(64)]
    np.testing.assert_array_equal(ints(ptx, "structs"), expected)


def test_addresses_of_local_variables(ptx):
    np.testing.assert_array_equal(ints(ptx, "local_addresses"), [t * t - t for t in range(64)])


VIRTUAL = """
#include <cstdio>
struct Shape { __device__ virtual int area(int x) const { return x; } };
struct Square : Shape { __device__ int area(int x) const override { return x * x; } };
__global__ void k(int *p) {
    Shape a; Square b;
    const Shape *s = threadIdx.x & 1 ? static_cast<const Shape *>(&b) : &a;
    p[threadIdx.x] = s->area(threadIdx.x);
}
int main() {
    int *p, h[64];
    cudaMalloc(&p, sizeof h);
    k<<<1, 64>>>(p);
    if (cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost)) return 2;
    for (int i = 0; i < 64; ++i) if (h[i] != (i & 1 ? i * i : i)) return 1;
    puts("right");
}
"""


def test_virtual_functions():
    assert run_program(VIRTUAL).check().stdout == "right\n"


ALLOCA = r"""
#include <alloca.h>
#include <cstdio>
#include <cstdlib>
__device__ __noinline__ int reversed(int n, int seed) {
    int *p = static_cast<int *>(alloca(n * sizeof(int)));
    for (int i = 0; i < n; ++i) p[i] = seed + i;
    int sum = 0;
    for (int i = 0; i < n; ++i) sum = 3 * sum + p[n - 1 - i];
    return sum;
}
__device__ __noinline__ int nested(int depth) {
    volatile int *p = static_cast<int *>(alloca((depth + 1) * sizeof(int)));
    p[depth] = depth;
    const int below = depth ? nested(depth - 1) : 0;
    return 2 * below + p[depth];
}
__global__ void k(int *out, int n) {
    const int t = threadIdx.x;
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
        volatile char *p = static_cast<char *>(alloca(n + i + t % 5));  // each lane takes another size
        p[0] = 7;
        p[n + i + t % 5 - 1] = 9;
        sum += reversed(n + t % 3, t) + p[0] + p[n + i + t % 5 - 1];
    }
    out[blockIdx.x * blockDim.x + t] = sum + nested(t % 4);
}
int main(int argc, char **argv) {
    const int n = std::atoi(argv[1]);
    if (argc > 2 && cudaDeviceSetLimit(cudaLimitStackSize, std::atoi(argv[2]))) return 4;
    int *d, h[128];
    cudaMalloc(&d, sizeof h);
    k<<<2, 64>>>(d, n);
    const cudaError_t error = cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    if (error) return printf("%s\n", cudaGetErrorName(error)), 3;
    for (int i = 0; i < 128; ++i) {
        const int t = i % 64, m = n + t % 3;
        unsigned sum = 0, want = 0;
        for (int j = 0; j < m; ++j) sum = 3 * sum + t + m - 1 - j;
        for (int j = 0; j <= t % 4; ++j) want = 2 * want + j;
        if (unsigned(h[i]) != 3 * (sum + 16) + want) return printf("%d: %d\n", i, h[i]), 1;
    }
    puts("right");
}
"""


def test_alloca():
    result = run_program(ALLOCA, [40], report=True)
    assert result.check().stdout == "right\n" and result.hazards == []


@pytest.mark.simulator_only
def test_alloca_beyond_the_stack_is_an_error_and_its_limit_can_be_raised():
    result = run_program(ALLOCA, [800], report=True)
    assert result.returncode == 3 and result.stdout == "cudaErrorIllegalInstruction\n"
    (found,) = result.hazards
    assert found["kind"] == "illegal_instruction" and "stack overflow: alloca of" in found["message"]
    assert "cudaLimitStackSize" in found["message"] and found["line"]
    assert run_program(ALLOCA, [800, 16384]).check().stdout == "right\n"


STACK = """
.visible .entry k(.param .u64 p) {
    .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, 0;
AGAIN:
    stacksave.u64 %rd2;
    mov.u64 %rd3, 64;
    alloca.u64 %rd4, %rd3, 16;
    st.local.u32 [%rd4+60], %r1;
    ld.local.u32 %r2, [%rd4+READ];
    RESTORE
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, 1000;
    @%p bra AGAIN;
    st.global.u32 [%rd1], %r2;
    ret;
}"""


@pytest.mark.simulator_only
def test_the_stack_saved_and_restored():
    def run(read, restore):
        text = STACK.replace("READ", str(read)).replace("RESTORE", restore)
        return run_ptx(PTX_HEAD + text, "k", 1, 1, [zeros(1)], report=True)

    assert run(60, "stackrestore.u64 %rd2;").check().outputs[0][0] == 999
    assert "stack overflow: alloca of 64 bytes" in run(60, "").hazards[0]["message"]
    assert run(56, "stackrestore.u64 %rd2;").hazards[0]["kind"] == "uninitialized_variable"
    assert (
        "no stacksave of this function" in run(60, "mov.u64 %rd5, 4096; stackrestore.u64 %rd5;").hazards[0]["message"]
    )


# ---- printf, assert, trap, malloc, clocks ----


def test_printf_formats_in_block_order(ptx):
    expected = "".join(
        f"b{b} t{t} {t / 4:5.2f} {'odd' if t & 1 else 'even':<6}|-1099511627776 0xff q % (null)\n"
        for b in range(5)
        for t in range(3)
    )
    result = run_ptx(ptx, "prints", 5, 32, [np.int32(3)]).check()
    assert sorted(result.stdout.splitlines()) == sorted(expected.splitlines())
    if not cudart.ON_GPU:
        assert result.stdout == expected


@pytest.mark.simulator_only
def test_assert_names_the_place_and_the_thread(ptx):
    result = run_ptx(ptx, "asserts", 1, 64, [zeros(), np.int32(37)], report=True)
    assert result.error_name == "cudaErrorAssert"
    assert [(h["kind"], h["line"]) for h in result.hazards] == [("assertion", line_of("assert(threadIdx.x != bad)"))]
    assert re.search(r"block: \[0,0,0\], thread: \[37,0,0\] Assertion `threadIdx.x != bad` failed", result.stderr)


def test_assert_that_holds(ptx):
    assert (ints(ptx, "asserts", args=[np.int32(64)]) == 1).all()


@pytest.mark.simulator_only
def test_trap(ptx):
    data = np.arange(64, dtype=np.int32)
    found = hazard(ptx, "traps", "trap", args=[data])
    assert found["line"] == line_of("__trap()") and found["warp"] == 0


def test_malloc_in_kernels(ptx):
    np.testing.assert_array_equal(ints(ptx, "heap"), np.arange(64))


def test_clocks_go_forward(ptx):
    out = run_ptx(ptx, "clocks", 1, 32, [np.zeros(32, np.int64)]).check().outputs[0]
    assert (out == 3).all()


def test_constants(ptx):
    np.testing.assert_array_equal(ints(ptx, "reads_constants"), [3, 5, 7, 11] * 16)


@pytest.mark.simulator_only
def test_writing_constants_is_an_error(ptx):
    assert not run_ptx(ptx, "writes_constants", 1, 32, [zeros()]).ok


# ---- barriers and warp-synchronous instructions ----


def test_named_barriers(ptx):
    np.testing.assert_array_equal(ints(ptx, "named_barriers")[:32], np.arange(32, 64))


@pytest.mark.simulator_only
def test_a_second_arrival_at_a_named_barrier(ptx):
    found = hazard(ptx, "arrives_twice", "divergent_barrier", block=96)
    first = line_of("void arrives_twice(") + 3
    assert found["line"] == first + 1 and f"first at bar.arrive (kernels.cu:{first})" in found["message"]
    assert "all lanes of warp 1 arrive at barrier 3 a second time before it is complete" in found["message"]
    assert "without 32 of the threads" in found["message"]
    # Nobody waits in vain: both arrivals count, as on a GPU.
    result = run_ptx(ptx, "arrives_twice", 1, 96, [zeros()], env={"WARPSIM_HAZARDS": "warn"})
    assert result.check().outputs[0].view(np.int32)[0] == 1


@pytest.mark.simulator_only
def test_an_arrival_and_a_wait_of_one_warp(ptx):
    found = hazard(ptx, "arrives_and_waits", "divergent_barrier", block=64)
    assert "arrive at barrier 1 a second time" in found["message"]


@pytest.mark.parametrize("block", [64, 61, 33])
def test_barriers_that_count(ptx, block):
    out = run_ptx(ptx, "counting_barriers", 1, block, [zeros(3 * 64)]).check().outputs[0].reshape(-1, 3)[:block]
    assert (out[:, 0] == (block + 2) // 3).all()
    assert ((out[:, 1] != 0) == (block <= 60)).all()
    assert ((out[:, 2] != 0) == (block > 60)).all()


def test_exited_threads_hold_nobody_up(ptx):
    out = ints(ptx, "exit_before_barrier", block=128)
    np.testing.assert_array_equal(out, [int(t % 3 != 1 and t < 96) for t in range(128)])


@pytest.mark.simulator_only
def test_deadlock_names_who_waits_where(ptx):
    found = hazard(ptx, "different_barriers", "deadlock")
    first, second = line_of("bar.sync 1, 64"), line_of("bar.sync 1, 64") + 1
    assert f"kernels.cu:{first}" in found["message"] and f"kernels.cu:{second}" in found["message"]
    assert "barrier 1" in found["message"] and "barrier 0" in found["message"]
    assert "32 of 64 threads" in found["message"]


@pytest.mark.simulator_only
def test_barrier_with_too_few_threads(ptx):
    found = hazard(ptx, "too_few_for_barrier", "deadlock")
    assert "32 of 96 threads" in found["message"] and found["line"] == line_of("bar.sync 2, 96")


@pytest.mark.simulator_only
def test_divergent_barrier(ptx):
    found = hazard(ptx, "divergent_barrier", "divergent_barrier")
    start = line_of("void divergent_barrier(")
    lines = {int(n) for n in re.findall(r"kernels\.cu:(\d+)", found["message"])}
    assert lines == {start + 2, start + 6}


def test_shuffle_from_two_places(ptx):
    out = ints(ptx, "split_shuffle", block=32)
    np.testing.assert_array_equal(out, [(t ^ 1) * (100 if t & 1 else 10) for t in range(32)])


def test_tiles_of_a_warp(ptx):
    expected = []
    for t in range(32):
        tile = t // 8
        expected.append(sum(range(8 * tile, 8 * tile + 8)) if tile & 1 else min(t + 1, 8 * tile + 7))
    np.testing.assert_array_equal(ints(ptx, "tiles", block=32), expected)


def test_votes_matches_and_reductions(ptx):
    out = ints(ptx, "warp_values", block=32, n=256).view(np.uint32).reshape(32, 8)
    lanes = np.arange(32)
    assert (out[:, 0] == sum(1 << t for t in range(0, 32, 3))).all()
    assert (out[:, 1] == 0 + 2 + 4).all()
    np.testing.assert_array_equal(out[:, 2], [sum(1 << s for s in range(32) if s // 5 == t // 5) for t in range(32)])
    assert (out[:, 3] == 0xFFFFFFFF).all()
    assert (out[:, 4].view(np.int32) == -7).all()
    assert (out[:, 5] == np.bitwise_xor.reduce(lanes * 77)).all()
    np.testing.assert_array_equal(out[:, 6], np.where(lanes >= 3, lanes - 3, lanes))
    np.testing.assert_array_equal(out[:, 7], np.where(lanes & 4, sum(1 << t for t in range(32) if t & 4), 0))


@pytest.mark.simulator_only
def test_shuffle_that_names_an_exited_lane(ptx):
    found = hazard(ptx, "exited_lane", "missing_lanes", block=32)
    assert found["line"] == line_of("__shfl_down_sync(0xffffffff, threadIdx.x, 1)") and "0x00000008" in found["message"]


@pytest.mark.simulator_only
def test_shuffle_by_a_lane_outside_of_its_mask(ptx):
    found = hazard(ptx, "not_in_mask", "missing_lanes", block=32)
    assert found["lane"] == 16 and "0x0000ffff" in found["message"]


@pytest.mark.simulator_only
def test_shuffle_whose_other_lanes_wait_elsewhere(ptx):
    found = hazard(ptx, "waits_for_barrier", "missing_lanes", block=32)
    assert found["line"] == line_of("__shfl_sync(0xffffffff, threadIdx.x, 9)")
    assert f"kernels.cu:{line_of('__shfl_sync(0xffffffff, threadIdx.x, 9)') + 1}" in found["message"]


# ---- fairness ----


@pytest.mark.parametrize("kernel", ["spin_lock", "spin_lock_tight"])
@pytest.mark.parametrize("seed", [0, 5])
def test_locks_make_progress(ptx, kernel, seed):
    out = ints(ptx, kernel, grid=3, block=64, env={"WARPSIM_SCHEDULE": seed})
    assert list(out[:2]) == [0, 192]


def test_blocks_that_wait_for_each_other(ptx):
    out = ints(ptx, "flags", grid=40, block=32)
    assert list(out[:2]) == [39, 77]


# ---- budgets ----


@pytest.mark.simulator_only
@pytest.mark.parametrize("kernel", ["spin", "endless"])
def test_instruction_budget(ptx, kernel):
    found = hazard(ptx, kernel, "budget", env={"WARPSIM_MAX_INSTRUCTIONS": 100_000})
    assert "WARPSIM_MAX_INSTRUCTIONS" in found["message"] and "100000" in found["message"]


@pytest.mark.simulator_only
def test_time_limit(ptx):
    found = hazard(ptx, "spin", "budget", env={"WARPSIM_TIMEOUT_S": 0.3})
    assert "WARPSIM_TIMEOUT_S" in found["message"]
    assert found["line"] == line_of("while (p[0] == 0 && clock64() >= 0)")


@pytest.mark.simulator_only
def test_a_budget_that_suffices(ptx):
    ints(ptx, "collatz", env={"WARPSIM_MAX_INSTRUCTIONS": 1_000_000, "WARPSIM_TIMEOUT_S": 30})


# ---- determinism ----


@pytest.mark.simulator_only
def test_sums_in_floating_point_repeat(ptx):
    x = (np.random.default_rng(1).standard_normal(2048) * 1e3).astype(np.float32)
    runs = [
        run_ptx(ptx, "sum_in_order", 16, 128, [np.zeros(1, np.float32), x], env=env).check().outputs[0][0]
        for env in ({}, {"WARPSIM_THREADS": 1}, {"WARPSIM_THREADS": 7})
    ]
    assert len(set(runs)) == 1


@pytest.mark.simulator_only
def test_reports_do_not_depend_on_the_number_of_threads(ptx):
    def report(threads):
        result = run_ptx(
            ptx,
            "not_in_mask",
            9,
            64,
            [zeros(9 * 64)],
            report=True,
            env={"WARPSIM_THREADS": threads, "WARPSIM_HAZARDS": "warn"},
        )
        return result.report["launches"]

    assert report(1) == report(5)


@pytest.mark.simulator_only
def test_the_first_block_in_order_ends_the_launch(ptx):
    data = np.full(64, 7, np.int32)
    for threads in (1, 6):
        found = hazard(ptx, "traps", "trap", grid=20, args=[data], env={"WARPSIM_THREADS": threads})
        assert found["block"] == [0, 0, 0]
