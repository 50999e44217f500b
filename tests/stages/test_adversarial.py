"""The adversarial inputs are tested: each shows the mistake that it is made for, in an online softmax in NumPy."""

import numpy as np
import pytest
from adversarial import KINDS, NEGATIVE_SCALES, adversarial

from flashladder.core.abi import DTYPES
from flashladder.core.dtypes import from_bits, to_bits
from flashladder.core.problem import Problem
from flashladder.running.verify import check

Bc = 64


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    return from_bits(to_bits(values, dtype), dtype)


def online_softmax(problem: Problem, inputs: dict, mistake: str = "", backwards: bool = False) -> np.ndarray:
    """O as bit patterns, tile after tile, with everything in fp32 but P; with the mistake, if one is named."""
    dtype = problem.dtype
    Q, K, V = (from_bits(inputs[name], dtype)[0, 0] for name in "QKV")
    first = {"maximum starts at 0": 0, "maximum starts at -1,000": -1000}.get(mistake, -np.inf)
    row_max, row_sum = np.full((problem.Nq, 1), first, np.float32), np.zeros((problem.Nq, 1), np.float32)
    O = np.zeros((problem.Nq, problem.d_head), np.float32)  # noqa: E741
    scale = np.float32(abs(problem.scale) if mistake == "scale without its sign" else problem.scale)
    starts = list(range(0, problem.Nkv, Bc))
    for start in starts[::-1] if backwards else starts:
        S = scale * (Q @ K[start : start + Bc].T)
        new_max = np.maximum(row_max, S.max(axis=1, keepdims=True))
        if mistake == "no maximum":
            new_max[...] = row_max[...] = 0
        if mistake == "first maximum kept" and np.isfinite(row_max).all():
            new_max = row_max
        if mistake == "maximum before the scale":  # of a negative scale that is the smallest score
            new_max = np.minimum(np.where(np.isinf(row_max), np.inf, row_max), S.min(axis=1, keepdims=True))
        rescale = np.float32(1) if mistake == "no rescale" else np.exp(row_max - new_max)
        shrink = rescale[0] if mistake == "row 0 decides" else rescale
        P = np.exp(S - new_max)
        if mistake == "exp in half precision":
            P = np.exp((S - new_max).astype(np.float16)).astype(np.float32)
        row_sum = row_sum * rescale + P.sum(axis=1, keepdims=True)
        if mistake == "row_sum in 16 bits":
            row_sum = rounded(row_sum, dtype)
        if mistake == "last key left out" and start + Bc == problem.Nkv:
            P[:, -3] = 0
        O = O * shrink + rounded(P, dtype) @ V[start : start + Bc]  # noqa: E741
        row_max = new_max
    return to_bits(O / row_sum, dtype)[None, None]


def verdict(kind: str, dtype: str, mistake: str = "", scale: float = 0.0, backwards: bool = False):
    problem = Problem(Hq=1, Nq=16, Nkv=1024 if kind == "long sums" else 128, d_head=64, dtype=dtype, scale=scale)
    inputs = adversarial(kind, problem)
    with np.errstate(all="ignore"):
        return check(problem, inputs, online_softmax(problem, inputs, mistake, backwards))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_right_softmax_passes(kind, dtype):
    for backwards in (False, True):
        comparison = verdict(kind, dtype, backwards=backwards)
        assert comparison, f"{kind}, {dtype}: a right online softmax does not pass: {comparison.message}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "kind, mistake",
    [
        ("large logits", "no maximum"),
        ("all scores negative", "maximum starts at 0"),
        ("half of the rows negative", "maximum starts at 0"),
        ("scores below -1,000", "maximum starts at 0"),
        ("scores below -1,000", "maximum starts at -1,000"),
        ("one-hot rows", "last key left out"),
        ("constant rows", "last key left out"),
        ("rising maxima", "no rescale"),
        ("lone maxima", "row 0 decides"),
        ("huge and tiny logits", "row 0 decides"),
        ("long sums", "row_sum in 16 bits"),
    ],
)
def test_a_mistake_does_not(kind, mistake, dtype):
    assert not verdict(kind, dtype, mistake), f"{kind}, {dtype}: nothing shows the mistake '{mistake}'"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "kind, mistake",
    [
        ("falling maxima", "no rescale"),
        ("steep slope", "first maximum kept"),
        ("lone maxima in front", "row 0 decides"),
        ("huge and tiny logits", "row 0 decides"),
    ],
)
def test_a_mistake_does_not_from_the_last_tile_on(kind, mistake, dtype):
    found = verdict(kind, dtype, mistake, backwards=True)
    assert not found, f"{kind}, {dtype}: nothing shows the mistake '{mistake}'"


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_scale_without_its_sign_does_not(dtype):
    assert verdict("rising maxima", dtype, scale=-0.5), "a right online softmax does not pass at a negative scale"
    assert not verdict("rising maxima", dtype, "scale without its sign", -0.5), "nothing shows the wrong sign"


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_maximum_of_scores_that_are_not_scaled_yet_does_not(dtype):
    """At -0.5 it passes: P is large, and fp32 holds it. Stages are verified at NEGATIVE_SCALES."""
    mistake, scale = "maximum before the scale", min(NEGATIVE_SCALES)
    assert verdict("steep slope", dtype, scale=scale), "a right online softmax does not pass at a negative scale"
    problem = Problem(Hq=1, Nq=16, Nkv=128, d_head=64, dtype=dtype, scale=scale)
    with np.errstate(all="ignore"):
        inputs = problem.random(1)
        assert check(problem, inputs, online_softmax(problem, inputs))
        assert not check(problem, inputs, online_softmax(problem, inputs, mistake)), f"nothing shows the {mistake}"


def test_an_exp_of_half_precision_does_not():
    """fp16's bound alone is narrow enough; bf16's P is coarser than such an exp."""
    kind, mistake = "one score for all but one", "exp in half precision"
    for n in (128, 192, 1024):
        problem = Problem(Hq=1, Nq=16, Nkv=n, d_head=64, dtype="fp16")
        inputs = adversarial(kind, problem)
        assert check(problem, inputs, online_softmax(problem, inputs))
        assert not check(problem, inputs, online_softmax(problem, inputs, mistake)), f"{n} keys: nothing shows it"
