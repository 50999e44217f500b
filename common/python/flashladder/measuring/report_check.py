"""A GPU's report: one file for what `make gpu-report` wrote, such a file read without unpacking it, and what is wrong
with one that somebody sent, in sentences that its sender can act on.

An error keeps the report from being recorded; a remark is for whoever records it.
"""

import datetime
import json
import math
import re
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from flashladder.core import dtypes
from flashladder.core.device import OLDEST_DRIVER
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.kernels import code_hash
from flashladder.measuring import recorded

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
        why = str(error).partition("\n")[0].rstrip(":")  # tarfile lists what each of its readers says
        raise FlashLadderError(f"{file} is no archive that can be read: {why}") from error
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


# Of a record's provenance: field -> what it must be, as a type and as words.
_PROVENANCE = {
    "date": (str, "the date"),
    "commit": (str, "the commit that was built"),
    "device": (str, "the GPU's name"),
    "toolkit": (str, "nvcc's version"),
    "build_type": (str, "the kind of build"),
    "kernels": (dict, "each kernel's sha256"),
    "compute_capability": ((int, float), "the GPU's compute capability"),
    "driver": (str, "the driver's version"),
    "memory_mib": (int, "the GPU's memory"),
}
_ROW = {"B": int, "Hq": int, "Hkv": int, "Nq": int, "Nkv": int, "d_head": int, "dtype": str, "causal": bool}
_MOST = 8  # sentences about rows of the same fault
_STAGES = 100  # that are looked up in the project's history
_LARGEST = 1 << 30  # size of a problem, as attention.h limits lengths


# What GPUs' tensor cores give at most, by their data sheets: TFLOP/s of 16-bit products summed in fp32, without
# sparsity, at the boost clock; twice as many of e4m3, on those that have it. For plausibility alone: no table and no
# plot compares with these figures. The first that fits the device's name counts, so longer names stand before shorter.
_PEAKS = (
    (r"\bB200\b", 2250),
    (r"\bH20\b", 148),
    (r"\bH100 (PCIe|NVL)\b", 836),
    (r"\b(H100|H200|H800|GH200)\b", 990),
    (r"\bA(100|800)\b", 312),
    (r"\bA30\b", 165),
    (r"\bA40\b", 150),
    (r"\bA10G?\b", 125),
    (r"\bL40S\b", 362),
    (r"\bL40\b", 181),
    (r"\bL4\b", 121),
    (r"\bT4\b", 65),
    (r"\bRTX 6000 Ada\b", 364),
    (r"\bRTX A6000\b", 155),
    (r"\bRTX 5090\b", 210),
    (r"\bRTX 4090\b", 165),
    (r"\bRTX 4080\b", 105),
    (r"\bRTX 3090\b", 80),
    (r"\bRTX 3080\b", 68),
)
# Cards run faster than their data sheet says where they are cool; the cards differ, too.
_SLACK = 1.15


@dataclass
class Findings:
    errors: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    _rows: Counter = field(default_factory=Counter)

    def row(self, file: str, kind: str, text: str) -> None:
        """An error of one measurement; of many of a kind the first are told, and how many there are."""
        self._rows[file, kind] += 1
        if self._rows[file, kind] <= _MOST:
            self.errors.append(f"{file}: {text}")
        elif self._rows[file, kind] == _MOST + 1:
            self.errors.append(f"{file}: and more measurements of the same kind ({kind})")


def kind_of(name: str) -> str:
    """ "counters" of H200-counters.json, "" of H200.json."""
    return recorded.kind_of(name.removesuffix(".json"))


