"""Fixtures of the classroom's tests."""

import sys
from pathlib import Path

import pytest
from graded import SIMULATOR, assignment_text

from flashladder.classroom import assignment, exercise, isolation
from flashladder.classroom.device_code import Sandbox
from flashladder.core.environment import prepended
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import build_directory, simulator_library

FAKE = Path(__file__).parent / "fake"
sys.modules.setdefault("rfc3987_syntax", None)  # jsonschema would build a grammar of addresses for two seconds


@pytest.fixture
def fake_grader(tmp_path, monkeypatch) -> str:
    """The module of a grader that takes no time; fake/fake_grader.py says what it does with a kernel's text."""
    counts = tmp_path / "counts"
    counts.mkdir()
    monkeypatch.setenv("PYTHONPATH", prepended(PYTHONPATH=FAKE)["PYTHONPATH"])
    monkeypatch.setenv("FAKE_GRADER_COUNTS", str(counts))
    monkeypatch.syspath_prepend(FAKE)
    sys.modules.pop("fake_grader", None)
    return "fake_grader"


@pytest.fixture
def small():
    """An assignment of one exercise of stage 05."""
    first = exercise.exercises(5)[0].name
    return assignment.parse("small", assignment_text(f'stage = 5\nname = "{first}"\npoints = 100'))


@pytest.fixture(scope="session")
def level() -> isolation.Level:
    """The best isolation that this machine has."""
    if not simulator_library().exists() or not (build_directory() / "compile_commands.json").exists():
        pytest.skip("the simulator is not built yet: run `make build`")
    try:
        return isolation.choose()
    except FlashLadderError as error:
        pytest.skip(f"no isolation here: {error}")


@pytest.fixture
def sandbox(level, tmp_path) -> Sandbox:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Sandbox(level, SIMULATOR, 1, scratch)
