"""The exercises of a stage: its own source is judged right, and what stands in for it, or is planted in it, is not."""

import pytest

from flashladder.classroom import judge
from flashladder.classroom.exercise import exercises, fill, mends


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
