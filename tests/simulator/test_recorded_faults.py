"""What is recorded of a GPU and the faulty kernels for Hopper: how a run is read, and that no fault is left out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cudart import PROGRAMS, REPOSITORY
from fault_marks import cases, marks
from record_faults import FILES, outcome

RECORD = REPOSITORY / "docs" / "results" / "H200-faults.json"
FAULTS = {(file, name) for file in FILES for name in cases(PROGRAMS / file)}
pytestmark = pytest.mark.simulator_only


@pytest.mark.parametrize(
    ("status", "text", "what", "more"),
    [
        (0, "expected ab\ncudaSuccess 0 8 0 1 1\ncudaSuccess 0 8 0 1 1\n", "right numbers", {"launches": 2}),
        (
            0,
            "expected ab\ncudaSuccess 0 8 0 1 1\ncudaSuccess 3 8 2 42424242 1\n",
            "wrong numbers",
            {"wrong launches": 1, "fewest wrong words": 3, "words": 8, "example": "word 2: 42424242 instead of 1"},
        ),
        (3, "expected ab\ncudaErrorIllegalAddress 0 8 0 0 1\n", "error", {"error": "cudaErrorIllegalAddress"}),
        (None, "expected ab\ncudaSuccess 0 8 0 1 1\n", "hang", {"launches": 1}),
        (None, "", "the mended kernel did not come to its end", {}),
        (3, "cudaErrorLaunchFailure 0 8 0 0 0\n", "the mended kernel did not come to its end", {}),
        (-11, "expected ab\ncudaSuccess 0 8 0 1 1\n", "exit status -11", {}),
    ],
)
def test_outcomes(status, text, what, more):
    found = outcome(status, text, 2)
    assert found["outcome"] == what
    assert {key: found.get(key) for key in more} == more


@pytest.mark.long
def test_a_run_on_the_simulator_in_the_place_of_a_gpu(tmp_path):
    """An error, a note and their twins; the mended kernels write what is expected."""
    file = tmp_path / "record.json"
    script = Path(__file__).with_name("record_faults.py")
    names = ["no_barrier", "no_fence"]
    options = ["--device", "sim", "--launches", "1", "--seconds", "60", "--total", "300", "--workers", "2"]
    done = subprocess.run([sys.executable, script, file, *options, "--only", *names], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    record = json.loads(file.read_text())
    rows = {row["fault"]: row for row in record["faults"]}
    assert set(rows) == set(names) and record["stopped"] is None
    assert rows["no_barrier"]["gpu"] | {"expected": 0} == {
        "expected": 0, "outcome": "error", "launches": 0, "error": "cudaErrorLaunchFailure"
    }  # fmt: skip
    assert rows["no_fence"]["gpu"]["outcome"] == "right numbers"
    assert (rows["no_barrier"]["warpsim"]["as"], rows["no_fence"]["warpsim"]["as"]) == ("error", "note")
    for row in rows.values():
        assert row["warpsim"]["kind"] in row["marked"]
        assert row["gpu mended"]["outcome"] == "right numbers" and row["warpsim mended"] is None
        assert row["gpu mended"]["expected"] == row["warpsim expected"]


def test_there_are_many_of_each():
    assert len(FAULTS) >= 80 and all(marks(PROGRAMS / file, name)[0] for file, name in FAULTS)


def test_each_fault_is_recorded():
    if not RECORD.exists():
        pytest.skip(f"what a GPU says to the faults is not recorded: {RECORD.name}")
    record = json.loads(RECORD.read_text())
    assert record["stopped"] is None
    assert {(row["program"], row["fault"]) for row in record["faults"]} == FAULTS
    for row in record["faults"]:
        assert row["warpsim"]["kind"] in marks(PROGRAMS / row["program"], row["fault"])[0], row["fault"]
        assert row["warpsim mended"] is None, row["fault"]
        assert row["gpu mended"]["outcome"] == "right numbers", row["fault"]
        assert row["gpu mended"]["expected"] == row["warpsim expected"], row["fault"]
