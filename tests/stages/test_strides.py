"""Tensors that are neither (B,H,N,d) nor (B,N,H,d): Q, K and V packed side by side, rows with gaps, shared heads."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from flashladder.device import choose, cudart
from flashladder.dtypes import to_bits
from flashladder.paths import stage_library
from flashladder.problem import Problem
from flashladder.verify import POISON, compare, reference


def packed(p: Problem) -> tuple[dict, dict]:
    """Q, K and V as one projection leaves them, [B, N, 3, H, d]; O with its rows 16 bytes apart."""
    row, gap = 3 * p.Hq * p.d_head, p.Hq * p.d_head + 8
    views = {
        name: {"buffer": "QKV", "offset": i * p.Hq * p.d_head, "strides": [p.Nq * row, p.d_head, row]}
        for i, name in enumerate("QKV")
    }
    views["O"] = {"buffer": "O", "offset": 8, "strides": [p.Nq * gap, p.d_head, gap]}
    return {"QKV": p.B * p.Nq * row, "O": 8 + p.B * p.Nq * gap}, views


def gaps(p: Problem) -> tuple[dict, dict]:
    """A gap behind every row, every head and every batch, of another size in each tensor."""
    sizes, views = {}, {}
    for i, name in enumerate("QKVO"):
        rows = p.Nq if name in "QO" else p.Nkv
        row = p.d_head + 8 * (i + 1)
        head = rows * row + 8 * (i + 3)
        batch = p.Hq * head + 8 * (i + 5)
        sizes[name] = p.B * batch
        views[name] = {"buffer": name, "offset": 0, "strides": [batch, head, row]}
    return sizes, views


def shared(p: Problem) -> tuple[dict, dict]:
    """One K for all heads of a batch and one V for all batches: strides of 0. The heads of O in the innermost place."""
    q = p.Nq * p.d_head
    views = {
        "Q": {"buffer": "Q", "offset": 0, "strides": [p.Hq * q, q, p.d_head]},
        "K": {"buffer": "K", "offset": 0, "strides": [p.Nkv * p.d_head, 0, p.d_head]},
        "V": {"buffer": "V", "offset": 0, "strides": [0, p.Nkv * p.d_head, p.d_head]},
        "O": {"buffer": "O", "offset": 0, "strides": [p.d_head, p.B * p.d_head, p.Hq * p.B * p.d_head]},
    }
    return {"Q": p.B * p.Hq * q, "K": p.B * p.Nkv * p.d_head, "V": p.Hq * p.Nkv * p.d_head, "O": p.B * p.Hq * q}, views


def as_bhnd(buffer: np.ndarray, view: dict, shape: tuple) -> np.ndarray:
    strides = [2 * stride for stride in view["strides"]] + [2]
    return np.lib.stride_tricks.as_strided(buffer[view["offset"] :], shape, strides)


@pytest.mark.parametrize("arrangement", (packed, gaps, shared), ids=lambda arrangement: arrangement.__name__)
def test_any_strides(stage, tile, arrangement, tmp_path):
    Br, Bc = tile
    length = max(Br, Bc)
    problem = Problem(B=2, Hq=2, Nq=length, Nkv=length if arrangement is packed else 3 * Bc, d_head=64)
    sizes, views = arrangement(problem)
    generator = np.random.default_rng(11)
    buffers = {name: to_bits(generator.standard_normal(size, np.float32), "bf16") for name, size in sizes.items()}
    buffers["O"][...] = POISON
    for name, buffer in buffers.items():
        np.save(tmp_path / f"{name}.npy", buffer)
    paths = {"cudart": str(cudart(choose(stage.min_compute))), "stage": str(stage_library(stage.number))}
    (tmp_path / "job.json").write_text(json.dumps({**paths, "problem": asdict(problem), "views": views}))
    script = Path(__file__).with_name("strided_call.py")
    done = subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    inputs = {name: as_bhnd(buffers[views[name]["buffer"]], views[name], problem.shape(name)) for name in "QKV"}
    after = {name: np.load(tmp_path / f"{name}.npy") for name in buffers}
    output = as_bhnd(after["O"], views["O"], problem.shape("O"))
    comparison = compare(output, *reference(problem, inputs), problem.dtype)
    assert comparison, comparison.message

    output[...] = POISON  # what is left is all that O's elements do not cover: nothing may have been written there
    for name, buffer in buffers.items():
        assert np.array_equal(after[name], buffer), f"{name} was written where it must not be"
