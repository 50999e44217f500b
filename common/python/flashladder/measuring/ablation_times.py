"""make ablations: kernels with one idea changed at a time, timed beside the kernels themselves and the peers."""

import concurrent.futures
from dataclasses import replace
from pathlib import Path

from flashladder.building import build
from flashladder.core.abi import StageLibrary
from flashladder.core.console import progress
from flashladder.core.device import Device, choose
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.ladder.ablations import Ablation, ablations, library
from flashladder.measuring import bench, recorded


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
