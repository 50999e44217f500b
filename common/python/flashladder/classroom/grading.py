"""Grades one submission: a student's kernel.cu of one stage becomes points and words.

Only what stands between the marks of the starter is taken (of an exercise to mend: the whole file), filled into the
shipped kernel, compiled for the device alone and launched by a process of ours. The same submission has the same points
however often it is graded.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from flashladder.classroom import isolation, taking, trials
from flashladder.classroom.assignment import Assignment, Item
from flashladder.classroom.device_code import Sandbox
from flashladder.classroom.exercise import Exercise, Mend, fill, get, techniques
from flashladder.classroom.judge import Lines, compiler_words, told
from flashladder.classroom.marks import Check
from flashladder.classroom.screening import objections
from flashladder.classroom.taking import MOST_BYTES
from flashladder.classroom.trials import Judgement, Tried
from flashladder.core import device
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import build_directory, place
from flashladder.ladder.kernels import Kernel
from warpsim.counters import place_in

# Parts of the points for throughput, by the least share of the solution's throughput.
THROUGHPUT = ((0.95, 1.0), (0.8, 0.75), (0.6, 0.5), (0.4, 0.25))
SOME = 0.5  # the most of a check's points that what is not yet right has
VERSION = 3  # of what a grade is made of


@dataclass(frozen=True)
class ExerciseGrade:
    name: str
    points: float
    most: float
    written: bool
    checks: tuple[Check, ...] = ()
    words: str = ""  # what there is to say about all of it
    cause: str = ""  # "wrong only with fp16"
    next: str = ""  # what the next points need


@dataclass(frozen=True)
class Grade:
    """What a submission of one stage is worth. JSON-able by dataclasses.asdict; equal for equal submissions."""

    stage: int
    points: float
    most: float
    refused: str  # why nothing was run, or ""
    exercises: tuple[ExerciseGrade, ...]
    first_wrong: str = ""  # of a public class problem and elements, of a hidden one its name
    hazards: tuple[
        dict, ...
    ] = ()  # kind, line (of the file that was handed in, 0: not a line of an answer), exercise, message
    technique: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    isolation: str = ""
    budgets: dict = field(default_factory=dict)
    hashes: dict = field(default_factory=dict)


@dataclass(frozen=True)
class _Answer:
    """One exercise's answer."""

    item: Item
    exercise: Exercise | Mend
    text: str
    first: int  # line of the file with the answer's first line


def grade(
    assignment: Assignment,
    kernel: Path,
    scratch: Path,
    isolated: str = "auto",
    where: Device | None = None,
    threads: int = 1,
) -> Grade:
    """Grades a kernel.cu of the assignment's only stage. Files are written to scratch alone; wrong.npz may stay there.

    isolated: a name of isolation.NAMES; FlashLadderError where this machine has no such. where: default: the GPU that
    can run the stage, else the simulator. threads: of the simulator. What is wrong with a submission is no exception.
    """
    (number,) = assignment.stages
    stage = assignment.kernel(number)
    level = isolation.choose(isolated)
    sandbox = Sandbox(level, where or device.choose(stage.min_compute), threads, scratch)
    grading = _Grading(assignment, stage, sandbox, scratch)
    try:
        text = _read(kernel)
    except Refused as error:
        return grading.refused(str(error))
    try:
        return grading.grade(text)
    except Refused as error:
        return grading.refused(str(error))


def _read(kernel: Path) -> str:
    try:
        return taking.decoded(isolation.take(kernel, MOST_BYTES), kernel.name)
    except FlashLadderError as error:
        raise Refused(str(error)) from error


class Refused(FlashLadderError):
    """Nothing of the submission can be run."""


