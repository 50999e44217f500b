"""Which tool notices the stages' planted mistakes: the compiler, a comparison of the results on a GPU, and the four
tools of compute-sanitizer; and what each has to say of the stages as they are, which is a false alarm.

`PARTS=faults STAGES="15-25" make gpu-report` asks them all, `make machine-code ARGS="--mistakes 15-25"` the compiler
alone, which needs no GPU. Both save after each mistake and leave out what a record has of the same source already.
What the simulator says stands in mistakes.toml, and tests hold it.
"""

import collections
import concurrent.futures
import itertools
import re
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from flashladder.building import build
from flashladder.core.console import progress
from flashladder.core.device import Device, gpus, unfit
from flashladder.ladder import stages
from flashladder.ladder.kernels import WithKernel
from flashladder.ladder.ring import Ring
from flashladder.ladder.stage import Stage
from flashladder.measuring import machine_code, planted, provenance, recorded
from flashladder.measuring.executed import Kernels, Problems, Program, executed, roomy
from flashladder.measuring.planted import Subject

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
RUNS = 5  # of each problem, where results are compared
RUN_SECONDS, TOOL_SECONDS = 30, 60  # after which a run has not ended, and one under a tool, at the latest:
TIMES, HANGING_TIMES = 10, 3  # after so many times what runs of the stage took, and of what hangs without a tool
LEAST_SECONDS = 12  # but not sooner
SAVED_EVERY = 3  # seconds
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


def _done(
    work: Callable[[Subject], object], subjects: list[Subject], ahead: int | None = None
) -> Iterator[tuple[Subject, object]]:
    """Each with what the work gives for it, as soon as there is it: on all cores they are begun in their order, and
    none waits for another that takes minutes to compile. ahead: so many at most that nobody has asked for yet."""
    pool, left = concurrent.futures.ThreadPoolExecutor(build.jobs()), iter(subjects)
    try:
        begun = [(one, pool.submit(work, one)) for one in itertools.islice(left, ahead)]
        while begun:
            concurrent.futures.wait([future for _, future in begun], return_when=concurrent.futures.FIRST_COMPLETED)
            one, future = begun.pop(next(at for at, (_, future) in enumerate(begun) if future.done()))
            begun += [(other, pool.submit(work, other)) for other in itertools.islice(left, 1)]
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
    beside: int = 1  # so many processes run on the GPUs at once
    seconds: float = SECONDS

    @property
    def lanes(self) -> int:
        """So many mistakes are asked about at once: there are more than all tools keep busy, since each of them also
        compares results and waits for its last tool."""
        return max(1, self.beside // 2)


class Times:
    """Seconds that each thing took, by its name and what it was done for."""

    def __init__(self) -> None:
        self.took: dict[tuple[str, str], list[float]] = collections.defaultdict(list)

    def add(self, what: str, stage: Stage, began: float) -> None:
        self.took[what, stage.name].append(time.monotonic() - began)

    def limit(self, what: str, stage: Stage, most: float, times: float = TIMES) -> float:
        """For what should take as long as it took of the stage until now: so many times the median."""
        took = self.took.get((what, stage.name))
        return min(most, max(LEAST_SECONDS, times * statistics.median(took))) if took else most

    def lines(self) -> list[str]:
        """What is dear."""
        whole: dict[str, list[float]] = {}
        for (what, _), took in self.took.items():
            whole.setdefault(what, []).extend(took)
        return [
            f"faults: {what}: {statistics.median(took):.1f} s in the median, {max(took):.1f} s at most, "
            f"{sum(took):.0f} s for all {len(took)}"
            for what, took in whole.items()
        ]


def compared(runs: Kernels | Program, seconds: float) -> dict:
    """What comes of a few runs of each problem, one after the other: how many there were, and how many were wrong."""
    outcomes = runs.plain(RUNS, seconds)
    words = [one for one in outcomes if one != "right"]
    found = {"runs": len(outcomes), "wrong": sum(one.startswith("wrong") for one in words)}
    ended = next((one for one in words if not one.startswith("wrong")), "")
    found["outcome"] = ended.partition(":")[0] or ("wrong" if words else "right")
    if found["outcome"] == "hang":
        found["seconds"] = round(seconds, 1)
    if words:
        found["said"] = (ended or words[0])[:160]
    return found


def under(tool: str, runs: Kernels | Program, seconds: float) -> dict:
    """What a tool of compute-sanitizer reports, of one run of each problem."""
    # Who called what is in no cell, and to find it out takes long.
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "99", "--show-backtrace", "no"]
    if tool == "racecheck":
        command += ["--racecheck-report", "all"]
    status, text = runs.under(command, seconds)
    report, summary = _REPORT.search(text), _SUMMARY.search(text)
    first = {"said": report[1]} if report else {}
    if status == 124:
        return {"outcome": "limit", "seconds": round(seconds, 1)} | first
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


