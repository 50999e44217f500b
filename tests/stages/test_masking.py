"""Masks, lengths and groups of heads, for the stages that take them all: causal, any Nq and Nkv, Hkv below Hq.

The simulator's allocations have their exact size, so a read or write beyond an end is a hazard, and fails the call.
"""

import itertools

import numpy as np
import pytest
from adversarial import KINDS, adversarial
from calls import NUMBERS, Call, gaps, mixed, packed, plain, shared, verified

from flashladder.core.dtypes import to_bits
from flashladder.core.problem import Problem
from flashladder.ladder.run import run_problem
from flashladder.running.verify import log_sum_exp

LENGTHS = (1, 63, 64, 65, 127, 1000)
MASKS = pytest.mark.parametrize("causal", (False, True), ids=("full", "causal"))


@MASKS
def test_every_pair_of_lengths(stage, causal):
    """Causal with more queries than keys: rows that see no key are 0, and their log-sum-exp is -infinity."""
    pairs = itertools.product(LENGTHS, LENGTHS)
    problems = [Problem(Hq=1, Nq=rows, Nkv=columns, d_head=64, causal=causal) for rows, columns in pairs]
    verified(stage, *(Call(problem, seed=i, poison=NUMBERS) for i, problem in enumerate(problems)))


@MASKS
@pytest.mark.parametrize("Hkv", (2, 1), ids=("8 heads on 2", "8 heads on 1"))
def test_groups_of_heads(stage, Hkv, causal):
    """Two batches, both types and head dims, all ways of lying in memory."""
    sizes = {"B": 2, "Hq": 8, "Hkv": Hkv, "causal": causal}
    verified(
        stage,
        Call(Problem(Nq=65, Nkv=127, d_head=64, **sizes), gaps, seed=1, poison=NUMBERS),
        Call(Problem(Nq=130, Nkv=63, d_head=64, dtype="fp16", **sizes), mixed, seed=2),
        Call(Problem(Nq=1, Nkv=200, d_head=128, dtype="fp16", layout="bnhd", **sizes), plain, seed=3),
        Call(Problem(Nq=129, Nkv=130, d_head=128, **sizes), plain, seed=4),
    )


def test_strides(stage):
    """Q, K and V side by side, one K for all heads and one V for all batches; O with gaps around its rows."""
    verified(
        stage,
        Call(Problem(B=2, Hq=2, Nq=77, d_head=64, causal=True), packed, seed=5),
        Call(Problem(B=2, Hq=3, Nq=77, Nkv=150, d_head=128, causal=True, dtype="fp16"), shared, seed=6),
    )


def test_adversarial_inputs_behind_a_mask(stage, tile):
    """K is visited backwards: rows meet tiles of which they see nothing before the first that they see."""
    calls = []
    for kind, dtype in itertools.product(KINDS, ("bf16", "fp16")):
        problem = Problem(Hq=1, Nq=tile[0] - 1, Nkv=2 * tile[1] + 1, d_head=64, dtype=dtype, causal=True)
        calls.append(Call(problem, inputs=adversarial(kind, problem), note=kind))
    verified(stage, *calls)


def test_without_log_sum_exp(stage):
    """A null pointer: nobody asked for it."""
    verified(stage, Call(Problem(Hq=2, Nq=70, Nkv=130, d_head=64, causal=True), log_sum_exp=False))


INSTANCES = tuple(itertools.product(("bf16", "fp16"), (64, 128)))


@pytest.mark.long
@MASKS
@pytest.mark.parametrize("dtype, d_head", INSTANCES, ids=str)
def test_every_pair_of_lengths_in_all_instances(stage, dtype, d_head, causal):
    """Each pair in one of the four instances, dealt out so that each instance meets each length on either side."""
    lengths = (1, 64, 65, 192, 257, 520)
    dealt = INSTANCES.index((dtype, d_head))
    pairs = [(rows, columns) for i, rows in enumerate(lengths) for j, columns in enumerate(lengths)
             if (i + j) % len(INSTANCES) == dealt]  # fmt: skip
    sizes = {"Hq": 2, "Hkv": 1, "d_head": d_head, "dtype": dtype, "causal": causal}
    verified(stage, *(Call(Problem(Nq=rows, Nkv=columns, **sizes), gaps, seed=rows) for rows, columns in pairs))


