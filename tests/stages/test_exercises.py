"""The exercises of a stage: its own source is judged right, and what stands in for it, or is planted in it, is not."""

import pytest

from flashladder.classroom import judge
from flashladder.classroom.exercise import exercises, fill, mends
from flashladder.ladder import technique


def test_what_is_asked(stage):
    """Without compiling anything: enough to do, hints, names of expectations, and a solution in its place."""
    if not (stage.folder / "exercises.toml").exists():
        pytest.skip(f"stage {stage.id} has no exercises")
    asked = exercises(stage)
    assert len(asked) >= 3 and mends(stage), (
        f"stage {stage.id} asks for {len(asked)} parts and {len(mends(stage))} mends"
    )
    known = {f"technique:{one.name}" for one in technique.expectations(stage)} | {"correct", "hazards", "technique"}
    for one in asked:
        told = f"stage {stage.id}, {one.name}"
        assert len(one.hints) == 3 and len(one.task) > 60, f"{told}: three hints, and a task in words"
        assert set(one.checks) <= known, f"{told}: the stage does not expect {sorted(set(one.checks) - known)}"
        assert not one.is_stub(one.solution), f"{told}: the stub is the solution"
        assert fill(stage, {one.name: one.solution}).source == stage.source.read_text(), f"{told}: not in its place"


@pytest.mark.long
def test_the_shipped_source_is_right(stage):
    """With all checks that any exercise of the stage has."""
    checks = {check for one in (*exercises(stage), *mends(stage)) for check in one.checks}
    if not checks:
        pytest.skip(f"stage {stage.id} has no exercises")
    found = judge.judge(stage, stage.source.read_text(), sorted(checks))
    assert found.passed, "\n".join(found.words)


@pytest.mark.long
def test_stubs_compile_and_are_not_right(stage):
    for one in exercises(stage):
        found = judge.judge(stage, fill(stage, {one.name: one.stub}).source, one.checks)
        assert found.built, f"the stub of {one.name} does not compile:\n" + "\n".join(found.words)
        assert not found.passed, f"the stub of {one.name} is right: nothing is left to be written"
        assert found.words, one.name


@pytest.mark.long
def test_planted_mistakes_are_not_right(stage):
    for one in mends(stage):
        found = judge.judge(stage, one.starter(), one.checks)
        assert found.built and not found.passed and found.words, one.name
