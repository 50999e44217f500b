"""Points as Canvas and Moodle take them: the rows of the class's roster, which is their own export, with a column more.

Who is who is never guessed: a submission belongs to the row whose name, login, number or address its folder is called
by, as the two write it in the archives that they give out; what belongs to no row, or to several, is told.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flashladder.classroom.marks import Marks, number
from flashladder.core.errors import FlashLadderError

# By service: a column that its export has, and the columns that name a student.
CANVAS = ("Student", ("ID", "SIS User ID", "SIS Login ID", "Student"))
MOODLE = ("Email address", ("Email address", "ID number", "Username", "Full name", "Identifier"))
_CANVAS_KEEPS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
# sartre_LATE_4711_99_05_swizzle.cu of Canvas, "Jean Sartre_4711_assignsubmission_file" of Moodle.
_CANVAS_NAME = re.compile(r"^[^_]+(?:_late)?_(\d+)(?:_\d+)?(?:_.*)?$", re.I)
_MOODLE_NAME = re.compile(r"^(.+)_(\d+)_assignsubmission", re.I)


@dataclass
class Matched:
    """The file for the service, and what could not be matched."""

    service: str  # canvas or moodle
    text: str
    without_submission: list[str] = field(default_factory=list)  # rows
    without_row: list[str] = field(default_factory=list)  # submissions


@dataclass(frozen=True)
class Roster:
    service: str
    columns: list[str]
    rows: list[dict[str, str]]

    def keys(self, row: dict[str, str]) -> set[str]:
        """By what a submission may be called that is this row's."""
        names = {row.get(column, "") for column in (CANVAS if self.service == "canvas" else MOODLE)[1]}
        if self.service == "moodle":
            names.add(f"{row.get('First name', '')} {row.get('Last name', row.get('Surname', ''))}")
            names.add(re.sub(r"^\D+", "", row.get("Identifier", "")))  # "Participant 4711"
        names |= {" ".join(reversed(name.split(", ", 1))) for name in set(names) if ", " in name}
        names |= {name.partition("@")[0] for name in set(names) if "@" in name}
        return {slug for slug in map(_slug, names) if slug}


def read(file: Path) -> Roster:
    """The gradebook that Canvas exports, or the participants or grading worksheet that Moodle does."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as opened:
            reader = csv.DictReader(opened)
            rows, columns = list(reader), list(reader.fieldnames or [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FlashLadderError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    for service, (column, _) in (("canvas", CANVAS), ("moodle", MOODLE)):
        if column in columns:
            rows = [{name: row.get(name) or "" for name in columns} for row in rows]
            return Roster(service, columns, [row for row in rows if not _is_no_student(service, row)])
    raise FlashLadderError(
        f"{file} is no roster: Canvas' gradebook has a column 'Student', Moodle's participants 'Email address'."
    )


def _is_no_student(service: str, row: dict[str, str]) -> bool:
    """Canvas' row of points possible, and its student for trying things."""
    name = row["Student"].strip() if service == "canvas" else row.get("Email address", "").strip()
    return not name or service == "canvas" and name in ("Points Possible", "Student, Test")


def _slug(words: str) -> str:
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode() or words
    return re.sub(r"\W|_", "", plain).casefold()


def _names_of(marks: Marks) -> set[str]:
    """What a submission is called, and the number in the name that a service has given it."""
    name = re.sub(r"\.(zip|tar(\.\w+)?|tgz|cu)$", "", marks.name, flags=re.I)
    moodle, canvas = _MOODLE_NAME.match(name), _CANVAS_NAME.match(name)
    found = {name, *(moodle.groups() if moodle else canvas.groups() if canvas else ())}
    return {_slug(one) for one in found}


def matched(roster: Roster, every: Sequence[Marks], title: str) -> Matched:
    """The roster with the points of those that have a submission."""
    keys = [roster.keys(row) for row in roster.rows]
    owners: dict[int, list[Marks]] = {}
    found = Matched(roster.service, "")
    for marks in every:
        names = _names_of(marks)
        rows = [at for at, of_row in enumerate(keys) if names & of_row]
        if len(rows) == 1:
            owners.setdefault(rows[0], []).append(marks)
        else:
            why = f" (it may be {len(rows)} of them)" if rows else ""
            found.without_row.append(marks.id + why)
    points: list[str] = []
    for at, row in enumerate(roster.rows):
        own = owners.get(at, [])
        if len(own) > 1:
            found.without_row += [f"{marks.id} (another one is of {_called(roster, row)}, too)" for marks in own]
        one = own[0] if len(own) == 1 and not own[0].ungraded else None
        points.append(number(one.points) if one else "")
        if not own:
            found.without_submission.append(_called(roster, row))
    found.text = _written(roster, points, title, every[0].most if every else 100)
    return found


def _called(roster: Roster, row: dict[str, str]) -> str:
    return row.get("Student") or row.get("Full name") or row.get("Email address", "")


def _written(roster: Roster, points: list[str], title: str, most: float) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    if roster.service == "canvas":
        columns = [name for name in _CANVAS_KEEPS if name in roster.columns]
        writer.writerow([*columns, title])
        writer.writerow(["    Points Possible", *[""] * (len(columns) - 1), number(most)])
    else:
        columns = [name for name in MOODLE[1] if name in roster.columns]
        writer.writerow([*columns, title])
    for row, given in zip(roster.rows, points):
        writer.writerow([*(row[name] for name in columns), given])
    return buffer.getvalue()
