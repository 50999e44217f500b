"""What no rule of flashladder/tuning/rules.py refuses builds, launches and is right: configurations drawn at random."""

from dataclasses import replace

import pytest
from chosen import chosen_stages
from test_configurations import right

from flashladder.core.problem import Problem
from flashladder.ladder.run import run_problem
from flashladder.running.job import StageError
from flashladder.running.verify import check
from flashladder.tuning import instances, rules
from flashladder.tuning.configuration import Configuration, of_stage

pytest.importorskip("hypothesis", reason="hypothesis is not installed: pip install hypothesis")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

pytestmark = pytest.mark.skipif(12 not in [one.number for one in chosen_stages()], reason="tests of stage 12")


def drawn() -> st.SearchStrategy[Configuration]:
    """Configurations that break no rule. Small tiles, so that they compile and run quickly."""
    loads = st.sampled_from((0, 1, 2, 4, 8))
    return st.builds(
        Configuration,
        dtype=st.sampled_from(("bf16", "fp16")),
        d_head=st.sampled_from((64, 128)),
        Br=st.sampled_from((16, 32, 48, 64, 96, 128, 192, 256)),
        Bc=st.sampled_from((16, 32, 48, 64, 80, 96, 128)),
        warps=st.sampled_from((1, 2, 3, 4, 6, 8)),
        async_copy=st.booleans(),
        eager=st.booleans(),
        swizzled=st.booleans(),
        load_Q=st.sampled_from((0, 2, 4, 8)),
        load_K=loads,
        load_V=loads,
        Q_in_registers=st.booleans(),
        kv_stages=st.sampled_from((1, 2)),
        fragment_stages=st.sampled_from((1, 2)),
        fast_softmax=st.booleans(),
        skip_rescale=st.booleans(),
        lean=st.booleans(),
        lean_ldmatrix=st.booleans(),
        resident_blocks=st.sampled_from((0, 0, 1, 2, 3)),
    ).filter(lambda configuration: not rules.refusals(configuration))


QUIET = {"deadline": None, "suppress_health_check": [HealthCheck.filter_too_much, HealthCheck.too_slow]}


@pytest.mark.long
@settings(max_examples=5, database=None, print_blob=True, **QUIET)
@given(drawn())
def test_what_no_rule_refuses_is_right(configuration):
    """Others in every run."""
    print(configuration)
    right(configuration, instances.build(configuration).library)


@pytest.mark.long
@pytest.mark.parametrize(
    "rule, against",
    (
        ("lean_needs_rounds_of_8", replace(of_stage(11), Br=32, warps=2)),
        ("lean_needs_async", replace(of_stage(5), lean=True)),
        ("copy_rounds", replace(of_stage(5), d_head=64, warps=8, Bc=16)),
    ),
)
def test_what_guards_the_result_is_wrong_without_the_rule(rule, against):
    """These rules do more than spare time: built against them the kernel is wrong, or has a hazard."""
    assert [one.name for one in rules.refusals(against)] == [rule]
    problem = Problem(Hq=1, Nq=2 * against.Br, Nkv=4 * against.Bc, d_head=against.d_head)
    inputs, library = problem.random(1), instances.build(against).library
    try:
        got = run_problem(12, problem, inputs, device="sim", library=library)
    except StageError:
        return
    assert not check(problem, inputs, got.bits), f"{against} is right: what is the rule {rule} for?"
