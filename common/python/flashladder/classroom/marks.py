"""What one submission got, as the reports and formats show it: made of a task's result, with no times in it.

And corrections by an instructor: overrides.toml beside a class's results. They survive every run of the grader, and a
report says whose they are and why.

    [[override]]
    student = "ada"
    exercise = "05 tile_offset"   # left out: the points of the whole submission, late or not
    points = 35
    by = "B. Meyer"
    why = "the race is in the harness"
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from flashladder.classroom.assignment import Assignment
from flashladder.classroom.exercise import exercises
from flashladder.classroom.late import NOT_LATE, Lateness
from flashladder.classroom.text import plain
from flashladder.core.errors import FlashLadderError
from flashladder.core.toml import check_keys, tomllib
from flashladder.ladder import stages


@dataclass(frozen=True)
class Check:
    """One thing that was looked at for an exercise."""

    name: str  # "builds", "correct: whole tiles", "hazards", "technique", ...
    passed: bool
    points: float
    most: float
    words: str  # for the student
    details: str = ""  # for the instructor: sizes of hidden classes, too

    @property
    def sizes(self) -> str:
        """The class of sizes that it is about, else ""."""
        return self.name.partition(": ")[2]


@dataclass(frozen=True)
class Exercise:
    stage: str  # 05_swizzle
    name: str
    title: str
    points: float
    most: float
    checks: tuple[Check, ...]
    words: tuple[str, ...] = ()  # about all of it, such as "not written yet", or what the loss depends on
    next: str = ""  # what the next points need

    @property
    def id(self) -> str:
        return f"{self.stage[:2]} {self.name}"


@dataclass(frozen=True)
class Kernel:
    """What was found in one stage's file."""

    stage: str
    refused: str  # why nothing of it was run, else ""
    first_wrong: str
    hazards: tuple[str, ...]
    technique: tuple[str, ...]
    remarks: tuple[str, ...]
    isolation: str


@dataclass(frozen=True)
class Marks:
    id: str
    name: str
    assignment: Assignment
    exercises: tuple[Exercise, ...]
    kernels: tuple[Kernel, ...] = ()
    pictures: dict[str, bytes] = field(default_factory=dict, repr=False)
    refused: str = ""  # why nothing of the submission was looked at: 0 points
    ungraded: str = ""  # why there are no points: the grader's fault, not the student's
    key: str = ""
    late: Lateness = NOT_LATE
    corrected: tuple[str, ...] = ()  # what an instructor has overridden, a sentence each
    total: float | None = None  # overridden: the points of all of it

    @property
    def points(self) -> float:
        if self.total is not None:
            return self.total
        return round(max(0.0, sum(exercise.points for exercise in self.exercises) - self.late.cost), 2)

    @property
    def most(self) -> float:
        return self.assignment.points


def of_result(identity: str, name: str, assignment: Assignment, result: dict) -> Marks:
    """Marks of what task.run() returned. FlashLadderError where its points are not possible."""
    written, kernels = [], []
    for grade in result["grades"]:
        stage = stages.get(grade["stage"]).name
        titles = _titles(grade["stage"])
        for one in grade["exercises"]:
            checks = tuple(
                Check(
                    check["name"],
                    bool(check["passed"]),
                    check["points"],
                    check["most"],
                    plain(check["words"]),
                    plain(check.get("details", "")),
                )
                for check in one["checks"]
            )
            title = titles.get(one["name"], one["name"])
            words = tuple(plain(one[name]) for name in ("words", "cause") if one.get(name))
            needed = plain(one.get("next", ""))
            written.append(Exercise(stage, one["name"], title, one["points"], one["most"], checks, words, needed))
        hazards = tuple(_hazard(hazard) for hazard in grade["hazards"])
        technique, remarks = (tuple(map(plain, grade.get(name, ()))) for name in ("technique", "remarks"))
        said = (plain(grade["refused"]), plain(grade["first_wrong"]), hazards, technique, remarks, grade["isolation"])
        kernels.append(Kernel(stage, *said))
    pictures = {picture: base64.b64decode(data) for picture, data in result["pictures"].items()}
    marks = Marks(identity, name, assignment, tuple(written), tuple(kernels), pictures, key=result["key"])
    promised = {(item.stage, item.name): item.points for item in assignment.items}
    given = {(int(one.stage[:2]), one.name): one.most for one in written}
    if given != promised or any(not 0 <= one.points <= one.most + 1e-9 for one in written):
        raise FlashLadderError(f"The grader's points for {identity} are not those of the assignment: {given}.")
    return marks


def nothing(identity: str, name: str, assignment: Assignment, *, refused: str = "", ungraded: str = "") -> Marks:
    """Marks of a submission that was not looked at (0 points), or could not be graded (no points)."""
    written = []
    for item in assignment.items:
        title = _titles(item.stage).get(item.name, item.name)
        written.append(Exercise(stages.get(item.stage).name, item.name, title, 0, item.points, ()))
    words = {"refused": plain(refused), "ungraded": plain(ungraded)}
    return Marks(identity, name, assignment, tuple(written), **words)


def _titles(stage: int) -> dict[str, str]:
    return {exercise.name: exercise.title for exercise in exercises(stage)}


def _hazard(hazard: dict) -> str:
    line = f"line {hazard['line']}" if hazard.get("line") else ""
    where = " of ".join(filter(None, [line, str(hazard.get("exercise", ""))]))
    return plain(": ".join(filter(None, [where, str(hazard.get("kind", "")), str(hazard.get("message", ""))])))


def number(points: float) -> str:
    """7.0 -> 7, 7.25 -> 7.25"""
    return f"{points:.2f}".rstrip("0").rstrip(".")


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
