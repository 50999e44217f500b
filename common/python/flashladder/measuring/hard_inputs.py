"""Times that depend on the numbers: inputs that hurt a softmax which rescales as rarely as it can.

Stages that look at a row's maximum for every tile take as long on any input. Those that do so only when a bet is lost
do not: here they are timed, and verified, on inputs that make them lose it.
"""

import numpy as np

from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.ablations import ablations
from flashladder.measuring import ablation_times, bench, provenance

FIRST = "optimistic_max"  # the first stage that bets
LENGTHS = (512, 1024, 4096, 16384)
OCTAVES_A_TILE = 12  # by which scores grow from a tile of 128 keys to the one that is visited next, in "growing"
KINDS = {
    "normal": "Q, K and V standard normal, as everywhere else",
    "growing": f"all of a row's scores grow, by {OCTAVES_A_TILE} octaves from tile to tile in the order of the visits",
    "one-hot": "one key in the last tile that is visited has all of the weight",
    "huge": "scores of a standard deviation of 100",
    "tiny": "scores of a standard deviation of 0.0001",
}


def keys(kind: str, problem: Problem) -> tuple[np.ndarray | None, float]:
    """Of one of KINDS: what K's first column holds in place of random numbers, by key, shape (Nkv,), with Q's first
    column 1 then, None where they stay; and the factor of all other columns of K."""
    falling = np.arange(problem.Nkv, 0, -1, dtype=np.float32)  # K and V are visited from the last tile to the first
    if kind == "growing":
        return falling / 128 * OCTAVES_A_TILE * np.float32(np.log(2) / problem.scale), 0.1
    if kind == "one-hot":
        return np.where(falling == problem.Nkv, np.float32(200 / problem.scale), np.float32(0)), 0.1
    return None, {"normal": 1.0, "huge": 100.0, "tiny": 1e-4}[kind]


def fill(kind: str, problem: Problem, tensors: dict) -> None:
    """Changes Q and K, PyTorch's tensors in the layout "bhnd" with standard normal numbers, into those of a kind."""
    import torch

    if kind not in KINDS:
        raise FlashLadderError(f"Inputs '{kind}': there are {', '.join(KINDS)}.")
    first, factor = keys(kind, problem)
    tensors["K"].mul_(factor)
    if first is not None:
        tensors["Q"][..., 0] = 1
        tensors["K"][..., 0] = torch.from_numpy(first).to(tensors["K"])


def stages_that_hurt() -> tuple[int, ...]:
    """By number: those whose time depends on the numbers, and the one before them, whose time does not."""
    first = stages.get(FIRST)
    return tuple(
        one.number
        for one in stages.all_stages()
        if one.number >= first.number - 1 and first.measured_dtype in one.dtypes
    )


def measure(device: Device, numbers: tuple[int, ...]) -> dict:
    """Each of KINDS at LENGTHS, bf16, full: the stages, those of their variants that are marked with `inputs`, and the
    peers in one run, checked before they are timed."""
    settings = bench.Settings(dtypes=("bf16",), stages=numbers, lengths=LENGTHS, causal=(False,), seconds=0.15)
    timing = bench.Bench(settings, device)
    ablation_times.add([one for one in ablations() if one.inputs and one.stage.number in numbers], timing)
    if not timing.torch:
        raise FlashLadderError("Inputs that hurt are filled in by PyTorch, which is not here.")
    for kind in KINDS:
        begun = len(timing.measurements)
        timing.prepare = lambda problem, tensors, kind=kind: fill(kind, problem, tensors)
        for problem in settings.problems():
            timing.bench_problem(problem)
        for row in timing.measurements[begun:]:
            row["inputs"] = kind
    return {
        "provenance": provenance.collect(device),
        "inputs": KINDS,
        "measurements": timing.measurements,
        "skipped": timing.skipped,
    }
