"""Which tool notices the stages' planted mistakes: the compiler, a comparison of the results on a GPU, and the four
tools of compute-sanitizer; and what each has to say of the stages as they are, which is a false alarm.

`PARTS=faults STAGES="15-25" make gpu-report` asks them all, `make machine-code ARGS="--mistakes 15-25"` the compiler
alone, which needs no GPU, and with `--judged 15-25` the simulator. All save each answer and ask for none that a record
has of the same source already. What the simulator says of the lessons' mistakes stands in mistakes.toml.
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
from dataclasses import dataclass
from pathlib import Path

from flashladder.building import build
from flashladder.core.console import progress
from flashladder.core.device import Device, gpus, unfit
from flashladder.ladder import stages
from flashladder.ladder.decode import Decode
from flashladder.ladder.kernels import WithKernel
from flashladder.ladder.ring import Ring
from flashladder.ladder.stage import Stage
from flashladder.measuring import machine_code, planted, provenance, recorded, sanitizer
from flashladder.measuring.executed import Kernels, Problems, Program, executed, roomy, together
from flashladder.measuring.planted import Subject
from flashladder.measuring.sanitizer import TOOLS

RUNS = 5  # of each problem, where results are compared
# A process is ended after so many seconds in which none of its runs has ended; sooner where it is known to hang.
QUIET_SECONDS, QUIET_TOOL_SECONDS, HANGING_SECONDS = 20, 25, 12
SEVERAL_GPUS = 1.5  # so many times as long on several: to begin on each takes its time where many begin at once
SAVED_EVERY = 3  # seconds
SPINNING = 16  # of what never ends at once, a GPU: each keeps it for its part of the time
GROUP = 8  # mistakes of a stage that a tool is asked about together
AHEAD = 2  # so many times as many mistakes are compiled ahead as there are cores
SECONDS = 480  # for all of it
KIND = "detections"  # of recorded.INSIDE
NARROW = "as few blocks as on the simulator"  # of persistent kernels
ORDERS = "each seven in an order of their own"  # of the sequences of a wide batch
PROBE = "naive"  # the stage that shows whether the GPU still answers


def joined(rows: Iterable[dict], new: dict) -> list[dict]:
    """The rows with a new one, which takes the place of an earlier one of the same; by stage and name."""
    kept = [row for row in rows if (row["stage"], row["mistake"]) != (new["stage"], new["mistake"])]
    return sorted([*kept, new], key=lambda row: (row["stage"], row["mistake"]))


def _known(rows: Iterable[dict], one: Subject) -> dict:
    """What rows say of this very source, of several the last; {} where none does."""
    found = [row for row in rows if (row["stage"], row["mistake"]) == one.key]
    return found[-1] if found and found[-1]["digest"] == one.digest() else {}


def _left(subjects: list[Subject], rows: list[dict]) -> list[Subject]:
    """Those of which no row says what became of this very source."""
    known = {(row["stage"], row["mistake"]): row["digest"] for row in rows}
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


# ---- the compiler and the simulator, without a GPU ----


def record_notes(which: Iterable[Stage], most: int = 0, file: Path | None = None) -> list[dict]:
    """What nvcc and ptxas say of stages' mistakes, in the record of machine code; returns all of its rows."""
    subjects = planted.in_order([one for one in which if isinstance(one, WithKernel)])
    return _record("ptxas", "sm_90a", lambda one: {"notes": planted.machine_code_notes(one)}, subjects, most, file)


def record_verdicts(which: Iterable[Stage], most: int = 0, file: Path | None = None) -> list[dict]:
    """The same of what warpsim says of the mistakes that no lesson shows; first of hazards, which it may name."""
    subjects = [one for one in planted.in_order(which) if one.mistake and not one.mistake.caught_by]
    subjects.sort(key=lambda one: one.mistake.kind != "hazard")
    return _record("judged", "warpsim", planted.judged, subjects, most, file)


