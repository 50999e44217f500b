"""What only a kernel of e4m3 can get wrong: the range of P, and the sums of the tensor cores."""

import numpy as np
from calls import Call, verified

from flashladder.core.dtypes import from_bits
from flashladder.core.problem import Problem
from flashladder.ladder.run import run_problem


def test_many_small_weights(stage):
    """1,023 weights of 2^-11 beside one of 1 are half as much as that together: below e4m3's smallest number, unless P
    of the largest is far above 1."""
    problem = Problem(Hq=1, Nq=130, Nkv=1024, d_head=64, dtype="e4m3")
    values = {name: np.zeros(problem.shape(name)) for name in "QK"}
    values["Q"][..., 0] = 1 / problem.scale
    values["K"][..., 0] = -11 * np.log(2)
    values["K"][:, :, 700] = 0
    values["V"] = 1 + np.abs(np.random.default_rng(1).standard_normal(problem.shape("V")))
    verified(stage, Call(problem, inputs=problem.rounded(values), note="many small weights"))


def test_nothing_is_lost_in_long_sums(stage):
    """All weights alike and V positive: cuts do not cancel, and O is their sum over 4,096 keys."""
    problem = Problem(Hq=1, Nq=1, Nkv=4096, d_head=64, dtype="e4m3")
    values = {name: np.ones(problem.shape(name)) for name in "QK"}
    values["V"] = np.random.default_rng(0).uniform(0.5, 1.5, problem.shape("V"))
    inputs = problem.rounded(values)
    got = from_bits(run_problem(stage, problem, inputs).bits, "bf16").astype(np.float64)
    lost = 1 - (got / problem.values(inputs, "V").mean(axis=2, keepdims=True)).mean()
    assert abs(lost) < 0.002, f"stage {stage.id}: {lost:.1%} of O are lost in its sums"
