"""Offsets beyond what 32 bits hold: tensors whose batches, heads or rows lie more than 2^32 elements apart. A stage
that multiplies an index by a stride in 32 bits reads another place, or none."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from chosen import chosen_stages
from shares import share

from flashladder.core.device import Device, cudart
from flashladder.core.paths import place, stage_library
from flashladder.core.problem import Problem
from flashladder.ladder import kernels
from flashladder.running.verify import check

HERE = Path(__file__).parent
FAR = 2**32 + 64  # elements: an offset in 32 bits, with a sign or without, is another one
AXES = ("batch", "head", "row")
QUICK = ("naive", "cp_async", "warp_specialization")  # plain accesses, cp.async, TMA; all stages: `make test-long`
MEMORY = 160 << 30  # of the simulated device; only what is touched is there
CASES = share(
    [
        pytest.param(stage, id=stage.name, marks=() if stage.slug in QUICK else pytest.mark.long)
        for stage in chosen_stages()
    ],
    3,
)


def problem_of(stage, axis: str) -> Problem:
    """Two tiles along every axis that is not the far one."""
    launch = stage.data["launch"][-1]
    Br, Bc = launch.get("Br", 16), launch.get("Bc", 16)
    sizes = {"batch": (2, 1), "head": (1, 2), "row": (1, 1)}[axis]
    return stage.own(Problem(B=sizes[0], Hq=sizes[1], Nq=2 * Br, Nkv=2 * Bc, d_head=64))


def far_strides(problem: Problem, axis: str, name: str) -> list[int]:
    """Of batch, head and row: one of them so large that the last element lies beyond FAR."""
    heads, rows = (problem.Hq, problem.Nq) if name in "QO" else (problem.Hkv, problem.Nkv)
    if axis == "row":
        row = -(-FAR // (rows - 1) // 64) * 64 + 64
        return [heads * rows * row, rows * row, row]
    head = FAR if axis == "head" else rows * problem.d_head
    return [FAR if axis == "batch" else heads * head, head, problem.d_head]


def ran(library: Path, stage, problem: Problem, axis: str, folder: Path) -> str:
    """ "" where the result is right, else what was wrong."""
    inputs = problem.random(3)
    for name, array in {**{name: inputs[name] for name in "QKV"}, **problem.scales(inputs)}.items():
        np.save(folder / f"{name}.npy", array)
    job = {"cudart": str(cudart(Device("sim", None))), "stage": str(library), "problem": asdict(problem)}
    job["strides"] = {name: far_strides(problem, axis, name) for name in "QKVO"}
    (folder / "job.json").write_text(json.dumps(job))
    env = os.environ | stage.simulated | {"WARPSIM_MAX_MEMORY": str(MEMORY)}
    command = [sys.executable, str(HERE / "far_strides.py"), str(folder)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    if not (folder / "O.npy").exists():
        assert done.stdout.strip().startswith("{"), done.stdout + done.stderr
        return json.loads(done.stdout)["message"] + done.stderr[:500]
    comparison = check(replace(problem, layout="bhnd"), inputs, np.load(folder / "O.npy"))
    return "" if comparison else comparison.message


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("far_stage", CASES)
def test_offsets_beyond_32_bits(far_stage, axis, tmp_path):
    library = stage_library(far_stage.number)
    assert library.exists(), f"stage {far_stage.id} is not built: run `make stage-{far_stage.id}`"
    wrong = ran(library, far_stage, problem_of(far_stage, axis), axis, tmp_path)
    assert not wrong, f"stage {far_stage.id}, {axis} stride of {FAR:,} elements and more: {wrong}"


WRONG = {
    "batch": ("batch * params.K.stride_batch", "int(batch) * int(params.K.stride_batch)"),
    "head": ("head * params.K.stride_head", "int(head) * int(params.K.stride_head)"),
    "row": ("K + j * Bc * params.K.stride_row", "K + j * Bc * int(params.K.stride_row)"),
}


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.skipif(not any(stage.number == 6 for stage in chosen_stages()), reason="another stage is tested")
def test_a_kernel_that_multiplies_in_32_bits_is_noticed(axis, tmp_path):
    """The test is tested, with stage 06's kernel."""
    stage = next(stage for stage in chosen_stages() if stage.number == 6)
    before, after = WRONG[axis]
    text = stage.source.read_text()
    assert text.count(before) == 1
    file = place("exercises", f"far-{axis}", "kernel.cu", text.replace(before, after))
    library = kernels.compile_kernel(file, stage, only="BF16")
    assert ran(library, stage, problem_of(stage, axis), axis, tmp_path), "nothing shows offsets in 32 bits"
