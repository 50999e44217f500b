"""How the simulator runs warps, blocks and grids: divergence and reconvergence, locks, printf and assert, budgets, and
that the same launch always gives the same result."""

import re

import cudart
import numpy as np
import pytest
from cudart import run_ptx
from execution_kernels import PTX_HEAD, hazard, ints, kernels_ptx, line_of, zeros


@pytest.fixture(scope="module")
def ptx():
    return kernels_ptx()


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


def test_one_lane_of_those_named_is_elected_and_each_is_told_which():
    text = """
    .visible .entry k(.param .b64 p) {
        .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<4>;
        mov.u32 %r1, %tid.x;
        mov.u32 %r3, -1;
        and.b32 %r2, %r1, 1;
        setp.eq.u32 %p1, %r2, 1;
        @!%p1 bra END;
        elect.sync %r3|%p2, 0xaaaaaaaa;
        selp.b32 %r4, 100, 0, %p2;
        add.s32 %r3, %r3, %r4;
    END:
        ld.param.u64 %d1, [p];
        mul.wide.u32 %d2, %r1, 4;
        add.s64 %d3, %d1, %d2;
        st.global.u32 [%d3], %r3;
        ret;
    }"""
    head = PTX_HEAD.replace("sm_80", "sm_90")
    out = run_ptx(head + text, "k", 1, 32, [zeros(32)]).check().outputs[0].view(np.int32)
    elected = out[1::2].min()
    assert elected % 2 == 1
    lanes = np.arange(32)
    np.testing.assert_array_equal(out, np.where(lanes % 2, elected + 100 * (lanes == elected), -1))


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
    assert found["line"] == line_of("p[0] == 0 && tries; ++tries")


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