class _Grading:
    def __init__(self, assignment: Assignment, stage: Kernel, sandbox: Sandbox, scratch: Path):
        self.assignment, self.stage, self.sandbox, self.scratch = assignment, stage, sandbox, scratch
        self.hazards: dict[tuple, dict] = {}
        self.technique: list[str] = []
        self.first_wrong = ""
        self.remarks: list[str] = []
        self.text = ""  # what was handed in
        self.taken = taking.Taken("", {}, {})
        self.instructions = 0

    def _grade(self, exercises: tuple[ExerciseGrade, ...], refused: str) -> Grade:
        return Grade(
            stage=self.stage.number,
            points=round(sum(one.points for one in exercises), 6),
            most=self.assignment.points,
            refused=refused,
            exercises=exercises,
            first_wrong=self.first_wrong,
            hazards=tuple(sorted(self.hazards.values(), key=lambda one: [str(value) for value in one.values()])),
            technique=tuple(self.technique),
            remarks=tuple(self.remarks),
            isolation=self.sandbox.level.says,
            budgets={"instructions": self.instructions, "device": self.sandbox.device.short},
            hashes={
                "submission": hashlib.sha256(self.text.encode()).hexdigest(),
                "assignment": self.assignment.digest,
                "solution": self.stage.kernel_hash(),
            },
        )

    def refused(self, words: str) -> Grade:
        nothing = tuple(ExerciseGrade(item.name, 0, item.points, False) for item in self.assignment.items)
        return self._grade(nothing, words)

    def grade(self, text: str) -> Grade:
        self.text = text
        found, lines = self._answers(text)
        grades: dict[str, ExerciseGrade] = {}
        sound: list[_Answer] = []
        for item in self.assignment.items:
            exercise = get(self.stage, item.name)
            answer = found.get(item.name)
            if answer is None:
                grades[item.name] = ExerciseGrade(item.name, 0, item.points, False, words=_missing(item.name))
            elif exercise.is_stub(answer):
                grades[item.name] = ExerciseGrade(item.name, 0, item.points, False, words="not written yet")
            else:
                one = _Answer(item, exercise, answer, lines.get(item.name, 1))
                refusal = self._objection(one)
                if refusal:
                    grades[item.name] = refusal
                else:
                    sound.append(one)
        grades |= self._together(sound)
        return self._grade(tuple(grades[item.name] for item in self.assignment.items), "")

    def _answers(self, text: str) -> tuple[dict[str, str], dict[str, int]]:
        """The answers by exercise and the lines where they begin. What stands elsewhere is ignored, as is said."""
        names = self.assignment.names(self.stage.number)
        mends = [name for name in names if isinstance(get(self.stage, name), Mend)]
        found, lines = dict.fromkeys(mends, text), dict.fromkeys(mends, 1)
        if len(mends) == len(names):
            self.remarks += taking.undecoded(text)
            return found, lines
        try:
            self.taken = taking.take(self.stage, text, names)
        except FlashLadderError as error:
            raise Refused(str(error)) from error
        self.remarks += self.taken.remarks
        return found | self.taken.answers, lines | self.taken.lines

    def _objection(self, one: _Answer) -> ExerciseGrade | None:
        if isinstance(one.exercise, Mend):
            found = objections(one.text, self.stage.kernel.read_text())
        else:
            found = taking.refused(one.exercise, one.text)
        if not found:
            return None
        words = "; ".join(f"line {one.first + said.line - 1}: {said.words}" for said in found[:5])
        most = one.item.points
        return ExerciseGrade(one.item.name, 0, most, True, (Check("builds", False, 0, most, words),), words)

    def _together(self, sound: list[_Answer]) -> dict[str, ExerciseGrade]:
        """All answers at once, which may agree on something that the solution does otherwise; where that is not right
        in everything, each by itself in the solution."""
        written = [one for one in sound if isinstance(one.exercise, Exercise)]
        if len(written) > 1:
            filled = fill(self.stage, {one.item.name: one.text for one in written})
            names = techniques(sorted({check for one in written for check in self._checks(one)}))
            judgement = trials.judge(self.stage, filled.source, self.assignment, self.sandbox, names, diagnose=False)
            self.instructions += judgement.instructions
            if judgement.flawless:
                rest = [one for one in sound if one not in written]
                return {one.item.name: self._points(one, judgement, str) for one in written} | self._each(rest)
        return self._each(sound)

    def _each(self, sound: list[_Answer]) -> dict[str, ExerciseGrade]:
        grades = {}
        for one in sound:
            if isinstance(one.exercise, Mend):
                source, own = one.text, set(range(1, one.text.count("\n") + 2))
                places = {number: number for number in own}
            else:
                filled = fill(self.stage, {one.item.name: one.text})
                source, own = filled.source, set(filled.lines)
                places = taking.places(self.stage, filled, self.taken)
            names = techniques(self._checks(one))
            judgement = trials.judge(self.stage, source, self.assignment, self.sandbox, names)
            self.instructions += judgement.instructions

            def line(number: int, places=places) -> str:
                return f"line {places[number]}" if number in places else "a line outside of the answer"

            grades[one.item.name] = self._points(one, judgement, line)
            self._collect(one, judgement, places, own, line)
            if judgement.technique and not (self.scratch / "accesses.json").exists():
                trials.leave_accesses(self.scratch, self.stage, source, judgement.built, self.sandbox)
        return grades

    def _checks(self, one: _Answer) -> tuple[str, ...]:
        return self.assignment.checks(one.exercise.checks)

    def _collect(self, one: _Answer, judgement: Judgement, places: dict, own: set[int], line: Lines) -> None:
        """For the whole report: the first wrong element, hazards with lines, what is missing of the technique."""
        for hazard in judgement.hazards:
            number = place_in(hazard, "kernel.cu")
            at = places.get(number, 0) if number in own else 0
            message = told(hazard["message"], line)
            entry = {"kind": hazard["kind"], "line": at, "exercise": one.item.name, "message": message}
            self.hazards.setdefault((hazard["kind"], at, one.item.name), entry)
        self.technique += [words for words in judgement.technique if words not in self.technique]
        # Of what is wrong in a public class all is told; of a hidden one no size, and there is no picture of it.
        seen = next((tried for tried in judgement.tried if tried.trial.public and not tried.right), None)
        wrong = seen or judgement.first_wrong
        if wrong and not self.first_wrong:
            self.first_wrong = f"{one.item.name}, {_told_of(wrong, line)}"
            if seen:
                trials.leave_errors(self.scratch, seen)

    def _points(self, one: _Answer, judgement: Judgement, line: Lines) -> ExerciseGrade:
        """Shares of the exercise's points by the assignment's table. An answer that does nothing which the stub does
        not do, too, has none."""
        facts = facts_of(self.assignment, self._checks(one), judgement, line)
        shares = _shares(self.assignment, self._checks(one), "throughput" in facts)
        stub = self._stub(one)
        mended = _mended(judgement, stub.hazards) if "hazards" in facts else 0.0
        worth = mended > stub.mended or any(fact.passed and name not in stub.passes for name, fact in facts.items())
        checks, points = [], 0.0
        for name, fact in facts.items():
            most = one.item.points * shares[name]
            part = mended if name == "hazards" and not fact.passed else _part(name, fact.passed, judgement)
            given = most * part if worth else 0.0
            points += given
            checks.append(Check(name, fact.passed, round(given, 6), round(most, 6), fact.words, fact.details))
        everything = all(check.passed for check in checks) and worth
        points = one.item.points if everything else round(points, 6)
        words = "" if worth or not any(check.passed for check in checks) else "it passes no check that the stub fails"
        needed = "" if everything else _next(checks)
        return ExerciseGrade(
            one.item.name, points, one.item.points, True, tuple(checks), words, judgement.cause, needed
        )

    def _stub(self, one: _Answer) -> "_Stub":
        """What the untouched starter does, found out once and kept below the build folder."""
        checks = self._checks(one)
        key = [VERSION, self.assignment.digest, self.stage.kernel_hash(), self.sandbox.device.short, checks]
        stub = one.exercise.starter()
        name = hashlib.sha256(f"{key} {stub}".encode()).hexdigest()[:24]
        kept = build_directory() / "grading" / "stubs" / f"{name}.json"
        if not kept.exists():
            names = techniques(checks)
            judgement = trials.judge(self.stage, stub, self.assignment, self.sandbox, names, diagnose=False)
            facts = facts_of(self.assignment, checks, judgement)
            passes = [name for name, fact in facts.items() if fact.passed]
            found = _Stub(passes, len(facts), len(judgement.hazards), _mended(judgement, 0))
            place("grading", "stubs", kept.name, json.dumps(asdict(found)))
        found = _Stub(**json.loads(kept.read_text()))
        if len(found.passes) == found.checks:
            raise FlashLadderError(
                f"{one.item.name} of stage {self.stage.id} cannot be graded: its stub passes all of its checks "
                f"({', '.join(checks)}) at all sizes of the assignment. Add [[sizes]] where the stub is wrong, or give "
                "[credit] a technique, or choose another exercise."
            )
        return found


