"""What a kernel under construction showed of itself (common/include/show.cuh), compared with the reference."""

from dataclasses import dataclass

import numpy as np

from flashladder.core.problem import Problem
from flashladder.running import verify

KINDS = ("Q", "K", "V", "S", "P", "log_sum_exp")  # in the order of show.cuh's buffer
NOTHING, VARIOUS = 0xFFFFFFFF, 0xFFFFFFFE
OUTSIDE_WORDS = 2 * len(KINDS)
# What S may be off by, of the sum of its products' sizes: fp32 sums of 128 products, which tensor cores cut.
SCORE_ERROR = 2.0**-18
# What a weight may be off by, of itself: a rounding to bf16 of it and of each other weight of the row.
WEIGHT_ERROR = 2.0**-6
LEAST_SUM_ERROR = 1e-3  # of a log-sum-exp, whose exponentials may be of any quality that O allows


def shapes(problem: Problem) -> dict[str, tuple[int, int]]:
    return {
        "Q": (problem.Nq, problem.d_head),
        "K": (problem.Nkv, problem.d_head),
        "V": (problem.Nkv, problem.d_head),
        "S": (problem.Nq, problem.Nkv),
        "P": (problem.Nq, problem.Nkv),
        "log_sum_exp": (problem.Nq, 1),
    }


def buffer_bytes(problem: Problem) -> int:
    return 4 * (OUTSIDE_WORDS + sum(rows * columns for rows, columns in shapes(problem).values()))


@dataclass(frozen=True)
class Expected:
    values: np.ndarray
    bound: np.ndarray  # what each element may be off by
    got: np.ndarray  # what is compared: as it was shown, or normalised


def faults(problem: Problem, inputs: dict[str, np.ndarray], words: np.ndarray, kind: str, Bc: int) -> list[str]:
    """What is wrong with one kind, in sentences; none: it is right. Bc: columns of P that refer to one maximum."""
    shape, place = shapes(problem)[kind], OUTSIDE_WORDS
    for name in KINDS[: KINDS.index(kind)]:
        place += int(np.prod(shapes(problem)[name]))
    bits = words[place : place + int(np.prod(shape))].reshape(shape)
    outside = words[2 * KINDS.index(kind) :][:2]
    found = []
    if (outside != NOTHING).any():
        row, column = (int(one) for one in outside.astype(np.int32))
        found.append(
            f"show_{kind} is called for row {row}, column {column}: {kind} has {shape[0]} x {shape[1]} elements"
        )
    missing = bits == NOTHING
    if missing.all():
        return [*found, f"{kind} is not shown: call show_{kind} where you have it (common/include/show.cuh)"]
    if missing.any():
        return [*found, f"{_count(missing)} of {kind} are not shown: {_where(missing)}"]
    various = bits == VARIOUS
    if various.any():
        return [*found, f"{_count(various)} of {kind} are shown with more than one value: {_where(various)}"]
    expected = _expected(problem, inputs, kind, bits.view(np.float32).astype(np.float64), Bc)
    with np.errstate(invalid="ignore"):
        wrong = ~(np.abs(expected.got - expected.values) <= expected.bound)
    if wrong.any():
        row, column = (int(one) for one in np.argwhere(wrong)[0])
        got, value = expected.got[row, column], expected.values[row, column]
        found.append(
            f"{_count(wrong)} of {kind} are wrong: {_where(wrong)}; there it is {got:.6g}, and should be {value:.6g}"
        )
        found += _guesses(problem, kind, expected, wrong)
    return found


def _expected(problem: Problem, inputs: dict, kind: str, got: np.ndarray, Bc: int) -> Expected:
    if kind in "QKV":
        values = problem.values(inputs, kind)[0, 0]
        return Expected(values, np.zeros_like(values), got)
    if kind == "log_sum_exp":
        values, bound = (one[0, 0][:, None] for one in verify.log_sum_exp(problem, inputs))
        return Expected(values, np.maximum(bound, LEAST_SUM_ERROR), got)
    q, k = (problem.values(inputs, name)[0, 0] for name in "QK")
    scores = q @ k.T
    if kind == "S":
        return Expected(scores, SCORE_ERROR * (np.abs(q) @ np.abs(k).T), got)
    # P: within a tile all weights of a row refer to one maximum, whichever it is, so their shares are known.
    weights = np.exp(problem.scale * (scores - scores.max(axis=1, keepdims=True)))
    values, shares = (_of_their_tile(one, Bc) for one in (weights, got))
    return Expected(values, WEIGHT_ERROR * values + 1e-6, shares)


def _of_their_tile(weights: np.ndarray, Bc: int) -> np.ndarray:
    """Each weight as a part of its row's sum in its tile of Bc columns."""
    rows, columns = weights.shape
    tiles = weights.reshape(rows, columns // Bc, Bc)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (tiles / tiles.sum(axis=2, keepdims=True)).reshape(rows, columns)


def _guesses(problem: Problem, kind: str, expected: Expected, wrong: np.ndarray) -> list[str]:
    """What a wrong matrix looks like that a usual mistake makes."""
    if kind == "S" and np.allclose(expected.got, expected.values * problem.scale, rtol=1e-3, atol=1e-3):
        return ["it is S times the scale: show it before it is scaled"]
    if kind == "log_sum_exp" and np.allclose(expected.got, expected.values / np.log(2), rtol=1e-3):
        return ["it is the logarithm to base 2: times log(2) it is the natural one"]
    if kind == "P":
        return ["each weight is compared as a part of its row's sum within its tile, whichever maximum it refers to"]
    return []


def _count(which: np.ndarray) -> str:
    return f"{int(which.sum()):,} of {which.size:,} elements"


def _where(which: np.ndarray) -> str:
    """The first element, and the rows and columns that all of them are in where that says something."""
    row, column = (int(one) for one in np.argwhere(which)[0])
    words = f"the first is row {row}, column {column}" if which.shape[1] > 1 else f"the first is row {row}"
    said = []
    for name, axis in (("rows", 1), ("columns", 0)):
        found = np.flatnonzero(which.any(axis=axis))
        if len(found) < which.shape[1 - axis] and len(found) == found[-1] - found[0] + 1:
            said.append(f"{name} {found[0]} to {found[-1]}")
    return words + (f", all are in {' and '.join(said)}" if said and which.sum() > 1 else "")
