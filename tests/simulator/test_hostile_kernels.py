"""Kernels broken on purpose: whatever happens to them, the simulator answers with a CUDA error or runs them to an end
within their budget. It never crashes, hangs or takes the process with it."""

import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import cudart
import numpy as np
import pytest
from cudart import run_ptx

SOURCE = Path(__file__).parent / "programs" / "execution" / "kernels.cu"
BUDGET = {"WARPSIM_MAX_INSTRUCTIONS": 3000, "WARPSIM_TIMEOUT_S": 10, "WARPSIM_HAZARDS": "warn"}
NUMBERS = ["0", "-1", "1", "7", "33", "1024", "65536", "4294967295", "-2147483648", "9223372036854775807"]
REGISTERS = ["%r1", "%r2", "%rd1", "%rd2", "%p1", "%f1", "%rs1", "%tid.x", "%clock64", "0", "_"]
MODIFIERS = "u8 u32 u64 s32 s64 b8 b16 b32 f32 f64 f16x2 pred shared global local v2 v4 sync cas exch aligned".split()

pytestmark = pytest.mark.simulator_only


@pytest.fixture(scope="module")
def kernels():
    """The test kernels' PTX, one text for each kernel with the functions it may call."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    folder = cudart.BUILD / "tests" / "execution"
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"hostile.{os.getpid()}.ptx"
    done = subprocess.run(
        [nvcc, "-std=c++17", "-arch=sm_80", "-ptx", "-o", out, SOURCE], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    text = out.read_text()
    out.unlink()
    return text, re.findall(r"\.entry (\w+)\(", text)


def mutate(text, rng):
    lines = text.splitlines()
    code = [i for i, line in enumerate(lines) if line.startswith("\t") and line.rstrip().endswith(";")]
    for _ in range(rng.randint(1, 4)):
        i, j = rng.choice(code), rng.choice(code)
        way = rng.randrange(7)
        if way == 0:
            lines[i] = re.sub(r"(?<![\w%.])\d+", rng.choice(NUMBERS), lines[i], count=1)
        elif way == 1:
            lines[i] = re.sub(r"%[\w.]+", lambda m: rng.choice([m.group(), rng.choice(REGISTERS)]), lines[i])
        elif way == 2:
            lines[i] = lines[j]
        elif way == 3:
            lines[i] = ""
        elif way == 4:
            lines[i] = re.sub(
                r"(?<=\.)\w+", lambda m: rng.choice([m.group()] * 2 + MODIFIERS[:1] + [rng.choice(MODIFIERS)]), lines[i]
            )
        elif way == 5:
            lines[i] = lines[i].rpartition(",")[0] + ";"
        else:
            lines[i], lines[j] = lines[j], lines[i]
    return "\n".join(lines)


def run_mutants(kernels, seeds):
    text, names = kernels
    ended = 0
    for seed in seeds:
        rng = random.Random(seed)
        name = rng.choice(names)
        buffer = np.full(1024, rng.choice([0, 1]), np.int32)
        # Kernels with other parameters than a pointer and a number find what follows in memory: zeros.
        result = run_ptx(mutate(text, rng), name, 2, 40, [buffer, np.uint64(3)], env=BUDGET, timeout=60)
        assert result.error_name != "workerDied", f"seed {seed}, kernel {name}: {result.error_string}"
        ended += result.ok
    return ended


@pytest.mark.long
def test_some_mutants(kernels):
    assert run_mutants(kernels, range(30)) > 0


@pytest.mark.long
def test_many_mutants(kernels):
    assert run_mutants(kernels, range(1000, 1600)) > 0


HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def refused(text, *words):
    result = run_ptx(HEAD + text, "k", 1, 32, [np.zeros(32, np.int32)], env=BUDGET)
    assert not result.ok and result.error_name != "workerDied", result.error_string
    said = result.stderr + result.error_string
    assert all(word in said for word in words), said


def test_an_infinite_loop_ends():
    refused(".visible .entry k(.param .b64 p) { L: bra L; }", "WARPSIM_MAX_INSTRUCTIONS")


def test_local_memory_beyond_the_devices_is_refused():
    refused(
        ".visible .entry k(.param .b64 p) { .local .b8 a[99999999]; .reg .b64 %d<2>; mov.u64 %d1, a; ret; }", "local"
    )


def test_shared_memory_beyond_the_devices_is_refused():
    text = ".visible .entry k(.param .b64 p) { .shared .b8 a[999999]; .reg .b32 %r<2>; mov.u32 %r1, a; ret; }"
    result = run_ptx(HEAD + text, "k", 1, 32, [np.zeros(32, np.int32)])
    assert not result.ok and result.error_name != "workerDied"


def test_many_nested_loops_are_laid_out_in_reasonable_time():
    depth = 3000
    heads = "".join(f"L{i}: add.s32 %r1, %r1, 1;\n" for i in range(depth))
    tails = "".join(f"setp.lt.s32 %p1, %r1, {i};\n@%p1 bra L{depth - 1 - i};\n" for i in range(depth))
    text = ".visible .entry k(.param .b64 p) { .reg .pred %p<2>; .reg .b32 %r<2>; mov.u32 %r1, 0;\n"
    result = run_ptx(HEAD + text + heads + tails + "ret; }", "k", 1, 32, [np.zeros(32, np.int32)], timeout=60)
    assert result.ok, result.error_string


def test_a_kernel_without_an_end_returns():
    run_ptx(
        HEAD + ".visible .entry k(.param .b64 p) { .reg .b32 %r<2>; mov.u32 %r1, 1; }", "k", 1, 32, [np.zeros(1)]
    ).check()
