"""dQ, dK and dV in float64, what a stage may be off by, and the comparison. Only the rounding that a stage cannot do
without is admitted, by the same limits as for O (running/verify.py): 4 u of an element's magnitude, u half the distance
from 1 to the next number of the type.

- dV = Pᵀ dO: P is rounded to the type, and so is the result: its magnitude is Pᵀ |dO|.
- dS = P * (dP - D): P, dS and the result are rounded, each by u at most. D = rowsum(dO * O) is of a rounded O, which
  moves D by up to u rowsum(|dO| |O|), R for short, and all of a row's dS by P times as much. So the magnitude of dQ is
  scale (|dS| |K| + R |P K|), that of dK scale (|dS|ᵀ |Q| + (P R)ᵀ |Q|). What is left of the factor 4 is for fp32.
- Where P or dS is below the type's normal numbers, rounding moves it by up to half the smallest of them: `fine`.
- The norm of the whole may be beyond its limit by what D's errors make of it. They are independent, so their squares
  add up: u sqrt(rowsum((dO O)²)) a row. Without that a row whose dS cancel, as where it sees one key, would be wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flashladder.core.dtypes import HALF_SMALLEST, UNIT_ROUNDOFF, to_bits
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.running.verify import Comparison, Expected, compare_tensor, log_sum_exp, reference, seen_keys

GRADIENTS = ("dQ", "dK", "dV")
CHUNK = 1024  # rows of a score matrix that are computed at a time


@dataclass(frozen=True)
class Part:
    """Of which heads of Q and batches, and of which rows of them, gradients are asked for."""

    heads: Sequence[tuple[int, int]]  # (batch, head of Q)
    rows: np.ndarray  # of dQ
    keys: np.ndarray  # of dK and dV


def random_inputs(problem: Problem, seed: int = 0) -> dict[str, np.ndarray]:
    """Standard normal Q, K, V and dO, and what a forward stage would make of them."""
    if problem.Hq % problem.Hkv:
        raise FlashLadderError(f"Hq must be a multiple of Hkv; they are {problem.Hq} and {problem.Hkv}")
    inputs = problem.random(seed)
    values = np.random.default_rng((seed, 1)).standard_normal(problem.shape("dO"), np.float32)
    return completed(problem, inputs | {"dO": to_bits(values, problem.dtype)})


def completed(problem: Problem, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """With O, rounded to the type, and log_sum_exp as float32, by the float64 reference."""
    output = to_bits(problem.to_bhnd(reference(problem, inputs)[0]), problem.dtype)
    return inputs | {"O": output, "log_sum_exp": log_sum_exp(problem, inputs)[0].astype(np.float32)}


class _Head:
    """One head of Q with its head of K and V, in float64: what all rows have, and P and dS of some."""

    def __init__(self, problem: Problem, q, k, v, do):
        self.problem, self.q, self.k, self.v, self.do = problem, q, k, v, do
        self.scale = float(np.float32(problem.scale))
        self.log_sum_exp = np.empty(problem.Nq)
        self.D, self.moved, self.spread = (np.empty(problem.Nq) for _ in range(3))
        for start in range(0, problem.Nq, CHUNK):
            rows = np.arange(start, min(start + CHUNK, problem.Nq))
            scores = self._scores(rows)
            top = np.maximum(scores.max(axis=1, keepdims=True), np.finfo(np.float64).min)
            weights = np.exp(scores - top)
            total = weights.sum(axis=1, keepdims=True)
            sees = total[:, 0] > 0
            total[~sees] = 1
            products = do[rows] * (weights / total @ v)
            self.log_sum_exp[rows] = np.where(sees, (np.log(total) + top)[:, 0], np.inf)  # P = 0 where nothing is seen
            self.D[rows], self.moved[rows] = products.sum(axis=1), np.abs(products).sum(axis=1)
            self.spread[rows] = np.sqrt((products**2).sum(axis=1))

    def _scores(self, rows: np.ndarray, keys=slice(None)) -> np.ndarray:
        scores = self.scale * (self.q[rows] @ self.k[keys].T)
        return np.where(seen_keys(self.problem, rows)[:, keys], scores, -np.inf)

    def weights(self, rows: np.ndarray, keys=slice(None)) -> tuple[np.ndarray, ...]:
        """P and dS of these rows and keys, and what subnormal numbers may move each of them by."""
        P = np.exp(self._scores(rows, keys) - self.log_sum_exp[rows, None])
        difference = self.do[rows] @ self.v[keys].T - self.D[rows, None]
        dS, P_fine = P * difference, _fine(P, self.problem.dtype)
        return P, dS, P_fine, _fine(dS, self.problem.dtype) + P_fine * np.abs(difference)

    def dQ(self, rows: np.ndarray) -> np.ndarray:
        """Value, magnitude, fine and the square of what D's errors make of it, in units of u."""
        P, dS, _, dS_fine = self.weights(rows)
        along = np.abs(P @ self.k)
        magnitude = np.abs(dS) @ np.abs(self.k) + self.moved[rows, None] * along
        scale = abs(self.scale)
        squares = (scale * self.spread[rows, None] * along) ** 2
        return np.stack([self.scale * (dS @ self.k), scale * magnitude, scale * (dS_fine @ np.abs(self.k)), squares])

    def dK_dV(self, keys) -> tuple[np.ndarray, np.ndarray]:
        """The same of dK and of dV, the sums over this head's rows."""
        shape = (4, len(np.arange(self.problem.Nkv)[keys]), self.problem.d_head)
        dK, dV = np.zeros(shape), np.zeros(shape)
        scale = abs(self.scale)
        for start in range(0, self.problem.Nq, CHUNK):
            rows = np.arange(start, min(start + CHUNK, self.problem.Nq))
            P, dS, P_fine, dS_fine = self.weights(rows, keys)
            q, do = self.q[rows], self.do[rows]
            dK[0] += self.scale * (dS.T @ q)
            dK[1] += scale * ((np.abs(dS) + P * self.moved[rows, None]).T @ np.abs(q))
            dK[2] += scale * (dS_fine.T @ np.abs(q))
            dK[3] += scale**2 * (((P * self.spread[rows, None]) ** 2).T @ q**2)
            dV[:3] += np.stack([P.T @ do, P.T @ np.abs(do), P_fine.T @ np.abs(do)])
        return dK, dV


