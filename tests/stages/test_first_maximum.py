"""The running maximum must start at minus infinity. Random inputs do not show a start at 0, so that it is no mistake
for stages/NN/break; these inputs do."""

import re

import numpy as np
import pytest
from adversarial import adversarial

from flashladder import breakit, stages
from flashladder.dtypes import from_bits
from flashladder.paths import build_directory
from flashladder.problem import Problem
from flashladder.run import run_problem
from flashladder.verify import check

FIRST_MAXIMUM = re.compile(r"(row_max\[.*\] = )-INFINITY(, row_sum)")  # the online softmax's, not stage 01's


@pytest.mark.parametrize("d_head", (64, 128))
def test_negative_scores_are_beyond_exp(d_head):
    """exp(-104) is 0 in fp32: above that a wrong first maximum can cancel in the quotient, and nothing would show."""
    problem = Problem(Hq=1, Nq=128, Nkv=128, d_head=d_head)
    inputs = adversarial("all scores negative", problem)
    Q, K = (from_bits(inputs[name], problem.dtype)[0, 0].astype(np.float64) for name in "QK")
    assert (problem.scale * Q @ K.T).max() < -104


def online_stages() -> list:
    """All stages with a running maximum; `make test` takes one on ordinary units and one on tensor cores."""
    found = [stage for stage in stages.all_stages() if FIRST_MAXIMUM.search(stage.kernel.read_text())]
    return [
        pytest.param(stage, id=stage.name, marks=() if stage.number in (2, 4) else pytest.mark.long) for stage in found
    ]


@pytest.mark.parametrize("online_stage", online_stages())
def test_a_first_maximum_of_0_is_noticed(online_stage):
    text, replaced = FIRST_MAXIMUM.subn(r"\g<1>0.0f\2", online_stage.kernel.read_text())
    assert replaced == 1
    kernel = build_directory() / "break" / f"{online_stage.id}_first_maximum_0" / "kernel.cu"
    kernel.parent.mkdir(parents=True, exist_ok=True)
    kernel.write_text(text)
    problem = breakit.problem_for(online_stage)
    inputs = adversarial("all scores negative", problem)
    result = run_problem(online_stage, problem, inputs, device="sim", library=breakit.compile_kernel(kernel))
    comparison = check(problem, inputs, result.bits)
    assert not comparison, "a first maximum of 0 went unnoticed"
    assert "O[0, 0, 0, 0] = nan" in comparison.message


def test_every_online_stage_is_among_them():
    assert [parameter.values[0].number for parameter in online_stages()] == [
        stage.number for stage in stages.all_stages() if stage.number != 1
    ]
