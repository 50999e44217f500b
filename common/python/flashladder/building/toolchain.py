"""Finds the compilers and build tools. Standard library only: it runs before anything is installed."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from flashladder.core import project
from flashladder.core.errors import FlashLadderError

# The packages of pyproject.toml that hold the tools.
NVCC = "cuda-toolkit"
NVDISASM = "nvidia-cuda-nvdisasm"

# Ordinary users have no lib64/nvcc on PATH after a plain toolkit installation, so these are looked at too.
USUAL_CUDA_ROOTS = ("/usr/local/cuda", "/opt/cuda")


def scripts_directory() -> Path:
    """Where this interpreter's pip puts programs (cmake, ninja, ruff)."""
    return Path(sysconfig.get_path("scripts"))


def find_program(name: str) -> str | None:
    return shutil.which(name, path=f"{scripts_directory()}{os.pathsep}{os.environ.get('PATH', '')}")


def nvcc_version(nvcc: Path) -> tuple[int, int] | None:
    """(13, 0) for CUDA 13.0; None where the program does not run."""
    try:
        text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"release (\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def _toolkit_candidates(tool: str):
    """Where a program of the CUDA Toolkit may lie: PATH, CUDA_HOME, the usual places, this interpreter's wheels."""
    on_path = shutil.which(tool)
    if on_path:
        yield Path(on_path)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "bin" / tool
    for root in USUAL_CUDA_ROOTS:
        yield Path(root) / "bin" / tool
    yield Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "bin" / tool


def _nvcc_candidates():
    named = os.environ.get("CUDACXX")
    if named:
        found = shutil.which(named)
        if not found:
            raise FlashLadderError(f"CUDACXX={named}: no such program. Name an nvcc of CUDA 13 or newer, or unset it.")
        yield Path(found)
    yield from _toolkit_candidates("nvcc")


def find_nvcc() -> Path | None:
    """The first nvcc of CUDA 13 or newer: CUDACXX, PATH, CUDA_HOME, the usual places, this interpreter's wheels."""
    for candidate in _nvcc_candidates():
        if candidate.is_file() and (nvcc_version(candidate) or (0, 0))[0] >= 13:
            return candidate
    return None


def require_host_compiler() -> str:
    """The C++ compiler: CXX or c++/g++; it must know C++20."""
    name = os.environ.get("CXX", "")
    compiler = shutil.which(name) if name else shutil.which("g++") or shutil.which("c++")
    if not compiler:
        raise FlashLadderError(
            f"No C++ compiler found{f' (CXX={name})' if name else ''}. Install one, e.g. "
            "`sudo apt install g++` (Debian, Ubuntu), `sudo dnf install gcc-c++` (Fedora), then run this again."
        )
    try_out = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"],
        input="#include <concepts>\n#include <span>\n",
        capture_output=True,
        text=True,
    )
    if try_out.returncode:
        raise FlashLadderError(
            f"{compiler} does not compile C++20. GCC 11 or newer is needed: install it and set CXX=g++-12, say.\n"
            + try_out.stderr.strip()[:500]
        )
    return compiler


def require(name: str, hint: str) -> str:
    program = find_program(name)
    if not program:
        raise FlashLadderError(f"{name} not found. {hint}")
    return program


def _too_old() -> str:
    """A sentence about the nvcc that are there, all of them too old; "" where there is none."""
    found = {candidate: nvcc_version(candidate) for candidate in _nvcc_candidates() if candidate.is_file()}
    names = [f"{candidate} is of CUDA {version[0]}.{version[1]}" for candidate, version in found.items() if version]
    return f" {'; '.join(names)}: too old." if names else ""


def require_nvcc() -> Path:
    nvcc = find_nvcc()
    if not nvcc:
        raise FlashLadderError(
            "No nvcc of CUDA 13 found (looked at CUDACXX, PATH, CUDA_HOME, /usr/local/cuda and the wheels of "
            f"{sys.executable}).{_too_old()} `make demo` installs one into .venv; with an interpreter of your own: "
            f"pip install '{project.requirement(NVCC)}'"
        )
    return nvcc


# nvcc's words where a part of it was ended from outside: hangup, interrupt, kill, terminate.
_ENDED = re.compile(r"died due to signal (1|2|9|15)\b")


def refuse_ended(done: subprocess.CompletedProcess) -> None:
    """FlashLadderError where nvcc was ended from outside, which says nothing about what it compiled."""
    found = _ENDED.search(done.stdout + done.stderr)
    number = int(found[1]) if found else -done.returncode
    if found or number in (1, 2, 9, 15):
        why = (
            "Most often memory runs out then: close other programs, set FLASHLADDER_JOBS=1, and" if number == 9 else ""
        )
        raise FlashLadderError(f"The compiler was ended by signal {number}. {why or 'Please'} run this again.")


def _nvdisasm_candidates():
    yield scripts_directory() / "nvdisasm"
    yield from _toolkit_candidates("nvdisasm")


def find_nvdisasm() -> Path | None:
    """The disassembler: beside this interpreter, PATH, CUDA_HOME, the usual places, this interpreter's wheels."""
    return next((candidate for candidate in _nvdisasm_candidates() if candidate.is_file()), None)


def require_nvdisasm() -> Path:
    tool = find_nvdisasm()
    if not tool:
        raise FlashLadderError(
            "nvdisasm not found (looked at PATH, CUDA_HOME, /usr/local/cuda and the wheels of "
            f"{sys.executable}). It comes with the whole CUDA Toolkit, and alone with: "
            f"{sys.executable} -m pip install '{project.requirement(NVDISASM)}'"
        )
    return tool
