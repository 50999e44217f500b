"""Faults with mbarriers and bulk copies are named with kind, line and words; the mended kernels are clean."""

import re
from pathlib import Path

import pytest
from cudart import run_program

PROGRAM = Path(__file__).parent / "programs" / "arrivals" / "faults.cu"
HOPPER = ("-gencode", "arch=compute_90,code=compute_90")
CASES = re.findall(r"CASE\((\w+)\),", PROGRAM.read_text())

pytestmark = pytest.mark.simulator_only


def marks(name):
    """(kinds, words, the lines that are named) of a fault; words: lists of alternatives"""
    kinds, words, lines = None, None, set()
    for number, line in enumerate(PROGRAM.read_text().splitlines(), 1):
        if match := re.search(rf"//! {name} ([a-z_ ]+): (.+)", line):
            kinds, words = match[1].split(" or "), [w.split(" or ") for w in match[2].split(" | ")]
        if re.search(rf"//[!~] {name}\b", line):
            lines.add(number)
    return kinds, words, lines


def run(name, mended, **env):
    return run_program(PROGRAM, [name, int(mended)], env=env, report=True, architecture=HOPPER)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", CASES)
def test_fault_and_mended_twin(name, seed):
    env = {"WARPSIM_SCHEDULE": seed} if seed else {}
    kinds, words, lines = marks(name)
    result = run(name, False, **env)
    assert result.returncode == 3, f"the launch did not fail: {result.stdout}{result.stderr}"
    hazard = result.hazards[0]
    assert hazard["kind"] in kinds and hazard["line"] in lines, hazard
    for alternatives in words:
        assert any(word in hazard["message"] for word in alternatives), hazard["message"]
    if name not in ("never_initialised", "not_made_visible"):
        for line in lines:
            assert f"{PROGRAM.name}:{line}" in hazard["message"], hazard["message"]
    mended = run(name, True, **env).check()
    assert mended.stdout == "cudaSuccess\n" and mended.hazards == []


@pytest.mark.parametrize("seed", [0, 7])
def test_correct_kernels_are_clean_and_counted(seed):
    program = PROGRAM.with_name("pipelines.cu")
    result = run_program(program, env={"WARPSIM_SCHEDULE": seed} if seed else {}, report=True, architecture=HOPPER)
    assert result.check().stdout == "OK\n" and result.hazards == []
    ring, copies, _, stores, _ = result.report["launches"]
    assert ring["bulk"] == {"load": {"copies": 2 * 2 * 8, "bytes": 2 * 8 * 512}}
    assert ring["mbarriers"]["waits"] == 2 * (8 + 4 * 8), "one of each warp that waits, in each of two blocks"
    assert 0 < ring["mbarriers"]["waited"] <= ring["mbarriers"]["waits"]
    assert copies["bulk"] == {}
    assert stores["bulk"]["store"] == stores["bulk"]["reduce"] == {"copies": 8, "bytes": 8 * 512}
