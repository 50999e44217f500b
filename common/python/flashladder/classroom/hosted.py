"""Grades one submission where somebody else's service runs it, and writes what that service reads.

    python -m flashladder.classroom.hosted prepare ASSIGNMENT                      builds what grading needs
    python -m flashladder.classroom.hosted gradescope ASSIGNMENT FOLDER RESULTS    results.json of Gradescope
    python -m flashladder.classroom.hosted classroom50 ASSIGNMENT FOLDER RESULTS   result.json of Classroom 50

ASSIGNMENT: a file. FOLDER: what was handed in. A status other than 0, and no file, say that the grader failed: that is
no result of the submission.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from flashladder.building import build
from flashladder.classroom import assignment as assignments
from flashladder.classroom import formats, marks, pool, submissions
from flashladder.classroom.assignment import Assignment
from flashladder.classroom.marks import Marks
from flashladder.classroom.task import task_of
from flashladder.core.errors import FlashLadderError

TARGETS = ("warpsim_cudart",)  # of the build; the kernels are compiled for each submission


def grade_one(assignment: Assignment, folder: Path) -> Marks:
    """A submission's marks. FlashLadderError where it could not be graded."""
    wanted = [assignments.file_name(number) for number in assignment.stages]
    submission = submissions.read_one(folder, "submission", wanted)
    if submission.refused:
        return marks.nothing(submission.id, submission.name, assignment, refused=submission.refused)
    outcome = pool.attempt(task_of(submission, assignment))
    if outcome.result is None:
        raise FlashLadderError(f"The submission could not be graded: {outcome.failed}.")
    return marks.of_result(submission.id, submission.name, assignment, outcome.result)


def commit_time(folder: Path) -> str:
    """When the commit that is checked out was made, as Classroom 50 writes it. FlashLadderError without a checkout."""
    command = ["git", "-C", str(folder), "show", "--no-patch", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ"]
    done = subprocess.run(command, env=os.environ | {"TZ": "UTC"}, capture_output=True, text=True)
    if done.returncode:
        raise FlashLadderError(f"{folder} is no checkout of git's: {done.stderr.strip()}")
    return done.stdout.strip()


def result(service: str, one: Marks, folder: Path, told: Mapping[str, str]) -> dict:
    if service == "gradescope":
        return formats.gradescope(one)
    return formats.classroom50(one, told, commit_time(folder))


def main(arguments: list[str]) -> int:
    try:
        service, name, *places = arguments
        assignment = assignments.get(name)
        if service == "prepare":
            build.build(TARGETS)
            return 0
        folder, file = map(Path, places)
        file.write_text(json.dumps(result(service, grade_one(assignment, folder), folder, os.environ), indent=2) + "\n")
    except FlashLadderError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
