"""Correct CUDA programs in many styles run to their own "OK" with no hazard, in the default order and in others."""

import clean_programs
import pytest
from clean_programs import LONG_TO_COMPILE, PROGRAMS
from cudart import ON_GPU

CASES = [pytest.param(p, id=p.stem, marks=[pytest.mark.long] if p.stem in LONG_TO_COMPILE else []) for p in PROGRAMS]
LIBRARIES = ("<cub/", "<thrust/", "<cuda/", "<cooperative_groups", "<mma.h>")


@pytest.mark.parametrize("seed", [0, 7], ids=["default", "shuffled"])
@pytest.mark.parametrize("program", CASES)
def test_clean_program(program, seed):
    if seed and ON_GPU:
        pytest.skip("a GPU has no other schedule to ask for")
    env = {"WARPSIM_SCHEDULE": seed} if seed else {}
    result = clean_programs.run(program, env)
    assert result.stdout.splitlines()[-1] == "OK"
    if not ON_GPU:
        assert result.report["launches"], "the report lists no launch"
        assert result.hazards == []


def test_there_are_many():
    over_libraries = [p.stem for p in PROGRAMS if any(f"#include {name}" in p.read_text() for name in LIBRARIES)]
    assert len(PROGRAMS) >= 35, f"{len(PROGRAMS)} programs"
    assert len(over_libraries) >= 30, f"{len(over_libraries)} programs over the toolkit's libraries: {over_libraries}"
