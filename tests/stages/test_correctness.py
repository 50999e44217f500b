"""Each stage against the float64 reference: types, head dims, layouts and sizes around the tile's edges."""

import itertools

import numpy as np
import pytest
from adversarial import KINDS, adversarial

from flashladder.problem import Problem
from flashladder.run import run_problem
from flashladder.verify import check


def verify(stage, problem, inputs=None, seed=0, **options):
    inputs = inputs or problem.random(seed)
    result = run_problem(stage, problem, inputs, **options)
    comparison = check(problem, inputs, result.bits)
    assert comparison, f"stage {stage.id}, {problem}: {comparison.message}"
    return result


@pytest.mark.parametrize("dtype, d_head", list(itertools.product(("bf16", "fp16"), (64, 128))))
def test_types_and_head_dims(stage, tile, dtype, d_head):
    Br, Bc = tile
    verify(stage, Problem(Hq=1, Nq=Br, Nkv=3 * Bc, d_head=d_head, dtype=dtype))


def test_heads_batches_and_layout(stage, tile):
    Br, Bc = tile
    verify(stage, Problem(B=2, Hq=3, Nq=Br, Nkv=Bc, d_head=64, layout="bnhd"), seed=1)


@pytest.mark.long
@pytest.mark.parametrize("rows", (1, 2, 3))
@pytest.mark.parametrize("columns", (1, 2, 5, 6))
def test_tile_counts(stage, tile, rows, columns):
    Br, Bc = tile
    verify(stage, Problem(B=1, Hq=1, Nq=rows * Br, Nkv=columns * Bc, d_head=64), seed=rows * 10 + columns)


@pytest.mark.long
@pytest.mark.parametrize(
    "dtype, d_head, layout", list(itertools.product(("bf16", "fp16"), (64, 128), ("bhnd", "bnhd"))), ids=str
)
def test_all_instances_and_layouts(stage, tile, dtype, d_head, layout):
    Br, Bc = tile
    verify(stage, Problem(B=2, Hq=2, Nq=2 * Br, Nkv=4 * Bc, d_head=d_head, dtype=dtype, layout=layout), seed=7)


def test_fresh_seed(stage, tile):
    """Other inputs every time; the seed is in the message, for a rerun."""
    seed = int(np.random.SeedSequence().entropy % 2**32)
    Br, Bc = tile
    problem = Problem(Hq=1, Nq=Br, Nkv=2 * Bc, d_head=64)
    inputs = problem.random(seed)
    comparison = check(problem, inputs, run_problem(stage, problem, inputs).bits)
    assert comparison, f"seed {seed}: {comparison.message}"


@pytest.mark.parametrize("kind", KINDS)
def test_adversarial_inputs(stage, tile, kind):
    Br, Bc = tile
    dtype = "fp16" if kind in ("rising maxima", "tiny V") else "bf16"
    problem = Problem(Hq=1, Nq=Br, Nkv=2 * Bc, d_head=64, dtype=dtype)
    verify(stage, problem, adversarial(kind, problem))


def test_negative_and_large_scale(stage, tile):
    Br, Bc = tile
    for scale in (-0.5, 2.0):
        verify(stage, Problem(Hq=1, Nq=Br, Nkv=2 * Bc, d_head=64, scale=scale))


def test_same_bits_every_time(stage, tile):
    Br, Bc = tile
    problem = Problem(Hq=1, Nq=Br, Nkv=2 * Bc, d_head=64)
    first, second = (run_problem(stage, problem).bits for _ in range(2))
    assert np.array_equal(first, second)


def test_another_interleaving_changes_nothing(stage, tile):
    """On the simulator warps run in another order; a GPU chooses its own."""
    Br, Bc = tile
    problem = Problem(Hq=2, Nq=Br, Nkv=3 * Bc, d_head=64)
    usual = verify(stage, problem)
    shuffled = run_problem(stage, problem, environment={"WARPSIM_SCHEDULE": "12345"})
    assert np.array_equal(usual.bits, shuffled.bits)
    for result in (usual, shuffled):
        for launch in (result.report or {"launches": []})["launches"]:
            assert launch["hazards"] == []
