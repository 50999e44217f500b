"""Stages 27, 28 and 30 where bets are lost: by most tiles, so that a warp comes to look first; late, by one tile; by
some query tiles while the one before is still to be stored. Several query tiles a block, each kernel that is built."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from chosen import chosen_stages

from flashladder.core.dtypes import from_bits, to_bits
from flashladder.core.problem import Problem
from flashladder.ladder import ablations, launches, stages
from flashladder.ladder.run import run_problem
from flashladder.running.verify import check


@dataclass(frozen=True)
class Built:
    """A kernel of a stage; of stages 28 and 30 one of their instances."""

    stage: int
    dtype: str
    d_head: int
    Br: int = 128
    Bc: int = 128
    configuration: str | None = None

    def __str__(self) -> str:
        kind = self.configuration or f"{self.dtype}, d = {self.d_head}"
        return f"stage {self.stage}, {kind}"


BUILT = [Built(27, dtype, d_head) for dtype, d_head in itertools.product(("fp16", "bf16"), (64, 128))]
BUILT += [
    Built(number, c.dtype, c.d_head, c.Br, c.Bc, c.configuration)
    for number in (28, 30)
    for c in launches.instances(stages.get(number))
]
BUILT = [one for one in BUILT if one.stage in [stage.number for stage in chosen_stages()]]
pytestmark = pytest.mark.skipif(not BUILT, reason="tests of stages 27, 28 and 30")
STRICT = stages.get(28).simulated | {"WARPSIM_HAZARDS": "strict"}
HUGE = 100.0  # the standard deviation of scores of random inputs: most tiles have some row's new maximum, far above


def problem_of(c, scores: float = 1.0, **more) -> Problem:
    """Four query tiles for each of the three blocks, and more tiles of K and V than bets count as early; scores: their
    standard deviation, of random inputs."""
    sizes = {"Hq": 4, "Hkv": 2, "Nq": 2 * c.Br + 70, "Nkv": 9 * c.Bc + 77}
    return Problem(d_head=c.d_head, dtype=c.dtype, scale=scores / c.d_head**0.5, **sizes | more)


def run(c, problem: Problem, inputs: dict):
    got = run_problem(c.stage, problem, inputs, "sim", environment=STRICT, configuration=c.configuration)
    comparison = check(problem, inputs, got.bits, got.log_sum_exp)
    assert comparison, f"{c}, {problem}: {comparison.message}"
    return got


def instructions(c, got, text: str) -> int:
    """How many were executed of the one line of the kernel that has this text."""
    (line,) = [n for n, words in enumerate(stages.get(c.stage).kernel.read_text().splitlines(), 1) if text in words]
    lines = got.report["launches"][-1]["lines"]
    return sum(one["instructions"] for one in lines if one["line"] == line and one["file"].endswith("kernel.cu"))


def looked_first(c, got) -> int:
    return instructions(c, got, "fminf(rescale[0], rescale[1]) < 1.0f)) rescale_O();")


def lost_a_bet(c, got) -> int:
    return instructions(c, got, "if (tiles - tile <= 8) careful")


@pytest.mark.parametrize("c", BUILT, ids=str)
def test_who_loses_early_looks_first(c):
    causal = c.dtype == "bf16"
    problem = problem_of(c, HUGE, causal=causal)
    assert looked_first(c, run(c, problem, problem.random(6))), f"{c}: no warp has looked at a maximum before its bet"


@pytest.mark.parametrize("c", BUILT, ids=str)
def test_who_loses_late_goes_on_betting(c):
    """Keys of the second tile, which comes last but one, have scores far above all others'."""
    problem = problem_of(c, Hq=1, Hkv=1)
    values = {name: from_bits(bits, c.dtype).astype(np.float32) for name, bits in problem.random(7).items()}
    values["Q"][..., 0] = 8
    values["K"][..., 0] = 0
    values["K"][:, :, c.Bc : c.Bc + c.Bc // 2, 0] = 150 / (8 * problem.scale)
    got = run(c, problem, problem.rounded(values))
    assert lost_a_bet(c, got), f"{c}: no bet was lost, so the test says nothing"
    assert not looked_first(c, got), f"{c}: a warp looks first, of which no bet was lost early"


@pytest.mark.parametrize("c", BUILT, ids=str)
def test_who_sees_no_key_at_first_has_lost_nothing(c):
    """Causal: the tile on the diagonal is all masked for some warps. Their first keys are no reason to look first."""
    problem = problem_of(c, Hq=2, causal=True)
    assert not looked_first(c, run(c, problem, problem.random(8))), f"{c}: a warp looks first though no bet was lost"


def other_heads_keep_every_bit(c, change) -> None:
    """Heads 1 and 2 get other rows of Q, change(rows). Each block works on one query tile of a head after the other, or
    of every second head where it is one of six: so they stand before and behind those of heads 0 and 3."""
    problem = problem_of(c, Nkv=3 * c.Bc + 5)
    before = problem.random(9)
    rows = from_bits(before["Q"], c.dtype).astype(np.float32)
    rows[:, 1:3] = change(rows[:, 1:3])
    after = before | {"Q": to_bits(rows, c.dtype)}
    both = [
        run_problem(c.stage, problem, one, "sim", environment=STRICT, configuration=c.configuration)
        for one in (before, after)
    ]
    first, second = (problem.to_bhnd(got.bits) for got in both)
    for head in (0, 3):
        wrong = int((first[:, head] != second[:, head]).sum())
        assert not wrong, f"{c}: {wrong} elements of O changed in head {head}, whose Q has not changed"
    assert (first[:, 1:3] != second[:, 1:3]).any(), "no row has changed, so the test says nothing"


@pytest.mark.parametrize("c", BUILT, ids=str)
def test_no_query_tile_knows_the_one_before_or_behind(c):
    """Whose scores are so large that most bets are lost."""
    other_heads_keep_every_bit(c, lambda rows: 100 * rows)


@pytest.mark.parametrize("c", [c for c in BUILT if c.dtype == "bf16"], ids=str)
def test_no_query_tile_knows_of_scores_that_no_float_holds(c):
    """They make NaN of their own rows, and not of the query tile before, which is still to be stored."""
    other_heads_keep_every_bit(c, lambda rows: 3e38 * (np.arange(c.d_head) == 0) * np.ones_like(rows))


@pytest.mark.skipif(27 not in [one.stage for one in BUILT], reason="tests of stage 27")
def test_who_stops_looking_loses_no_more_bets():
    """A variant that `make ablations` times: where a query tile has 128 tiles of K and V, it looks at less than half
    of what the stage looks at, and computes as few exponentials twice."""
    stage, (variant,) = stages.get(27), [one for one in ablations.ablations() if one.id == "27_stops_looking"]
    problem = Problem(Hq=1, Nq=128, Nkv=16384, d_head=128, scale=HUGE / 128**0.5)
    inputs = problem.random(1)
    reports = []
    for library in (None, ablations.library(variant)):
        got = run_problem(stage, problem, inputs, "sim", library, environment=STRICT)
        assert check(problem, inputs, got.bits, got.log_sum_exp)
        reports.append(got.report["launches"][-1]["instructions"]["by_class"])
    goes_on, stops = reports
    once = 8 * 64 * 128  # 8 warps; of each lane 64 elements of a tile
    assert once < stops["special_function"] < 1.01 * goes_on["special_function"]
    assert 2 * stops["shuffle"] < goes_on["shuffle"]
