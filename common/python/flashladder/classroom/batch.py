"""Grades all submissions of a folder: what is missing is graded, what was graded before is taken as it is, and the
reports are written anew. Results lie by the hash of submission, assignment and grader."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from flashladder import plot
from flashladder.classroom import assignment as assignments
from flashladder.classroom import formats, marks, report, submissions
from flashladder.classroom.assignment import Assignment
from flashladder.classroom.marks import Marks
from flashladder.classroom.pool import Pool
from flashladder.classroom.task import GRADER, Task, task_of
from flashladder.core.console import plural, progress


@dataclass
class Summary:
    """What a run did. The files of the class say the rest."""

    submissions: int = 0
    known: int = 0  # whose results were there
    graded: int = 0  # different ones, now
    refused: list[str] = field(default_factory=list)  # "id: why"
    retried: list[str] = field(default_factory=list)
    ungraded: list[str] = field(default_factory=list)

    def words(self) -> list[str]:
        known = f"{self.known} graded before"
        said = [f"{plural(self.submissions, 'submission')}: {known}, {plural(self.graded, 'new result')}."]
        for title, lines in (
            ("Refused, with 0 points", self.refused),
            ("Tried again", self.retried),
            ("NOT GRADED (run this again; what is there stays)", self.ungraded),
        ):
            said += [f"{title}:", *(f"  {line}" for line in lines)] if lines else []
        return said


@dataclass(frozen=True)
class Store:
    """Results, one file each, whole or not at all."""

    folder: Path

    def file(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def get(self, key: str) -> dict | None:
        """None where there is none, or one that is damaged."""
        try:
            result = json.loads(self.file(key).read_text())
        except (OSError, ValueError):
            return None
        return result if isinstance(result, dict) and result.get("key") == key else None

    def put(self, key: str, result: dict) -> None:
        write(self.file(key), json.dumps(result))


def write(file: Path, data: str | bytes) -> None:
    """Whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    partial.write_bytes(data.encode() if isinstance(data, str) else data)
    os.replace(partial, file)


def grade_class(
    assignment: Assignment, folder: Path, out: Path, pool: Pool, module: str = GRADER, isolated: str = "auto"
) -> Summary:
    """Grades what is missing and writes all reports to `out`. One submission at a time is in memory, besides those that
    the pool works on. isolated: a name of isolation.NAMES."""
    wanted = [assignments.file_name(number) for number in assignment.stages]
    paths, store, summary = submissions.identities(folder), Store(out / "results"), Summary()
    owners: dict[str, list[str]] = {}  # by key: equal submissions are graded once
    refused: dict[str, str] = {}
    failed: dict[str, str] = {}
    new: set[str] = set()  # keys without a result before

    def missing() -> Iterator[Task]:
        for identity, path in paths.items():
            submission = submissions.read_one(path, identity, wanted)
            summary.submissions += 1
            if submission.refused:
                refused[identity] = submission.refused
                continue
            task = task_of(submission, assignment, module, isolated)
            first = task.key not in owners
            owners.setdefault(task.key, []).append(identity)
            if first and store.get(task.key) is None:
                new.add(task.key)
                yield task
            summary.known += task.key not in new

    with closing(pool(missing())) as outcomes:  # a signal ends what the pool has begun
        for outcome in progress(outcomes, "Grading", len(paths)):
            names = ", ".join(owners[outcome.task.key])
            summary.retried += [f"{names}: {why}" for why in outcome.retried]
            if outcome.result is None:
                failed[outcome.task.key] = outcome.failed
                summary.ungraded.append(f"{names}: {outcome.failed}")
            else:
                store.put(outcome.task.key, outcome.result)
                summary.graded += 1

    keys = {identity: key for key, identities in owners.items() for identity in identities}
    summary.refused = [f"{identity}: {why}" for identity, why in sorted(refused.items())]

    def every() -> Iterator[Marks]:
        for identity, path in paths.items():
            if identity in refused:
                yield marks.nothing(identity, path.name, assignment, refused=refused[identity])
            elif keys[identity] in failed:
                yield marks.nothing(identity, path.name, assignment, ungraded=failed[keys[identity]])
            else:
                yield marks.of_result(identity, path.name, assignment, store.get(keys[identity]))

    _write_reports(assignment, every(), out)
    summary.retried.sort()
    summary.ungraded.sort()
    return summary


def write_student(one: Marks, folder: Path) -> None:
    """A student's report.md with its pictures, report.html, and results.json for Gradescope."""
    write(folder / "report.md", report.markdown(one))
    write(folder / "report.html", report.html(one))
    for name, data in one.pictures.items():
        write(folder / f"{name}.png", data)
    if not one.ungraded:
        write(folder / "results.json", json.dumps(formats.gradescope(one), indent=2) + "\n")


def _write_reports(assignment: Assignment, every: Iterator[Marks], out: Path) -> None:
    """The students' reports, class.csv, junit.xml and histogram.png. The same results give the same files."""
    rows, points = [], []
    out.mkdir(parents=True, exist_ok=True)
    partial = out / f".junit.xml.{os.getpid()}"

    def shown() -> Iterator[str]:
        for one in every:
            write_student(one, out / "students" / one.id)
            if not rows:
                rows.append(formats.csv_line(formats.csv_head(one)))
            rows.append(formats.csv_line(formats.csv_row(one)))
            points.extend([] if one.ungraded else [one.points])
            yield formats.junit_suite(one)

    with partial.open("w") as file:
        file.writelines(formats.junit(assignment.name, shown()))
    os.replace(partial, out / "junit.xml")
    write(out / "class.csv", "".join(rows))
    plot.save(plot.points(points, assignment.points, assignment.title), out / "histogram.png")
