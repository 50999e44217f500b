"""Kernels with one idea changed at a time, timed beside the kernels themselves and the peers (`make ablations`); and
times that depend on the numbers: inputs that hurt a softmax which rescales as rarely as it can.

Stages that look at a row's maximum for every tile take as long on any input. Those that do so only when a bet is lost
do not: here they are timed, and verified, on inputs that make them lose it.
"""

import concurrent.futures
from dataclasses import replace
from pathlib import Path

import numpy as np

from flashladder.building import build
from flashladder.core.abi import StageLibrary
from flashladder.core.console import progress
from flashladder.core.device import Device, choose
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.ablations import Ablation, ablations, library
from flashladder.measuring import bench, provenance, recorded


def heat(candidate: bench.Candidate) -> str:
    """A stage runs in turn with its variants alone, the peers with each other: behind kernels that take more power the
    same machine code was up to 16 percent slower, so variants must not stand behind other kernels than their stage."""
    return candidate.name[:2] if candidate.kind == "stage" else candidate.kind


def add(variants: list[Ablation], timing: bench.Bench) -> None:
    """Compiles the variants for timing's GPU, all cores at once, and has them timed like stages."""
    compute = timing.device.gpu.compute
    with concurrent.futures.ThreadPoolExecutor(build.jobs()) as pool:
        compiled = pool.map(lambda one: library(one, compute), variants)
        files = list(progress(compiled, "compile", total=len(variants)))
    for number, (one, file) in enumerate(zip(variants, files, strict=True), 901):  # stands for it in Bench's tables
        timing.stages.append(replace(one.stage, number=number, name=f"{one.stage.id} {one.title}"))
        timing.libraries[number] = StageLibrary(file)


def run(device: Device | None = None, numbers: tuple[int, ...] = (), deadline: float = 0.0) -> Path:
    """Times the variants on a GPU, of stages that mask causal ones, too; returns the JSON file below build/results.

    numbers: of some stages alone, beside their kernels and the peers; FlashLadderError for one without variants.
    deadline: seconds after which no further problem is begun."""
    having = sorted({one.stage.number for one in ablations()})
    if without := sorted(set(numbers) - set(having)):
        there = ", ".join(map(str, having))
        raise FlashLadderError(f"Stage {without[0]:02d} has no ablations; these stages have: {there}.")
    variants = [one for one in ablations() if not numbers or one.stage.number in numbers]
    kernels = tuple(sorted({one.stage.number for one in variants}))  # what each is compared with, in the same run
    device = device or choose(80)
    if device.kind != "gpu":
        raise FlashLadderError("Ablations are timed, so they need a GPU; recorded ones are in docs/results.md.")
    bench.check_build(device)
    types = {dtype for number in kernels for dtype in stages.get(number).dtypes}
    dtypes = tuple(dtype for dtype in bench.Settings().dtypes if dtype in types)
    settings = bench.Settings(
        head_dims=(128, 64), stages=kernels, lengths=(1024, 4096, 16384), dtypes=dtypes, deadline=deadline
    )
    timing = bench.Bench(settings, device)
    add(variants, timing)
    timing.heat_of = heat
    results = timing.run()
    bench.print_tables(results)
    return recorded.write_live(results, f"{bench.slug(device.short)}-ablations")


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
    add([one for one in ablations() if one.inputs and one.stage.number in numbers], timing)
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
