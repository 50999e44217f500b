"""Grades one submission: a student's kernel.cu of one stage becomes points and words.

Only what stands between the marks of the starter is taken (of an exercise to mend: the whole file), filled into the
shipped kernel, compiled for the device alone and launched by a process of ours. The same submission has the same points
however often it is graded.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

from flashladder.classroom import isolation, trials
from flashladder.classroom.assignment import Assignment, Item
from flashladder.classroom.device_code import Sandbox
from flashladder.classroom.exercise import Exercise, Mend, answer_lines, answers, changed_outside, fill, get, techniques
from flashladder.classroom.judge import Lines, compiler_words, told
from flashladder.classroom.screening import objections
from flashladder.classroom.trials import Judgement
from flashladder.core import device
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import build_directory, place
from flashladder.ladder import stages
from flashladder.ladder.kernels import Kernel
from flashladder.simulator.counters import place_in

MOST_SOURCE = 256 << 10  # bytes of a kernel.cu; the stages' have 20 KB
# Parts of the points for throughput, by the least share of the solution's throughput.
THROUGHPUT = ((0.95, 1.0), (0.8, 0.75), (0.6, 0.5), (0.4, 0.25))
VERSION = 1  # of what a grade is made of


@dataclass(frozen=True)
class Check:
    name: str  # builds, "correct: CLASS OF SIZES", hazards, technique
    passed: bool
    points: float
    most: float
    words: str = ""


@dataclass(frozen=True)
class ExerciseGrade:
    name: str
    points: float
    most: float
    written: bool
    checks: tuple[Check, ...] = ()
    words: str = ""  # what there is to say about all of it
    cause: str = ""  # "wrong only with fp16"


@dataclass(frozen=True)
class Grade:
    """What a submission of one stage is worth. JSON-able by dataclasses.asdict; equal for equal submissions."""

    stage: int
    points: float
    most: float
    refused: str  # why nothing was run, or ""
    exercises: tuple[ExerciseGrade, ...]
    first_wrong: str = ""  # problem and elements
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
    stage = stages.get(number)
    level = isolation.choose(isolated)
    sandbox = Sandbox(level, where or device.choose(stage.min_compute), threads, scratch)
    grading = _Grading(assignment, stage, sandbox, scratch)
    try:
        data = isolation.take(kernel, MOST_SOURCE)
        text = data.decode()
        return grading.grade(text)
    except UnicodeDecodeError as error:
        return grading.refused(f"{kernel.name} is no text in UTF-8 (byte {error.start})")
    except Refused as error:
        return grading.refused(str(error))
    except isolation.Unreadable as error:
        return grading.refused(str(error))


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
        self.instructions = 0

    def _grade(self, exercises: tuple[ExerciseGrade, ...], refused: str) -> Grade:
        return Grade(
            stage=self.stage.number,
            points=round(sum(one.points for one in exercises), 6),
            most=self.assignment.points,
            refused=refused,
            exercises=exercises,
            first_wrong=self.first_wrong,
            hazards=tuple(self.hazards.values()),
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
            return found, lines
        try:
            found |= answers(self.stage, text)
            lines |= answer_lines(self.stage, text)
        except FlashLadderError as error:
            raise Refused(str(error)) from error
        elsewhere = changed_outside(self.stage, text)
        if elsewhere:
            shown = ", ".join(map(str, elsewhere[:10])) + (" and more" if len(elsewhere) > 10 else "")
            self.remarks.append(f"Changes outside of the marks are ignored: line {shown}.")
        others = [name for name in found if name not in names]
        if others:
            self.remarks.append(f"Not part of this assignment, and ignored: {', '.join(others)}.")
        return found, lines

    def _objection(self, one: _Answer) -> ExerciseGrade | None:
        known = self.stage.kernel.read_text() if isinstance(one.exercise, Mend) else one.exercise.solution
        found = objections(one.text, known)
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
            names = techniques(sorted({check for one in written for check in one.exercise.checks}))
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
            else:
                filled = fill(self.stage, {one.item.name: one.text})
                source, own = filled.source, set(filled.lines)
            names = techniques(one.exercise.checks)
            judgement = trials.judge(self.stage, source, self.assignment, self.sandbox, names)
            self.instructions += judgement.instructions
            places = _places(source, self.text)

            def line(number: int, places=places) -> str:
                return f"line {places[number]}" if number in places else "a line outside of the answer"

            grades[one.item.name] = self._points(one, judgement, line)
            self._collect(one, judgement, places, own, line)
            if judgement.technique and not (self.scratch / "accesses.json").exists():
                trials.leave_accesses(self.scratch, self.stage, source, judgement.built, self.sandbox)
        return grades

    def _collect(self, one: _Answer, judgement: Judgement, places: dict, own: set[int], line: Lines) -> None:
        """For the whole report: the first wrong element, hazards with lines, what is missing of the technique."""
        for hazard in judgement.hazards:
            number = place_in(hazard, "kernel.cu")
            at = places.get(number, 0) if number in own else 0
            message = told(hazard["message"], line)
            entry = {"kind": hazard["kind"], "line": at, "exercise": one.item.name, "message": message}
            self.hazards.setdefault((hazard["kind"], at, one.item.name), entry)
        self.technique += [words for words in judgement.technique if words not in self.technique]
        wrong = judgement.first_wrong
        if wrong and not self.first_wrong:
            self.first_wrong = f"{one.item.name}, {wrong.trial}: {told(wrong.words, line)}"
            trials.leave_errors(self.scratch, wrong)

    def _points(self, one: _Answer, judgement: Judgement, line: Lines) -> ExerciseGrade:
        """Shares of the exercise's points by the assignment's table. An answer that does nothing which the stub does
        not do, too, has none."""
        facts = facts_of(self.assignment, one.exercise.checks, judgement, line)
        shares = _shares(self.assignment, one.exercise.checks, "throughput" in facts)
        trivial = self._stub_passes(one)
        worth = any(passed and name not in trivial for name, (passed, _) in facts.items())
        checks, points = [], 0.0
        for name, (passed, words) in facts.items():
            most = one.item.points * shares[name]
            given = most * _part(name, passed, judgement) if worth else 0.0
            points += given
            checks.append(Check(name, passed, round(given, 6), round(most, 6), words))
        everything = all(check.passed for check in checks) and worth
        points = one.item.points if everything else round(points, 6)
        words = "" if worth or not any(check.passed for check in checks) else "it does what the stub does, and no more"
        return ExerciseGrade(one.item.name, points, one.item.points, True, tuple(checks), words, judgement.cause)

    def _stub_passes(self, one: _Answer) -> frozenset[str]:
        """The checks that the untouched starter passes, found out once and kept below the build folder."""
        checks = one.exercise.checks
        key = [VERSION, self.assignment.digest, self.stage.kernel_hash(), self.sandbox.device.short, checks]
        stub = one.exercise.starter()
        name = hashlib.sha256(f"{key} {stub}".encode()).hexdigest()[:24]
        kept = build_directory() / "grading" / "stubs" / f"{name}.json"
        if not kept.exists():
            names = techniques(one.exercise.checks)
            judgement = trials.judge(self.stage, stub, self.assignment, self.sandbox, names, diagnose=False)
            facts = facts_of(self.assignment, checks, judgement)
            place("grading", "stubs", kept.name, json.dumps({name: passed for name, (passed, _) in facts.items()}))
        passes = json.loads(kept.read_text())
        if all(passes.values()):
            raise FlashLadderError(
                f"{one.item.name} of stage {self.stage.id} cannot be graded: its stub passes all of its checks "
                f"({', '.join(checks)}) at all sizes of the assignment. Add [[sizes]] where the stub is wrong, or a "
                f"check to stages/{self.stage.name}/exercises.toml, e.g. technique, or choose another exercise."
            )
        return frozenset(name for name, passed in passes.items() if passed)


def _places(source: str, text: str) -> dict[int, int]:
    """Where the lines of a filled source stand in the text that was handed in."""
    same = SequenceMatcher(None, source.splitlines(), text.splitlines(), autojunk=False).get_matching_blocks()
    return {block.a + n + 1: block.b + n + 1 for block in same for n in range(block.size)}


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


def facts_of(
    assignment: Assignment, checks: Sequence[str], judgement: Judgement, line: Lines = "line {}".format
) -> dict[str, tuple[bool, str]]:
    """By check, whether it is passed, and words if not. Hazards and technique count for a kernel that is right.

    checks: of an exercise. line: words for a line of the source that was judged.
    """
    timed = judgement.speed is not None and "throughput" in assignment.credit
    built, kinds, facts = judgement.built, _kinds(checks, timed), {}
    facts["builds"] = (built.ok, "; ".join(compiler_words(built.words, "kernel.cu", line)) if not built.ok else "")
    if "correct" in kinds:
        for sizes in assignment.sizes:
            right = judgement.right_in(sizes.name)
            wrong = next((one for one in judgement.tried if one.trial.sizes == sizes.name and not one.right), None)
            words = f"{wrong.trial}: {told(wrong.words, line)}" if wrong else "" if right else "not run"
            facts[f"correct: {sizes.name}"] = (right, words)
    ready = built.ok and judgement.right_in_public
    if "hazards" in kinds:
        found = [told(hazard["message"], line) for hazard in judgement.hazards] + [judgement.order] * bool(
            judgement.order
        )
        later = "" if ready else "counts once the public sizes are right"
        facts["hazards"] = (ready and not found, "; ".join(found[:3]) or later)
    if "technique" in kinds:
        complete = ready and not judgement.first_wrong
        words = "; ".join(f"right, but {one}" for one in judgement.technique)
        later = "" if complete else "counts once all sizes are right"
        facts["technique"] = (complete and not words, words or later)
    if timed:
        full = judgement.speed >= THROUGHPUT[0][0]
        facts["throughput"] = (full, "" if full else f"{judgement.speed:.0%} of the solution's throughput")
    return facts


def as_json(grade: Grade) -> str:
    return json.dumps(asdict(grade), indent=2, sort_keys=True)
