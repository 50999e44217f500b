"""programs/execution/kernels.cu for tests of how warps, blocks and grids run: its PTX, and launches of its kernels."""

import functools
import os
import shutil
import subprocess

import cudart
import numpy as np
from cudart import PROGRAMS, run_ptx

SOURCE = PROGRAMS / "execution" / "kernels.cu"
SOURCE_LINES = SOURCE.read_text().splitlines()
# Of modules that tests write themselves.
PTX_HEAD = '.version 8.0\n.target sm_80\n.address_size 64\n.file 1 "by_hand.cu"\n'


@functools.cache
def kernels_ptx():
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    folder = cudart.BUILD / "tests" / "execution"
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"kernels.{os.getpid()}.ptx"
    done = subprocess.run(
        [nvcc, "-std=c++17", "-arch=sm_80", "-ptx", "-lineinfo", "-o", out, SOURCE], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    text = out.read_text()
    out.unlink()
    return text


def zeros(n=64):
    return np.zeros(n, np.int32)


def line_of(text):
    """1-based line of the only line of kernels.cu that holds this text."""
    found = [i for i, line in enumerate(SOURCE_LINES, 1) if text in line]
    assert len(found) == 1, (text, found)
    return found[0]


def ints(ptx, kernel, grid=1, block=64, n=None, args=(), **options):
    size = n or (block if isinstance(block, int) else 64)
    return run_ptx(ptx, kernel, grid, block, [zeros(size), *args], **options).check().outputs[0]


def hazard(ptx, kernel, kind, grid=1, block=64, args=None, **options):
    """Runs a kernel that must fail with one hazard of this kind; returns it."""
    result = run_ptx(ptx, kernel, grid, block, [zeros()] if args is None else args, report=True, **options)
    assert not result.ok
    assert [h["kind"] for h in result.hazards] == [kind], result.hazards
    return result.hazards[0]
