"""Correct CUDA programs in many styles run to their own "OK" with no hazard, in the default order and in others."""

import pytest
from cudart import ON_GPU
from families import CLEAN, LONG_TO_COMPILE, run_clean

CASES = [
    pytest.param(name, marks=[pytest.mark.long] if file.stem in LONG_TO_COMPILE else []) for name, file in CLEAN.items()
]
LIBRARIES = ("<cub/", "<thrust/", "<cuda/", "<cooperative_groups", "<mma.h>")


@pytest.mark.parametrize("seed", [0, 7], ids=["default", "shuffled"])
@pytest.mark.parametrize("name", CASES)
def test_clean_program(name, seed):
    if seed and ON_GPU:
        pytest.skip("a GPU has no other schedule to ask for")
    env = {"WARPSIM_SCHEDULE": seed} if seed else {}
    result = run_clean(name, env)
    assert result.stdout.splitlines()[-1] == "OK"
    if not ON_GPU:
        assert result.report["launches"], "the report lists no launch"
        assert result.hazards == []


def test_there_are_many():
    over_libraries = [
        name for name, file in CLEAN.items() if any(f"#include {one}" in file.read_text() for one in LIBRARIES)
    ]
    assert len(CLEAN) >= 35, f"{len(CLEAN)} programs"
    assert len(over_libraries) >= 30, f"{len(over_libraries)} programs over the toolkit's libraries: {over_libraries}"
