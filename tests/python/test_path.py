"""`make next`: what is done, what comes next, how long it takes; and that nothing of it is lost."""

import json

import pytest

from flashladder.classroom import blank, done, exercise, progress, puzzles
from flashladder.classroom.judge import Finding, Judgement
from flashladder.commands import following
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import work_directory
from flashladder.ladder import stages


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHLADDER_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("FLASHLADDER_BUILD", str(tmp_path / "build"))
    return tmp_path


def of(number: int) -> following.Part:
    return next(part for part in following.way() if part.stage.number == number)


def finish(number: int) -> None:
    """All of a stage is done."""
    stage = stages.entry(number)
    done.note(stage, done.PUZZLE, [one.name for one in puzzles.puzzles(stage)])
    done.note(stage, done.EXERCISE, [progress._lasting(state.exercise) for state in progress.states(stage)])
    done.note(stage, done.BLANK, [blank.WHOLE])


def test_a_beginner_starts_with_the_first_lesson(capsys):
    assert following.run() == 0
    printed = capsys.readouterr().out
    assert (
        "0 of " in printed
        and "Next: stage 01" in printed  # 00 is a branch, which can be taken at any time
        and "notebooks/01_naive.ipynb: about 30 min" in printed
    )
    assert "make exercise-01 start NAME=" in printed and "Skipped" not in printed and "progress.json" not in printed


def test_every_stage_has_minutes_and_every_step_a_command():
    for part in following.way():
        assert 15 <= part.lesson_minutes <= 120 and part.steps
        for step in part.steps:
            assert 2 <= step.minutes <= 180 and step.command.startswith("make ") and not (step.done or step.begun)


def test_who_is_further_on_is_not_sent_back(capsys):
    done.note(stages.get(5), done.PUZZLE, ["no_conflicts"])
    following.run()
    printed = capsys.readouterr().out
    assert "Next: stage 05" in printed and "Skipped so far: " in printed and "1 of 1" in printed
    assert "notebooks/05" not in printed  # the lesson is begun
    assert "work/progress.json" in printed


def test_who_is_off_the_core_path_is_told_its_next_stop(capsys):
    name = exercise.exercises("eager_kv")[0].name
    done.note(stages.get("eager_kv"), done.EXERCISE, [name])
    following.run()
    printed = capsys.readouterr().out
    assert "Next: stage 07" in printed and "The next one is stage 09, Double buffering: about 40 min" in printed
    assert following.next_stop(following.way()).stage.slug == "double_buffering"


def test_a_stage_that_is_done_leads_to_the_next():
    finish(3)
    assert not of(3).left and of(3).minutes_left == 0
    assert following.current(following.way()).stage.number == 4
    last = following.way()[-1].stage.number
    finish(last)
    assert following.current(following.way()) is None


def test_a_begun_file_counts_as_begun_and_its_command_goes_on():
    one = puzzles.get(5, "no_conflicts")
    one.file.parent.mkdir(parents=True)
    one.file.write_text(one.page())
    step = next(step for step in of(5).steps if step.kind == "puzzle")
    assert step.begun and not step.done and step.command == "make puzzle-05 check NAME=no_conflicts"


def test_a_right_exercise_stays_done_when_its_stage_changes(monkeypatch):
    """As after a pull: its file is gone, build/ is gone, the stage's number is another one."""
    one = exercise.get(5, "tile_offset")
    right = Judgement((Finding("builds", True), Finding("correct", True)))
    monkeypatch.setattr(progress.remembered, "key", lambda *arguments: "key")
    monkeypatch.setattr(progress.judge, "attempt", lambda *arguments: right)
    progress.check(one, "return row * d_head + (c ^ row % 8) * chunk;")
    step = next(step for step in of(5).steps if step.name == "tile_offset")
    assert step.done and list(done.everything()) == ["swizzle/exercise/tile_offset"]
    renumbered = type(one.stage)(25, "25_swizzle", "", "", one.stage.min_compute, None, one.stage.folder, {})
    assert done.is_done(renumbered, done.EXERCISE, "tile_offset")


def test_the_day_of_what_was_done_first_stays():
    stage = stages.get(6)
    work_directory().mkdir(parents=True)
    kept = {"cp_async/blank page/tiles": "2026-01-02"}
    done.file().write_text(json.dumps({"version": 1, "done": kept}))
    done.note(stage, done.BLANK, ["tiles", "scores"])
    assert done.everything()["cp_async/blank page/tiles"] == "2026-01-02" and len(done.everything()) == 2


@pytest.mark.parametrize("content", ("", "[]", '{"done": 3}', '{"version": 1}', "\0"))
def test_a_damaged_record_is_told_and_stays(content):
    done.file().parent.mkdir(parents=True)
    done.file().write_text(content)
    with pytest.raises(FlashLadderError, match="progress.json cannot be read"):
        following.run()
    with pytest.raises(FlashLadderError, match="mend it, or move it away"):
        done.note(stages.get(6), done.BLANK, ["tiles"])
    assert done.file().read_text() == content


def test_who_works_on_gradients_is_told_what_comes_next_there(capsys):
    first, *others = stages.backward_stages()
    done.note(first, done.EXERCISE, [exercise.exercises(first)[0].name])
    following.run()
    printed = capsys.readouterr().out
    assert f"Next: stage {first.id}" in printed and f"\n{others[-1].id} " in printed and "\n50 " not in printed
    for stage in (first, *others):
        finish(stage.number)
    following.run()
    printed = capsys.readouterr().out
    assert "That is all of this part." in printed and "decode_naive.ipynb" in printed
    assert "backward_naive.ipynb" not in printed


def test_at_the_end_the_other_parts_are_named(capsys):
    for part in following.way():
        finish(part.stage.number)
    following.run()
    printed = capsys.readouterr().out
    assert "That is all of the ladder." in printed
    for part, begins in (
        (stages.backward_stages(), "backward_naive.ipynb"),
        (stages.decode_stages(), "decode_naive.ipynb"),
        (stages.ring_stages(), "gather.ipynb"),
    ):
        first = following.notebook(part[0])
        assert first.endswith(begins) and first in printed