def check(report: Report, show: Callable[[str, str], bytes | None], today: datetime.date) -> Findings:
    """show(commit, path): the file at a commit, or the list of a folder; None where the project has no such commit or
    file; show(commit, "") is not None where it has the commit."""
    found = Findings(errors=list(report.faults))
    throughput = [name for name in report.records if not kind_of(name) and not name.endswith("-sums.json")]
    if not throughput and not any(kind_of(name) == "backward" for name in report.records):
        found.errors.append("no GPU.json with throughput: the part bench did not run. `make gpu-report`, without PARTS")
    elif len(throughput) > 1:
        found.errors.append(f"throughput twice: {', '.join(throughput)}. One report is of one GPU")
    for name, record in report.records.items():
        if record.get("version") != 1:
            found.errors.append(f"{name}: version {record.get('version')!r}, and 1 is what this project reads")
        elif isinstance(record.get("provenance"), dict):
            _provenance(found, name, record["provenance"], show, today)
        else:
            found.errors.append(f"{name}: no provenance: what it was measured with is unknown")
        if kind_of(name) in ("", "ablations", "backward"):  # the tuner's rounds have a form of their own
            _measurements(found, name, record)
    _together(found, report)
    _summary(found, report)
    return found


def _provenance(found: Findings, name: str, record: dict, show, today: datetime.date) -> None:
    for key, (kind, words) in _PROVENANCE.items():
        if not isinstance(record.get(key), kind) or record.get(key) in ("", {}):
            found.errors.append(f"{name}: provenance.{key}, {words}, is missing")
    if isinstance(record.get("device"), str) and "warpsim" in record["device"]:
        found.errors.append(f"{name}: measured on the simulator, whose times say nothing")
    if record.get("build_type") not in ("Release", None):
        found.errors.append(f"{name}: a {record['build_type']} build; throughput is of `cmake --preset release`")
    if "uncommitted_changes" not in record:
        found.errors.append(f"{name}: provenance.uncommitted_changes, whether the tree was the commit's, is missing")
    elif record["uncommitted_changes"]:
        found.errors.append(f"{name}: stages/ or common/ had changes that are in no commit: commit them, measure again")
    elif record["uncommitted_changes"] is None:
        found.remarks.append(
            f"{name}: whether there were uncommitted changes is unknown (a copy without git's history)"
        )
    driver = re.match(r"\d+", str(record.get("driver") or ""))
    if driver and int(driver[0]) < OLDEST_DRIVER:
        found.errors.append(f"{name}: driver {record['driver']}; CUDA 13 needs {OLDEST_DRIVER} or newer")
    try:
        date = datetime.datetime.strptime(str(record.get("date")), "%Y-%m-%d %H:%M UTC").date()
        if date > today + datetime.timedelta(days=1):
            found.errors.append(f"{name}: measured on {date}, which is not yet: the machine's clock is wrong")
    except ValueError:
        if record.get("date"):
            found.errors.append(f"{name}: the date {record['date']!r} is not of the form 2026-01-31 12:00 UTC")
    _commit(found, name, record, show)


def _commit(found: Findings, name: str, record: dict, show) -> None:
    """Is the commit this project's, and are the kernels' hashes those of that commit, and of today's kernels?"""
    commit, kernels = record.get("commit"), record.get("kernels")
    if not isinstance(commit, str) or not isinstance(kernels, dict):
        return
    if not re.fullmatch(r"[0-9a-f]{7,40}", commit):
        found.errors.append(
            f"{name}: commit {commit!r} names none: measure in a clone, or set FLASHLADDER_COMMIT for a copy of one"
        )
    elif show(commit, "") is None:
        found.errors.append(
            f"{name}: this project has no commit {commit}; `git fetch` if it is new, else measure again"
        )
    else:
        listed = (show(commit, "stages") or b"").decode(errors="replace")
        folders = {name: f"stages/{number}_{name}" for number, name in re.findall(r"^(\d\d)_(\w+)/$", listed, re.M)}
        for stage, known in list(kernels.items())[:_STAGES]:
            folder = folders.get(stage)
            text = folder and show(commit, f"{folder}/kernel.cu")
            beside = [show(commit, header) or b"" for header in _headers(stage, str(folder))]
            if text is None:
                found.errors.append(f"{name}: commit {commit} has no stage {stage}")
            elif code_hash(text, *beside) != known:
                found.errors.append(
                    f"{name}: {stage} is not the kernel of commit {commit}: it was changed, or the commit is wrong"
                )
    today = {stage.slug: stage.kernel_hash() for stage in stages.with_kernel()}
    stale = [stage for stage, known in kernels.items() if today.get(stage) != known]
    if stale:
        found.remarks.append(f"{name}: measured before {', '.join(sorted(stale))} changed; tables will mark them stale")


