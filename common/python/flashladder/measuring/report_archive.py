"""One file for what `make gpu-report` wrote, to be sent to the project; and such a file read without unpacking it."""

import json
import tarfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from flashladder.core.errors import FlashLadderError

KINDS = (".json", ".txt", ".png", ".html")
MOST_FILES = 64
MOST_BYTES = 32 << 20  # of one file; all of a report of an H200 are 3 MB


def pack(folder: Path, name: str) -> Path:
    """Writes folder/NAME-gpu-report.zip with what lies in the folder itself."""
    file = folder / f"{name}-gpu-report.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in sorted(folder.iterdir()):
            if one.is_file() and one.suffix in KINDS:
                archive.write(one, one.name)
    return file


@dataclass
class Report:
    """What a report holds, by the names of its files without folders."""

    records: dict[str, dict] = field(default_factory=dict)  # of JSON
    texts: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)  # sentences about what cannot be read


def read(file: Path) -> Report:
    """The report of a zip or tar archive, of a folder, or of one JSON file. Nothing is written to the disk."""
    if not file.exists():
        raise FlashLadderError(f"{file} does not exist. Name what `make gpu-report` wrote: FILE=H200-gpu-report.zip")
    report = Report()
    try:
        members = _members(file)
    except (OSError, zipfile.BadZipFile, tarfile.TarError, RuntimeError, NotImplementedError) as error:
        raise FlashLadderError(f"{file} is no archive that can be read: {error}") from error
    if len(members) > MOST_FILES:
        report.faults.append(f"{len(members)} files; a report has fewer than {MOST_FILES}: the first ones are read")
    for name, data in members[:MOST_FILES]:
        if data is None:
            report.faults.append(f"{name}: more than {MOST_BYTES >> 20} MiB, or no plain file: not read")
        elif name in report.texts or name in report.records:
            report.faults.append(f"{name}: twice in the archive; the first one is read")
        else:
            _take(report, name, data)
    return report


def _take(report: Report, name: str, data: bytes) -> None:
    if not name.endswith((".json", ".txt")):
        return
    try:
        text = data.decode()
        value = json.loads(text) if name.endswith(".json") else text
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        report.faults.append(f"{name}: cannot be read as {'JSON' if name.endswith('.json') else 'text'}: {error}")
        return
    if name.endswith(".txt"):
        report.texts[name] = value
    elif isinstance(value, dict):
        report.records[name] = value
    else:
        report.faults.append(f"{name}: holds a {type(value).__name__}, where a record (an object) is wanted")


def _members(file: Path) -> list[tuple[str, bytes | None]]:
    """(name without folders, content; None where it is too large or no plain file), of what a report may hold."""
    found: list[tuple[str, bytes | None]] = []
    if file.is_dir() or file.suffix == ".json":
        files = sorted(file.iterdir()) if file.is_dir() else [file]
        for one in files:
            if one.suffix in KINDS:
                plain = one.is_file() and one.stat().st_size <= MOST_BYTES
                found.append((one.name, one.read_bytes() if plain else None))
    elif zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            for one in archive.infolist():
                if PurePosixPath(one.filename).suffix in KINDS and len(found) <= MOST_FILES:
                    fits = one.file_size <= MOST_BYTES
                    data = _at_most(archive.open(one)) if fits else None
                    found.append((PurePosixPath(one.filename).name, data))
    else:
        with tarfile.open(file) as archive:
            for one in archive:
                if PurePosixPath(one.name).suffix in KINDS and len(found) <= MOST_FILES:
                    fits = one.isfile() and one.size <= MOST_BYTES
                    found.append((PurePosixPath(one.name).name, _at_most(archive.extractfile(one)) if fits else None))
    return found


def _at_most(opened) -> bytes | None:
    """What can be read, None where it is more than an archive's own table of contents admits to."""
    with opened:
        data = opened.read(MOST_BYTES + 1)
    return data if len(data) <= MOST_BYTES else None
