"""Which tool notices the stages' planted mistakes: the compiler, a comparison of the results on a GPU, and the four
tools of compute-sanitizer; and what each has to say of the stages as they are, which is a false alarm.

`PARTS=faults STAGES="15-25" make gpu-report` asks them all, `make machine-code ARGS="--mistakes 15-25"` the compiler
alone, which needs no GPU. Both save after each mistake and leave out what a record has of the same source already.
What the simulator says stands in mistakes.toml, and tests hold it.
"""

import collections
import concurrent.futures
import contextlib
import itertools
import statistics
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
from flashladder.measuring import machine_code, planted, provenance, recorded, sanitizer
from flashladder.measuring.executed import Kernels, Problems, Program, executed, roomy, together
from flashladder.measuring.planted import Subject
from flashladder.measuring.sanitizer import TOOLS

RUNS = 5  # of each problem, where results are compared
RUN_SECONDS, TOOL_SECONDS = 30, 60  # after which a run has not ended, and one under a tool, at the latest:
TIMES, HANGING_TIMES = 10, 3  # after so many times what runs of the stage took, and of what hangs without a tool
LEAST_SECONDS = 15  # but not sooner
SAVED_EVERY = 3  # seconds
GROUP = 6  # mistakes of a stage that a tool is asked about together
AHEAD = 4  # so many times as many mistakes are compiled ahead as there are cores
SECONDS = 480  # for all of it
KIND = "detections"  # of recorded.INSIDE
PROBE = "naive"  # the stage that shows whether the GPU still answers


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


