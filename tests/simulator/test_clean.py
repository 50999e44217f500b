"""Correct CUDA programs in many styles run to their own "OK" with no hazard, in the default order and in others."""

from pathlib import Path

import pytest
from cudart import ON_GPU, run_program

PROGRAMS = sorted((Path(__file__).parent / "programs" / "clean").glob("*.cu"))


@pytest.mark.parametrize("seed", [0, 7], ids=["default", "shuffled"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_clean_program(program, seed):
    if seed and ON_GPU:
        pytest.skip("a GPU has no other schedule to ask for")
    env = {"WARPSIM_SCHEDULE": seed} if seed else {}
    result = run_program(program, env=env, flags=["--extended-lambda"], report=True).check()
    assert result.stdout.splitlines()[-1] == "OK"
    if not ON_GPU:
        assert result.report["launches"], "the report lists no launch"
        assert result.hazards == []


def test_there_are_many():
    assert len(PROGRAMS) >= 35
