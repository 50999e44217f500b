"""make assignment, make grade, make certificates, make autograder and flashladder export-task."""

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from flashladder.building import build
from flashladder.classroom import assignment as assignments
from flashladder.classroom import (
    batch,
    handout,
    hosted,
    isolation,
    late,
    leaderboard,
    pool,
    roster,
    services,
    similarity,
)
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
    if not name or not service:
        raise FlashLadderError("Name both: `make autograder ASSIGNMENT=swizzle FOR=gradescope`.")
    assignment = assignments.get(name)
    file = services.write(service, assignment, folder or work_directory() / "autograders" / assignment.name)
    say(f"{os.path.relpath(file)}: docs/instructors.md says what {service} does with it.")
    return 0


def export_task(stage: str, folder: Path) -> int:
    file = leaderboard.write(stage, folder)
    say(f"{os.path.relpath(file)}: a task in KernelBot's form; {leaderboard.TEMPLATE} is what participants begin with.")
    return 0


@dataclass(frozen=True)
class Grading:
    """What `make grade` is told, as words of the command line."""

    name: str
    folder: Path
    out: Path | None = None
    scheduler: str = ""
    jobs: int | None = None
    isolated: str = "auto"
    certificates: Path | None = None
    only: str = ""
    times: str = ""  # a CSV file, or "files"
    roster: Path | None = None
    pseudonyms: bool = False
    similar: bool = False


def grade(told: Grading) -> int:
    """Grades a folder of submissions; 1 where one could not be graded."""
    if not told.scheduler:  # else it is for the workers to say what they have
        say(f"Isolation: {isolation.choose(told.isolated).says}")
    assignment = assignments.get(told.name)
    out = told.out or results_directory() / "classes" / assignment.name
    if out.resolve().is_relative_to(told.folder.resolve()):
        raise FlashLadderError(f"{out} lies among the submissions: name another place by OUT=folder.")
    if told.similar:
        similarity.require()
    options = batch.Options(
        only=told.only,
        times=_times(told, assignment),
        roster=roster.read(told.roster) if told.roster else None,
        pseudonyms=told.pseudonyms,
        similar=told.similar,
        isolated=told.isolated,
    )
    build.build(hosted.TARGETS)
    try:
        with stopped_by_signals(), pool.connect(told.scheduler, told.jobs, told.certificates) as workers:
            summary = batch.grade_class(assignment, told.folder, out, workers, options=options)
    except Stopped as stopped:
        said = f"Stopped by {stopped.signal.name}, and all that it had started with it."
        print(f"{said} What was graded stays: run it again for the rest.", file=sys.stderr)
        return stopped.status
    say("\n".join(summary.words()))
    say(
        f"Reports: {os.path.relpath(out)}/students. Of all the class: class.csv, common.md, histogram.png, junit.xml "
        "beside it."
    )
    return 1 if summary.ungraded else 0


def _times(told: Grading, assignment: assignments.Assignment) -> Callable[[str, Path], datetime | None] | None:
    """When each was handed in. Whether somebody is late is not to depend on how files were copied: it is said."""
    if assignment.due is None:
        if told.times:
            raise FlashLadderError(f"TIMES={told.times}: the deadline of {assignment.name} is no time to be late for.")
        return None
    if told.times == "files":
        return lambda _, path: late.by_files(path)
    if told.times:
        known = late.read_times(Path(told.times).expanduser())
        return lambda identity, path: known.get(identity) or known.get(path.name)
    if assignment.late:
        raise FlashLadderError(
            f"{assignment.name} has [late], and nobody knows when the submissions were handed in: TIMES=times.csv with "
            "the columns id and handed_in, or TIMES=files, where the files still have the times of their students'."
        )
    return None


def show_job_script(scheduler: str, folder: Path | None) -> int:
    if folder is None:
        raise FlashLadderError("--job-script needs --certificates, whose files the jobs are told.")
    say(pool.cluster(scheduler, security=pool.security(folder)).job_script())
    return 0


def make_certificates(folder: Path | None) -> int:
    folder = pool.make_certificates((folder or work_directory() / "certificates").resolve())
    options = pool.options_of_dask(folder)
    say(
        f"{folder}: the certificate of your class and its key. Whoever has the key can run code as you: keep it secret."
    )
    say("Put the folder where all workers read it. Then, on the head and on each worker:")
    say(f"  dask scheduler --protocol tls --no-dashboard {options}")
    say(f"  dask worker tls://HEAD:8786 --protocol tls --nthreads 1 --no-dashboard {options}")
    say(f'  make grade ... ARGS="--scheduler tls://HEAD:8786 --certificates {shlex.quote(str(folder))}"')
    return 0