def _headers(slug: str, folder: str) -> list[str]:
    """What a stage's hash is of besides kernel.cu; folder: the stage's at that commit."""
    stage = next((one for one in stages.with_kernel() if one.slug == slug), None)
    places = [header.relative_to(ROOT).as_posix() for header in stage.own_headers()] if stage else []
    return [f"{folder}/{PurePosixPath(place).name}" if place.startswith("stages/") else place for place in places]


def _measurements(found: Findings, name: str, record: dict) -> None:
    rows = record.get("measurements")
    if not isinstance(rows, list) or not rows:
        found.errors.append(f"{name}: no measurements")
        return
    device = str((record.get("provenance") or {}).get("device"))
    seen: Counter = Counter()
    timed = stages.backward_stages() if kind_of(name) == "backward" else stages.all_stages()
    known = {stage.slug for stage in timed} | {""}
    for row in rows:
        if not isinstance(row, dict) or row.get("kind") not in ("stage", "peer", "ceiling"):
            found.row(name, "no measurement", f"{str(row)[:80]} is no measurement of a stage, a peer or a ceiling")
            continue
        problem = None if row["kind"] == "ceiling" else _problem(found, name, row)
        label = f"{row.get('name')}, {problem}" if problem else str(row.get("name"))
        _time(found, name, row, problem, label, device)
        if row["kind"] == "stage":
            _verified(found, name, row, label)
            if kind_of(name) in ("", "backward") and row.get("name") not in known:
                found.row(name, "stage", f"{label}: this project has no such stage")
        seen[label, row.get("dtype")] += 1
    twice = [label for (label, _), count in seen.items() if count > 1]
    if twice:
        found.errors.append(f"{name}: measured twice: {', '.join(twice[:3])}{' ...' if len(twice) > 3 else ''}")
    if peak(device) is None:
        found.remarks.append(
            f"{name}: no data sheet's peak of {device} is known here, so that throughput was not held against it"
        )
    missing = known - {""} - {row.get("name") for row in rows if isinstance(row, dict)}
    if missing and not kind_of(name):
        skipped = " (see its list of what was skipped)" if record.get("skipped") else ""
        found.remarks.append(f"{name}: no figure of {', '.join(sorted(missing))}{skipped}")


def _problem(found: Findings, name: str, row: dict) -> Problem | None:
    wrong = [key for key, kind in _ROW.items() if not isinstance(row.get(key), kind)]
    if wrong:
        found.row(name, "fields", f"{row.get('name')}: without {', '.join(wrong)} nobody knows what was measured")
        return None
    odd = [f"{key} = {row[key]}" for key, kind in _ROW.items() if kind is int and not 1 <= row[key] <= _LARGEST]
    if odd:
        found.row(name, "sizes", f"{row.get('name')}: {', '.join(odd)} is no size of a problem")
        return None
    try:
        return Problem(**{key: row[key] for key in _ROW})
    except FlashLadderError as error:
        found.row(name, "problem", f"{row.get('name')}: {error}")
        return None


def _flops(name: str, problem: Problem) -> float:
    return problem.backward_flops() if kind_of(name) == "backward" else problem.flops()


