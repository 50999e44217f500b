"""Which tool notices the stages' planted mistakes: the compiler, a comparison of the results on a GPU, and the four
tools of compute-sanitizer; and what each has to say of the stages as they are, which is a false alarm.

`PARTS=faults STAGES="15-25" make gpu-report` asks them all, `make machine-code ARGS="--mistakes 15-25"` the compiler
alone, which needs no GPU. Both save after each mistake and leave out what a record has of the same source already.
What the simulator says stands in mistakes.toml, and tests hold it.
"""

import concurrent.futures
import re
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from flashladder.building import build
from flashladder.core.console import progress
from flashladder.core.device import Device, unfit
from flashladder.ladder import stages
from flashladder.ladder.kernels import WithKernel
from flashladder.ladder.stage import Stage
from flashladder.measuring import machine_code, planted, provenance, recorded
from flashladder.measuring.executed import Kernels, Known, Program, executed
from flashladder.measuring.planted import Subject

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
RUNS = 5  # of each problem, where results are compared
RUN_SECONDS, TOOL_SECONDS = 30, 60  # after which a run has not ended, and one under a tool
SECONDS = 480  # for all of it
KIND = "detections"  # of recorded.INSIDE
PROBE = "naive"  # the stage that shows whether the GPU still answers
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")
_REPORT = re.compile(r"^=========[ \t]+(?!COMPUTE-SANITIZER|Saved host)(\S[^\n]{0,119})", re.M)


def joined(rows: Iterable[dict], new: dict) -> list[dict]:
    """The rows with a new one, which takes the place of an earlier one of the same; by stage and name."""
    kept = [row for row in rows if (row["stage"], row["mistake"]) != (new["stage"], new["mistake"])]
    return sorted([*kept, new], key=lambda row: (row["stage"], row["mistake"]))


def _left(subjects: list[Subject], rows: Iterable[dict], tools: Iterable[str] = ()) -> list[Subject]:
    """Those of which no row says what became of this very source, under each of the tools if it could be run."""
    asked = [row for row in rows if row.keys() >= {*tools} or row["gpu"]["outcome"] == "not compiled"]
    known = {(row["stage"], row["mistake"]): row["digest"] for row in asked}
    return [one for one in subjects if known.get(one.key) != one.digest()]


def _done(work: Callable[[Subject], object], subjects: list[Subject]) -> Iterator[tuple[Subject, object]]:
    """Each with what the work gives for it, as soon as there is it: on all cores they are begun in their order, and
    none waits for another that takes minutes to compile."""
    pool = concurrent.futures.ThreadPoolExecutor(build.jobs())
    try:
        begun = [(one, pool.submit(work, one)) for one in subjects]
        while begun:
            concurrent.futures.wait([future for _, future in begun], return_when=concurrent.futures.FIRST_COMPLETED)
            one, future = begun.pop(next(at for at, (_, future) in enumerate(begun) if future.done()))
            yield one, future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


# ---- the compiler alone ----


def record_notes(which: Iterable[Stage], most: int = 0, file: Path | None = None) -> list[dict]:
    """What nvcc and ptxas say of stages' mistakes, in the record of machine code; returns all of its rows."""
    file = file or machine_code.record_file()
    rows = recorded.load(file).get("ptxas", {"planted": []})["planted"]
    todo = _left(planted.in_order([one for one in which if isinstance(one, WithKernel)]), rows)
    todo = planted.first(todo, most)
    source = {"device": "sm_90a", "toolkit": machine_code.toolkit()}
    for one, notes in progress(_done(planted.machine_code_notes, todo), "ptxas", len(todo)):
        rows = joined(rows, {"stage": one.stage.name, "mistake": one.name, "digest": one.digest(), "notes": notes})
        recorded.write(recorded.inside("ptxas", {"version": 1, "provenance": source, "planted": rows}), file)
    return rows


# ---- a GPU ----


class OutOfTime(Exception):
    """The time for all of it ended."""


@dataclass(frozen=True)
class Choice:
    """What a user chooses."""

    most: int = 0  # mistakes that no record has yet, 0 for all
    names: tuple[str, ...] = ()  # of some mistakes alone
    beside: int = 1  # so many tools have the GPU at once
    seconds: float = SECONDS

    @property
    def lanes(self) -> int:
        """So many mistakes are asked about at once, each by all tools."""
        return max(1, self.beside // len(TOOLS))


def compared(runs: Kernels | Program, ends: float) -> dict:
    """What comes of a few runs of each problem, one after the other: how many there were, and how many were wrong."""
    outcomes = runs.plain(RUNS, min(RUN_SECONDS, ends - time.monotonic()))
    words = [one for one in outcomes if one != "right"]
    found = {"runs": len(outcomes), "wrong": sum(one.startswith("wrong") for one in words)}
    ended = next((one for one in words if not one.startswith("wrong")), "")
    found["outcome"] = ended.partition(":")[0] or ("wrong" if words else "right")
    if words:
        found["said"] = (ended or words[0])[:160]
    return found


def under(tool: str, runs: Kernels | Program, ends: float) -> dict:
    """What a tool of compute-sanitizer reports, of one run of each problem."""
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "99"]
    if tool == "racecheck":
        command += ["--racecheck-report", "all"]
    status, text = runs.under(command, min(TOOL_SECONDS, ends - time.monotonic()))
    report, summary = _REPORT.search(text), _SUMMARY.search(text)
    first = {"said": report[1]} if report else {}
    if status == 124:
        return {"outcome": "limit"} | first
    if not summary:
        return {"outcome": "failed", "said": f"status {status}: {text.strip()[-120:]}"}
    if summary[1] == "0":
        return {"outcome": "nothing"}
    return {"outcome": "found", "reports": int(summary[1])} | first


