"""Stage 30, where O leaves by TMA: each instance gives the numbers of stage 28, whose threads divide and store O, and
writes nothing around them."""

import numpy as np
import pytest
from calls import NUMBERS, Call, gaps, packed, shared, verified
from chosen import chosen_stages

from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.launches import Instance, instances
from flashladder.ladder.run import run_problem
from flashladder.running.verify import check

pytestmark = pytest.mark.skipif(30 not in [one.number for one in chosen_stages()], reason="tests of stage 30")

STAGE = stages.get(30)
STRICT = STAGE.simulated | {"WARPSIM_HAZARDS": "strict"}
each_instance = pytest.mark.parametrize("c", instances(STAGE), ids=lambda c: c.configuration)


def several(c: Instance, **more) -> Problem:
    """More query tiles than two for each of the three blocks, a ragged end, groups of heads."""
    sizes = {"Hq": 4, "Hkv": 2, "Nq": c.Br + 70, "Nkv": c.Br + 325}
    return Problem(d_head=c.d_head, dtype=c.dtype, **sizes | more)


def run(c: Instance, number: int, problem: Problem, seed: int = 1, **environment: str):
    inputs = problem.random(seed)
    return run_problem(number, problem, inputs, "sim", environment=STRICT | environment, configuration=c.configuration)


def same_bits(c: Instance, problem: Problem, **environment: str) -> None:
    """Stage 28 divides, and rcp.approx may be off by one unit in the last place of fp32. On the simulator it is the
    nearest number, as a division is, so all bits are the same."""
    old, new = run(c, 28, problem), run(c, 30, problem, **environment)
    wrong = int((old.bits != new.bits).sum())
    assert not wrong, f"{c.configuration}, {problem}: {wrong} elements of O are not stage 28's"
    assert (old.log_sum_exp == new.log_sum_exp).all(), f"{c.configuration}, {problem}: not stage 28's log-sum-exp"
    (launch,) = new.report["launches"]
    rows = problem.B * problem.Hq * problem.Nq
    assert launch["global"]["store"]["bytes"] == 4 * rows, "threads store something else than the log-sum-exp"
    warps = problem.B * problem.Hq * -(-problem.Nq // c.Br) * c.Br // 16
    stored = launch["tensor_copies"]["store"]
    assert (stored["copies"], stored["sectors"]) == (warps, rows * problem.d_head * 2 // 32), stored


@each_instance
def test_stage_28s_numbers_and_threads_store_the_log_sum_exp_alone(c):
    same_bits(c, several(c, causal=c.dtype == "bf16"))


@pytest.mark.long
@pytest.mark.parametrize("seed", ("1", "2"))
@each_instance
def test_stage_28s_numbers_in_another_order_of_the_warps(c, seed):
    problem = several(c, B=2, Nq=2 * c.Br + 17, causal=c.dtype == "fp16", layout="bnhd")
    same_bits(c, problem, WARPSIM_SCHEDULE=seed)


@each_instance
def test_nothing_is_written_around_o(c):
    """Rows of O with gaps between them, behind them and behind each head; a query tile of which TMA has two rows to
    store, and most warps none."""
    calls = (
        Call(several(c, B=2, Hq=2, Hkv=1, causal=True), gaps, seed=2, poison=NUMBERS, configuration=c.configuration),
        Call(several(c, Nq=2, Nkv=3, layout="bnhd"), seed=3, configuration=c.configuration),
    )
    verified(STAGE, *calls)


@pytest.mark.long
@pytest.mark.parametrize("arrangement", (packed, shared))
@each_instance
def test_nothing_is_written_around_o_wherever_it_lies(c, arrangement):
    sizes = {"B": 2, "Hq": 3, "Hkv": 3, "Nq": c.Br + 41} | ({"Nkv": c.Br + 41} if arrangement is packed else {})
    problems = [several(c, causal=causal, **sizes) for causal in (False, True)]
    verified(STAGE, *(Call(problem, arrangement, seed=4, configuration=c.configuration) for problem in problems))


@each_instance
def test_rows_that_see_no_key_are_zeros(c):
    """All rows of the first query tile, and some of the second: their sums of P are 0, and have no reciprocal."""
    problem = several(c, Nq=2 * c.Br + 70, Nkv=c.Br + 61, causal=True)
    blind = problem.Nq - problem.Nkv
    assert c.Br < blind < 2 * c.Br
    inputs = problem.random(5)
    got = run(c, 30, problem, 5)
    comparison = check(problem, inputs, got.bits, got.log_sum_exp)
    assert comparison, f"{c.configuration}, {problem}: {comparison.message}"
    assert not got.bits[:, :, :blind].any(), f"{c.configuration}: rows that see no key are not zeros"
    assert (got.log_sum_exp[:, :, :blind] == -np.inf).all() and np.isfinite(got.log_sum_exp[:, :, blind:]).all()
