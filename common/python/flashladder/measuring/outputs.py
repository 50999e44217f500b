"""Outputs of the simulator and of a GPU, element by element: the same kernels, the same inputs, the same bits?

The simulator does what PTX says; where PTX leaves a result open, as for ex2.approx, it rounds the exact one. So there
are inputs on which a kernel needs no exponential but of whole numbers, which are exact everywhere: on those nothing may
differ, and what differs on others comes from ex2.approx.
"""

import concurrent.futures
import os
from dataclasses import replace

import numpy as np

from flashladder.core.device import Device
from flashladder.core.dtypes import to_bits
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.run import run_problem
from flashladder.measuring import provenance
from flashladder.running.job import Result

KINDS = {
    "normal": "Q, K and V standard normal",
    "powers of two": "Q and K of -1, 0 and 1, and a scale that makes scores whole powers of two (from stage 10 on)",
    "equal scores": "K is 0: all weights are equal",
}
# With this scale a kernel's scale * log2(e), both float32, is 1.
WHOLE = float(np.float32(0.6931472))
SIZES = (
    {"Hq": 2, "Nq": 256, "d_head": 128},
    {"Hq": 2, "Nq": 256, "d_head": 64, "dtype": "fp16"},
)
MASKED = {"B": 2, "Hq": 4, "Hkv": 2, "Nq": 150, "Nkv": 330, "d_head": 128, "causal": True}


def problems(stage: stages.Stage, kind: str) -> list[Problem]:
    """What a stage is compared on; ragged lengths, groups of heads and a mask where it takes them."""
    sizes = [*SIZES, MASKED] if stage.data.get("masks") else SIZES
    scale = WHOLE if kind == "powers of two" else 0.0
    return [stage.own(replace(Problem(**one), scale=scale or Problem(**one).scale)) for one in sizes]


def inputs(kind: str, problem: Problem, seed: int = 0) -> dict[str, np.ndarray]:
    """Q, K and V of one of KINDS as bit patterns."""
    if kind not in KINDS:
        raise FlashLadderError(f"Inputs '{kind}': there are {', '.join(KINDS)}.")
    arrays = problem.random(seed)
    if kind == "equal scores":
        arrays["K"][...] = 0
    if kind == "powers of two":
        generator = np.random.default_rng(seed)
        for name in "QK":
            whole = generator.integers(-1, 2, problem.shape(name)).astype(np.float32)
            arrays[name] = to_bits(whole, problem.dtype)
            if f"{name}_scales" in arrays:
                arrays[f"{name}_scales"][...] = 1
    return arrays


def ulps(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of two arrays of bit patterns (unsigned, of floats of one type): how many representable numbers apart."""

    def ordered(bits: np.ndarray) -> np.ndarray:
        sign = np.int64(1) << (8 * bits.dtype.itemsize - 1)
        wide = bits.astype(np.int64)
        return np.where(wide & sign, sign - wide, wide)  # -0 is 0

    return np.abs(ordered(a) - ordered(b))


def compared(simulated: Result, measured: Result) -> dict[str, int]:
    """Elements of O and log-sum-exps: how many there are, how many differ, and by how many representable numbers."""
    found = {}
    for name, one, other in (
        ("O", simulated.bits, measured.bits),
        ("log_sum_exp", simulated.log_sum_exp, measured.log_sum_exp),
    ):
        if one is None or other is None:
            continue
        apart = ulps(*(array.view(np.uint32) if array.dtype == np.float32 else array for array in (one, other)))
        found |= {
            f"{name} elements": int(apart.size),
            f"{name} differ": int(np.count_nonzero(apart)),
            f"{name} ulps": int(apart.max()),
        }
    return found


def compare(stage: stages.Stage, kind: str, problem: Problem, choice: str) -> dict:
    """One stage on one problem, on the simulator and on the device of that choice."""
    arrays = inputs(kind, problem)
    simulated, measured = (run_problem(stage, problem, arrays, device) for device in ("sim", choice))
    row = {"name": stage.name, "kind": "stage", "kernel_sha256": stage.kernel_hash()}
    return row | {"inputs": kind, "problem": str(problem)} | compared(simulated, measured)


def measure(device: Device, numbers: tuple[int, ...] = ()) -> dict:
    """All stages, or those of these numbers, on all KINDS."""
    chosen = [stage for stage in stages.all_stages() if not numbers or stage.number in numbers]
    jobs = [(stage, kind, problem) for stage in chosen for kind in KINDS for problem in problems(stage, kind)]
    with concurrent.futures.ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        rows = list(pool.map(lambda job: compare(*job, device.kind), jobs))
    return {"version": 1, "provenance": provenance.collect(device), "inputs": KINDS, "outputs": rows}