@dataclass(frozen=True)
class _Stub:
    passes: list[str]  # checks
    checks: int  # how many there are
    hazards: int  # how many it has
    mended: float  # what it has of the points for hazards, as _mended() gives them


def _mended(judgement: Judgement, stub: int) -> float:
    """The part of the points for hazards of a kernel that is right in the public sizes and still has some: by how many
    of the stub's are gone, or in how many of the classes it is free of them; up to SOME of them."""
    if not (judgement.built.ok and judgement.right_in_public and judgement.hazards):
        return 0.0
    fewer = max(0.0, 1 - len(judgement.hazards) / stub) if stub else 0.0
    classes = {one.trial.sizes for one in judgement.tried}
    faulty = {one.trial.sizes for one in judgement.tried if one.outcome.hazards or one.comparison is None}
    return round(SOME * max(fewer, 1 - len(faulty) / len(classes)), 6)


_NEEDS = {
    "builds": "make it compile",
    "correct": "be right in this class of sizes",
    "hazards": "leave no hazard",
    "technique": "show the technique in the counters",
    "throughput": "be faster",
}


def _next(checks: Sequence[Check]) -> str:
    """What the next points need: the first check that is not passed, else the first that lacks some. Of an answer that
    is worth nothing the passed ones have no points either, and get theirs with it."""
    short = [one for one in checks if one.points < one.most - 1e-9]
    lacking = next((one for one in short if not one.passed), short[0] if short else None)
    if lacking is None:
        return ""
    more = sum(one.most - one.points for one in short if one is lacking or (one.passed and not one.points))
    needs, words = _NEEDS[lacking.name.partition(":")[0]], f": {lacking.words}" if lacking.words else ""
    return f"{round(more, 2):g} more points ({lacking.name}): {needs}{words}"


