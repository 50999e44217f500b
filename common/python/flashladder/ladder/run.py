"""Runs a stage on arrays: run(2, Q, K, V). Each run gets a worker process with the runtime chosen for it."""

from pathlib import Path

import numpy as np

from flashladder.core import dtypes
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.core.ring_problem import RingProblem
from flashladder.ladder import stages
from flashladder.running.job import Result


def run_problem(
    stage: stages.Stage | int | str,
    problem: Problem,
    inputs: dict[str, np.ndarray] | None = None,
    device: str | None = None,
    library: Path | None = None,
    **options,
) -> Result:
    """As run() of a stage that computes attention; Q, K and V have the shapes problem.shape()."""
    return stages.get(stage).run(problem, inputs, device, library, **options)


def describe(
    stage: stages.Stage | int | str, problem: Problem | None = None, device: str | None = None, **options
) -> dict:
    """What a stage would do with the problem: tiles, threads, shared memory, registers where a GPU tells."""
    return stages.get(stage).describe(problem, device, **options)


def _arrays(given: dict, dtype: str | None) -> tuple[dict[str, np.ndarray], str]:
    """Q, K and V as patterns, and their type."""
    arrays = {}
    for name, array in given.items():
        arrays[name], dtype = dtypes.as_bits(array, dtype)
    return arrays, dtype


def _sizes(arrays: dict[str, np.ndarray], layout: str) -> dict[str, int | str]:
    """What Q and K say of their problem."""
    for name, array in arrays.items():
        if array.ndim != 4:
            raise FlashLadderError(f"{name} has {array.ndim} dimensions; 4 are needed, in the order {layout}.")
    head, row = (1, 2) if layout == "bhnd" else (2, 1)
    Q, K = arrays["Q"].shape, arrays["K"].shape
    return {"B": Q[0], "Hq": Q[head], "Nq": Q[row], "d_head": Q[3], "Hkv": K[head], "Nkv": K[row], "layout": layout}


def run(  # noqa: PLR0913 - for users: its options are read where it is called
    stage: int | str,
    Q,
    K,
    V,
    *,
    causal: bool = False,
    scale: float | None = None,
    layout: str = "bhnd",
    dtype: str | None = None,
    device: str | None = None,
) -> Result:
    """O = softmax(scale Q Kᵀ) V on a stage.

    Q: (B, Hq, Nq, d), K and V: (B, Hkv, Nkv, d) for layout "bhnd"; heads and rows swapped for "bnhd". NumPy
    arrays, or anything with DLPack or __cuda_array_interface__; float16 and bfloat16 as they are, others rounded
    to dtype ("bf16" where none is given; "e4m3", with a scale for each head, for a stage that takes nothing else).
    Result.O has Q's shape.
    """
    stage = stages.get(stage)
    given = {"Q": Q, "K": K, "V": V}
    rounded = dtype == "e4m3" or dtype is None and stage.dtypes == ("e4m3",)
    if rounded:
        dtype, arrays = "e4m3", {name: dtypes.as_values(array) for name, array in given.items()}
    else:
        arrays, dtype = _arrays(given, dtype)
    problem = Problem(**_sizes(arrays, layout), dtype=dtype, causal=causal, scale=scale or 0.0)
    return stage.run(problem, problem.rounded(arrays) if rounded else arrays, device)


def run_ring(  # noqa: PLR0913 - as run()
    stage: int | str,
    Q,
    K,
    V,
    *,
    ranks: int = 2,
    causal: bool = False,
    scale: float | None = None,
    layout: str = "bhnd",
    dtype: str | None = None,
    device: str | None = None,
    **options,
) -> Result:
    """The same of one sequence over several GPUs, on a stage such as "zigzag": Q, K and V are divided over the ranks,
    and O is put together again. Rank r has GPU r, or where there are fewer the GPUs by turns; on the simulator each has
    a device. options: as of run_problem()."""
    stage = stages.entry(stage)
    if not isinstance(stage, stages.Ring):
        known = ", ".join(one.slug for one in stages.ring_stages())
        raise FlashLadderError(f"Stage {stage.id} is for one GPU, and this is for stages for several: {known}.")
    arrays, dtype = _arrays({"Q": Q, "K": K, "V": V}, dtype)
    sizes = _sizes(arrays, layout)
    problem = RingProblem(**sizes, dtype=dtype, causal=causal, scale=scale or 0.0, ranks=ranks)
    return stage.run(problem, arrays, device, **options)
