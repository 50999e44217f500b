"""Deadlines: what a late submission costs, by the assignment's file and by when each was handed in."""

import csv
import math
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from flashladder.core.errors import FlashLadderError

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Extension:
    """A later deadline for one student; it costs nothing."""

    student: str  # the submission's name or id
    until: datetime
    why: str


@dataclass(frozen=True)
class Policy:
    """[late] of an assignment."""

    cost_per_day: float  # points for each day that has begun
    most_days: int  # later than that nothing is accepted
    grace: timedelta = timedelta()  # within it nothing is late


@dataclass(frozen=True)
class Lateness:
    """How late one submission is."""

    days: int  # that have begun
    cost: float  # points
    words: str  # "" where there is nothing to say


NOT_LATE = Lateness(0, 0.0, "")


def moment(value: object, what: str) -> datetime:
    """A date-time of TOML or text in ISO 8601; ValueError where it does not say which time zone it is of."""
    found = datetime.fromisoformat(value.strip().replace("Z", "+00:00")) if isinstance(value, str) else value
    if not isinstance(found, datetime) or found.tzinfo is None:
        raise ValueError(f"{what} is no time with its zone, such as 2026-11-20T12:00:00+01:00: {value}")
    return found


def shown(when: datetime) -> str:
    return f"{when:%A, %d %B %Y, %H:%M} ({'UTC' if when.utcoffset() == timedelta() else f'UTC{when:%z}'})"


def of_submission(
    handed_in: datetime, due: datetime, policy: Policy | None, extension: Extension | None, most: float
) -> Lateness:
    """The cost of a submission. Without a policy being late costs nothing, and is told."""
    until = max(due, extension.until) if extension else due
    extended = f"The deadline was extended to {shown(until)}." if extension else ""
    over = handed_in - until
    if over <= (policy.grace if policy else timedelta()):
        return Lateness(0, 0.0, extended)
    days = math.ceil(over / DAY)
    late = f"Handed in {_days(days)} late ({shown(handed_in)}; due {shown(until)})"
    if policy is None:
        return Lateness(days, 0.0, f"{late}, which costs nothing.")
    if days > policy.most_days:
        return Lateness(days, most, f"{late}: after {_days(policy.most_days)} nothing is accepted.")
    return Lateness(days, days * policy.cost_per_day, f"{late}: {policy.cost_per_day:g} points for each day begun.")


def _days(days: int) -> str:
    return "1 day" if days == 1 else f"{days} days"


def read_times(file: Path) -> dict[str, datetime]:
    """When each was handed in, by name or id, from a CSV file with the columns `id` and `handed_in`."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as opened:
            rows = list(csv.DictReader(opened))
        found = {row["id"].strip(): moment(row["handed_in"], f"row {number}") for number, row in enumerate(rows, 2)}
    except OSError as error:
        raise FlashLadderError(f"{file} cannot be read: {error.strerror}") from error
    except (KeyError, ValueError, AttributeError, csv.Error) as error:
        what = f"it has no column {error}" if isinstance(error, KeyError) else error
        raise FlashLadderError(f"{file}: {what}. It has the columns id and handed_in.") from error
    return found


def by_files(path: Path) -> datetime:
    """When the newest file of a submission was changed, as far as the file system knows."""
    newest = path.lstat().st_mtime
    if path.is_dir() and not path.is_symlink():
        newest = max((file.lstat().st_mtime for file in path.glob("*.cu")), default=newest)
    return datetime.fromtimestamp(newest, timezone.utc)
