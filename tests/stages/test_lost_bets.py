"""Where bets on the maximum are lost: by most tiles, so that a warp comes to look first; late, by one tile; by some
query tiles while the one before is still to be stored. Several query tiles a block, each kernel that bets."""

import numpy as np
import pytest
from chosen import chosen_stages
from kernels_built import Built, built

from flashladder.core.dtypes import from_bits, to_bits
from flashladder.core.paths import ROOT
from flashladder.core.problem import Problem
from flashladder.running.verify import check

HEADER = ROOT / "common/include/optimistic_softmax.cuh"
BETTING = ("optimistic_max", "no_gap", "shapes")
BUILT = [c for stage in chosen_stages() if stage.slug in BETTING for c in built(stage)]
pytestmark = pytest.mark.skipif(not BUILT, reason=f"tests of stages {', '.join(BETTING)}")
HUGE = 100.0  # the standard deviation of scores of random inputs: most tiles have some row's new maximum, far above


def problem_of(c, scores: float = 1.0, **more) -> Problem:
    """Four query tiles for each of the three blocks, and more tiles of K and V than bets count as early; scores: their
    standard deviation, of random inputs."""
    sizes = {"Hq": 4, "Hkv": 2, "Nq": 2 * c.Br + 70, "Nkv": 9 * c.Bc + 77}
    return Problem(d_head=c.d_head, dtype=c.dtype, scale=scores / c.d_head**0.5, **sizes | more)


def run(c: Built, problem: Problem, inputs: dict):
    got = c.run(problem, inputs)
    comparison = check(problem, inputs, got.bits, got.log_sum_exp)
    assert comparison, f"{c}, {problem}: {comparison.message}"
    return got


def instructions(c: Built, got, text: str) -> int:
    """How many were executed of the one line with this text, of the kernel or of the header that has its softmax."""
    places = [
        (file.name, number)
        for file in (c.stage.kernel, HEADER)
        for number, words in enumerate(file.read_text().splitlines(), 1)
        if text in words and (file == c.stage.kernel or f'"{HEADER.name}"' in c.stage.kernel.read_text())
    ]
    ((name, number),) = places
    lines = got.report["launches"][-1]["lines"]
    return sum(one["instructions"] for one in lines if one["line"] == number and one["file"].endswith(name))


def looked_first(c: Built, got) -> int:
    return instructions(c, got, "fminf(rescale[0], rescale[1]) < 1.0f)) rescale_O(O);")


def lost_a_bet(c: Built, got) -> int:
    return instructions(c, got, "if (tiles_done <= 8) maximum_first")


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
    both = [c.run(problem, one) for one in (before, after)]
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
