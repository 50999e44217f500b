"""O leaves by TMA, from tma_store on: with the numbers of the stage before, whose threads store it, and with nothing
written around it. Each kernel of tma_store, and each instance of shapes."""

import numpy as np
import pytest
from calls import NUMBERS, Call, gaps, packed, shared, verified
from chosen import chosen_stages
from kernels_built import Built, built

from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.run import run_problem
from flashladder.running.verify import check

BUILT = [c for stage in chosen_stages() if stage.slug in ("tma_store", "shapes") for c in built(stage)]
OF_TMA_STORE = [c for c in BUILT if c.stage.slug == "tma_store"]
pytestmark = pytest.mark.skipif(not BUILT, reason="tests of stages tma_store and shapes")
each_kernel = pytest.mark.parametrize("c", BUILT, ids=str)
each_of_tma_store = pytest.mark.parametrize("c", OF_TMA_STORE, ids=str)


def several(c: Built, **more) -> Problem:
    """More query tiles than two for each of the three blocks, a ragged end, groups of heads."""
    sizes = {"Hq": 4, "Hkv": 2, "Nq": c.Br + 70, "Nkv": c.Br + 325}
    return Problem(d_head=c.d_head, dtype=c.dtype, **sizes | more)


def by_tma_alone(c: Built, problem: Problem, got) -> None:
    """Each warp with rows of O has one copy; threads store the log-sum-exp and nothing else."""
    (launch,) = got.report["launches"]
    rows, Br = problem.B * problem.Hq * problem.Nq, got.description["Br"]
    assert launch["global"]["store"]["bytes"] == 4 * rows, "threads store something else than the log-sum-exp"
    warps = problem.B * problem.Hq * -(-problem.Nq // Br) * Br // 16
    stored = launch["tensor_copies"]["store"]
    assert (stored["copies"], stored["sectors"]) == (warps, rows * problem.d_head * 2 // 32), stored


def same_bits(c: Built, problem: Problem, **environment: str) -> None:
    inputs = problem.random(1)
    before = stages.previous_of(c.stage)
    old = run_problem(before, problem, inputs, "sim", environment=before.simulated | {"WARPSIM_HAZARDS": "strict"})
    new = c.run(problem, inputs, **environment)
    wrong = int((old.bits != new.bits).sum())
    assert not wrong, f"{c}, {problem}: {wrong} elements of O are not those of {before.slug}"
    assert (old.log_sum_exp == new.log_sum_exp).all(), f"{c}, {problem}: not the log-sum-exp of {before.slug}"
    by_tma_alone(c, problem, new)


@each_of_tma_store
def test_the_numbers_of_the_stage_before(c):
    same_bits(c, several(c, causal=c.dtype == "bf16"))


@pytest.mark.long
@pytest.mark.parametrize("seed", ("1", "2"))
@each_of_tma_store
def test_the_numbers_of_the_stage_before_in_another_order_of_the_warps(c, seed):
    problem = several(c, B=2, Nq=2 * c.Br + 17, causal=c.dtype == "fp16", layout="bnhd")
    same_bits(c, problem, WARPSIM_SCHEDULE=seed)


@each_kernel
def test_threads_store_the_log_sum_exp_alone(c):
    problem = several(c, causal=c.dtype == "bf16")
    by_tma_alone(c, problem, c.run(problem, problem.random(1)))


@each_kernel
def test_nothing_is_written_around_o(c):
    """Rows of O with gaps between them, behind them and behind each head; a query tile of which TMA has two rows to
    store, and most warps none."""
    calls = (
        Call(several(c, B=2, Hq=2, Hkv=1, causal=True), gaps, seed=2, poison=NUMBERS, configuration=c.configuration),
        Call(several(c, Nq=2, Nkv=3, layout="bnhd"), seed=3, configuration=c.configuration),
    )
    verified(c.stage, *calls)


@pytest.mark.long
@each_kernel
def test_nothing_is_written_around_o_wherever_it_lies(c):
    """As two projections leave it, of which each kernel is given one."""
    arrangement = (packed, shared)[BUILT.index(c) % 2]
    sizes = {"B": 2, "Hq": 3, "Hkv": 3, "Nq": c.Br + 41} | ({"Nkv": c.Br + 41} if arrangement is packed else {})
    problems = [several(c, causal=causal, **sizes) for causal in (False, True)]
    verified(c.stage, *(Call(problem, arrangement, seed=4, configuration=c.configuration) for problem in problems))


@each_kernel
def test_rows_that_see_no_key_are_zeros(c):
    """All rows of the first query tile, and some of the second: their sums of P are 0, and have no reciprocal."""
    problem = several(c, Nq=2 * c.Br + 70, Nkv=c.Br + 61, causal=True)
    blind = problem.Nq - problem.Nkv
    assert c.Br < blind < 2 * c.Br
    inputs = problem.random(5)
    got = c.run(problem, inputs)
    comparison = check(problem, inputs, got.bits, got.log_sum_exp)
    assert comparison, f"{c}, {problem}: {comparison.message}"
    assert not got.bits[:, :, :blind].any(), f"{c}: rows that see no key are not zeros"
    assert (got.log_sum_exp[:, :, :blind] == -np.inf).all() and np.isfinite(got.log_sum_exp[:, :, blind:]).all()
