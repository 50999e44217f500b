"""What a reader writes himself: stages/NN_name/exercises.toml names lines of the stage's source that are blanked, and
what stands in for them. The solution is the shipped source; an answer is C++ text for one exercise's lines. The file
also has the stage's puzzles (puzzles.py) and the parts of its blank page (blank.py).

A starter holds, in place of the lines of each exercise:

    // >>> write: rescale (4 points)
    the stub, and later the reader's answer
    // <<< end of rescale
"""

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field

from flashladder.classroom.lexing import without_comments
from flashladder.core import toml
from flashladder.core.console import plural
from flashladder.core.errors import FlashLadderError, named
from flashladder.ladder import mistakes, source, stages
from flashladder.ladder.kernels import WithKernel
from flashladder.ladder.stage import Stage

# What each answer is judged by, whichever exercise it is to: its numbers, hazards, and all that the stage expects of
# its counters, its own technique and what it keeps from earlier stages.
CHECKS = ("correct", "hazards", "technique")
KINDS = ("exercise", "mend", "puzzle", "subgoal")  # of the tables in exercises.toml
_OPEN = re.compile(r"^\s*// ?>>> ?write: ?(\w+)")
_CLOSE = re.compile(r"^\s*// ?<<< ?end of (\w+)")


@dataclass(frozen=True)
class Exercise:
    """Lines first to last of the stage's source (from 1, both inclusive), to be written."""

    stage: Stage
    name: str  # unique within the stage
    title: str
    task: str
    hints: tuple[str, ...]
    points: int
    stub: str = field(repr=False)  # C++ at the left margin: compiles, is not right
    part: str  # of the source, as ladder/source.py names it
    first: int
    last: int
    checks: tuple[str, ...] = CHECKS
    optional: bool = False  # not of the technique itself: the notebook has it under "Going deeper"

    @property
    def solution(self) -> str:
        """The blanked lines as they stand in the source."""
        return "\n".join(self.stage.source.read_text().splitlines()[self.first - 1 : self.last])

    @property
    def indent(self) -> str:
        """What the blanked lines begin with; directives such as #pragma stand at the left margin."""
        lines = [line for line in self.solution.splitlines() if line.strip() and not line.startswith("#")]
        return re.match(r"\s*", lines[0])[0] if lines else ""

    @property
    def opening(self) -> str:
        return f"{self.indent}// >>> write: {self.name} ({plural(self.points, 'point')})"

    @property
    def closing(self) -> str:
        return f"{self.indent}// <<< end of {self.name}"

    def starter(self, blanked: Iterable[str] = ()) -> str:
        """blanked: names of other exercises whose lines are not shown."""
        return starter(self.stage, [self.name], blanked)

    def is_stub(self, text: str) -> bool:
        """True where an answer is the stub still, or nothing at all, whatever its blanks and comments."""
        return _bare(text) in ("", _bare(self.stub))


@dataclass(frozen=True)
class Mend:
    """A planted mistake of mistakes.toml, to be found and mended; its name does not tell what it is."""

    stage: Stage
    name: str  # mend_1, mend_2, ... in the order of exercises.toml
    points: int
    mistake: mistakes.Mistake = field(repr=False)
    title: str = "Mend it"
    checks: tuple[str, ...] = CHECKS

    @property
    def task(self) -> str:
        return (
            f"One mistake is planted somewhere in this {self.stage.source.name}. Find it, and mend it so that the "
            "result is right, nothing races, and the stage's technique is used."
        )

    @property
    def hints(self) -> tuple[str, ...]:
        """Who notices, in which part of the source it is, and what the mistake is."""
        noticed = self.mistake.caught_by
        who = "the comparison with the reference" if noticed == "verification" else f"the simulator: {noticed}"
        first = "It is noticed by " + who.replace("_", " ") + "."
        return (first, f'Read the part "{self._part()}" once more.', self.mistake.mistake)

    def _part(self) -> str:
        """The name of the smallest part in which the mistake is, or begins."""
        line = self.mistake.first_line()
        known = [part for part in source.parts(self.stage.source) if part.first <= line <= part.last]
        return min(known, key=lambda part: part.last - part.first).name if known else "top"

    def starter(self) -> str:
        """The source with the mistake planted."""
        return self.mistake.text()

    def is_stub(self, text: str) -> bool:
        return _bare(text) == _bare(self.starter())


def _bare(text: str) -> list[str] | str:
    """A source without comments and blanks, for comparison; "" where nothing is left."""
    return " ".join(without_comments(text).split())


def checks_of(stage: Stage) -> tuple[str, ...]:
    """CHECKS; a program of the host has no hazards of kernels."""
    return CHECKS if isinstance(stage, WithKernel) else ("correct", "technique")


def techniques(checks: Iterable[str]) -> list[str] | None:
    """The names of the stage's expectations that checks ask for ("technique:NAME"); None ("technique"): all of them."""
    checks = list(checks)
    return None if "technique" in checks else [one.partition(":")[2] for one in checks if one.startswith("technique:")]