def _fine(values: np.ndarray, dtype: str) -> np.ndarray:
    """What rounding may move numbers by beyond u times themselves, because they are below the type's normal ones."""
    size = np.abs(values)
    return np.maximum(0.0, np.minimum(size, HALF_SMALLEST[dtype]) - UNIT_ROUNDOFF[dtype] * size)


def _expected(arrays: np.ndarray, dtype: str) -> Expected:
    """Of value, magnitude, fine and squares, along the first axis."""
    return Expected(*arrays[:3], room=UNIT_ROUNDOFF[dtype] * float(np.sqrt(arrays[3].sum())))


def expected(problem: Problem, inputs: dict[str, np.ndarray], part: Part | None = None) -> dict[str, Expected]:
    """By name, (B, heads, rows, d); with a part (its heads, its rows or keys, d). There Hq = Hkv.

    inputs: bit patterns of Q, K, V and dO in the problem's layout.
    """
    values = {name: problem.values(inputs, name) for name in ("Q", "K", "V", "dO")}
    group = problem.Hq // problem.Hkv
    rows = np.arange(problem.Nq) if part is None else part.rows
    keys = slice(None) if part is None else part.keys
    pairs = part.heads if part else [(b, h) for b in range(problem.B) for h in range(problem.Hq)]
    found: dict[str, list] = {name: [] for name in GRADIENTS}
    for number, (b, h) in enumerate(pairs):
        head = _Head(problem, values["Q"][b, h], values["K"][b, h // group], values["V"][b, h // group],
                     values["dO"][b, h])  # fmt: skip
        chunks = [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)]
        found["dQ"].append(np.concatenate([head.dQ(chunk) for chunk in chunks], axis=1))
        for name, sums in zip(("dK", "dV"), head.dK_dV(keys), strict=True):
            if part or number % group == 0:
                found[name].append(sums)
            else:
                found[name][-1] += sums
    arrays = {name: np.stack(each, axis=1) for name, each in found.items()}
    if part is None:
        arrays = {name: array.reshape(4, problem.B, -1, *array.shape[2:]) for name, array in arrays.items()}
    return {name: _expected(array, problem.dtype) for name, array in arrays.items()}


def compare_all(got: dict[str, np.ndarray], wanted: dict[str, Expected], dtype: str) -> Comparison:
    """Compares bit patterns by name, of expected()'s shapes: passes if all do; else the message is about the first
    tensor that does not."""
    found = {name: compare_tensor(name, got[name], wanted[name], dtype) for name in GRADIENTS}
    for name, comparison in found.items():
        if not comparison:
            ratio = max(one.worst_ratio for one in found.values())
            return Comparison(False, comparison.frobenius, ratio, f"{name}: {comparison.message}")
    return Comparison(
        True,
        max(one.frobenius for one in found.values()),
        max(one.worst_ratio for one in found.values()),
        "; ".join(f"{name}: {one.message}" for name, one in found.items()),
    )


def check(problem: Problem, inputs: dict[str, np.ndarray], got: dict[str, np.ndarray]) -> Comparison:
    """Compares whole gradients (bit patterns, in the problem's layout) with the reference."""
    return check_with(problem, expected(problem, inputs), got)


def check_with(problem: Problem, wanted: dict[str, Expected], got: dict[str, np.ndarray]) -> Comparison:
    """check() with what expected() gives."""
    return compare_all({name: problem.to_bhnd(got[name]) for name in GRADIENTS}, wanted, problem.dtype)
