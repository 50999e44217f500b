"""What warpsim found and counted: its JSON reports as objects."""

import dataclasses
import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from warpsim.counters import Line, by_name, lines

VERSION = 1


@dataclass(frozen=True)
class Hazard:
    """A place where something is wrong. Launches that meet it again add to its count."""

    kind: str  # a key of kinds.KINDS
    message: str
    file: str  # "" where the program was compiled without -lineinfo
    line: int
    kernel: str
    block: tuple[int, int, int]
    warp: int
    lane: int
    address: str
    count: int
    is_note: bool = False  # the toolchain repairs it, so that no result is wrong
    calls: tuple[tuple[str, int, str], ...] = ()  # file, line, function; from the innermost on, where code was inlined

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}" if self.file else f"kernel {self.kernel}"

    @property
    def _place(self) -> tuple:
        return self.kind, self.kernel, self.file, self.line, self.calls, "" if self.file else self.message


def _hazard(launch: dict, entry: dict, is_note: bool) -> Hazard:
    return Hazard(
        kind=entry["kind"],
        message=entry["message"],
        file=entry["file"],
        line=entry["line"],
        kernel=launch["kernel"],
        block=tuple(entry["block"]),
        warp=entry["warp"],
        lane=entry["lane"],
        address=entry["address"],
        count=entry["count"],
        is_note=is_note,
        calls=tuple((call["file"], call["line"], call["function"]) for call in entry.get("inlined", [])),
    )


@dataclass(frozen=True)
class Report:
    """Of one run, which may have been several processes."""

    launches: list[dict]  # as the report has them; common/simulator/README.md of FlashLadder describes it
    refused_calls: list[dict] = field(default_factory=list)  # of CUDA, each with the reason
    returncode: int = 0
    stdout: str = ""
    stderr: str = ""
    unasked_errors: list[str] = field(default_factory=list)  # of refused launches and copies, for which nothing asked

    @cached_property
    def hazards(self) -> list[Hazard]:
        return self._distinct("hazards")

    @cached_property
    def notes(self) -> list[Hazard]:
        return self._distinct("notes")

    def _distinct(self, key: str) -> list[Hazard]:
        found: dict[tuple, Hazard] = {}
        for launch in self.launches:
            for entry in launch.get(key, []):
                one = _hazard(launch, entry, key == "notes")
                known = found.get(one._place)
                found[one._place] = dataclasses.replace(known, count=known.count + one.count) if known else one
        return list(found.values())

    @property
    def clean(self) -> bool:
        """At least one kernel ran, and nothing was wrong with any. The program's exit status is another matter."""
        return not self.why_not_clean

    @property
    def why_not_clean(self) -> str:
        if self.hazards:
            return "\n".join(f"{one.where}: {one.kind}: {one.message}" for one in self.hazards)
        errors = [f"kernel {launch['kernel']}: {launch['error']}" for launch in self.launches if launch["error"]]
        errors += [f"{one}; no cudaGetLastError() has come behind it" for one in self.unasked_errors]
        if errors:
            return "\n".join(errors)
        if not self.launches:
            return (
                "no kernel ran on warpsim: was the program linked with `nvcc -cudart shared`, and does it launch any?"
            )
        return ""

    @cached_property
    def counters(self) -> dict[str, dict[str, float | None]]:
        """By kernel the sums over its launches, such as "shared load wavefronts": counters.by_name() of each."""
        by_kernel: dict[str, list[dict]] = {}
        for launch in self.launches:
            by_kernel.setdefault(launch["kernel"], []).append(launch)
        return {kernel: by_name({"launches": launches}) for kernel, launches in by_kernel.items()}

    @cached_property
    def lines(self) -> list[Line]:
        """Counters by source line, summed over all launches."""
        return lines({"launches": self.launches})

    def to_json(self) -> dict:
        """As WARPSIM_REPORT has it, without the calls of the host."""
        members = {"launches": self.launches, "refused_calls": self.refused_calls}
        return {"version": VERSION, **members, "unasked_errors": self.unasked_errors}

    def to_sarif(self, root: Path | str | None = None) -> dict:
        """SARIF 2.1.0, for editors and code scanning. Files below root, else the working folder, are relative to it."""
        from warpsim import sarif

        return sarif.log(self, Path(root or Path.cwd()).resolve())


def _loaded(file: Path) -> dict:
    try:
        data = json.loads(file.read_text(encoding="utf-8", errors="replace"))
    except ValueError as error:
        raise ValueError(f"{file} is no report of warpsim: {error}") from error
    if not isinstance(data, dict) or data.get("version") != VERSION or "launches" not in data:
        raise ValueError(f"{file} is no report of version {VERSION}, as WARPSIM_REPORT=file writes it")
    return data


def read(*places: Path | str, returncode: int = 0, stdout: str = "", stderr: str = "") -> Report:
    """The reports of files, and of all files *.json of folders, as one. OSError and ValueError say what is wrong."""
    files: list[Path] = []
    for place in map(Path, places):
        files += sorted(place.glob("*.json")) if place.is_dir() else [place]
    data = [_loaded(file) for file in files]
    launches = [launch for one in data for launch in one["launches"]]
    refused = [call for one in data for call in one.get("refused_calls", [])]
    unasked = [text for one in data for text in one.get("unasked_errors", [])]
    return Report(launches, refused, returncode, stdout, stderr, unasked)


def assert_clean(report: Report, *, notes: bool = False) -> None:
    """AssertionError unless the report is clean and the program's exit status 0; with notes=True a note is one, too."""
    __tracebackhide__ = True  # pytest shows who called it
    why = report.why_not_clean
    if not why and notes:
        why = "\n".join(f"{one.where}: note: {one.kind}: {one.message}" for one in report.notes)
    if not why and report.returncode:
        why = f"exit status {report.returncode}\n{report.stdout[-2000:]}{report.stderr[-2000:]}"
    if why:
        raise AssertionError(f"warpsim: {why}")
