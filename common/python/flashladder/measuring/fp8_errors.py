"""What e4m3 costs in accuracy: a stage's output against attention in float64 of the numbers before they are rounded.

    python -m flashladder.measuring.fp8_errors

runs the simulator, which sums as the tensor cores do, and writes docs/results/simulator-fp8-errors.json. No GPU is
needed.
"""

import json
from pathlib import Path

import numpy as np

from flashladder.core.console import say
from flashladder.core.device import Device
from flashladder.core.dtypes import OUTPUT, from_bits
from flashladder.core.paths import ROOT
from flashladder.core.problem import Problem
from flashladder.ladder import ablations
from flashladder.ladder.run import run_problem
from flashladder.measuring import provenance

FILE = ROOT / "docs" / "results" / "simulator-fp8-errors.json"
FP8, BF16 = 29, 23  # stages
LENGTHS = (256, 1024)
SUM_LENGTHS = (256, 1024, 4096, 16384)
CHANNELS = (5, 40, 77)  # of the 128 columns, those that are larger
SPIKES = 0.001  # the part of all elements that gets ten times a normal number added
KINDS = {
    "normal": "Q, K and V standard normal",
    "large meets large": f"normal, but {len(CHANNELS)} of the 128 columns of Q and of K are 4 times as large",
    "large meets small": f"normal, but {len(CHANNELS)} of K's 128 columns are 20 times as large, Q's as much smaller",
    "spikes": f"normal, but 1 of {1 / SPIKES:.0f} elements of Q, K and V has ten times a normal number added",
}


def inputs(kind: str, problem: Problem, seed: int) -> dict[str, np.ndarray]:
    """Q, K and V of a kind in float64, before any rounding, (B, heads, rows, d)."""
    generator = np.random.default_rng(seed)
    values = {name: generator.standard_normal(problem.shape(name)) for name in "QKV"}
    if kind in ("large meets large", "large meets small"):
        Q_factor, K_factor = (4, 4) if kind == "large meets large" else (1 / 20, 20)
        values["Q"][..., CHANNELS] *= Q_factor
        values["K"][..., CHANNELS] *= K_factor
    if kind == "spikes":
        for name, array in values.items():
            chosen = generator.random(array.shape) < SPIKES
            values[name] = array + chosen * 10 * generator.standard_normal(array.shape)
    return values


def hadamard(d: int, seed: int = 0) -> np.ndarray:
    """An orthogonal matrix [d, d], d a power of two: random signs, then Hadamard's matrix over sqrt(d). Each column of
    a product with it has a part of every column before; Q and K times the same one have the same scores."""
    matrix = np.ones((1, 1))
    while len(matrix) < d:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), d)
    return signs[:, None] * matrix / np.sqrt(d)


def transformed(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Q and K times hadamard(), V as it is."""
    matrix = hadamard(values["Q"].shape[-1])
    return {name: array if name == "V" else array @ matrix for name, array in values.items()}


def attention(problem: Problem, values: dict[str, np.ndarray]) -> np.ndarray:
    """softmax(scale Q Kᵀ) V in float64; no mask, as many heads of K and V as of Q."""
    scores = float(np.float32(problem.scale)) * values["Q"] @ values["K"].swapaxes(2, 3)
    weights = np.exp(scores - scores.max(axis=3, keepdims=True))
    return weights @ values["V"] / weights.sum(axis=3, keepdims=True)


def relative(got: np.ndarray, wanted: np.ndarray) -> float:
    """||got - wanted|| / ||wanted||, four digits."""
    return float(f"{np.linalg.norm(got - wanted) / np.linalg.norm(wanted):.4g}")


def one(kind: str, length: int, dtype: str, transform: bool, seed: int = 0) -> dict:
    """error: of the stage's output. of_inputs: of attention in float64, if Q, K and V alone are rounded. of_kernel: of
    the stage's output against that."""
    problem = Problem(Hq=2, Nq=length, d_head=128, dtype=dtype)
    exact = inputs(kind, problem, seed)
    given = transformed(exact) if transform else exact
    bits = problem.rounded(given)
    wanted = attention(problem, exact)
    rounded = attention(problem, {name: problem.values(bits, name) for name in "QKV"})
    result = run_problem(FP8 if dtype == "e4m3" else BF16, problem, bits, "sim")
    got = from_bits(result.bits, OUTPUT[dtype]).astype(np.float64)
    return {
        "inputs": kind,
        "N": length,
        "dtype": dtype,
        "hadamard": transform,
        "error": relative(got, wanted),
        "of_inputs": relative(rounded, wanted),
        "of_kernel": relative(got, rounded),
    }


def sums(length: int, library: Path | None) -> float:
    """The part of O that is lost in sums, the mean over its elements, where all scores are the same, so that P is
    exact, and all of V is positive. library: None, or another build of the stage."""
    problem = Problem(Hq=1, Nq=1, Nkv=length, d_head=128, dtype="e4m3")
    values = {name: np.ones(problem.shape(name)) for name in "QK"}
    values["V"] = np.random.default_rng(0).uniform(0.5, 1.5, problem.shape("V"))
    bits = problem.rounded(values)
    wanted = attention(problem, {name: problem.values(bits, name) for name in "QKV"})
    got = from_bits(run_problem(FP8, problem, bits, "sim", library).bits, "bf16")
    return float(f"{1 - (got / wanted).mean():.2g}")


def measure() -> dict:
    cases = [("bf16", False), ("e4m3", False), ("e4m3", True)]
    rows = [one(kind, length, *case) for kind in KINDS for length in LENGTHS for case in cases]
    (variant,) = (one for one in ablations.ablations() if one.id == f"{FP8}_sums_in_the_tensor_cores")
    library = ablations.library(variant)
    off = [{"Nkv": length, "outside": sums(length, None), "inside": sums(length, library)} for length in SUM_LENGTHS]
    return {
        "version": 1,
        "provenance": provenance.collect(Device("sim", None)),
        "inputs": KINDS,
        "errors": rows,
        "sums": off,
    }


def main() -> None:
    record = measure()
    FILE.write_text(json.dumps(record, indent=1) + "\n")
    for row in record["errors"]:
        transform = ", Hadamard" if row["hadamard"] else ""
        say(f"{row['inputs']}, N = {row['N']}, {row['dtype']}{transform}: {row['error']:.2%}, "
            f"the inputs' rounding alone {row['of_inputs']:.2%}, the kernel's {row['of_kernel']:.2%}")  # fmt: skip
    for row in record["sums"]:
        say(f"{row['Nkv']} keys: {row['outside']:.2%} of O lost, summed in the tensor cores {row['inside']:.2%}")
    say(f"Written: {FILE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
