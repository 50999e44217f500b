"""The exercises of a stage: its own source is judged right, and what stands in for it, or is planted in it, is not."""

import pytest
from chosen import chosen_stages
from shares import WHOLE

from flashladder.classroom import judge
from flashladder.classroom.exercise import exercises, fill, mends, techniques
from flashladder.core.paths import place
from flashladder.ladder import kernels, technique


def test_what_is_asked(stage):
    """Without compiling anything: enough to do, hints, names of expectations, and a solution in its place."""
    asked = exercises(stage)
    assert len(asked) >= (3 if isinstance(stage, kernels.Kernel) else 1) and mends(stage), (
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


def fails(one) -> None:
    """What stands in for an exercise's lines compiles in their place (one instance of the kernel, for speed), and is
    wrong, races or lacks what the exercise is to teach."""
    stage = one.stage
    file = place("stubs", f"{stage.id}_{one.name}", stage.source.name, one.starter())
    library = kernels.compile_kernel(file, stage)
    if kernels.judge(stage, library).caught:
        return
    asked = techniques(one.checks)
    missed = [] if asked == [] else technique.judge(stage, library, asked)
    assert missed, f"the stub of stage {stage.id}'s {one.name} passes its checks: nothing is left to be written"


QUICK = {("05", "tile_offset"), ("06", "wait")}  # one without the technique, one with a hazard


@pytest.mark.parametrize(
    "exercise",
    [one for stage in chosen_stages() for one in exercises(stage) if (stage.id, one.name) in QUICK],
    ids=lambda one: one.name,
)
def test_some_stubs_compile_and_are_not_right(exercise):
    fails(exercise)


@pytest.mark.long
def test_stubs_compile_and_are_not_right(stage):
    """Of the planted mistakes test_mistakes.py says the same. Of each stage the first one; FLASHLADDER_WHOLE=1: all."""
    for one in exercises(stage)[: None if WHOLE else 1]:
        fails(one)
