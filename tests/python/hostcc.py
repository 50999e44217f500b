"""Compiles small C++ programs against the toolkit's and the repository's headers."""

import functools
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "common/python"))

from flashladder.building import toolchain  # noqa: E402
from flashladder.core.paths import build_directory  # noqa: E402


@functools.cache
def cuda_include() -> Path:
    """The folder of cuda_runtime_api.h of the toolkit in use."""
    nvcc = toolchain.find_nvcc()
    if not nvcc:
        pytest.skip("no nvcc here, so no cuda_runtime_api.h to compile against")
    dry = subprocess.run([nvcc, "--dryrun", "-E", "-x", "cu", "/dev/null"], capture_output=True, text=True).stderr
    root = next(line.split("=", 1)[1] for line in dry.splitlines() if line.startswith("#$ TOP="))
    return Path(root) / "include"


host_compiler = functools.cache(toolchain.require_host_compiler)


@functools.cache
def headers() -> bytes:
    """What else than its source a program here may be made of."""
    files = [file for name in ("include", "host") for file in sorted((ROOT / "common" / name).rglob("*"))]
    return b"".join(file.read_bytes() for file in files if file.is_file())


def compile_cpp(source: Path, output: Path, *options: str) -> Path:
    """The program at `output`. One of this folder is compiled once for all processes and runs of the tests, as long as
    what it is made of stays as it is."""
    command = [host_compiler(), "-std=c++20", "-O2", str(source), *options]
    command += [f"-I{ROOT}/common/include", f"-I{cuda_include()}"]
    digest = hashlib.sha256(" ".join(command).encode() + source.read_bytes() + headers()).hexdigest()[:20]
    kept = build_directory() / "test-programs" / digest
    if not kept.exists():
        done = subprocess.run([*command, "-o", str(output)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        if HERE not in source.parents:
            return output
        kept.parent.mkdir(parents=True, exist_ok=True)
        Path(shutil.copy(output, f"{kept}.{os.getpid()}")).replace(kept)
    return Path(shutil.copy(kept, output))
