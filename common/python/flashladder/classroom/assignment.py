"""What a class is given and what it is worth: docs/assignments/NAME.toml."""

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

from flashladder.classroom import late
from flashladder.classroom.late import Extension, Policy
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.core.problem import Problem
from flashladder.core.toml import parsed, tomllib
from flashladder.ladder import stages, tiles
from flashladder.ladder.kernels import Kernel

FOLDER = ROOT / "docs/assignments"
FULL_POINTS = 100
INPUTS = ("normal", "large", "negative", "one_hot")  # how Q, K and V are drawn: Sizes.inputs
CREDIT = ("builds", "correct", "hazards", "technique", "throughput")


@dataclass(frozen=True)
class Item:
    """One exercise of the assignment."""

    stage: int
    name: str  # as in the stage's exercises.toml
    points: float


@dataclass(frozen=True)
class Sizes:
    """A class of problems that a kernel is tried with, e.g. "odd tiles": correct in all of it, or not."""

    name: str
    public: bool  # students see it, and their `make check` tries it
    inputs: str  # one of INPUTS
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class Assignment:
    name: str  # of its file
    title: str
    deadline: str  # in words
    text: str  # Markdown, the head of the task sheet
    items: tuple[Item, ...]
    sizes: tuple[Sizes, ...]
    hidden_seeds: tuple[int, ...]  # all sizes are graded with them
    hints: int  # how many of each exercise's hints students get
    credit: dict[str, float] = field(hash=False)  # shares of an exercise's points, 1 together
    source: str = field(repr=False)  # the file, from which parse() makes the same assignment elsewhere
    due: datetime | None = None  # where the deadline is a time and not words
    late: Policy | None = None
    extensions: tuple[Extension, ...] = ()
    tile: tuple[tuple[str, int], ...] = ()  # Br and Bc, where they are not the stages' own

    @property
    def stages(self) -> tuple[int, ...]:
        return tuple(sorted({item.stage for item in self.items}))

    @property
    def points(self) -> float:
        return sum(item.points for item in self.items)

    def of_stage(self, number: int) -> "Assignment":
        """The part of it that is about one stage."""
        return replace(self, items=tuple(item for item in self.items if item.stage == number))

    def kernel(self, stage: int) -> Kernel:
        """The stage as it is set here: with the assignment's tile."""
        return tiles.retiled(stages.get(stage), dict(self.tile)) if self.tile else stages.get(stage)

    def names(self, stage: int) -> tuple[str, ...]:
        """The exercises of a stage, in the order of the file."""
        return tuple(item.name for item in self.items if item.stage == stage)

    def checks(self, asked: tuple[str, ...]) -> tuple[str, ...]:
        """What an exercise is graded by that asks for these checks itself: where the technique has credit all that the
        stage's counters must show, too. Else a naive kernel between the marks had all points."""
        wanted = self.credit.get("technique", 0) > 0 and "technique" not in asked
        return (*asked, "technique") if wanted else asked

    @property
    def public_sizes(self) -> tuple[Sizes, ...]:
        return tuple(sizes for sizes in self.sizes if sizes.public)

    @cached_property
    def digest(self) -> str:
        """sha256 of what decides what a kernel is worth: exercises, sizes, seeds and credit. Changed, and a class is
        graded anew; by another title, deadline or extension it is not."""
        sizes = [asdict(one) for one in self.sizes]
        decides = [[asdict(one) for one in self.items], sizes, list(self.hidden_seeds), self.credit]
        decides += [self.tile] if self.tile else []
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()

    def extension_of(self, *names: str) -> Extension | None:
        """The latest one of who is called so."""
        own = [one for one in self.extensions if one.student in names]
        return max(own, key=lambda one: one.until, default=None)


def file_name(stage: int) -> str:
    """What a student hands in for a stage: 05_swizzle.cu."""
    return f"{stages.get(stage).name}.cu"


def all_assignments() -> list[Assignment]:
    """The ready ones, in the order of the ladder."""
    return sorted((read(file) for file in FOLDER.glob("*.toml")), key=lambda one: (one.stages, one.name))


