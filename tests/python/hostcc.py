"""Compiles small C++ programs against the toolkit's and the repository's headers."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "common/python"))

from flashladder.building import toolchain  # noqa: E402


def cuda_include() -> Path:
    """The folder of cuda_runtime_api.h of the toolkit in use."""
    nvcc = toolchain.find_nvcc()
    if not nvcc:
        pytest.skip("no nvcc here, so no cuda_runtime_api.h to compile against")
    dry = subprocess.run([nvcc, "--dryrun", "-E", "-x", "cu", "/dev/null"], capture_output=True, text=True).stderr
    root = next(line.split("=", 1)[1] for line in dry.splitlines() if line.startswith("#$ TOP="))
    return Path(root) / "include"


def compile_cpp(source: Path, output: Path, *options: str) -> Path:
    command = [toolchain.require_host_compiler(), "-std=c++20", "-O2", str(source), "-o", str(output), *options]
    done = subprocess.run([*command, f"-I{ROOT}/common/include", f"-I{cuda_include()}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return output