def _time(found: Findings, name: str, row: dict, problem: Problem | None, label: str, device: str) -> None:
    ms = row.get("ms")
    times = [ms.get(key) for key in ("p20", "median", "p80")] if isinstance(ms, dict) else [None]
    numbers = [*times, row.get("tflops")]
    if not all(isinstance(value, (int, float)) and 0 < value < 1e12 for value in numbers):
        found.row(name, "times", f"{label}: a time (ms: p20, median, p80) or tflops is missing or no positive number")
        return
    if not times[0] <= times[1] <= times[2]:
        found.row(name, "order", f"{label}: p20 {times[0]}, median {times[1]} and p80 {times[2]} ms are not in order")
    if problem:
        said = _flops(name, problem) / times[1] / 1e9
        if not math.isclose(said, row["tflops"], rel_tol=0.01, abs_tol=0.06):
            found.row(
                name, "sum", f"{label}: {row['tflops']} TFLOP/s, but its median of {times[1]} ms makes {said:.1f}"
            )
    most = peak(device, row.get("dtype"))
    top = max(row["tflops"], _flops(name, problem) / times[1] / 1e9 if problem else 0.0)
    if most and top > most * _SLACK:
        text = (
            f"{top:.0f} TFLOP/s, above the {most:.0f} of the data sheet of {device}: it cannot have done all the work"
        )
        found.row(name, "implausible", f"{label}: {text}")


def _verified(found: Findings, name: str, row: dict, label: str) -> None:
    error = row.get("relative_error")
    if not isinstance(error, (int, float)) or not 0 <= error < math.inf:
        found.row(name, "unverified", f"{label}: no relative_error: it was timed without having been verified")
        return
    bound = dtypes.FROBENIUS_LIMIT.get(row.get("dtype"))
    if bound and error > bound:
        found.row(
            name, "wrong", f"{label}: relative error {error:.2g}, beyond the bound of {bound:.2g}: the result is wrong"
        )
    if not isinstance(row.get("kernel_sha256"), str):
        found.row(name, "hash", f"{label}: no kernel_sha256: which kernel it was is unknown")


def _together(found: Findings, report: Report) -> None:
    """Of one report all files are of one GPU and one commit."""
    origins = {name: record.get("provenance") for name, record in report.records.items()}
    for key, words in (("device", "GPUs"), ("commit", "commits")):
        values = {str(origin[key]) for origin in origins.values() if isinstance(origin, dict) and origin.get(key)}
        if len(values) > 1:
            found.errors.append(f"files of different {words} ({', '.join(sorted(values))}): a report is of one run")


def _summary(found: Findings, report: Report) -> None:
    text = report.texts.get("summary.txt")
    if text is None:
        found.errors.append(
            "no summary.txt: whether tests and sanitizer passed is unknown; send all that gpu-report wrote"
        )
        return
    tests = re.findall(r"^test \((\w+)\): status (-?\d+): (.*)$", text, re.M)
    right = re.search(r"^verify: (\d+) of (\d+) runs right", text, re.M)
    if not right:
        found.errors.append("summary.txt: nothing was verified (PARTS left it out)")
    elif right[1] != right[2]:
        found.errors.append(
            f"summary.txt: {int(right[2]) - int(right[1])} of {right[2]} runs are wrong; see verify.txt"
        )
    if not tests:
        found.errors.append("summary.txt: the tests did not run (STAGES picked some stages, or pytest is missing)")
    for choice, status, last in tests:
        if status != "0":
            found.errors.append(
                f"summary.txt: the tests failed (FLASHLADDER_DEVICE={choice}): {last}; verify.txt has them"
            )
    clean = re.search(r"^sanitize: (\d+) of (\d+) runs clean", text, re.M)
    if not clean:
        found.remarks.append("summary.txt: compute-sanitizer did not run")
    elif clean[1] != clean[2]:
        found.errors.append(
            f"summary.txt: compute-sanitizer objects to {int(clean[2]) - int(clean[1])} of {clean[2]} runs"
        )
    equal = re.search(r"^ncu: (\d+) of (\d+) counters equal", text, re.M)
    if equal and equal[1] != equal[2]:
        found.remarks.append(f"summary.txt: {equal[1]} of {equal[2]} counters of Nsight Compute equal the simulator's")


def peak(device: str, dtype: str = "bf16") -> float | None:
    """TFLOP/s of a device such as "NVIDIA A100-SXM4-80GB"; None where it is not in the table."""
    factor = 2 if dtype == "e4m3" else 1
    return next((float(factor * most) for pattern, most in _PEAKS if re.search(pattern, device)), None)