def get(which: str) -> Assignment:
    """By the name of a ready one, or the path of a file of the same form, which may lie anywhere."""
    ready = FOLDER / f"{which}.toml"
    if which and "/" not in which and ready.exists():
        return read(ready)
    if which.endswith(".toml"):
        return read(Path(which))
    names = ", ".join(sorted(file.stem for file in FOLDER.glob("*.toml")))
    raise FlashLadderError(f"There is no assignment '{which}'. Ready are: {names}; or name a file, my.toml.")


def read(file: Path) -> Assignment:
    """FlashLadderError says what is wrong with the file, and where."""
    try:
        text = file.read_text("utf-8")
    except OSError as error:
        raise FlashLadderError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FlashLadderError(f"{file} is not UTF-8: save it as UTF-8 in your editor.") from error
    return parse(file.stem, text, str(file))


def parse(name: str, text: str, where: str = "") -> Assignment:
    """The assignment of a file's text; where: what errors call the file."""
    where = where or f"{name}.toml"
    try:
        data = parsed(text)
        found = Assignment(
            name=name,
            title=data["title"],
            **_deadline(data),
            text=data.get("text", "").strip(),
            items=tuple(_item(one, data.get("stage")) for one in data["exercise"]),
            sizes=tuple(_sizes(one, data.get("d_head")) for one in data["sizes"]),
            hidden_seeds=tuple(map(int, data["hidden"]["seeds"])),
            hints=int(data.get("hints", 1)),
            credit=dict(data["credit"]),
            source=text,
            tile=tuple(tiles.read(data["tile"]).items()) if "tile" in data else (),
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        missing = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise FlashLadderError(f"{where} is no valid assignment: {missing}") from error
    except FlashLadderError as error:
        raise FlashLadderError(f"{where} is no valid assignment: {error}") from error
    objections = _objections(found)
    if objections:
        raise FlashLadderError(f"{where} is no valid assignment:\n" + "\n".join(f"  {one}" for one in objections))
    return _of_its_tile(found, where) if found.tile else found


def _deadline(data: dict) -> dict:
    """deadline, [late] and [[extension]]: data, or words where nothing depends on them."""
    given, policy, extensions = data["deadline"], data.get("late"), data.get("extension", [])
    if isinstance(given, str):
        if policy or extensions:
            raise ValueError("[late] and [[extension]] need a deadline that is a time: 2026-11-20T12:00:00+01:00")
        return {"deadline": given}
    due = late.moment(given, "deadline")
    found = {"deadline": late.shown(due), "due": due}
    if policy is not None:
        grace = timedelta(minutes=policy.get("grace_minutes", 0))
        found["late"] = Policy(float(policy["cost_per_day"]), int(policy["most_days"]), grace)
        unknown = set(policy) - {"cost_per_day", "most_days", "grace_minutes"}
        if unknown or found["late"].cost_per_day < 0 or found["late"].most_days < 0:
            raise ValueError("[late] has cost_per_day, most_days and perhaps grace_minutes, none below 0")
    found["extensions"] = tuple(
        Extension(str(one["student"]), late.moment(one["until"], "until of an [[extension]]"), str(one["why"]))
        for one in extensions
    )
    return found


def _item(one: dict, stage: int | str | None) -> Item:
    """stage: the assignment's, of the exercises that name none of their own. By its name, or its number."""
    which = one["stage"] if stage is None else one.get("stage", stage)
    return Item(stages.get(which).number, one["name"], one["points"])


def _sizes(one: dict, d_head: int | None) -> Sizes:
    """d_head: the assignment's, in place of each problem's."""
    more = {} if d_head is None else {"d_head": d_head}
    problems = tuple(dict.fromkeys(Problem(**fields | more) for fields in one["problems"]))
    return Sizes(one["class"], bool(one["public"]), one.get("inputs", "normal"), problems)


def _of_its_tile(assignment: Assignment, where: str) -> Assignment:
    """Its sizes with as many tiles as before, where a stage takes whole ones alone; other stages take any length."""
    try:
        changes = {_change(assignment.kernel(number), stages.get(number)) for number in assignment.stages}
    except FlashLadderError as error:
        raise FlashLadderError(f"{where} is no valid assignment: {error}") from error
    changes.discard(None)
    if len(changes) > 1:
        raise FlashLadderError(
            f"{where} is no valid assignment: its stages have different tiles, so that no size has as many of the "
            "changed ones in each. Set them apart, or leave `tile` out."
        )
    if changes:
        ((Br, Bc), (new_Br, new_Bc)) = changes.pop()

        def as_many(of: Problem) -> Problem:
            return replace(of, Nq=of.Nq * new_Br // Br, Nkv=of.Nkv * new_Bc // Bc)

        sizes = [replace(one, problems=tuple(map(as_many, one.problems))) for one in assignment.sizes]
        return replace(assignment, sizes=tuple(sizes))
    return assignment


def _change(changed: Kernel, shipped: Kernel) -> tuple | None:
    """(Br, Bc) of the shipped kernel and of the changed one, where it takes whole tiles; None where any length."""
    before, after = (tuple(tiles.tile_of(one)[name] for name in tiles.NAMES) for one in (shipped, changed))
    return None if shipped.data.get("masks") else (before, after)


def _objections(assignment: Assignment) -> list[str]:
    """What makes no sense in it, a line each."""
    said = []
    if assignment.points != FULL_POINTS:
        said.append(f"the exercises' points are {assignment.points:g} together and must be {FULL_POINTS}")
    if any(item.points <= 0 for item in assignment.items):
        said.append("every exercise must be worth more than 0 points")
    if len({(item.stage, item.name) for item in assignment.items}) < len(assignment.items):
        said.append("an exercise is named twice")
    if set(assignment.credit) - set(CREDIT):
        said.append(f"[credit] knows {', '.join(CREDIT)}, not {', '.join(set(assignment.credit) - set(CREDIT))}")
    if abs(sum(assignment.credit.values()) - 1) > 1e-9 or any(share < 0 for share in assignment.credit.values()):
        said.append("the shares of [credit] must not be negative, and be 1 together")
    if not assignment.public_sizes:
        said.append("no [[sizes]] is public: students could check nothing")
    if len({sizes.name for sizes in assignment.sizes}) < len(assignment.sizes):
        said.append("two [[sizes]] have the same class")
    said += [
        f'inputs = "{sizes.inputs}" of class "{sizes.name}": choose {", ".join(INPUTS)}'
        for sizes in assignment.sizes
        if sizes.inputs not in INPUTS
    ]
    said += [f'class "{sizes.name}" has no problems' for sizes in assignment.sizes if not sizes.problems]
    said += [
        f'class "{sizes.name}" is public and has inputs = "{sizes.inputs}": public ones have "normal" ones'
        for sizes in assignment.public_sizes
        if sizes.inputs != "normal"  # students' `make check` draws no others
    ]
    if not assignment.hidden_seeds:
        said.append("[hidden] needs at least one seed")
    return said + _not_taken(assignment)


def _not_taken(assignment: Assignment) -> list[str]:
    """Problems that a stage refuses, which no answer could have points for."""
    said = []
    for stage in map(stages.get, assignment.stages):
        if not isinstance(stage, Kernel) or stage.data.get("masks"):
            continue
        Br, Bc = (stage.launch.get(name, 1) if "configuration" not in stage.launch else 1 for name in tiles.NAMES)
        for sizes in assignment.sizes:
            for problem in sizes.problems:
                refused = [f"Nq = {problem.Nq}, no multiple of {Br}"] if problem.Nq % Br else []
                refused += [f"Nkv = {problem.Nkv}, no multiple of {Bc}"] if problem.Nkv % Bc else []
                refused += ["causal problems"] if problem.causal else []
                refused += ["fewer heads of K and V than of Q"] if problem.Hq != problem.Hkv else []
                said += [f'class "{sizes.name}": stage {stage.id} does not take {one}' for one in refused]
    return said