def _told_of(wrong: Tried, line: Lines, details: bool = False) -> str:
    """What is wrong at a size: of a hidden class its name alone, or details all the same."""
    if wrong.trial.public or details:
        return f"{wrong.trial}: {told(wrong.words, line)}"
    how = {"hazard": "a hazard ends it", "budget": "it runs out of its budget", "error": "it does not come to its end"}
    return f"{wrong.trial.sizes} (a class that is not shown): {how.get(wrong.outcome.failure, 'wrong numbers')}"


def _missing(name: str) -> str:
    return f"there is no answer: the lines `// >>> write: {name}` and `// <<< end of {name}` are not in the file"


def _kinds(checks: Sequence[str], timed: bool) -> list[str]:
    """What of an assignment's [credit] these checks of an exercise are about."""
    return ["builds", *dict.fromkeys(check.partition(":")[0] for check in checks), *["throughput"] * timed]


def _part(check: str, passed: bool, judgement: Judgement) -> float:
    """How much of its points a check has: all or nothing, but for throughput, where THROUGHPUT is the table."""
    if check != "throughput" or judgement.speed is None:
        return float(passed)
    return next((part for least, part in THROUGHPUT if judgement.speed >= least), 0.0)


def _shares(assignment: Assignment, checks: Sequence[str], timed: bool) -> dict[str, float]:
    """By check, its share of an exercise's points; 1 together. Credit for what the exercise does not ask is divided
    among what it asks."""
    kinds = {kind: assignment.credit.get(kind, 0.0) for kind in _kinds(checks, timed)}
    whole = sum(kinds.values()) or 1.0
    found = {}
    for kind, share in kinds.items():
        if kind == "correct":
            for sizes in assignment.sizes:
                found[f"correct: {sizes.name}"] = share / whole / len(assignment.sizes)
        else:
            found[kind] = share / whole
    return found


@dataclass(frozen=True)
class Fact:
    """What came of a check."""

    passed: bool
    words: str = ""  # if not passed, for the student
    details: str = ""  # for the instructor


def facts_of(
    assignment: Assignment, checks: Sequence[str], judgement: Judgement, line: Lines = "line {}".format
) -> dict[str, Fact]:
    """By check what came of it. Hazards and technique count for a kernel that is right.

    checks: of an exercise. line: words for a line of the source that was judged.
    """
    timed = judgement.speed is not None and "throughput" in assignment.credit
    built, kinds, facts = judgement.built, _kinds(checks, timed), {}
    said = "; ".join(compiler_words(built.words, "kernel.cu", line)) if not built.ok else ""
    facts["builds"] = Fact(built.ok, said)
    if "correct" in kinds:
        for sizes in assignment.sizes:
            facts[f"correct: {sizes.name}"] = _right_in(sizes.name, judgement, line)
    ready = built.ok and judgement.right_in_public
    if "hazards" in kinds:
        found = [told(hazard["message"], line) for hazard in judgement.hazards]
        found += [judgement.order] * bool(judgement.order)
        later = "" if ready else "counts once the public sizes are right"
        facts["hazards"] = Fact(ready and not found, "; ".join(found[:3]) or later)
    if "technique" in kinds:
        complete = ready and not judgement.first_wrong
        words = "; ".join(f"right, but {one}" for one in judgement.technique)
        later = "" if complete else "counts once all sizes are right"
        facts["technique"] = Fact(complete and not words, words or later)
    if timed:
        full = judgement.speed >= THROUGHPUT[0][0]
        facts["throughput"] = Fact(full, "" if full else f"{judgement.speed:.0%} of the solution's throughput")
    return facts


def _right_in(sizes: str, judgement: Judgement, line: Lines) -> Fact:
    if judgement.right_in(sizes):
        return Fact(True)
    wrong = next((one for one in judgement.tried if one.trial.sizes == sizes and not one.right), None)
    if wrong is None:
        return Fact(False, "not run")
    if wrong.outcome.words.startswith(trials.NOT_RUN):
        return Fact(False, "not run, since it ran out of its budget before", wrong.outcome.words)
    details = "" if wrong.trial.public else _told_of(wrong, line, details=True)
    return Fact(False, _told_of(wrong, line), details)
