"""What e4m3 costs in accuracy: the inputs, the transform and the record; the figures that the lesson draws on."""

import numpy as np
import pytest

from flashladder import plot
from flashladder.core.problem import Problem
from flashladder.measuring import fp8_errors, recorded

SMALL = Problem(Hq=2, Nq=40, d_head=128, dtype="e4m3")


def test_the_transform_keeps_the_scores_and_spreads_what_is_large():
    matrix = fp8_errors.hadamard(128)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(128), atol=1e-12)
    np.testing.assert_allclose(np.abs(matrix), 1 / np.sqrt(128))
    values = fp8_errors.inputs("large meets large", SMALL, 0)
    spread = fp8_errors.transformed(values)
    np.testing.assert_allclose(fp8_errors.attention(SMALL, spread), fp8_errors.attention(SMALL, values), atol=1e-12)
    before, after = (np.abs(one["K"]).mean(axis=(0, 1, 2)) for one in (values, spread))
    assert before.max() > 3 * np.median(before) and after.max() < 1.5 * np.median(after)


def test_columns_that_are_large_in_k_and_small_in_q_leave_the_scores_as_they_are():
    plain, balanced = (fp8_errors.inputs(kind, SMALL, 0) for kind in ("normal", "large meets small"))
    assert np.abs(balanced["K"]).max() > 5 * np.abs(plain["K"]).max()
    np.testing.assert_allclose(fp8_errors.attention(SMALL, balanced), fp8_errors.attention(SMALL, plain), atol=1e-12)


def test_spikes_are_as_many_as_is_said():
    values = fp8_errors.inputs("spikes", Problem(Hq=8, Nq=400, d_head=128), 0)
    changed = (
        sum((np.abs(array) > 6).mean() for array in values.values()) / 3
    )  # of ten times a normal number, over half
    assert 0.3 * fp8_errors.SPIKES < changed < fp8_errors.SPIKES


@pytest.fixture
def rows() -> dict:
    record = recorded.first("fp8-errors")
    return {(row["inputs"], row["N"], row["dtype"], row["hadamard"]): row for row in record["errors"]}


def test_what_the_lesson_says_of_the_record(rows):
    """Each sentence of stages/29_fp8/README.md that compares figures."""
    for kind in fp8_errors.KINDS:
        for length in fp8_errors.LENGTHS:
            bf16, e4m3 = rows[kind, length, "bf16", False], rows[kind, length, "e4m3", False]
            assert e4m3["error"] > 10 * bf16["error"], "an order of magnitude"
            assert e4m3["of_inputs"] > e4m3["of_kernel"], "most of it is the rounding of the inputs"
    for length in fp8_errors.LENGTHS:
        error = {
            (kind, on): rows[kind, length, "e4m3", on]["error"] for kind in fp8_errors.KINDS for on in (False, True)
        }
        assert error["large meets large", True] < 0.5 * error["large meets large", False], "halved, or better"
        assert error["spikes", True] < 0.8 * error["spikes", False]
        assert error["large meets small", True] > 2 * error["large meets small", False], "worse"
        assert abs(error["normal", True] / error["normal", False] - 1) < 0.1, "no difference"
    sums = recorded.first("fp8-errors")["sums"]
    assert all(row["outside"] < 0.001 for row in sums) and sums[-1]["inside"] > 0.2 and sums[0]["inside"] < 0.001


def test_the_picture_shows_every_kind():
    figure = plot.fp8_errors(recorded.first("fp8-errors"))
    left, right = figure.axes
    assert [label.get_text() for label in left.get_xticklabels()] == list(fp8_errors.KINDS)
    assert len(left.patches) == 3 * len(fp8_errors.KINDS) and len(right.lines) == 2
