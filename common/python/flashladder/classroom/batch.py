"""Grades all submissions of a folder: what is missing is graded, what was graded before is taken as it is, and the
reports are written anew. Results lie by the hash of submission, assignment and grader."""

import csv
import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from flashladder import plot
from flashladder.classroom import assignment as assignments
from flashladder.classroom import formats, late, marks, report, similarity, submissions
from flashladder.classroom.assignment import Assignment
from flashladder.classroom.marks import Marks
from flashladder.classroom.pool import Pool
from flashladder.classroom.roster import Roster, matched
from flashladder.classroom.task import GRADER, Task, task_of
from flashladder.core.console import plural, progress
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import whole, write


@dataclass
class Summary:
    """What a run did. The files of the class say the rest."""

    submissions: int = 0
    known: int = 0  # whose results were there
    graded: int = 0  # different ones, now
    refused: list[str] = field(default_factory=list)  # "id: why"
    retried: list[str] = field(default_factory=list)
    ungraded: list[str] = field(default_factory=list)
    timeless: list[str] = field(default_factory=list)  # of which nobody knows when they were handed in
    nobodys: list[str] = field(default_factory=list)  # corrections and extensions for who has handed in nothing
    without_row: list[str] = field(default_factory=list)  # submissions that belong to nobody of the roster
    without_submission: list[str] = field(default_factory=list)  # of the roster
    earlier: list[str] = field(default_factory=list)  # reports that an earlier run wrote, under other names

    def words(self) -> list[str]:
        known = f"{self.known} graded before"
        said = [f"{plural(self.submissions, 'submission')}: {known}, {plural(self.graded, 'new result')}."]
        for title, lines in (
            ("Refused, with 0 points", self.refused),
            ("Tried again", self.retried),
            ("NOT GRADED (run this again; what is there stays)", self.ungraded),
            ("Nobody knows when they were handed in, and none is late", self.timeless),
            ("A correction or an extension for somebody who has no submission", self.nobodys),
            ("Submissions of nobody in the roster: their points are in class.csv alone", self.without_row),
            ("In the roster, and without a submission", self.without_submission),
            ("Left by earlier runs under other names: remove what nobody is to see", self.earlier),
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


@dataclass(frozen=True)
class Options:
    """What is wanted besides points and reports."""

    only: str = ""  # the one submission to grade, anew; of the others the results that are there are shown
    times: Callable[[str, Path], datetime | None] | None = None  # when a submission (id, path) was handed in
    roster: Roster | None = None  # Canvas' or Moodle's
    pseudonyms: bool = False  # in all files but the service's and the table of who is who
    similar: bool = False  # compare the answers
    isolated: str = "auto"  # a name of isolation.NAMES


ALL = Options()


def grade_class(
    assignment: Assignment,
    folder: Path,
    out: Path,
    pool: Pool,
    module: str = GRADER,
    options: Options = ALL,
) -> Summary:
    """Grades what is missing and writes all reports to `out`. One submission at a time is in memory, besides those that
    the pool works on."""
    wanted = [assignments.file_name(number) for number in assignment.stages]
    paths, store, summary = submissions.identities(folder), Store(out / "results"), Summary()
    if options.only and options.only not in paths:
        raise FlashLadderError(f"ONLY={options.only}: there is no such submission. There are: {', '.join(paths)}.")
    corrections = marks.read(out / marks.FILE, assignment)
    alike = similarity.Answers(assignment) if options.similar else None
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
            if alike:
                alike.add(identity, submission.kernels)
            task = task_of(submission, assignment, module, options.isolated)
            first = task.key not in owners
            owners.setdefault(task.key, []).append(identity)
            if options.only and identity != options.only:
                if store.get(task.key) is None:
                    failed.setdefault(task.key, f"not graded yet, since only {options.only} was asked for")
            elif options.only or first and store.get(task.key) is None:
                new.add(task.key)
                failed.pop(task.key, None)
                yield task
            summary.known += task.key not in new and task.key not in failed

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
    known = {*paths, *(path.name for path in paths.values())}
    summary.nobodys = [f"{one.student} ({marks.FILE})" for one in corrections if one.student not in paths]
    summary.nobodys += [f"{one.student} ([[extension]])" for one in assignment.extensions if one.student not in known]

    def every() -> Iterator[Marks]:
        for identity, path in paths.items():
            if identity in refused:
                one = marks.nothing(identity, path.name, assignment, refused=refused[identity])
            elif keys[identity] in failed:
                one = marks.nothing(identity, path.name, assignment, ungraded=failed[keys[identity]])
            else:
                one = marks.of_result(identity, path.name, assignment, store.get(keys[identity]))
            yield marks.applied(replace(one, late=_lateness(assignment, identity, path, options, summary)), corrections)

    hidden = pseudonyms(out, list(paths)) if options.pseudonyms else {}
    light = _write_reports(assignment, every(), out, hidden)
    if options.roster:
        _write_roster(options.roster, light, assignment, out, summary)
    if alike:
        pairs = alike.pairs()
        shown = [replace(one, students=tuple(hidden.get(name, name) for name in one.students)) for one in pairs]
        write(out / "similar.md", similarity.markdown(assignment.title, shown))
    summary.earlier = _of_earlier_runs(out, {hidden.get(one, one) for one in paths})
    if hidden and not alike and (out / "similar.md").exists():
        summary.earlier.append("similar.md")
    summary.retried.sort()
    summary.ungraded.sort()
    return summary


def _of_earlier_runs(out: Path, names: set[str]) -> list[str]:
    """Reports that are of none of these names."""
    there = [*(out / "students").iterdir(), *(out / "instructor").glob("*.md")]
    return sorted(str(one.relative_to(out)) for one in there if one.name.removesuffix(".md") not in names)


def _lateness(assignment: Assignment, identity: str, path: Path, options: Options, summary: Summary) -> late.Lateness:
    if assignment.due is None or options.times is None:
        return late.NOT_LATE
    handed_in = options.times(identity, path)
    if handed_in is None:
        summary.timeless.append(identity)
        return late.NOT_LATE
    extension = assignment.extension_of(identity, path.name)
    return late.of_submission(handed_in, assignment.due, assignment.late, extension, assignment.points)


def pseudonyms(out: Path, identities: list[str]) -> dict[str, str]:
    """By id, a name that tells nothing; drawn once, and kept in out/pseudonyms.csv, which is the instructor's alone."""
    file = out / "pseudonyms.csv"
    known = dict(csv.reader(file.read_text().splitlines()[1:])) if file.exists() else {}
    taken = set(known.values())
    for identity in identities:
        while identity not in known:
            name = f"student-{secrets.token_hex(4)}"
            if name not in taken:
                known[identity] = name
                taken.add(name)
    write(file, "id,pseudonym\n" + "".join(formats.csv_line(list(pair)) for pair in sorted(known.items())))
    file.chmod(0o600)
    return known


def write_student(one: Marks, folder: Path) -> None:
    """A student's report.md with its pictures, report.html, and results.json for Gradescope. Nothing is left there of
    an earlier submission."""
    for picture in folder.glob("*.png"):
        picture.unlink()
    (folder / "results.json").unlink(missing_ok=True)
    write(folder / "report.md", report.markdown(one))
    write(folder / "report.html", report.html(one))
    for name, data in one.pictures.items():
        write(folder / f"{name}.png", data)
    if not one.ungraded:
        write(folder / "results.json", json.dumps(formats.gradescope(one), indent=2) + "\n")


def _write_reports(assignment: Assignment, every: Iterator[Marks], out: Path, hidden: dict[str, str]) -> list[Marks]:
    """The students' reports, class.csv, junit.xml, common.md and histogram.png; the same results give the same files.
    hidden: pseudonyms by id. Returned are the marks with names and points alone."""
    rows, light, mistakes = [], [], report.Mistakes()

    def shown() -> Iterator[str]:
        for real in every:
            light.append(replace(real, exercises=(), kernels=(), pictures={}, total=real.points))
            name = hidden.get(real.id)
            one = replace(real, id=name, name=name) if name else real
            write_student(one, out / "students" / one.id)
            _write_or_remove(out / "instructor" / f"{one.id}.md", report.for_instructor(one))
            if not rows:
                rows.append(formats.csv_line(formats.csv_head(one)))
            rows.append(formats.csv_line(formats.csv_row(one)))
            mistakes.add(one)
            yield formats.junit_suite(one)

    with whole(out / "junit.xml") as partial, partial.open("w") as file:
        file.writelines(formats.junit(assignment.name, shown()))
    write(out / "class.csv", "".join(rows))
    write(out / "common.md", mistakes.markdown(assignment.title))
    points = [one.points for one in light if not one.ungraded]
    plot.save(plot.points(points, assignment.points, assignment.title), out / "histogram.png")
    return light


def _write_or_remove(file: Path, text: str) -> None:
    if text:
        write(file, text)
    else:
        file.unlink(missing_ok=True)


def _write_roster(roster: Roster, every: list[Marks], assignment: Assignment, out: Path, summary: Summary) -> None:
    found = matched(roster, every, assignment.title)
    write(out / f"{found.service}.csv", found.text)
    summary.without_row, summary.without_submission = found.without_row, found.without_submission
