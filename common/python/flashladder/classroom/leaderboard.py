"""A stage's exercises as a task of a service that ranks kernels, in the form of KernelBot: task.yml, the program that
judges a submission (common/host/leaderboard.cpp), and the starter. https://github.com/gpu-mode/kernelbot

The service compiles and runs all of a submission, its host code, too: it has to isolate what it runs.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

from flashladder.classroom.cases import larger
from flashladder.classroom.exercise import Exercise, exercises, starter
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, included
from flashladder.core.problem import Problem
from flashladder.ladder import kernels, launches, stages
from flashladder.ladder.kernels import Kernel

HOST = ROOT / "common/host"
SOURCES = ("leaderboard.cpp", "launch.cpp", "tensor_maps.cpp", "problem.cpp", "reference.cpp", "timing.cpp")
SUBMISSION, TEMPLATE = "submission.cu", "template.cu"
FLAGS = ("-std=c++20", "-O3", "-I.", "--extended-lambda")
LENGTHS = (1024, 4096)  # of benchmarks
TIMEOUTS = {"test_timeout": 180, "benchmark_timeout": 180, "ranked_timeout": 180}


def write(which: str, folder: Path) -> Path:
    """The task of a stage in a folder that is not there yet, or is empty."""
    stage = stages.get(which)
    if not isinstance(stage, Kernel) or launches.instances(stage) or not exercises(stage):
        raise FlashLadderError(f"Stage {stage.id} is no task: that takes exercises, and one kernel of attention.")
    if folder.exists() and any(folder.iterdir()):
        raise FlashLadderError(f"{folder} is not empty.")
    folder.mkdir(parents=True, exist_ok=True)
    sources = [HOST / name for name in SOURCES]
    copied = [*sources, *included([stage.source, *sources], ROOT / "common/include", HOST)]
    for file in copied:
        shutil.copyfile(file, folder / file.name)
    (folder / TEMPLATE).write_text(starter(stage, [one.name for one in _chosen(stage)]))
    (folder / "task.yml").write_text(_task(stage, [file.name for file in copied]))
    return folder / "task.yml"


def _chosen(stage: Kernel) -> list[Exercise]:
    """The stage's exercises; of those that share lines the one that is not optional, or the first."""
    chosen: list[Exercise] = []
    for one in sorted(exercises(stage), key=lambda one: (one.optional, one.first)):
        if all(one.last < other.first or other.last < one.first for other in chosen):
            chosen.append(one)
    return sorted(chosen, key=lambda one: one.first)


def _task(stage: Kernel, copied: list[str]) -> str:
    files = [{"name": name, "source": name} for name in copied] + [{"name": SUBMISSION, "source": "@SUBMISSION@"}]
    times = [replace(larger(stage), Nq=length, Nkv=length, Hq=16, Hkv=16) for length in LENGTHS]
    parts = [
        f"# {stage.name} of FlashLadder (MIT licence), in KernelBot's form. Written by `flashladder export-task`.",
        "files:",
        *(f"  - {json.dumps(one)}" for one in files),
        'lang: "cu"',
        "description: |",
        *(f"  {line}".rstrip() for line in _description(stage).splitlines()),
        "config:",
        f"  sources: {json.dumps([*SOURCES, SUBMISSION])}",
        f"  compile_flags: {json.dumps(FLAGS)}",
        f"templates: {json.dumps({'CUDA': TEMPLATE})}",
        *(f"{name}: {seconds}" for name, seconds in TIMEOUTS.items()),
        "tests:",
        *(f"  - {json.dumps(_case(one, seed))}" for seed, one in enumerate(_tests(stage), 1)),
        "benchmarks:",
        *(f"  - {json.dumps(_case(one, seed))}" for seed, one in enumerate(times, 101)),
        'ranking_by: "geom"',
    ]
    return "\n".join(parts) + "\n"


def _description(stage: Kernel) -> str:
    tasks = "\n\n".join(f"{number}. {one.title}.\n{one.task}" for number, one in enumerate(_chosen(stage), 1))
    return (
        f"{stage.title}: {stage.technique}. Complete the kernel between its marks, or write one of your own with the "
        f"functions of attention.h. It needs compute capability {stage.min_compute / 10}. O must lie within the "
        f"bounds of bounds.h around a float64 reference.\n\n{tasks}"
    )


def _tests(stage: Kernel) -> list[Problem]:
    """The problems at which changed kernels are judged, with the other head dim and type besides."""
    known = kernels.problems_for(stage)
    d_heads = stage.data.get("d_heads", (128, 64))
    more = [replace(known[0], d_head=d_head, dtype=dtype, scale=0) for d_head in d_heads for dtype in ("bf16", "fp16")]
    return list(dict.fromkeys([*known, *more]))


def _case(problem: Problem, seed: int) -> dict[str, int]:
    """In the words of leaderboard.cpp; a key is letters only there and in KernelBot."""
    words = {
        "batch": problem.B,
        "heads": problem.Hq,
        "kvheads": problem.Hkv,
        "rows": problem.Nq,
        "keys": problem.Nkv,
        "dim": problem.d_head,
        "causal": int(problem.causal),
        "half": int(problem.dtype == "fp16"),
    }
    return words | {"seed": seed}
