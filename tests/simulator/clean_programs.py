"""Correct CUDA programs in many styles, programs/clean: each prints OK as its last line."""

from pathlib import Path

import collection
from cudart import Result, run_program

PROGRAMS = sorted((Path(__file__).parent / "programs" / "clean").glob("*.cu"))
LONG_TO_COMPILE = (
    "cub_block_neighbours",
    "cub_block_tiles",
    "cub_blocks",
    "cub_device",
    "cub_partition",
    "cub_runs",
    "cub_segmented_sort",
    "cub_segments",
    "cub_sort_pairs",
    "cub_warp",
    "padded_structs",
    "thrust_numbers",
    "thrust_ordered_structs",
    "thrust_select",
    "thrust_structs",
    "unwritten_padding",
    "wmma_forms",
)
_TOGETHER = [program for program in PROGRAMS if program.stem not in LONG_TO_COMPILE]


def run(program: Path, env: dict) -> Result:
    """What came of one of them, which has succeeded."""
    flags = ["--extended-lambda"]
    if program not in _TOGETHER:
        return run_program(program, env=env, flags=flags, report=True).check()
    together = collection.unit_with(program, _TOGETHER)
    return run_program(together, [program.stem], env=env, flags=[*collection.FLAGS, *flags], report=True).check()