def sanitizer_version() -> str:
    """ "" where there is no compute-sanitizer."""
    if not shutil.which("compute-sanitizer"):
        return ""
    said = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True).stdout
    found = re.search(r"[Vv]ersion (\S+)", said)
    return found[1] if found else said.strip().splitlines()[-1]


class Measured:
    """The record that grows, and where it lies."""

    def __init__(self, device: Device, which: list[Stage], choice: Choice, file: Path):
        self.device, self.choice, self.file = device, choice, file
        self.ends = time.monotonic() + choice.seconds
        self.tools = TOOLS if sanitizer_version() else ()
        before = recorded.load(file).get(KIND, {}) if file.exists() else {}
        self.rows, self.runs = before.get("planted", []), before.get("runs", {})
        kernels = [one for one in which if isinstance(one, WithKernel)]
        self.provenance = provenance.collect(device, kernels)
        self.run = self.provenance["date"]
        known = [record for record in recorded.shipped(kind=KIND) if record["provenance"]["device"] == device.short]
        fits = [one for one in which if not unfit(device.gpu, one.min_compute)]
        subjects = planted.in_order(fits, choice.names)
        rows = [*(row for record in known for row in record["planted"]), *self.rows]
        todo = subjects if choice.names else _left(subjects, rows, self.tools)
        self.known = len(subjects) - len(todo)
        self.todo = planted.first(todo, choice.most)
        self.seconds: list[float] = []
        self.saving = threading.Lock()
        self.verdicts: Known = {}
        self.stopped = ""

    def save(self, row: dict) -> None:
        limits = {"runs": RUNS, "run_seconds": RUN_SECONDS, "tool_seconds": TOOL_SECONDS, "beside": self.choice.beside}
        origin = {key: value for key, value in self.provenance.items() if key != "kernels"}
        self.runs[self.run] = origin | {"compute-sanitizer": sanitizer_version()} | limits
        self.rows = joined(self.rows, row)
        record = {"version": 1, "provenance": self.provenance, "runs": self.runs, "planted": self.rows}
        recorded.write(recorded.inside(KIND, record), self.file)

    def measure(self, one: Subject, product: Path | None, notes: list[str]) -> None:
        """Saves a row; OutOfTime where the time for all of it ended meanwhile."""
        began = time.monotonic()
        row = {"stage": one.stage.name, "mistake": one.name, "digest": one.digest(), "run": self.run, "notes": notes}
        row |= self._run(one.stage, product) if product else {"gpu": {"outcome": "not compiled"}}
        if time.monotonic() > self.ends:
            raise OutOfTime
        with self.saving:
            self.save(row)
            self.seconds.append(time.monotonic() - began)
        if row["gpu"]["outcome"] not in ("right", "wrong", "refused", "not compiled") and not self.answers():
            self.stopped = f"{one.stage.id} {one.name}"

    def _run(self, stage: Stage, product: Path) -> dict:
        with (
            executed(stage, product, self.device, self.verdicts) as runs,
            concurrent.futures.ThreadPoolExecutor(min(self.choice.beside, len(TOOLS))) as pool,
        ):
            found = {"gpu": compared(runs, self.ends)}
            return found | dict(zip(self.tools, pool.map(lambda tool: under(tool, runs, self.ends), self.tools)))

    def answers(self) -> bool:
        """Whether the GPU still runs the first kernel of the ladder."""
        stage = stages.get(PROBE)
        product, _ = planted.built(Subject(stage), self.device.gpu.compute)
        with executed(stage, product, self.device, self.verdicts) as runs:
            return runs.plain(1, RUN_SECONDS) == ["right"]

    def all(self) -> None:
        """Of several tools at once each stage's have the GPU together, and beside those of other stages."""

        def work(one: Subject) -> tuple[Path | None, list[str]]:
            return planted.built(one, self.device.gpu.compute)

        source, turn = iter(progress(_done(work, self.todo), "mistakes", len(self.todo))), threading.Lock()

        def lane(_: int) -> None:
            while not self.stopped and time.monotonic() < self.ends:
                with turn:
                    one, made = next(source, (None, ()))
                if one is None:
                    return
                try:
                    self.measure(one, *made)
                except OutOfTime:
                    return

        with concurrent.futures.ThreadPoolExecutor(self.choice.lanes) as pool:
            list(pool.map(lane, range(self.choice.lanes)))

    def summary(self) -> list[str]:
        done = len(self.seconds)
        lines = [f"faults: {done} of {len(self.todo)} mistakes and stages as they are; {self.known} known already"]
        if done:
            each, lanes = statistics.median(self.seconds), self.choice.lanes
            fit = f"about {lanes * self.choice.seconds / each:.0f} in {self.choice.seconds:.0f} s"
            lines.append(f"faults: {each:.1f} s for each, {lanes} at once: {fit}")
        if done < len(self.todo) and not self.stopped:
            lines.append("faults: the time is over: the same command goes on with the others")
        if not self.tools:
            lines.append("faults: compute-sanitizer is not on PATH")
        return lines + [f"faults: the GPU stopped answering after {self.stopped}"] * bool(self.stopped)


def measure(device: Device, which: Iterable[Stage], choice: Choice, file: Path) -> list[str]:
    """Asks all tools about the stages' mistakes; lines for the summary."""
    measured = Measured(device, list(which), choice, file)
    measured.all()
    return measured.summary()
