"""What the tuner has found out, in an SQLite file: it is killed at any time, started again, and goes on.

Everything is kept by GPU, driver, toolkit and the kernel's hash (a Place): what was measured elsewhere, or of another
kernel, is not taken for an answer. A heat (candidates that were timed in turn, on one problem) is written whole or not
at all, so what a kill costs is the one that was under way.
"""

import json
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import build_directory


@dataclass(frozen=True)
class Place:
    """Where and of what a figure is."""

    gpu: str
    driver: str
    toolkit: str
    kernel: str  # sha256


@dataclass(frozen=True)
class Known:
    """What became of a configuration: built and verified, or the words of what failed."""

    failed: str = ""  # "", "build", "verify" or "time"
    message: str = ""
    registers: int | None = None
    spill_bytes: int | None = None
    resident_blocks: int | None = None


@dataclass(frozen=True)
class Times:
    """Milliseconds of each run of a candidate in a heat."""

    kind: str  # "configuration" or "peer"
    ms: tuple[float, ...]
    sm_mhz: int | None = None


_TABLES = """
create table if not exists configurations (
    gpu text, driver text, toolkit text, kernel text, configuration text, failed text, message text,
    registers integer, spill_bytes integer, resident_blocks integer,
    primary key (gpu, driver, toolkit, kernel, configuration));
create table if not exists times (
    gpu text, driver text, toolkit text, kernel text, problem text, heat text, name text, kind text, ms text,
    sm_mhz integer,
    primary key (gpu, driver, toolkit, kernel, problem, heat, name));
"""
_HERE = "gpu = ? and driver = ? and toolkit = ? and kernel = ?"


def default_file() -> Path:
    """FLASHLADDER_TUNING_STORE, else build/tuning.sqlite."""
    return Path(os.environ.get("FLASHLADDER_TUNING_STORE") or build_directory() / "tuning.sqlite")


class Store:
    """Of one Place, in a file that is made where there is none. For one thread."""

    def __init__(self, file: Path, place: Place):
        self.file, self.place = file, place
        self._here = (place.gpu, place.driver, place.toolkit, place.kernel)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(file)
            self._base.executescript(_TABLES)
        except (OSError, sqlite3.Error) as error:
            raise FlashLadderError(
                f"{file} cannot be used to remember measurements: {error}. Name another file by --store, or delete it."
            ) from error

    def known(self, configuration: str) -> Known | None:
        """What became of a configuration (its short form); None where nothing is known."""
        row = self._base.execute(
            f"select failed, message, registers, spill_bytes, resident_blocks from configurations "
            f"where {_HERE} and configuration = ?",
            (*self._here, configuration),
        ).fetchone()
        return Known(*row) if row else None

    def remember(self, configuration: str, known: Known) -> None:
        with self._base:
            values = (known.failed, known.message, known.registers, known.spill_bytes, known.resident_blocks)
            self._base.execute(
                "insert or replace into configurations values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*self._here, configuration, *values),
            )

    def forget_failures(self) -> None:
        """What failed is tried again."""
        with self._base:
            self._base.execute(f"delete from configurations where {_HERE} and failed != ''", self._here)

    def heat(self, problem: str, heat: str) -> dict[str, Times] | None:
        """The times of a heat by candidate, in the order in which they ran; None where it has not been run."""
        rows = self._base.execute(
            f"select name, kind, ms, sm_mhz from times where {_HERE} and problem = ? and heat = ? order by rowid",
            (*self._here, problem, heat),
        ).fetchall()
        return {name: Times(kind, tuple(json.loads(ms)), mhz) for name, kind, ms, mhz in rows} or None

    def remember_heat(self, problem: str, heat: str, times: dict[str, Times]) -> None:
        with self._base:  # one transaction: all of the heat or nothing
            self._base.executemany(
                "insert or replace into times values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (*self._here, problem, heat, name, one.kind, json.dumps(one.ms), one.sm_mhz)
                    for name, one in times.items()
                ],
            )

    def close(self) -> None:
        self._base.close()
