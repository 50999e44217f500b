"""Small kernels through the compiler and through nvcc, on the simulator: both results."""

import functools
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from flashladder.core.paths import ROOT, build_directory

sys.path.insert(0, str(ROOT / "tests/simulator"))

import cudart

HERE = Path(__file__).parent
PROGRAMS = sorted(path.stem for path in (HERE / "programs").glob("*.cu"))
THREADS = 64


def ir_to_ptx(ir: str) -> str:
    """What the compiler makes of it; AssertionError with its message if it refuses."""
    done = translate(ir)
    assert done.returncode == 0, done.stderr
    return done.stdout


def translate(ir: str) -> subprocess.CompletedProcess:
    return subprocess.run([build_directory() / "bin/ir-to-ptx", "-"], input=ir, capture_output=True, text=True)


@functools.cache
def nvcc_ptx(source: Path) -> str:
    """Products and sums apart, as the recorded IR has them."""
    nvcc = shutil.which("nvcc")
    assert nvcc, "the project's build needs nvcc, and so do these tests"
    command = [nvcc, "-ptx", "-arch=sm_90a", "-fmad=false", "-std=c++20", "-w", "-o", "-", source]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def inputs() -> list[np.ndarray]:
    """Words of all sizes, with the edges; each case is other words."""
    random = np.random.default_rng(43)
    edges = np.array([0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F800000, 0x7FC00000, 0x00000003], np.uint32)
    cases = []
    for _ in range(3):
        words = random.integers(0, 1 << 32, 128, np.uint32) >> random.integers(0, 32, 128, np.uint32)
        words[random.permutation(128)[: len(edges)]] = edges
        cases.append(words)
    return cases


def run(ptx: str, words: np.ndarray) -> np.ndarray:
    """The kernel `k` of 64 threads, 16 words of output each."""
    out = np.zeros(THREADS * 16, np.uint32)
    return cudart.run_ptx(ptx, "k", grid=1, block=THREADS, args=[words, out], shared=256).check().outputs[1]


def ptxas_refuses(ptx: str, folder: Path) -> str:
    """What ptxas says against it; nothing, if it takes it or is not there."""
    ptxas = shutil.which("ptxas")
    if not ptxas:
        return ""
    (folder / "k.ptx").write_text(ptx)
    done = subprocess.run(
        [ptxas, "-arch=sm_90a", folder / "k.ptx", "-o", folder / "k.cubin"], capture_output=True, text=True
    )
    return done.stdout + done.stderr if done.returncode else ""