# A future key or value must not change a row by one bit, however large it is.


@pytest.mark.parametrize("rows, columns", ((200, 200), (65, 300), (300, 130)), ids=str)
def test_the_future_changes_nothing(stage, rows, columns):
    """All keys and values behind column `first` change to huge finite numbers: rows that see none of them keep every
    bit of O and of their log-sum-exp; the next row does not."""
    problem = stage.own(Problem(Hq=2, Hkv=1, Nq=rows, Nkv=columns, d_head=64, causal=True))
    inputs = problem.random(7)
    usual = run_problem(stage, problem, inputs)
    changed_any = False
    for first in {1, 63, 64, columns // 2, columns - 1}:
        changed = {name: array.copy() for name, array in inputs.items()}
        huge = to_bits(np.float32(3e37), problem.dtype)
        changed["K"][:, :, first:], changed["V"][:, :, first:] = huge, huge
        result = run_problem(stage, problem, changed)
        blind = max(0, min(rows, first - (columns - rows)))  # row i sees columns 0 to i + columns - rows
        for name, before, after in (
            ("O", usual.bits[:, :, :blind], result.bits[:, :, :blind]),
            ("log_sum_exp", usual.log_sum_exp[:, :, :blind], result.log_sum_exp[:, :, :blind]),
        ):
            wrong = np.argwhere(before.view(np.uint8) != after.view(np.uint8))
            assert not len(wrong), (
                f"stage {stage.id}, {problem}: rows before {blind} see no key from {first} on, yet those change "
                f"{name} at (batch, head, row, byte) {wrong[0].tolist()}"
            )
        changed_any |= bool((usual.bits[:, :, blind:] != result.bits[:, :, blind:]).any())
    assert changed_any, f"{problem}: the change is not seen by any row, so the test says nothing"


def test_rows_behind_the_last_stay_as_they_are(stage):
    """Q and O are the first rows of larger buffers, as a cache of keys has room for more than it holds: what lies
    behind them is not written (verified() looks), and what lies behind K and V, NaN here, is not used."""

    def room_for_more(problem: Problem) -> dict:
        views = {}
        for name in "QKVO":
            heads, rows = (problem.Hq, problem.Nq) if name in "QO" else (problem.Hkv, problem.Nkv)
            room = rows + 200
            strides = [heads * room * problem.d_head, room * problem.d_head, problem.d_head]
            views[name] = {"buffer": name, "offset": 0, "strides": strides, "size": problem.B * strides[0]}
        return views

    sizes = {"B": 2, "Hq": 4, "Hkv": 2, "d_head": 64}
    problems = [Problem(Nq=rows, Nkv=columns, causal=causal, **sizes)
                for rows, columns, causal in ((65, 127, False), (127, 65, True), (1, 1, True))]  # fmt: skip
    verified(stage, *(Call(problem, room_for_more, seed=8, rest=0xFFFF) for problem in problems))


def test_log_sum_exp_is_that_of_the_row(stage):
    """Known values: equal scores give log(keys seen); rows without a key -infinity; long rows stay exact."""
    problem = stage.own(Problem(Hq=1, Nq=70, Nkv=66, d_head=64, causal=True))
    inputs = problem.random(1)
    inputs["K"][...] = 0
    got = run_problem(stage, problem, inputs).log_sum_exp[0, 0]
    seen = np.arange(70) - 4 + 1
    assert np.isneginf(got[seen <= 0]).all(), f"stage {stage.id}: rows without a key have {got[seen <= 0]}"
    np.testing.assert_allclose(got[seen > 0], np.log(seen[seen > 0]), atol=1e-5)
    expected, _ = log_sum_exp(problem, inputs)
    np.testing.assert_allclose(expected[0, 0][seen > 0], np.log(seen[seen > 0]), atol=1e-12)