def exercises(stage: Stage | int | str) -> list[Exercise]:
    """What is to be written of a stage, in the order of its exercises.toml; empty where it has none.

    FlashLadderError says what is wrong with the file.
    """
    stage = stages.entry(stage)
    found = [_exercise(stage, entry) for entry in entries(stage, "exercise")]
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise FlashLadderError(f'{place(stage)} has two exercises named "{name}".')
    return found


def mends(stage: Stage | int | str) -> list[Mend]:
    """The planted mistakes of a stage that are exercises."""
    stage, found = stages.entry(stage), []
    for number, entry in enumerate(entries(stage, "mend"), 1):
        if set(entry) != {"mistake", "points"}:
            raise FlashLadderError(f'{place(stage)}: a [[mend]] has "mistake" and "points", this one: {entry}')
        name, mistake = f"mend_{number}", mistakes.get(stage, entry["mistake"])
        points, checks = _points(stage, name, entry), checks_of(stage)
        found.append(Mend(stage, name, points, mistake, f"Mend it, {number}", checks))
    return found


def get(stage: Stage | int | str, name: str) -> Exercise | Mend:
    """The exercise of that name, one to write or one to mend. FlashLadderError lists those that there are."""
    stage = stages.entry(stage)
    return named([*exercises(stage), *mends(stage)], name, f"Stage {stage.id}", "exercise")


def starter(stage: Stage | int | str, names: list[str] | None = None, blanked: Iterable[str] = ()) -> str:
    """The stage's source with the lines of these exercises (all by default) replaced by marks and stubs, and those of
    the blanked ones by a comment: what is to be read and not compiled shows no solution of another exercise. One that
    shares lines with what stands there already stays."""
    chosen = _chosen(stage, names)
    stubs = {one.name: textwrap.indent(one.stub, one.indent, _no_directive) for one in chosen}
    pieces = {one.name: [one.opening, *stubs[one.name].splitlines(), one.closing] for one in chosen}
    for other in sorted(exercises(stage), key=lambda one: one.first - one.last):  # the largest first
        if other.name in blanked and all(other.last < one.first or one.last < other.first for one in chosen):
            pieces[other.name] = [
                f"{other.indent}// === {other.name}: an exercise of its own. Solved, it stands here. ==="
            ]
            chosen = sorted([*chosen, other], key=lambda one: one.first)
    lines, _, _ = _replaced(chosen, pieces)
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Filled:
    """A whole source with answers in it."""

    source: str
    lines: dict[int, tuple[str, int]]  # line number of source -> (exercise, line number of its answer), from 1
    others: dict[int, int]  # of all other lines: line number of source -> that of the stage's own source


def fill(stage: Stage | int | str, answers: dict[str, str]) -> Filled:
    """The stage's source with the lines of each exercise named replaced by its answer, as it stands."""
    chosen = _chosen(stage, list(answers))
    lines, places, others = _replaced(chosen, {name: text.splitlines() for name, text in answers.items()})
    return Filled("\n".join(lines) + "\n", places, others)


def answers(stage: Stage | int | str, text: str) -> dict[str, str]:
    """What stands between the marks of a reader's file, by exercise. FlashLadderError says which mark is damaged."""
    return {name: "\n".join(lines) for name, (_, lines) in _between_marks(stages.entry(stage), text).items()}


def answer_lines(stage: Stage | int | str, text: str) -> dict[str, int]:
    """The line number, in a reader's file, of the first line of each answer."""
    return {name: first for name, (first, _) in _between_marks(stages.entry(stage), text).items()}


def _between_marks(stage: Stage, text: str) -> dict[str, tuple[int, list[str]]]:
    known, found, open_name, first, lines = {one.name for one in exercises(stage)}, {}, "", 0, []
    for number, line in enumerate(text.splitlines(), 1):
        opened, closed = _OPEN.match(line), _CLOSE.match(line)
        if opened:
            if open_name:
                raise FlashLadderError(_unclosed(open_name, first - 1, f"line {number} opens {opened[1]}"))
            open_name, first, lines = opened[1], number + 1, []
            if open_name not in known:
                names = ", ".join(sorted(known)) or "none"
                raise FlashLadderError(
                    f"Line {number} opens '{open_name}', which is no exercise of stage {stage.id}. It has: {names}."
                )
            if open_name in found:
                raise FlashLadderError(f"Line {number} opens {open_name} a second time: keep one of the two.")
        elif closed and closed[1] == open_name:
            found[open_name] = (first, lines)
            open_name = ""
        elif closed:
            missing = f"the line `// >>> write: {closed[1]}` is missing above it"
            raise FlashLadderError(
                f"Line {number} ends {closed[1]}, but "
                + (f"{open_name} is open since line {first - 1}." if open_name else f"{missing}: put it back.")
            )
        elif open_name:
            lines.append(line)
    if open_name:
        raise FlashLadderError(_unclosed(open_name, first - 1, "the file ends"))
    return found


