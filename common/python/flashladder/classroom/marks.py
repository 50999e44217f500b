"""What one submission got, as the reports and formats show it: made of a task's result, with no times in it."""

import base64
from dataclasses import dataclass, field

from flashladder.classroom.assignment import Assignment
from flashladder.classroom.exercise import exercises
from flashladder.classroom.late import NOT_LATE, Lateness
from flashladder.classroom.text import plain
from flashladder.core.errors import FlashLadderError
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
    where = f"line {hazard['line']}" if hazard.get("line") else ""
    of = f" of {hazard['exercise']}" if hazard.get("exercise") else ""
    return plain(": ".join(filter(None, [where + of, str(hazard.get("kind", "")), str(hazard.get("message", ""))])))


def number(points: float) -> str:
    """7.0 -> 7, 7.25 -> 7.25"""
    return f"{points:.2f}".rstrip("0").rstrip(".")
