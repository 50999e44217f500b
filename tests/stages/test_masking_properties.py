"""Small problems of all kinds, drawn by Hypothesis, for the stages that take masks, all lengths and groups of heads."""

import pytest
from calls import Call, gaps, mixed, plain, verified

from flashladder.core.problem import Problem

pytest.importorskip("hypothesis", reason="hypothesis is not installed: pip install hypothesis")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402


def small_problems():
    """Up to three tiles along each axis, every kind of mask, group, type and layout."""
    lengths = st.integers(1, 300)
    return st.builds(
        lambda group, Hkv, **rest: Problem(Hq=group * Hkv, Hkv=Hkv, **rest),
        B=st.integers(1, 2),
        group=st.integers(1, 3),
        Hkv=st.integers(1, 2),
        Nq=lengths,
        Nkv=lengths,
        d_head=st.sampled_from((64, 128)),
        dtype=st.sampled_from(("bf16", "fp16")),
        layout=st.sampled_from(("bhnd", "bnhd")),
        causal=st.booleans(),
        scale=st.sampled_from((0.0, 0.03, 1.0)),
    )


def check_drawn(stage, problems, arrangement) -> None:
    verified(stage, *(Call(problem, arrangement, seed=problem.Nq) for problem in problems))


# A batch of problems goes into one process: starting one takes longer than the runs.
BATCHES = given(
    problems=st.lists(small_problems(), min_size=8, max_size=8), arrangement=st.sampled_from((plain, mixed, gaps))
)
QUIET = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}


@settings(max_examples=2, derandomize=True, database=None, **QUIET)
@BATCHES
def test_small_problems(stage, problems, arrangement):
    check_drawn(stage, problems, arrangement)


@pytest.mark.long
@settings(max_examples=2, database=None, print_blob=True, **QUIET)
@BATCHES
def test_many_small_problems(stage, problems, arrangement):
    """Others in every run: 16 of each stage."""
    check_drawn(stage, problems, arrangement)