def _unclosed(name: str, line: int, instead: str) -> str:
    return (
        f"Line {line} opens {name}, and {instead} before it is closed: put the line `// <<< end of {name}` back "
        "behind your answer."
    )


def _chosen(stage: Stage | int | str, names: list[str] | None) -> list[Exercise]:
    """The exercises of these names in the order of the source; FlashLadderError where two share a line."""
    stage = stages.entry(stage)
    every = exercises(stage)
    for name in names or ():
        if name not in [one.name for one in every]:
            known = ", ".join(one.name for one in every) or "none"
            raise FlashLadderError(f"Stage {stage.id} has no exercise '{name}' to write. It has: {known}.")
    chosen = sorted((one for one in every if names is None or one.name in names), key=lambda one: one.first)
    for one, after in zip(chosen, chosen[1:]):
        if after.first <= one.last:
            raise FlashLadderError(f"{one.name} and {after.name} of stage {stage.id} share lines: give one of them.")
    if not chosen:
        raise FlashLadderError(f"{place(stage)} has no exercise to write.")
    return chosen


def _replaced(
    chosen: list[Exercise], pieces: dict[str, list[str]]
) -> tuple[list[str], dict[int, tuple[str, int]], dict[int, int]]:
    """The source's lines with a piece in place of each exercise's, and where each line comes from: see Filled."""
    before = chosen[0].stage.source.read_text().splitlines()
    lines, places, others, at = [], {}, {}, 1

    def keep(behind: int) -> None:
        for number in range(at, behind):
            lines.append(before[number - 1])
            others[len(lines)] = number

    for one in chosen:
        keep(one.first)
        for number, text in enumerate(pieces[one.name], 1):
            lines.append(text)
            places[len(lines)] = (one.name, number)
        at = one.last + 1
    keep(len(before) + 1)
    return lines, places, others


def _no_directive(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def place(stage: Stage) -> str:
    """What messages call its file."""
    return f"stages/{stage.name}/exercises.toml"


def entries(stage: Stage, kind: str) -> list[dict]:
    """The tables of a kind in its file; none where there is no file."""
    data = toml.read(stage.folder / "exercises.toml", place(stage))
    unknown = set(data) - set(KINDS)
    if unknown:
        known = ", ".join(f"[[{one}]]" for one in KINDS)
        raise FlashLadderError(f"{place(stage)} has {known}, not [{sorted(unknown)[0]}].")
    return data.get(kind, [])


def _exercise(stage: Stage, entry: dict) -> Exercise:
    needed = {"name", "title", "part", "stub", "task", "hints", "points"}
    name = entry.get("name", "?")
    toml.check_keys(entry, needed, ("first", "last", "optional"), f"{place(stage)}: exercise {name}")
    if not re.fullmatch(r"[a-z]\w*", name) or re.match(r"mend(_|$)", name):
        raise FlashLadderError(f"{place(stage)}: '{name}': a name has small letters, digits and _, and is no mend_N.")
    if not isinstance(entry.get("optional", False), bool):
        raise FlashLadderError(f"{place(stage)}: {name}: optional is true or false.")
    first, last = _range(stage, entry)
    return Exercise(
        stage=stage,
        name=name,
        title=entry["title"],
        task=entry["task"].strip(),
        hints=tuple(hint.strip() for hint in entry["hints"]),
        points=_points(stage, name, entry),
        stub=textwrap.dedent(entry["stub"]).strip("\n"),
        part=entry["part"],
        first=first,
        last=last,
        checks=checks_of(stage),
        optional=entry.get("optional", False),
    )


def _points(stage: Stage, name: str, entry: dict) -> int:
    points = entry["points"]
    if not isinstance(points, int) or isinstance(points, bool) or points < 1:
        raise FlashLadderError(f"{place(stage)}: {name}: points are a whole number from 1.")
    return points


def _range(stage: Stage, entry: dict) -> tuple[int, int]:
    """The lines that an entry blanks: the part's body, or from the line with `first` to the one with `last` in it."""
    part = source.find(stage.source, entry["part"])
    first, last = part.body
    if not {"first", "last"} & set(entry):
        return first, last
    lines = stage.source.read_text().splitlines()

    def find(key: str, start: int) -> list[int]:
        found = [number for number in range(start, last + 1) if entry[key] in lines[number - 1]]
        if not found:
            where = f'"{part.name}" of {stage.source.name} behind line {start - 1}'
            raise FlashLadderError(
                f"{place(stage)}: exercise {entry['name']}: {where} has no line with {entry[key]!r}."
            )
        return found

    begins = find("first", first) if "first" in entry else [first]
    if len(begins) > 1:
        raise FlashLadderError(
            f"{place(stage)}: exercise {entry['name']}: {entry['first']!r} stands in lines "
            f"{', '.join(map(str, begins))} of {stage.source.name}: give more of the line."
        )
    return begins[0], find("last", begins[0])[0] if "last" in entry else last
