"""make assignment and make grade."""

import os
import sys
from pathlib import Path

from flashladder.building import build
from flashladder.classroom import assignment as assignments
from flashladder.classroom import batch, handout, hosted, isolation, pool, services
from flashladder.core.console import say, table
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import results_directory, work_directory
from flashladder.core.signals import Stopped, stopped_by_signals


def list_assignments() -> int:
    rows = [
        (one.name, ", ".join(f"{number:02d}" for number in one.stages), len(one.items), one.title)
        for one in assignments.all_assignments()
    ]
    table("Assignments", ["name", "stages", "exercises", "title"], rows, right=(2,))
    say("\n`make assignment NAME=swizzle` writes the students' folder of one; docs/instructors.md says more.")
    return 0


def write_assignment(name: str, folder: Path | None) -> int:
    assignment = assignments.get(name)
    folder = handout.write(assignment, folder or work_directory() / "assignments" / assignment.name)
    say(f"{os.path.relpath(folder)}: what students get. README.md is the task sheet; `make check` is theirs.")
    return 0


def write_autograder(name: str, service: str, folder: Path | None) -> int:
    assignment = assignments.get(name)
    file = services.write(service, assignment, folder or work_directory() / "autograders" / assignment.name)
    say(f"{os.path.relpath(file)}: docs/instructors.md says what {service} does with it.")
    return 0


def grade(name: str, folder: Path, out: Path | None, scheduler: str, jobs: int | None, isolated: str) -> int:
    """Grades a folder of submissions; 1 where one could not be graded."""
    if not scheduler:  # else it is for the workers to say what they have
        say(f"Isolation: {isolation.choose(isolated).says}")
    assignment = assignments.get(name)
    out = out or results_directory() / "classes" / assignment.name
    if out.resolve().is_relative_to(folder.resolve()):
        raise FlashLadderError(f"{out} lies among the submissions: name another place by OUT=folder.")
    build.build(hosted.TARGETS)
    try:
        with stopped_by_signals(), pool.connect(scheduler, jobs) as workers:
            summary = batch.grade_class(assignment, folder, out, workers, isolated=isolated)
    except Stopped as stopped:
        said = f"Stopped by {stopped.signal.name}, and all that it had started with it."
        print(f"{said} What was graded stays: run it again for the rest.", file=sys.stderr)
        return stopped.status
    say("\n".join(summary.words()))
    say(f"Reports: {os.path.relpath(out)}/students; all of the class: class.csv, histogram.png, junit.xml beside it.")
    return 1 if summary.ungraded else 0


def show_job_script(scheduler: str) -> int:
    say(pool.cluster(scheduler).job_script())
    return 0
