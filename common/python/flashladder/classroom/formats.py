"""Points for other programs: CSV, JUnit XML, Gradescope's results.json, Classroom 50's result.json.

docs/instructors.md says which descriptions of these formats this follows.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from flashladder.classroom.marks import Check, Exercise, Marks, number
from flashladder.classroom.text import for_csv, one_line, plain
from flashladder.core.errors import FlashLadderError


def csv_head(marks: Marks) -> list[str]:
    exercises = [exercise.id for exercise in marks.exercises]
    return ["id", "name", "points", "of", *exercises, "late", "corrected", "remark", "key"]


def csv_row(marks: Marks) -> list[str]:
    """No points (empty cells) for what could not be graded; 0 for what was refused."""
    remark = f"NOT GRADED: {marks.ungraded}" if marks.ungraded else marks.refused
    remark = remark or "; ".join(f"{kernel.stage}: {kernel.refused}" for kernel in marks.kernels if kernel.refused)
    points = ["" if marks.ungraded else number(exercise.points) for exercise in marks.exercises]
    total = "" if marks.ungraded else number(marks.points)
    late = f"{marks.late.days} d, -{number(marks.late.cost)}" if marks.late.days else ""
    about = [for_csv(words) for words in (late, "; ".join(marks.corrected), remark)]
    return [marks.id, for_csv(marks.name), total, number(marks.most), *points, *about, marks.key[:16]]


def csv_line(cells: list[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()


def _checks(marks: Marks) -> Iterator[tuple[Exercise, Check]]:
    """All checks; an exercise that has none (nothing was run) counts as one that was lost."""
    reason = marks.refused or next((kernel.refused for kernel in marks.kernels if kernel.refused), "")
    for exercise in marks.exercises:
        words = plain(reason or "; ".join(exercise.words))
        for check in exercise.checks or [Check("graded", False, exercise.points, exercise.most, words)]:
            yield exercise, check


def junit_suite(marks: Marks) -> str:
    """One <testsuite>: a case for each check; where the grader failed an error, which is no failure."""
    cases = list(_checks(marks))
    failures = 0 if marks.ungraded else sum(not check.passed for _, check in cases)
    counts = {"tests": len(cases), "failures": failures, "errors": len(cases) if marks.ungraded else 0}
    suite = ElementTree.Element("testsuite", {"name": marks.id} | {name: str(count) for name, count in counts.items()})
    for exercise, check in cases:
        about = {"classname": f"{marks.id}.{exercise.stage}.{exercise.name}", "name": check.name}
        case = ElementTree.SubElement(suite, "testcase", about)
        if marks.ungraded:
            ElementTree.SubElement(case, "error", {"type": "ungraded", "message": one_line(marks.ungraded)})
        elif not check.passed:
            about = {"type": check.name.partition(":")[0], "message": one_line(check.words)}
            ElementTree.SubElement(case, "failure", about).text = plain(check.words)
    ElementTree.indent(suite, level=1)
    return "  " + ElementTree.tostring(suite, encoding="unicode").strip() + "\n"


def junit(name: str, suites: Iterable[str]) -> Iterator[str]:
    """The lines of a JUnit XML file of these suites, one after the other: a class need not be in memory."""
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name={quoteattr(name)}>\n'
    yield from suites
    yield "</testsuites>\n"


def gradescope(marks: Marks) -> dict:
    """results.json: a test for each check. What is about hidden sizes is shown when the grades are published."""
    if marks.ungraded:
        raise FlashLadderError(f"{marks.id} could not be graded: {marks.ungraded}")
    public = {sizes.name for sizes in marks.assignment.public_sizes}
    tests = []
    for exercise, check in _checks(marks):
        hidden = check.sizes and check.sizes not in public
        tests.append(
            {
                "name": f"{exercise.id}: {check.name}",
                "name_format": "text",
                "score": check.points,
                "max_score": check.most,
                "status": "passed" if check.passed else "failed",
                "output": plain(check.words),
                "output_format": "text",
                "visibility": "after_published" if hidden else "visible",
            }
        )
    about = [marks.refused, marks.late.words, *(f"Corrected: {words}" for words in marks.corrected)]
    about += [f"{exercise.id}: {words}" for exercise in marks.exercises for words in exercise.words]
    about += [f"{exercise.id}: {exercise.next}" for exercise in marks.exercises if exercise.next]
    for kernel in marks.kernels:
        said = [kernel.refused, kernel.first_wrong, *kernel.hazards, *kernel.technique, *kernel.remarks]
        about += [f"{kernel.stage}.cu: {words}" for words in said if words]
    return {
        "score": marks.points,
        "output": plain("\n".join(filter(None, about))),
        "output_format": "text",
        "stdout_visibility": "hidden",
        "tests": tests,
    }


# By field of Classroom 50's result, what its runner tells an autograder by the environment.
CLASSROOM50_FIELDS = {
    "classroom": "CLASSROOM",
    "assignment": "ASSIGNMENT",
    "assignment_type": "ASSIGNMENT_TYPE",
    "owner": "OWNER",
    "submission": "SUBMISSION_TAG",
    "commit": "COMMIT_URL",
    "release": "RELEASE_URL",
    "review": "REVIEW_URL",
}


def classroom50(marks: Marks, told: Mapping[str, str], datetime: str) -> dict:
    """result.json of the schema classroom50/result/v1: a test for each exercise, its points rounded to a whole number.

    told: the variables of CLASSROOM50_FIELDS; datetime: of the submission, YYYY-MM-DDTHH:MM:SSZ.
    """
    if marks.ungraded:
        raise FlashLadderError(f"{marks.id} could not be graded: {marks.ungraded}")
    told = {"ASSIGNMENT_TYPE": "individual", "OWNER": told.get("USERNAME", "")} | dict(told)
    told = told | {"REVIEW_URL": told.get("REVIEW_URL") or told.get("COMMIT_URL", "")}
    missing = [variable for variable in CLASSROOM50_FIELDS.values() if not told.get(variable)]
    if missing:
        raise FlashLadderError(f"{', '.join(missing)} not set: Classroom 50's runner sets it for an autograder.")
    tests = [
        {
            "test-name": exercise.id,
            "passed": exercise.points >= exercise.most,
            "score": _whole(exercise.points),
            "max-score": _whole(exercise.most),
            "message": "\n".join(
                [*exercise.words, *(f"{check.name}: {check.words}" for check in exercise.checks if not check.passed)]
            ),
        }
        for exercise in marks.exercises
    ]
    return {
        "schema": "classroom50/result/v1",
        **{field: told[variable] for field, variable in CLASSROOM50_FIELDS.items()},
        "datetime": datetime,
        "score": _whole(marks.points) if marks.late.cost or marks.corrected else sum(test["score"] for test in tests),
        "max-score": sum(test["max-score"] for test in tests),
        "tests": tests,
    }


def _whole(points: float) -> int:
    return int(points + 0.5)