def _record(
    kind: str, device: str, ask: Callable[[Subject], dict], subjects: list[Subject], most: int, file: Path | None
) -> list[dict]:
    file = file or machine_code.record_file()
    rows = recorded.load(file).get(kind, {"planted": []})["planted"]
    todo = planted.first(_left(subjects, rows), most)
    source = {"device": device, "toolkit": machine_code.toolkit()}
    for one, said in progress(_done(ask, todo), kind, len(todo)):
        rows = joined(rows, {"stage": one.stage.name, "mistake": one.name, "digest": one.digest()} | said)
        recorded.write(recorded.inside(kind, {"version": 1, "provenance": source, "planted": rows}), file)
    return rows


# ---- a GPU ----


@dataclass(frozen=True)
class Choice:
    """What a user chooses."""

    most: int = 0  # mistakes that no record has yet, 0 for all
    names: tuple[str, ...] = ()  # of some mistakes alone
    beside: int = 1  # so many processes run on the GPUs at once
    seconds: float = SECONDS


class Times:
    """Seconds that each thing took, by its name."""

    def __init__(self) -> None:
        self.took: dict[str, list[float]] = collections.defaultdict(list)

    def add(self, what: str, began: float) -> None:
        self.took[what].append(time.monotonic() - began)

    def lines(self) -> list[str]:
        """What is dear."""
        return [
            f"faults: {what}: {statistics.median(took):.1f} s in the median, {max(took):.1f} s at most, "
            f"{sum(took):.0f} s for all {len(took)}"
            for what, took in sorted(self.took.items())
            if took
        ]


def compared(runs: Kernels | Program, seconds: float, quiet: float) -> dict:
    """What comes of a few runs of each problem, one after the other: how many there were, and how many were wrong."""
    outcomes = runs.plain(RUNS, seconds, quiet)
    words = [one for one in outcomes if one != "right"]
    found = {"runs": len(outcomes), "wrong": sum(one.startswith("wrong") for one in words)}
    ended = next((one for one in words if not one.startswith("wrong")), "")
    found["outcome"] = ended.partition(":")[0] or ("wrong" if words else "right")
    if found["outcome"] == "hang":
        found["seconds"] = quiet
    if words:
        found["said"] = (ended or words[0])[:160]
    return found


@dataclass(eq=False)
class Waiting:
    """A mistake with what is made of it (None: it does not compile) and known of it."""

    subject: Subject
    product: Path | None
    notes: list[str]
    found: dict
    runs: Kernels | Program | None = None

    @property
    def outcome(self) -> str:
        """Of its results; "" where there was no time for them."""
        return self.found.get("gpu", {"outcome": ""})["outcome"]


def _answered(cell: dict, tool: str, run: dict, wide: bool) -> bool:
    """Whether a cell, of a row of that run, is not to be asked for again: it is of the tool's present way. wide: of a
    stage whose batch is as wide as the GPU."""
    if cell["outcome"] in ("failed", "refused"):  # refused: by a stage that needs more GPUs than there were
        return False
    if tool == "gpu":
        return cell["outcome"] != "right" or not wide or run.get("sequences") == ORDERS
    return cell["outcome"] == "nothing" or run.get("under_tools") == NARROW


def _is_wide(stage: Stage) -> bool:
    """Whether its sequences repeat (executed.Problems); those of a cache are all different."""
    return isinstance(stage, WithKernel) and bool(stage.fewer) and not isinstance(stage, Decode)


def _patience(stage: Stage, seconds: float) -> float:
    return seconds * (SEVERAL_GPUS if isinstance(stage, Ring) else 1)


def _is_shown(one: Subject) -> bool:
    """By a lesson, or the stage as it is."""
    return not one.mistake or bool(one.mistake.caught_by)


