"""O and the log-sum-exp of decode problems in float64, and the comparison: of each sequence the forward reference, its
bounds and its limits (running/verify.py). They hold here too: a part's P is rounded in the scale of the part's own
largest score, finer than in that of the row's, and parts are merged in fp32."""

import numpy as np

from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.problem import Problem
from flashladder.running import verify


def _sequence(problem: DecodeProblem, inputs: dict[str, np.ndarray], b: int) -> tuple[Problem, dict]:
    """A sequence as a forward problem: causal, and as long as it is."""
    alone = Problem(
        B=1, Hq=problem.Hq, Hkv=problem.Hkv, Nq=problem.Nq, Nkv=problem.lengths[b], d_head=problem.d_head,
        dtype=problem.dtype, causal=True, scale=problem.scale,
    )  # fmt: skip
    own = {name: problem.cache_rows(inputs, name, b)[None] for name in "KV"}
    return alone, own | {"Q": problem.to_bhnd(inputs["Q"])[b : b + 1]}


def expected(problem: DecodeProblem, inputs: dict[str, np.ndarray]) -> tuple[tuple, tuple]:
    """What verify.compare() and verify.compare_log_sum_exp() take besides a stage's results."""
    shape = (problem.B, problem.Hq, problem.Nq, problem.d_head)
    outputs, sums = [np.zeros(shape) for _ in range(3)], [np.full(shape[:3], -np.inf), np.ones(shape[:3])]
    for b in range(problem.B):
        if problem.lengths[b]:
            alone, own = _sequence(problem, inputs, b)
            for whole, part in zip(outputs, verify.reference(alone, own), strict=True):
                whole[b] = part[0]
            for whole, part in zip(sums, verify.log_sum_exp(alone, own), strict=True):
                whole[b] = part[0]
    return tuple(outputs), tuple(sums)


def check(problem: DecodeProblem, inputs: dict[str, np.ndarray], got: dict[str, np.ndarray]) -> verify.Comparison:
    """Compares a run's O (bit patterns, in the problem's layout) and log_sum_exp with the reference."""
    return check_with(problem, expected(problem, inputs), got)


def check_with(problem: DecodeProblem, wanted: tuple[tuple, tuple], got: dict[str, np.ndarray]) -> verify.Comparison:
    """check() with what expected() gives."""
    outputs, sums = wanted
    comparison = verify.compare(problem.to_bhnd(got["O"]), *outputs, problem.dtype)
    return verify.with_sums(comparison, got["log_sum_exp"], *sums) if comparison else comparison
