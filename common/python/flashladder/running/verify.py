"""The float64 reference and the comparison, with the runners' bounds (common/host/bounds.h)."""

from dataclasses import dataclass, replace

import numpy as np

from flashladder.core.dtypes import (
    ELEMENT_LIMIT,
    FROBENIUS_LIMIT,
    HALF_SMALLEST,
    LEAST_WEIGHT,
    LOG_SUM_EXP_UNIT,
    OUTPUT,
    ROOM,
    SCORE_ERROR_UNIT,
    SCORE_GROUP,
    SUM_ERROR_UNIT,
    UNIT_ROUNDOFF,
    from_bits,
)
from flashladder.core.problem import Problem

POISON = 0xFFFF  # a NaN in both types; every output is filled with it before a run


@dataclass(frozen=True)
class Comparison:
    passed: bool
    frobenius: float  # ||o - ref|| / ||ref||; NaN where an output is not finite
    worst_ratio: float  # largest |o - ref| / bound: 1 is the limit
    message: str

    def __bool__(self) -> bool:
        return self.passed


def reference(problem: Problem, inputs: dict[str, np.ndarray], rows: np.ndarray | None = None, heads=None):
    """softmax(scale Q Kᵀ) V in float64, and for the element-wise bound softmax(...) |V| and what weights below the
    type's normal numbers may move an element by; of e4m3 the errors of the scores besides. There the sum of the weights
    is of rounded ones, and |softmax(...) V| is added to the second, what moves the sum to the third.

    inputs: bit patterns in the problem's layout, with scales of e4m3. rows and heads pick query rows and (batch,
    head) pairs; without them the three results have shape (B, Hq, Nq, d), with them (len(heads), len(rows), d).
    """
    q, k, v = (problem.values(inputs, name) for name in "QKV")
    pairs = heads if heads is not None else [(b, h) for b in range(problem.B) for h in range(problem.Hq)]
    rows = np.arange(problem.Nq) if rows is None else rows
    group = problem.Hq // problem.Hkv
    out = np.zeros((len(pairs), len(rows), problem.d_head))
    magnitude, fine = np.zeros_like(out), np.zeros_like(out)

    for i, (b, h) in enumerate(pairs):
        keys, values = k[b, h // group], v[b, h // group]
        for start in range(0, len(rows), 1024):  # a chunk of S at a time
            chunk = rows[start : start + 1024]
            scores = float(np.float32(problem.scale)) * (q[b, h][chunk] @ keys.T)
            scores = np.where(seen_keys(problem, chunk), scores, -np.inf)
            row_max = scores.max(axis=1, keepdims=True)
            weights = np.exp(scores - np.where(np.isfinite(row_max), row_max, 0.0))
            total = weights.sum(axis=1, keepdims=True)
            total = np.where(total == 0, 1.0, total)  # a row that sees nothing is zero
            moved = fine_errors(weights, problem.dtype) / total
            weights /= total
            out[i, start : start + 1024] = weights @ values
            magnitude[i, start : start + 1024] = weights @ np.abs(values)
            if problem.dtype == "e4m3":
                moved += weights * score_errors(problem, q[b, h][chunk], keys)
            if moved.any():
                fine[i, start : start + 1024] = moved @ np.abs(values)
            if problem.dtype == "e4m3":  # the sum of the weights is off, too, and all elements with it
                fine[i, start : start + 1024] += moved.sum(axis=1, keepdims=True) * magnitude[i, start : start + 1024]
                magnitude[i, start : start + 1024] += np.abs(out[i, start : start + 1024])
    if heads is None and len(rows) == problem.Nq:
        shape = (problem.B, problem.Hq, problem.Nq, problem.d_head)
        return out.reshape(shape), magnitude.reshape(shape), fine.reshape(shape)
    return out, magnitude, fine


def score_errors(problem: Problem, q: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """What each score of e4m3 may be off by, since the tensor cores cut (common/host/bounds.h): (rows, keys)."""
    score, error = 0.0, 0.0
    for start in range(0, problem.d_head, SCORE_GROUP):
        some, others = q[:, start : start + SCORE_GROUP], keys[:, start : start + SCORE_GROUP]
        products = np.abs(some).max(axis=1)[:, None] * np.abs(others).max(axis=1)
        before, score = score, score + some @ others.T
        error = error + np.maximum(products, np.maximum(np.abs(before), np.abs(score)))
    return SCORE_ERROR_UNIT * abs(float(np.float32(problem.scale))) * error


def fine_errors(weights: np.ndarray, dtype: str) -> np.ndarray:
    """What rounding may move softmax weights by beyond u times themselves, because P is below the type's normal
    numbers (common/host/bounds.h says why). weights: exp(score - the row's largest score), the unit of the result."""
    moved = np.minimum(weights, HALF_SMALLEST[dtype] / LEAST_WEIGHT[dtype])
    return np.maximum(0.0, moved - UNIT_ROUNDOFF[dtype] * weights)


def rounded_sum_error(weights: np.ndarray, dtype: str) -> np.ndarray:
    """What the logarithm of the sum of rounded softmax weights may be off by (common/host/bounds.h): (rows,).
    weights: (rows, keys), exp(score - the row's largest score); all 0 in a row that sees nothing."""
    total = np.maximum(weights.sum(axis=1), 1.0)
    others = (weights.sum(axis=1) - weights.max(axis=1)) / total  # the largest one is a power of two, and exact
    part = UNIT_ROUNDOFF[dtype] * others + fine_errors(weights, dtype).sum(axis=1) / total
    part += np.minimum(others, SUM_ERROR_UNIT)
    return part / (1 - part)


def seen_keys(problem: Problem, rows: np.ndarray) -> np.ndarray:
    """Which keys (columns) each of the query rows sees. Causal: the last row of the problem sees the last key."""
    last = rows + (problem.Nkv - problem.Nq) if problem.causal else np.full(len(rows), problem.Nkv)
    return np.arange(problem.Nkv)[None, :] <= last[:, None]


def log_sum_exp(problem: Problem, inputs: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The natural logarithm of each row's sum of exp(score) in float64, -infinity for a row that sees no key, and what
    a stage may be off by (common/host/bounds.h). Both (B, Hq, Nq); inputs as for reference()."""
    values = np.full((problem.B, problem.Hq, problem.Nq), -np.inf)
    bound = np.zeros_like(values)
    scale, rows = abs(float(np.float32(problem.scale))), np.arange(problem.Nq)
    sign, group = np.sign(problem.scale), problem.Hq // problem.Hkv
    q, k = (problem.values(inputs, name) for name in "QK")
    for b, h in np.ndindex(problem.B, problem.Hq):
        keys = k[b, h // group]
        for start in range(0, problem.Nq, 1024):
            chunk = rows[start : start + 1024]
            seen, some = seen_keys(problem, chunk), slice(start, start + 1024)
            scores = np.where(seen, sign * scale * (q[b, h, chunk] @ keys.T), -np.inf)
            top = np.maximum(scores.max(axis=1), np.finfo(np.float64).min)
            weights = np.exp(scores - top[:, None])
            with np.errstate(divide="ignore"):  # log(0) of a row that sees no key is meant
                values[b, h, some] = np.log(weights.sum(axis=1)) + top
            sizes = np.where(seen, scale * (np.abs(q[b, h, chunk]) @ np.abs(keys).T), 0.0).max(axis=1)
            bound[b, h, some] = LOG_SUM_EXP_UNIT * (problem.d_head * sizes + problem.Nkv / 16 + 64)
            if problem.dtype == "e4m3":
                bound[b, h, some] += np.where(seen, score_errors(problem, q[b, h, chunk], keys), 0.0).max(axis=1)
                bound[b, h, some] += rounded_sum_error(weights, problem.dtype)
    return values, bound


def compare_log_sum_exp(got: np.ndarray, expected: np.ndarray, bound: np.ndarray) -> Comparison:
    """Compares float32 (B, Hq, Nq) with log_sum_exp(): within the bound, and -infinity where that is -infinity."""
    none = np.isneginf(expected)
    with np.errstate(invalid="ignore"):
        ratio = error_ratio(np.where(none, 0, got), np.where(none, 0, expected), np.where(none, 1, bound))
    ratio = np.where(none & ~np.isneginf(got), np.inf, ratio)
    worst = float(ratio.max(initial=0.0))
    if worst <= 1:
        return Comparison(True, 0.0, worst, f"log-sum-exp {worst:.1g} of its bound")
    at = tuple(int(i) for i in np.unravel_index(int((ratio > 1).argmax()), ratio.shape))
    said = f"{int((ratio > 1).sum())} of {ratio.size} rows' log-sum-exp beyond their bound"
    first = f"first log_sum_exp{list(at)} = {got[at]:.7g}, reference {expected[at]:.7g} (bound {bound[at]:.3g})"
    return Comparison(False, float("nan"), worst, f"{said}; {first}")


def element_bound(magnitude: np.ndarray, fine: np.ndarray, dtype: str) -> np.ndarray:
    """What an element may be off by: 4 u softmax(S)|V| (e4m3: 1.5 u), and amounts where P or O is subnormal. The
    arguments are reference()'s."""
    return ELEMENT_LIMIT[dtype] * UNIT_ROUNDOFF[dtype] * magnitude + fine + HALF_SMALLEST[OUTPUT[dtype]]


def error_ratio(values: np.ndarray, expected: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Each element's error over its bound: above 1 is wrong; infinity where the value is not finite."""
    return np.where(np.isfinite(values), np.abs(values - expected) / bound, np.inf)


@dataclass(frozen=True)
class Expected:
    """What a tensor should be, and what it may be off by; the arrays have one shape (..., rows, d)."""

    value: np.ndarray
    magnitude: np.ndarray  # an element may be off by 4 u of this (e4m3: 1.5 u),
    fine: np.ndarray  # and by this
    room: float = 0.0  # the norm of the whole error may be beyond its limit by this and by what fine gives it


def compare(
    output: np.ndarray, expected: np.ndarray, magnitude: np.ndarray, fine: np.ndarray, dtype: str
) -> Comparison:
    """Compares output bit patterns with reference()'s three arrays; all have the same shape (..., rows, d).

    Passes where the relative Frobenius error is within FROBENIUS_LIMIT and every element within
    4 u softmax(S)|V|, u = 2^-8 for bf16 and 2^-11 for fp16; both limits give way by `fine` and by half the smallest
    number of the type for each element. e4m3: 1.5 u (softmax(S)|V| + |softmax(S) V|), u = 2^-4, and the whole gives way
    by a sixteenth of `fine`.
    dtype: of the inputs. The message names the first and the worst element.
    """
    return compare_tensor("O", output, Expected(expected, magnitude, fine), dtype)


def compare_tensor(name: str, output: np.ndarray, wanted: Expected, dtype: str) -> Comparison:
    """As compare(), of a tensor of any name."""
    values, expected = from_bits(output, OUTPUT[dtype]).astype(np.float64), wanted.value
    bound = element_bound(wanted.magnitude, wanted.fine, dtype)
    ratio = error_ratio(values, expected, bound)
    norm = np.linalg.norm(expected)
    distance = float(np.linalg.norm(values - expected))
    frobenius = distance / norm if norm else distance
    worst_ratio = float(ratio.max(initial=0.0))
    unwritten = int((output == POISON).sum())
    room = ROOM[dtype] * np.linalg.norm(wanted.fine) + HALF_SMALLEST[OUTPUT[dtype]] * np.sqrt(values.size)
    passed = worst_ratio <= 1 and distance <= FROBENIUS_LIMIT[dtype] * norm + room + wanted.room
    if passed:
        return Comparison(
            True, frobenius, worst_ratio, f"relative error {frobenius:.1e}, worst element {worst_ratio:.2f}"
        )

    def element(index) -> str:
        index = tuple(int(i) for i in index)
        got, want = values[index], expected[index]
        off = f"off by {abs(got - want):.3g} (bound {bound[index]:.3g})"
        return f"{name}{list(index)} = {got:.6g}, reference {want:.6g}, {off}"

    parts = [f"relative Frobenius error {frobenius:.3g} (limit {FROBENIUS_LIMIT[dtype]:g})"]
    wrong = ratio > 1
    if wrong.any():
        parts.append(f"{int(wrong.sum())} of {ratio.size} elements beyond their bound")
        parts.append(f"first {element(np.unravel_index(int(wrong.argmax()), ratio.shape))}")
        parts.append(f"worst {element(np.unravel_index(int(ratio.argmax()), ratio.shape))}")
    if unwritten:
        parts.append(f"{unwritten} elements were never written")
    return Comparison(False, frobenius, worst_ratio, "; ".join(parts))


class Wanted:
    """What is right for a problem and its inputs, computed when it is first asked for. Not by cached_property: of that
    Python 3.11 has one lock for all objects, and several threads' references would wait for one another."""

    def __init__(self, problem: Problem, inputs: dict[str, np.ndarray]):
        self.problem, self.inputs = problem, inputs
        self._output: tuple[np.ndarray, ...] = ()
        self._sums: tuple[np.ndarray, ...] = ()

    @property
    def output(self) -> tuple[np.ndarray, ...]:
        self._output = self._output or reference(self.problem, self.inputs)
        return self._output

    @property
    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        self._sums = self._sums or log_sum_exp(self.problem, self.inputs)
        return self._sums

    def check(self, output: np.ndarray, rows_log_sum_exp: np.ndarray | None = None) -> Comparison:
        """As check()."""
        comparison = compare(self.problem.to_bhnd(output), *self.output, self.problem.dtype)
        if not comparison or rows_log_sum_exp is None:
            return comparison
        return with_sums(comparison, rows_log_sum_exp, *self.sums)


def check(
    problem: Problem, inputs: dict[str, np.ndarray], output: np.ndarray, rows_log_sum_exp: np.ndarray | None = None
) -> Comparison:
    """Compares a whole output (bit patterns, in the problem's layout) with the reference; and the rows' log-sum-exp
    (B, Hq, Nq), if there is one."""
    return Wanted(problem, inputs).check(output, rows_log_sum_exp)


def with_sums(comparison: Comparison, got: np.ndarray, expected: np.ndarray, bound: np.ndarray) -> Comparison:
    """Of an O that is right, what compare_log_sum_exp() says besides."""
    more = compare_log_sum_exp(got, expected, bound)
    return replace(comparison, passed=more.passed, message=f"{comparison.message}; {more.message}")
