"""The variants that `make ablations` times give the right answer and are free of hazards."""

import pytest

from flashladder import ablations, breakit
from flashladder.paths import STAGES
from flashladder.run import run_problem
from flashladder.verify import check


@pytest.mark.long
@pytest.mark.parametrize("ablation", ablations.ablations(), ids=lambda ablation: ablation.name)
def test_variant_is_right(ablation):
    problem = breakit.problem_for(ablation.stage)
    inputs = problem.random(2)
    result = run_problem(ablation.stage, problem, inputs, device="sim", library=ablations.library(ablation))
    comparison = check(problem, inputs, result.bits)
    assert comparison, comparison.message


def test_every_patch_has_a_title():
    found = ablations.ablations()
    patches = {str(file) for file in STAGES.glob("*/ablations/*.patch")}
    assert patches == {str(ablation.patch) for ablation in found}
