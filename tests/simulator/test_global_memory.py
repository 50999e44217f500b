"""Threads that meet in global memory: within a block, and between blocks of one launch."""

from pathlib import Path

import pytest
from cudart import ON_GPU, run_program
from fault_marks import cases, marks

FOLDER = Path(__file__).parent / "programs" / "global_memory"
FAULTS = FOLDER / "faults.cu"


@pytest.mark.simulator_only
@pytest.mark.parametrize("seed", [0, 1, 5])
@pytest.mark.parametrize("name", cases(FAULTS))
def test_fault_and_mended_twin(name, seed):
    """Which side is told depends on the order in which the blocks ran; both lines are always named."""
    env = {"WARPSIM_SCHEDULE": seed} if seed else {}
    kinds, words, lines = marks(FAULTS, name)
    result = run_program(FAULTS, [name, 0], env=env, report=True)
    assert result.returncode == 3, f"the launch did not fail: {result.stdout}{result.stderr}"
    hazard = result.hazards[0]
    assert hazard["kind"] in kinds and hazard["line"] in lines, hazard
    for alternatives in words:
        assert any(word in hazard["message"] for word in alternatives), hazard["message"]
    assert f"{FAULTS.name}:{hazard['line']}" in hazard["message"]
    mended = run_program(FAULTS, [name, 1], env=env, report=True).check()
    assert mended.stdout == "cudaSuccess\n" and mended.hazards == []


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 3, 8])
def test_right_programs_are_clean(seed):
    env = {"WARPSIM_SCHEDULE": seed} if seed and not ON_GPU else {}
    result = run_program(FOLDER / "clean.cu", env=env, report=not ON_GPU).check()
    assert result.stdout == "OK\n" and result.hazards == []
    assert ON_GPU or not any(launch.get("notes") for launch in result.report["launches"])


@pytest.mark.simulator_only
def test_the_same_value_from_several_blocks_is_a_note():
    result = run_program(FOLDER / "same_value.cu", report=True).check()
    assert result.stdout == "OK\n" and result.hazards == []
    (note,) = result.report["launches"][0]["notes"]
    assert note["kind"] == "global_race" and "Both store the same value" in note["message"]
    strict = run_program(FOLDER / "same_value.cu", env={"WARPSIM_HAZARDS": "strict"}, report=True)
    assert strict.returncode == 1 and [h["kind"] for h in strict.hazards] == ["global_race"]


@pytest.mark.simulator_only
@pytest.mark.parametrize("name", ["tiles_overlap", "histogram", "flag_without_a_fence", "lock_without_fences"])
@pytest.mark.parametrize("hazards", ["on", "warn"])
def test_reports_do_not_depend_on_host_threads(name, hazards):
    reports = []
    for threads in (1, 2, 5):
        env = {"WARPSIM_THREADS": threads, "WARPSIM_HAZARDS": hazards}
        reports.append(run_program(FAULTS, [name, 0], env=env, report=True).hazards)
    for hazard in (h for report in reports for h in report):
        hazard["address"] = hazard["message"] = None  # addresses are those of this run
    assert reports[0] and reports[0] == reports[1] == reports[2]


# Stores that other blocks see late: by another schedule than the default one.

LATE = FOLDER / "late.cu"
SEEDS = range(1, 9)


def said(name: str, fenced: bool, seed: int, hazards: str = "off") -> str:
    env = {"WARPSIM_SCHEDULE": seed, "WARPSIM_HAZARDS": hazards, "WARPSIM_TIMEOUT_S": "20"}
    return run_program(LATE, [name, int(fenced)], env=env).check().stdout.strip()


@pytest.mark.long
@pytest.mark.simulator_only
@pytest.mark.parametrize("name", ["flag", "sum"])
def test_a_missing_fence_shows_as_a_wrong_number_by_some_schedule(name):
    assert said(name, False, 0) == "right"  # by the default one, stores are seen at once
    assert "wrong" in {said(name, False, seed) for seed in SEEDS}


@pytest.mark.simulator_only
@pytest.mark.parametrize("name", ["flag", "sum", "poll"])
def test_with_its_fence_the_program_is_right_by_every_schedule(name):
    assert {said(name, True, seed) for seed in SEEDS} == {"right"}
    assert {said(name, True, seed, "on") for seed in (1, 4) if name != "poll"} <= {"right"}


@pytest.mark.simulator_only
def test_a_store_is_seen_some_day():
    assert {said("poll", False, seed) for seed in SEEDS} == {"right"}
