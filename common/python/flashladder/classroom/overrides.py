"""Corrections by an instructor: overrides.toml beside a class's results. They survive every run of the grader, and a
report says whose they are and why.

    [[override]]
    student = "ada"
    exercise = "05 tile_offset"   # left out: the points of the whole submission, late or not
    points = 35
    by = "B. Meyer"
    why = "the race is in the harness"
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flashladder.classroom.assignment import Assignment
from flashladder.classroom.marks import Marks, number
from flashladder.core.errors import FlashLadderError
from flashladder.core.toml import check_keys, tomllib
from flashladder.ladder import stages

FILE = "overrides.toml"
_NEEDED = ("student", "points", "by", "why")


@dataclass(frozen=True)
class Override:
    student: str  # a submission's id
    points: float
    by: str
    why: str
    exercise: str = ""  # "05 tile_offset"; "": all of the submission


def read(file: Path, assignment: Assignment) -> list[Override]:
    """Those of a file; none where there is no file. FlashLadderError says what is wrong with it."""
    if not file.exists():
        return []
    try:
        data = tomllib.loads(file.read_text())
        found = [_read(file, number, entry) for number, entry in enumerate(data.get("override", []), 1)]
    except (OSError, tomllib.TOMLDecodeError, TypeError, AttributeError) as error:
        raise FlashLadderError(f"{file}: {error}") from error
    if set(data) - {"override"}:
        raise FlashLadderError(f"{file} has [[override]], not [{sorted(set(data) - {'override'})[0]}].")
    most = {_id(item.stage, item.name): item.points for item in assignment.items} | {"": assignment.points}
    for one in found:
        if one.exercise not in most:
            raise FlashLadderError(
                f"{file}: the override for {one.student} names no exercise of {assignment.name}: '{one.exercise}'. It "
                f"has {', '.join(filter(None, most))}."
            )
        if not 0 <= one.points <= most[one.exercise]:
            raise FlashLadderError(f"{file}: the override for {one.student}: points are 0 to {most[one.exercise]:g}.")
    named = [(one.student, one.exercise) for one in found]
    twice = next((one for one in named if named.count(one) > 1), None)
    if twice:
        raise FlashLadderError(f"{file} overrides {twice[1] or 'all'} of {twice[0]} twice: keep one of them.")
    return found


def _read(file: Path, number: int, entry: dict) -> Override:
    check_keys(entry, _NEEDED, ("exercise",), f"{file}: override {number}", ": who corrects a result says so, and why")
    if isinstance(entry["points"], bool) or not isinstance(entry["points"], (int, float)):
        raise FlashLadderError(f"{file}: override {number}: points are a number.")
    words = {name: str(entry[name]).strip() for name in ("student", "by", "why", "exercise") if name in entry}
    if not (words["by"] and words["why"]):
        raise FlashLadderError(f"{file}: override {number}: by and why are not empty.")
    return Override(points=float(entry["points"]), **words)


def _id(stage: int, name: str) -> str:
    return f"{stages.get(stage).name[:2]} {name}"


def applied(marks: Marks, overrides: Sequence[Override]) -> Marks:
    """Marks with the points of those overrides that are this student's."""
    own = {one.exercise: one for one in overrides if one.student == marks.id}
    if not own or marks.ungraded and "" not in own:
        return marks
    corrected, exercises = list(marks.corrected), []
    for exercise in marks.exercises:
        one = own.get(exercise.id)
        if one:
            corrected.append(_words(one, exercise.id, exercise.points))
            exercise = replace(exercise, points=one.points)
        exercises.append(exercise)
    total = own.get("")
    if total:
        corrected.append(_words(total, "the whole submission", None if marks.ungraded else marks.points))
        marks = replace(marks, total=total.points, ungraded="")
    return replace(marks, exercises=tuple(exercises), corrected=tuple(corrected))


def _words(one: Override, what: str, before: float | None) -> str:
    instead = "" if before is None else f" (the grader gave {number(before)})"
    return f"{what}: {number(one.points)} points by {one.by}{instead}: {one.why}"
