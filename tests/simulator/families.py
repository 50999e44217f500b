"""CUDA programs of one subject stand in one file (programs/programs.h): programs/clean and programs/faulty.

The correct ones, in many styles, print OK as their last line. Each faulty one has a twin without the fault, compiled
with -DMENDED.
"""

import re
from pathlib import Path

from cudart import PROGRAMS, Result, run_program


def _programs(folder: str) -> dict[str, Path]:
    """The programs of a folder by name, each with its file."""
    files = sorted((PROGRAMS / folder).glob("*.cu"))
    return {name: file for file in files for name in re.findall(r"PROGRAM\((\w+)\)", file.read_text()) or [file.stem]}


CLEAN, FAULTY = _programs("clean"), _programs("faulty")
LONG_TO_COMPILE = ("cub_blocks", "cub_device", "cub_warps", "thrust", "wmma_forms")  # files
LAMBDAS = ("--extended-lambda",)


def run_clean(name: str, env: dict) -> Result:
    """What came of a correct program, which has succeeded."""
    return run_program(CLEAN[name], [name], env=env, flags=LAMBDAS, report=True).check()


def run_faulty(name: str, mended: bool = False, **env) -> Result:
    return run_program(FAULTY[name], [name], env=env, flags=["-DMENDED"] if mended else [], report=True)