@dataclass(frozen=True)
class Choice:
    """What a user chooses."""

    most: int = 0  # mistakes that no record has yet, 0 for all
    names: tuple[str, ...] = ()  # of some mistakes alone
    beside: int = 1  # so many processes run on the GPUs at once
    seconds: float = SECONDS

    @property
    def lanes(self) -> int:
        """So many stages' mistakes are asked about at once: there are more than all tools keep busy, since each of them
        also compares results and waits for its last tool."""
        return max(1, self.beside // 3)


class Times:
    """Seconds that each thing took, by its name and what it was done for."""

    def __init__(self) -> None:
        self.took: dict[str, list[float]] = collections.defaultdict(list)
        self.usual: dict[tuple[str, str], list[float]] = collections.defaultdict(list)

    def add(self, what: str, began: float) -> None:
        self.took[what].append(time.monotonic() - began)

    def ended(self, what: str, stage: Stage, began: float) -> None:
        """By itself: so limit() may go by it."""
        self.usual[what, stage.name].append(time.monotonic() - began)

    def limit(self, what: str, stage: Stage, most: float, times: float = TIMES) -> float:
        """For what should take as long as it took of the stage until now: so many times the median."""
        usual = self.usual.get((what, stage.name))
        return min(most, max(LEAST_SECONDS, times * statistics.median(usual))) if usual else most

    def lines(self) -> list[str]:
        """What is dear."""
        return [
            f"faults: {what}: {statistics.median(took):.1f} s in the median, {max(took):.1f} s at most, "
            f"{sum(took):.0f} s for all {len(took)}"
            for what, took in sorted(self.took.items())
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


@dataclass(eq=False)
class Waiting:
    """A mistake with what is made of it (None: it does not compile) and known of it."""

    subject: Subject
    product: Path | None
    notes: list[str]
    found: dict = field(default_factory=dict)
    late: bool = False  # whether the tools were put off

    @property
    def outcome(self) -> str:
        """Of its results; "" where there was no time for them."""
        return self.found.get("gpu", {"outcome": ""})["outcome"]


def _is_shown(one: Subject) -> bool:
    """By a lesson, or the stage as it is."""
    return not one.mistake or bool(one.mistake.caught_by)


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
                times.add("inputs", began)
            return self.made[stage.name]

    def close(self) -> None:
        self.place.cleanup()


class Measured:
    """The record that grows, and where it lies."""

    def __init__(self, device: Device, which: list[Stage], choice: Choice, file: Path):
        self.device, self.choice, self.file = device, choice, file
        self.began = time.monotonic()
        self.ends = self.began + choice.seconds
        self.tools = TOOLS if sanitizer.version() else ()
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

    def _save(self, waiting: Waiting) -> None:
        """Keeps a row; in the file are those of a few seconds ago."""
        one = waiting.subject
        row = {"stage": one.stage.name, "mistake": one.name, "digest": one.digest(), "run": self.run}
        self.rows = joined(self.rows, row | {"notes": waiting.notes} | waiting.found)
        if time.monotonic() > self.saved + SAVED_EVERY:
            self.write()

    def write(self) -> None:
        if not self.rows:
            return
        limits = {"runs": RUNS, "run_seconds": RUN_SECONDS, "tool_seconds": TOOL_SECONDS, "beside": self.choice.beside}
        origin = {key: value for key, value in self.provenance.items() if key != "kernels"}
        self.runs[self.run] = origin | {"compute-sanitizer": sanitizer.version()} | limits
        record = {"version": 1, "provenance": self.provenance, "runs": self.runs, "planted": self.rows}
        recorded.write(recorded.inside(KIND, record), self.file)
        self.saved = time.monotonic()

    def measure(self, piece: list[Waiting], gpu: str) -> None:
        """Saves rows of some mistakes of a stage, those that there was time for. Of what never ended without a tool the
        tools are asked late, since it keeps others from the GPU: until then its row has none of them."""
        began = time.monotonic()
        with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor(len(piece) + len(TOOLS)) as pool:
            runs = [self._executed(one, gpu, stack) if one.product else None for one in piece]
            list(pool.map(self._compare, piece, runs))
            put_off = [one for one in piece if one.outcome == "hang" and not one.late and self.tools]
            now = [pair for pair in zip(piece, runs, strict=True) if pair[1] and pair[0].outcome]
            now = [(one, own) for one, own in now if one not in put_off]
            list(pool.map(lambda tool: self._ask(tool, now), self.tools))
        with self.saving:
            for one in piece:
                whole = one.found.keys() >= {"gpu", *self.tools} or one.outcome == "not compiled"
                if whole or one in put_off:
                    self._save(one)
                if whole:
                    self.seconds.append((time.monotonic() - began) / len(piece))
            for one in put_off:
                one.late = True
            self.late += put_off
        if hurt := [one for one in piece if one.outcome not in ("right", "wrong", "refused", "not compiled", "")]:
            self._probe(hurt[0].subject, gpu)

    def _executed(self, one: Waiting, gpu: str, stack: contextlib.ExitStack) -> Kernels | Program:
        stage = one.subject.stage
        problems = self.problems.of(stage, self.times) if isinstance(stage, WithKernel) else None
        return stack.enter_context(executed(stage, one.product, self.device, problems, gpu))

    def _compare(self, one: Waiting, runs: Kernels | Program | None) -> None:
        if one.found:
            return
        if runs is None:
            one.found["gpu"] = {"outcome": "not compiled"}
            return
        with self.room:
            began, seconds = time.monotonic(), self.times.limit("results", one.subject.stage, RUN_SECONDS)
            found = compared(runs, min(seconds, self.ends - began))
        self.times.add("results" + ", never ended" * (found["outcome"] == "hang"), began)
        if found["outcome"] != "hang":
            self.times.ended("results", one.subject.stage, began)
        if time.monotonic() < self.ends:
            one.found["gpu"] = found

    def _ask(self, tool: str, some: list[tuple[Waiting, Kernels | Program]]) -> None:
        """What a tool says of each: of those whose runs end asked together first, of the others alone."""
        left = [pair for pair in some if pair[0].outcome in ("right", "wrong")]
        alone = [pair for pair in some if pair not in left]
        while len(left) > 1:
            left, apart = self._ask_together(tool, left)
            alone += apart
        for one, runs in (*alone, *left):
            self._ask_alone(tool, one, runs)

    def _ask_together(self, tool: str, some: list[tuple[Waiting, Kernels]]) -> tuple[list, list]:
        """Those that are to be asked about together once more, and alone."""
        stage = some[0][0].subject.stage
        with self.room:
            began = time.monotonic()
            seconds = min(len(some), 2) * self.times.limit(tool, stage, TOOL_SECONDS)
            runs = [own for _, own in some]
            status, text, ended = together(runs, sanitizer.command(tool, "host"), min(seconds, self.ends - began))
        names = [own.library.name for own in runs]
        silent, spoken = sanitizer.told_apart(text, names, ended) if status != 124 else (set(), set())
        self.times.add(f"{tool} of {len(some)} at once", began)
        if status != 124:
            self.times.ended(tool, stage, began)
        if time.monotonic() < self.ends:
            for one, own in some:
                if own.library.name in silent:
                    one.found[tool] = {"outcome": "nothing"}
        left = [pair for pair in some if pair[1].library.name not in silent | spoken]
        if len(left) == len(some) or status == 124:
            return [], left
        return left, [pair for pair in some if pair[1].library.name in spoken]

    def _ask_alone(self, tool: str, one: Waiting, runs: Kernels | Program) -> None:
        stage, times = one.subject.stage, HANGING_TIMES if one.outcome == "hang" else TIMES
        with self.room:
            began, seconds = time.monotonic(), self.times.limit(tool, stage, TOOL_SECONDS, times)
            status, text = runs.under(sanitizer.command(tool), min(seconds, self.ends - began))
        self.times.add(tool + ", never ended" * (status == 124), began)
        if status != 124:
            self.times.ended(tool, stage, began)
        if time.monotonic() < self.ends:
            one.found[tool] = sanitizer.cell(status, text, seconds)

    def _probe(self, after: Subject, gpu: str) -> None:
        """Whether the GPU still runs the first kernel of the ladder."""
        stage = stages.get(PROBE)
        product, _ = planted.built(Subject(stage), self.device.gpu.compute)
        with executed(stage, product, self.device, self.problems.of(stage, self.times), gpu) as runs, self.room:
            if not any(runs.plain(1, RUN_SECONDS) == ["right"] for _ in range(2)):  # others keep it busy
                self.stopped = f"{after.stage.id} {after.name}"

    def _pieces(self, subjects: list[Subject]) -> Iterator[list[Waiting]]:
        """Up to GROUP mistakes of a stage, as soon as they are compiled."""

        def work(one: Subject) -> tuple[Path | None, list[str]]:
            began = time.monotonic()
            made = planted.built(one, self.device.gpu.compute)
            self.times.add("to compile", began)
            return made

        pieces = planted.by_stage(subjects, GROUP)
        places = {one.key: place for place, piece in enumerate(pieces) for one in piece}
        made: list[list[Waiting]] = [[] for _ in pieces]
        ordered = [one for piece in pieces for one in piece]
        for one, built in progress(_done(work, ordered, AHEAD * build.jobs()), "mistakes", len(ordered)):
            place = places[one.key]
            made[place].append(Waiting(one, *built))
            if len(made[place]) == len(pieces[place]):
                yield made[place]

    def _put_off(self, shown: bool) -> Iterator[list[Waiting]]:
        """Those of which the tools are still to be asked: of what lessons show, or all."""
        with self.saving:
            some = [one for one in self.late if not shown or _is_shown(one.subject)]
            self.late = [one for one in self.late if one not in some]
        yield from ([one] for one in some)

    def _in_order(self) -> Iterator[list[Waiting]]:
        """First what lessons show, then what hangs of it, then the others up to what hangs of them."""
        yield from self._pieces([one for one in self.todo if _is_shown(one)])
        for piece in self._pieces([one for one in self.todo if not _is_shown(one)]):
            yield from self._put_off(shown=True)
            yield piece

    def _in_lanes(self, source: Iterator[list[Waiting]]) -> None:
        """On several GPUs at once each lane has one of them."""
        turn, names = threading.Lock(), gpus() or [""]

        def lane(number: int) -> None:
            while not self.stopped and time.monotonic() < self.ends:
                began = time.monotonic()
                with turn:
                    piece = next(source, None)
                if piece is None:
                    return
                self.times.add("waiting for a compiler", began)
                one = len(names) == 1 or isinstance(piece[0].subject.stage, Ring)
                self.measure(piece, "" if one else names[number % len(names)])

        with concurrent.futures.ThreadPoolExecutor(self.choice.lanes) as pool:
            list(pool.map(lane, range(self.choice.lanes)))

    def all(self) -> None:
        try:
            self._in_lanes(self._in_order())
            self._in_lanes(self._put_off(shown=False))
        finally:
            self.problems.close()
            self.write()

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
