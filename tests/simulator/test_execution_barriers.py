"""Barriers, also named ones and those that count, and warp-synchronous instructions: which waits are right, and which are
reported."""

import re

import numpy as np
import pytest
from cudart import run_ptx
from execution_kernels import hazard, ints, kernels_ptx, line_of, zeros


@pytest.fixture(scope="module")
def ptx():
    return kernels_ptx()


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


def test_barriers_that_count_some_warps(ptx):
    out = run_ptx(ptx, "counting_of_some", 1, 96, [zeros(2 * 96)]).check().outputs[0].reshape(-1, 2)
    assert (out[:64] == [22, 0]).all()


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