@dataclass
class Waiting:
    """A mistake with what is made of it (None: it does not compile) and known of it."""

    subject: Subject
    product: Path | None
    notes: list[str]
    found: dict = field(default_factory=dict)

    @property
    def hangs(self) -> bool:
        return self.found["gpu"]["outcome"] == "hang"


class Shared:
    """Each stage's Problems, made when they are first asked for."""

    def __init__(self, make: Callable[[WithKernel, Path], Problems]):
        self.make, self.place = make, tempfile.TemporaryDirectory(prefix="flashladder-problems-", dir=roomy())
        self.made: dict[str, Problems] = {}
        self.making: dict[str, threading.Lock] = collections.defaultdict(threading.Lock)

    def of(self, stage: WithKernel, times: Times) -> Problems:
        with self.making[stage.name]:
            if stage.name not in self.made:
                began = time.monotonic()
                self.made[stage.name] = self.make(stage, Path(self.place.name) / stage.name)
                times.add("inputs", stage, began)
            return self.made[stage.name]

    def close(self) -> None:
        self.place.cleanup()


class Measured:
    """The record that grows, and where it lies."""

    def __init__(self, device: Device, which: list[Stage], choice: Choice, file: Path):
        self.device, self.choice, self.file = device, choice, file
        self.began = time.monotonic()
        self.ends = self.began + choice.seconds
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
        self.saving, self.saved = threading.Lock(), time.monotonic()
        self.times, self.room = Times(), threading.BoundedSemaphore(choice.beside)
        self.problems = Shared(lambda stage, folder: Problems(stage, device, folder))
        self.late: list[Waiting] = []
        self.stopped = ""

    def save(self, row: dict, now: bool = False) -> None:
        """Keeps a row; in the file are those of a few seconds ago."""
        self.rows = joined(self.rows, row) if row else self.rows
        if not self.rows or not now and time.monotonic() < self.saved + SAVED_EVERY:
            return
        limits = {"runs": RUNS, "run_seconds": RUN_SECONDS, "tool_seconds": TOOL_SECONDS, "beside": self.choice.beside}
        origin = {key: value for key, value in self.provenance.items() if key != "kernels"}
        self.runs[self.run] = origin | {"compute-sanitizer": sanitizer_version()} | limits
        record = {"version": 1, "provenance": self.provenance, "runs": self.runs, "planted": self.rows}
        recorded.write(recorded.inside(KIND, record), self.file)
        self.saved = time.monotonic()

    def measure(self, waiting: Waiting, gpu: str) -> None:
        """Saves a row; OutOfTime where the time for all of it ended meanwhile. Of what never ended by itself the tools
        are asked late, since it keeps others from the GPU: until then its row has none of them."""
        began, one, first = time.monotonic(), waiting.subject, not waiting.found
        if waiting.product:
            problems = self.problems.of(one.stage, self.times) if isinstance(one.stage, WithKernel) else None
            with executed(one.stage, waiting.product, self.device, problems, gpu) as runs:
                if first:
                    waiting.found["gpu"] = self._compared(one.stage, runs)
                if not (first and waiting.hangs and self.tools):
                    waiting.found |= self._asked(one.stage, runs, waiting.hangs)
        else:
            waiting.found["gpu"] = {"outcome": "not compiled"}
        if time.monotonic() > self.ends:
            raise OutOfTime
        row = {"stage": one.stage.name, "mistake": one.name, "digest": one.digest(), "run": self.run}
        with self.saving:
            self.save(row | {"notes": waiting.notes} | waiting.found)
            if first and waiting.hangs and self.tools:
                self.late.append(waiting)
            else:
                self.seconds.append(time.monotonic() - began)
        if waiting.found["gpu"]["outcome"] not in ("right", "wrong", "refused", "not compiled"):
            self._probe(waiting.subject, gpu)

    def _compared(self, stage: Stage, runs: Kernels | Program) -> dict:
        with self.room:
            began, seconds = time.monotonic(), self.times.limit("results", stage, RUN_SECONDS)
            found = compared(runs, min(seconds, self.ends - began))
        self.times.add("results" + ", never ended" * (found["outcome"] == "hang"), stage, began)
        return found

    def _asked(self, stage: Stage, runs: Kernels | Program, hangs: bool) -> dict:
        """What each tool says."""

        def ask(tool: str) -> dict:
            with self.room:
                began = time.monotonic()
                seconds = self.times.limit(tool, stage, TOOL_SECONDS, HANGING_TIMES if hangs else TIMES)
                found = under(tool, runs, min(seconds, self.ends - began))
            self.times.add(tool + ", never ended" * (found["outcome"] == "limit"), stage, began)
            return found

        with concurrent.futures.ThreadPoolExecutor(len(TOOLS)) as pool:
            return dict(zip(self.tools, pool.map(ask, self.tools)))

    def _probe(self, after: Subject, gpu: str) -> None:
        """Whether the GPU still runs the first kernel of the ladder."""
        stage = stages.get(PROBE)
        product, _ = planted.built(Subject(stage), self.device.gpu.compute)
        with executed(stage, product, self.device, self.problems.of(stage, self.times), gpu) as runs, self.room:
            if runs.plain(1, RUN_SECONDS) != ["right"]:
                self.stopped = f"{after.stage.id} {after.name}"

    def _in_lanes(self, source: Iterator[Waiting]) -> None:
        """On several GPUs at once each lane has one of them."""
        turn, names = threading.Lock(), gpus() or [""]

        def lane(number: int) -> None:
            while not self.stopped and time.monotonic() < self.ends:
                with turn:
                    waiting = next(source, None)
                if waiting is None:
                    return
                try:
                    one = len(names) == 1 or isinstance(waiting.subject.stage, Ring)
                    self.measure(waiting, "" if one else names[number % len(names)])
                except OutOfTime:
                    return

        with concurrent.futures.ThreadPoolExecutor(self.choice.lanes) as pool:
            list(pool.map(lane, range(self.choice.lanes)))

    def all(self) -> None:
        """First what lessons show, with what hangs of it at its end, then the others."""

        def work(one: Subject) -> tuple[Path | None, list[str]]:
            began = time.monotonic()
            made = planted.built(one, self.device.gpu.compute)
            self.times.add("to compile", one.stage, began)
            return made

        shown = [one for one in self.todo if not one.mistake or one.mistake.caught_by]
        try:
            for some in (shown, [one for one in self.todo if one not in shown]):
                made = _done(work, some, ahead=build.jobs() + self.choice.lanes)
                self._in_lanes(Waiting(one, *built) for one, built in progress(made, "mistakes", len(some)))
                late, self.late = self.late, []
                self._in_lanes(iter(late))
        finally:
            self.problems.close()
            self.save({}, now=True)

    def summary(self) -> list[str]:
        done = len(self.seconds)
        lines = [f"faults: {done} of {len(self.todo)} mistakes and stages as they are; {self.known} known already"]
        if done:
            each, lanes = statistics.median(self.seconds), self.choice.lanes
            lines.append(f"faults: {each:.1f} s for each, {lanes} at once, in {time.monotonic() - self.began:.0f} s")
        lines += self.times.lines()
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