def _should_hang(one: Subject) -> bool:
    """By what the simulator says of it."""
    return bool(one.mistake) and one.mistake.caught_by == "deadlock"


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
        self.rows = before.get("planted", [])
        kernels = [one for one in which if isinstance(one, WithKernel)]
        self.provenance = provenance.collect(device, kernels)
        self.run = self.provenance["date"]
        known = [record for record in recorded.shipped(kind=KIND) if record["provenance"]["device"] == device.short]
        fits = [one for one in which if not unfit(device.gpu, one.min_compute)]
        subjects = planted.in_order(fits, choice.names)
        self.runs = {date: run for record in [*known, before] for date, run in record.get("runs", {}).items()}
        rows = [*(row for record in known for row in record["planted"]), *self.rows]
        self.known = {one.key: self._answers(_known(rows, one), _is_wide(one.stage)) for one in subjects}
        # By stage and tool: what is said of the stage as it is.
        self.of_clean = {
            (one.stage.name, tool): self.known[one.key][tool]["outcome"]
            for one in subjects
            for tool in TOOLS
            if not one.mistake and tool in self.known[one.key]
        }
        todo = subjects if choice.names else [one for one in subjects if not self._is_whole(self.known[one.key])]
        self.left_out = len(subjects) - len(todo)
        self.todo = planted.first(todo, choice.most)
        self.done: set[tuple[str, str]] = set()
        self.saving, self.saved = threading.RLock(), time.monotonic()
        self.times, self.room = Times(), threading.BoundedSemaphore(choice.beside)
        self.spinning = threading.BoundedSemaphore(min(choice.beside, SPINNING * max(len(gpus()), 1)))
        self.problems = Shared(lambda stage, folder: Problems(stage, device, folder))
        self.late: list[Waiting] = []
        self.stopped = ""

    def _answers(self, row: dict, wide: bool) -> dict:
        """The row without cells that are to be asked for again; with --mistakes all are."""
        there = [what for what in ("gpu", *TOOLS) if what in row]
        runs = {what: self.runs.get(row[what].get("run", row["run"]), {}) for what in there}
        old = [what for what in there if not _answered(row[what], what, runs[what], wide)]
        return {} if self.choice.names else {key: value for key, value in row.items() if key not in old}

    def _is_whole(self, found: dict) -> bool:
        return found.keys() >= {"gpu", *self.tools} or found.get("gpu", {}).get("outcome") == "not compiled"

    def _learned(self, one: Waiting, what: str, cell: dict) -> None:
        """Keeps an answer, if it came in time; in the file are those of a few seconds ago."""
        if time.monotonic() >= self.ends:
            return
        with self.saving:
            began = one.found.get("run", self.run)
            one.found |= {"run": began, what: cell | ({"run": self.run} if began != self.run else {})}
            subject = one.subject
            row = {"stage": subject.stage.name, "mistake": subject.name, "digest": subject.digest()}
            self.rows = joined(self.rows, row | {"run": began, "notes": one.notes} | one.found)
            if self._is_whole(one.found):
                self.done.add(subject.key)
            if time.monotonic() > self.saved + SAVED_EVERY:
                self.write()

    def write(self) -> None:
        if not self.rows:
            return
        limits = {"runs": RUNS, "quiet_seconds": QUIET_SECONDS, "quiet_tool_seconds": QUIET_TOOL_SECONDS}
        limits |= {"quiet_hanging_seconds": HANGING_SECONDS, "beside": self.choice.beside, "sequences": ORDERS}
        origin = {key: value for key, value in self.provenance.items() if key != "kernels"}
        self.runs[self.run] = origin | {"compute-sanitizer": sanitizer.version(), "under_tools": NARROW} | limits
        record = {"version": 1, "provenance": self.provenance, "runs": self.runs, "planted": self.rows}
        recorded.write(recorded.inside(KIND, record), self.file)
        self.saved = time.monotonic()

    def measure(self, piece: list[Waiting], gpu: str) -> None:
        """Asks about some mistakes of a stage as far as there is time. What never ends keeps others from the GPU, so
        the tools are asked about it late."""
        with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor(len(piece) + len(TOOLS)) as pool:
            for one in piece:
                one.runs = self._executed(one, gpu, stack) if one.product else None
            was_known = [one for one in piece if one.outcome]
            list(pool.map(self._compare, (one for one in piece if one not in was_known)))
            surprising = [one for one in piece if one.outcome == "hang" and not self._hangs(one.subject)]
            put_off = [one for one in surprising if one not in was_known]
            now = [one for one in piece if one.runs and one.outcome not in ("", "refused") and one not in put_off]
            list(pool.map(lambda tool: self._ask(tool, [one for one in now if tool not in one.found]), self.tools))
        with self.saving:
            self.late += put_off
        if hurt := [one for one in piece if one not in was_known and one.outcome in ("error", "hang")]:
            self._probe(hurt[0].subject, gpu)

    @contextlib.contextmanager
    def _process(self, hangs: bool) -> Iterator[None]:
        with self.spinning if hangs else contextlib.nullcontext(), self.room:
            yield

    def _executed(self, one: Waiting, gpu: str, stack: contextlib.ExitStack) -> Kernels | Program:
        stage = one.subject.stage
        problems = self.problems.of(stage, self.times) if isinstance(stage, WithKernel) else None
        return stack.enter_context(executed(stage, one.product, self.device, problems, gpu))

    def _compare(self, one: Waiting) -> None:
        if one.runs is None:
            self._learned(one, "gpu", {"outcome": "not compiled"})
            return
        hangs = self._hangs(one.subject)
        with self._process(hangs):
            began = time.monotonic()
            quiet = _patience(one.subject.stage, HANGING_SECONDS if hangs else QUIET_SECONDS)
            found = compared(one.runs, self.ends - began, quiet)
        self.times.add("results" + ", never ended" * (found["outcome"] == "hang"), began)
        self._learned(one, "gpu", found)

    def _ask(self, tool: str, some: list[Waiting]) -> None:
        """What a tool says of each: of those whose runs end asked together first, of the others alone. Where it has
        something to say of the stage as it is, its reports would be of the first alone; and where it comes to no end
        there, it is not asked."""
        if clean := [one for one in some if not one.subject.mistake]:
            self._ask_alone(tool, clean[0])
        some = [one for one in some if one not in clean]
        of_clean = self.of_clean.get((some[0].subject.stage.name, tool), "nothing") if some else ""
        if of_clean == "limit":
            for one in some:
                self._learned(one, tool, {"outcome": "limit", "without": True})
            return
        left = [one for one in some if one.outcome in ("right", "wrong") and of_clean == "nothing"]
        alone = [one for one in some if one not in left]
        while len(left) > 1:
            left, apart = self._ask_together(tool, left)
            alone += apart
        if alone := [*alone, *left]:
            with concurrent.futures.ThreadPoolExecutor(len(alone)) as pool:
                list(pool.map(lambda one: self._ask_alone(tool, one), alone))

    def _ask_together(self, tool: str, some: list[Waiting]) -> tuple[list, list]:
        """Those that are to be asked about together once more, and alone."""
        with self.room:
            began, runs = time.monotonic(), [one.runs for one in some]
            command = sanitizer.command(tool, "host")
            quiet = _patience(some[0].subject.stage, QUIET_TOOL_SECONDS)
            status, text, ended = together(runs, command, self.ends - began, quiet)
        known = sanitizer.told_apart(text, [own.library.name for own in runs], ended)
        self.times.add(f"{tool} of {len(some)} at once", began)
        for one in some:
            if cell := known.get(one.runs.library.name):
                self._learned(one, tool, cell)
        left = [one for one in some if one.runs.library.name not in known]
        apart = [one for one in some if known.get(one.runs.library.name) == {}]
        return ([], apart + left) if len(left) == len(some) or status == 124 and not known else (left, apart)

    def _ask_alone(self, tool: str, one: Waiting) -> None:
        hangs = one.outcome == "hang"
        with self._process(hangs):
            began = time.monotonic()
            quiet = _patience(one.subject.stage, HANGING_SECONDS if hangs else QUIET_TOOL_SECONDS)
            status, text = one.runs.under(sanitizer.command(tool), self.ends - began, quiet)
        found = sanitizer.cell(tool, status, text, time.monotonic() - began)
        late = ", cut short" if time.monotonic() >= self.ends else ", no end"  # by the end of the time for all
        self.times.add(tool + late * (found["outcome"] == "limit"), began)
        self._learned(one, tool, found)
        if not one.subject.mistake and time.monotonic() < self.ends:
            self.of_clean[one.subject.stage.name, tool] = found["outcome"]

    def _probe(self, after: Subject, gpu: str) -> None:
        """Whether the GPU still runs the first kernel of the ladder."""
        stage = stages.get(PROBE)
        product, _ = planted.built(Subject(stage), self.device.gpu.compute)
        with executed(stage, product, self.device, self.problems.of(stage, self.times), gpu) as runs, self.room:
            tries = (runs.plain(1, 2 * QUIET_SECONDS, QUIET_SECONDS) for _ in range(2))  # others keep it busy
            if ["right"] not in tries:
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
            made[place].append(Waiting(one, *built, dict(self.known[one.key])))
            if len(made[place]) == len(pieces[place]):
                yield made[place]

    def _put_off(self) -> Iterator[list[Waiting]]:
        """What has turned out not to end, and of which the tools are still to be asked."""
        with self.saving:
            some, self.late = self.late, []
        yield from ([one] for one in some)

    def _hangs(self, one: Subject) -> bool:
        """By what is known before it runs."""
        return self.known[one.key].get("gpu", {}).get("outcome") == "hang" or _should_hang(one)

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

        lanes = self.choice.beside  # what of them waits for its last tool, waits for none of the processes
        with concurrent.futures.ThreadPoolExecutor(lanes) as pool:
            list(pool.map(lane, range(lanes)))

    def _some(self, shown: bool, hangs: bool) -> list[Subject]:
        """Of what is to be asked about; first of what nothing is known."""
        some = [one for one in self.todo if (_is_shown(one), self._hangs(one)) == (shown, hangs)]
        return sorted(some, key=lambda one: bool(one.mistake) and "gpu" in self.known[one.key])

    @contextlib.contextmanager
    def _compiled_meanwhile(self, some: list[Subject]) -> Iterator[None]:
        """As many as there is time for: what hangs keeps the GPU busy, and no core."""
        pool = concurrent.futures.ThreadPoolExecutor(build.jobs())
        try:
            for one in some:
                pool.submit(planted.built, one, self.device.gpu.compute)
            yield
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def all(self) -> None:
        """First what lessons show, then the others; what never ends after the rest of either, beside its like."""
        try:
            for shown in (True, False):
                self._in_lanes(self._pieces(self._some(shown, hangs=False)))
                with self._compiled_meanwhile(self._some(False, hangs=False) if shown else []):
                    self._in_lanes(self._pieces(self._some(shown, hangs=True)))
                    self._in_lanes(self._put_off())
        finally:
            self.problems.close()
            self.write()

    def summary(self) -> list[str]:
        words = f"{len(self.done)} of {len(self.todo)} mistakes and stages as they are"
        lines = [f"faults: {words} in {time.monotonic() - self.began:.0f} s; {self.left_out} known already"]
        self.times.took["a sequence's reference"] += [one for some in self.problems.made.values() for one in some.took]
        lines += self.times.lines()
        if len(self.done) < len(self.todo) and not self.stopped:
            lines.append("faults: the time is over: the same command goes on with what is missing")
        if not self.tools:
            lines.append("faults: compute-sanitizer is not on PATH")
        return lines + [f"faults: the GPU stopped answering after {self.stopped}"] * bool(self.stopped)


def measure(device: Device, which: Iterable[Stage], choice: Choice, file: Path) -> list[str]:
    """Asks all tools about the stages' mistakes; lines for the summary."""
    measured = Measured(device, list(which), choice, file)
    measured.all()
    return measured.summary()
