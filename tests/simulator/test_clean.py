"""Correct CUDA programs in many styles run to their own "OK" with no hazard, in the default order and in others."""

from pathlib import Path

import collection
import pytest
from cudart import ON_GPU, run_program

PROGRAMS = sorted((Path(__file__).parent / "programs" / "clean").glob("*.cu"))
LONG_TO_COMPILE = (
    "cub_block_neighbours",
    "cub_block_tiles",
    "cub_blocks",
    "cub_device",
    "cub_partition",
    "cub_runs",
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
CASES = [pytest.param(p, id=p.stem, marks=[pytest.mark.long] if p.stem in LONG_TO_COMPILE else []) for p in PROGRAMS]
TOGETHER = [p for p in PROGRAMS if p.stem not in LONG_TO_COMPILE]
LIBRARIES = ("<cub/", "<thrust/", "<cuda/", "<cooperative_groups", "<mma.h>")


@pytest.mark.parametrize("seed", [0, 7], ids=["default", "shuffled"])
@pytest.mark.parametrize("program", CASES)
def test_clean_program(program, seed):
    if seed and ON_GPU:
        pytest.skip("a GPU has no other schedule to ask for")
    env = {"WARPSIM_SCHEDULE": seed} if seed else {}
    together = collection.unit_with(program, TOGETHER) if program in TOGETHER else program
    result = run_program(together, [program.stem], env=env, flags=[*collection.FLAGS, "--extended-lambda"], report=True)
    result.check()
    assert result.stdout.splitlines()[-1] == "OK"
    if not ON_GPU:
        assert result.report["launches"], "the report lists no launch"
        assert result.hazards == []


def test_there_are_many():
    over_libraries = [p.stem for p in PROGRAMS if any(f"#include {name}" in p.read_text() for name in LIBRARIES)]
    assert len(PROGRAMS) >= 35, f"{len(PROGRAMS)} programs"
    assert len(over_libraries) >= 30, f"{len(over_libraries)} programs over the toolkit's libraries: {over_libraries}"
