"""Exercises on the command line: `make exercise-05 start NAME=tile_offset`, `check`, ...; `make exercises`."""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from flashladder.classroom import exercise as described
from flashladder.classroom import progress
from flashladder.classroom.exercise import Exercise, Mend
from flashladder.classroom.progress import file_of, shown
from flashladder.commands import verbs
from flashladder.core.console import coloured, plural, say, table
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.ladder.stages import Stage

POLL_SECONDS = 0.4


def command(which: str, words: list[str], name: str = "") -> int:
    """Does what the words ask for, in their order; without any it lists the stage's exercises."""
    return verbs.follow("exercise", VERBS, stages.entry(which), words, name)


def ladder() -> int:
    """All stages on one screen: points, and what was begun and is not right."""
    rows, reached, possible = [], 0, 0
    for stage in stages.all_parts():
        found = progress.states(stage)
        most, points = sum(one.exercise.points for one in found), sum(one.points for one in found)
        reached, possible = reached + points, possible + most
        marks = "".join("■" if one.passed else "▪" if one.place else "·" for one in found)
        begun = ", ".join(f"{one.exercise.name}: {one.words}" for one in found if one.place and not one.passed)
        rows.append([stage.id, stage.title, marks, f"{points} of {most}" if found else "none", begun])
    table("Exercises", ("", "stage", "■ right  ▪ begun", "points", ""), rows, right=(3,))
    say(f"\n{reached} of {possible} points. `make exercise-02` lists a stage's exercises; docs/exercises.md says more.")
    return 0


def _list(stage: Stage, name: str) -> int:
    found = progress.states(stage)
    if not found:
        raise FlashLadderError(
            f"Stage {stage.id} has no exercises. `make exercises` lists those that there are; its lesson is "
            f"notebooks/{stage.name}.ipynb."
        )
    rows = [[one.exercise.name, _title(one.exercise), one.exercise.points, one.words, one.place] for one in found]
    table(f"Stage {stage.id}, {stage.title}", ("NAME", "", "points", "", "in"), rows, right=(2,))
    say(f"\n`make exercise-{stage.id} start NAME={_next(found)}` begins one; then `check`, `hint` and `watch`.")
    return 0


def _title(exercise: Exercise | Mend) -> str:
    return f"{exercise.title} (optional)" if isinstance(exercise, Exercise) and exercise.optional else exercise.title


def _next(found: list[progress.State]) -> str:
    """The first exercise that is not begun, else the first that is not right, else the first; optional ones last."""
    found = sorted(found, key=lambda one: isinstance(one.exercise, Exercise) and one.exercise.optional)
    for wanted in (lambda one: not one.place, lambda one: not one.passed, lambda one: True):
        for one in found:
            if wanted(one):
                return one.exercise.name
    return "..."


def _start(stage: Stage, name: str) -> int:
    chosen = described.get(stage, name or _next(progress.states(stage)))
    file = progress.begin(chosen)
    say(f"{coloured(chosen.title, 'bold')} ({plural(chosen.points, 'point')}): {shown(file)}")
    say(chosen.task)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if editor and sys.stdin.isatty() and sys.stdout.isatty():
        try:
            return subprocess.run([*shlex.split(editor), str(file)]).returncode
        except OSError as error:
            raise FlashLadderError(f"{editor} ($VISUAL or $EDITOR) cannot be started: {error}") from error
    say(f"Write it there; `make exercise-{stage.id} check` judges it, `watch` does so whenever you save.")
    return 0


def _check(stage: Stage, name: str) -> int:
    return 0 if all([_judged(one) for one in _begun(stage, name)]) else 1


def _hint(stage: Stage, name: str) -> int:
    states = {one.exercise.name: one for one in progress.states(stage)}
    open_ones = [one for one in _begun(stage, name) if name or not states[one.name].passed]
    return verbs.hint("exercise", stage, open_ones, f"the solution is in {shown(stage.source)}")


def _watch(stage: Stage, name: str) -> int:
    """Judges the files whenever they are saved, until all are right or the reader ends it."""
    chosen = _begun(stage, name)
    left = {one.name for one in chosen if not _judged(one)}
    seen = {one.name: _stamp(file_of(one)) for one in chosen}
    if left:
        say(f"\nWatching {', '.join(shown(file_of(one)) for one in chosen)}: save to check again, Ctrl-C ends it.")
    try:
        while left:
            time.sleep(POLL_SECONDS)
            for one in chosen:
                stamp = _stamp(file_of(one))
                if stamp != seen[one.name]:
                    seen[one.name] = stamp
                    say()
                    (left.discard if _judged(one) else left.add)(one.name)
    except KeyboardInterrupt:
        return 0
    say("All of it is right.")
    return 0


def _stamp(file: Path) -> tuple | None:
    """Changes when the file is saved; None where an editor has moved it away for a moment."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _begun(stage: Stage, name: str) -> list[Exercise | Mend]:
    """The exercise of that name, else all of the stage that have a file in work/."""
    if name:
        return [described.get(stage, name)]
    return verbs.begun("exercise", stage, [*described.exercises(stage), *described.mends(stage)], file_of)


def _judged(exercise: Exercise | Mend) -> bool:
    """Judges an exercise's file and says what came of it; True where it is right. Damaged marks are said, too."""
    try:
        answer = progress.answer_in(exercise, file_of(exercise))

        def doing(words: str) -> None:
            say(f"{exercise.name}: {words}")

        found = progress.check(exercise, answer.text, answer.line, answer.shipped, doing)
    except FlashLadderError as error:
        if not file_of(exercise).exists():
            raise
        say(f"{coloured(exercise.name, 'bold')}: {error}")
        return False
    title = f"{coloured(exercise.name, 'bold')} ({plural(exercise.points, 'point')})"
    return verbs.tell(title, found, found.written, answer.remarks)


VERBS = {"list": _list, "start": _start, "check": _check, "hint": _hint, "watch": _watch}
