"""Writes the folder that students get: starters, the task sheet, and of this project what builds, runs and checks them.
It holds no line of a solution, which is made sure of before it is there."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import tomli_w

from flashladder.classroom import exercise as described
from flashladder.classroom.assignment import Assignment, file_name
from flashladder.classroom.closure import closure
from flashladder.classroom.exercise import Exercise, Mend
from flashladder.classroom.marks import number as points_text
from flashladder.core.environment import PACKAGE
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, headers, included
from flashladder.ladder import stages, technique, tiles
from flashladder.ladder.launches import instances
from flashladder.ladder.stages import Kernel

CREDIT = {
    "builds": "it compiles",
    "correct": "the result is right, in equal parts for each class of sizes",
    "hazards": "no race, no missing wait, no access out of bounds",
    "technique": "the technique is really used: the simulator counts",
    "throughput": "its speed on a GPU, beside the reference solution in the same run",
}


def task_sheet(assignment: Assignment, exercises: dict[int, list[Exercise]]) -> str:
    """exercises: by stage, with the assignment's points."""
    files = [f"`{file_name(number)}`" for number in assignment.stages]
    lines = [f"# {assignment.title}", "", f"Hand in: {' and '.join(files)}. Deadline: {assignment.deadline}.", ""]
    lines += [assignment.text, ""] if assignment.text else []
    lines += ["| file | exercise | | points |", "| --- | --- | --- | ---: |"]
    for number, every in exercises.items():
        lines += [f"| `{file_name(number)}` | {one.name} | {one.title} | {points_text(one.points)} |" for one in every]
    lines += _tile(assignment)
    lines += ["", _HOW_TO_WORK, *([_SEVERAL_FILES] if len(exercises) > 1 else []), ""]
    for number, every in exercises.items():
        for one in every:
            lines += [f"## {one.title} ({points_text(one.points)} points)", "", f"In `{file_name(number)}`, between"]
            lines += [f"`{one.opening.strip()}` and `{one.closing.strip()}`.", "", one.task, ""]
    lines += [*_sizes(assignment), *_expected(assignment, exercises), *_points(assignment), ""]
    return "\n".join(lines)


_HOW_TO_WORK = """
    make check            # builds your files and tries them; nothing of it leaves your machine
    make hint NAME=...    # a hint for an exercise

Write between the marks, and leave the marks and all other lines as they are: only what stands between them is graded.
`make check` takes it as the grader does, and refuses what the grader refuses.
Linux, Python 3.10 or newer, make and a C++20 compiler (GCC 11 or newer) are needed, and no GPU: kernels run on the
simulator in `harness/`. The first `make check` installs what is missing into `harness/.venv` and builds the simulator,
which takes some minutes. `make PYTHON=python3 check` uses that interpreter with what it has and installs nothing.
""".strip("\n")


def _tile(assignment: Assignment) -> list[str]:
    """What is not as in the lesson, where the assignment has a tile of its own."""
    said = []
    for number in assignment.stages if assignment.tile else ():
        here, lesson = (tiles.tile_of(one) for one in (assignment.kernel(number), stages.get(number)))
        if here != lesson:
            words = [", ".join(f"`{name} = {value}`" for name, value in one.items()) for one in (here, lesson)]
            said += ["", f"The tile of `{file_name(number)}` is {words[0]}; in the lesson, and in what the file's"]
            said += [f"comments say of rows by number, it is {words[1]}."]
    return said


def _late(assignment: Assignment) -> list[str]:
    policy, grace = assignment.late, ""
    if policy.grace:
        grace = f", after {policy.grace.total_seconds() / 60:g} minutes of grace"
    return [
        f"Handed in late it costs {policy.cost_per_day:g} points for each day that has begun{grace}; after "
        f"{policy.most_days} days nothing is accepted."
    ]


_INSTANCES = (
    "The kernel is built for several configurations, as `instances.h` beside it lists them. Each problem is tried with",
    "every one of its type and head dimension.",
    "",
)

_SEVERAL_FILES = """
What is to be written in one file and stands in another one, too, is a stub there (`// === NAME: your answer in ...`),
and `make check` puts your answer in its place. It is graded where it has its points.
""".rstrip()


def _sizes(assignment: Assignment) -> list[str]:
    lines = ["## What `make check` tries", "", "| class of sizes | problem |", "| --- | --- |"]
    lines += [f"| {sizes.name} | {problem} |" for sizes in assignment.public_sizes for problem in sizes.problems]
    hidden = len(assignment.sizes) - len(assignment.public_sizes)
    classes = "a class" if hidden == 1 else f"{hidden} classes"
    words = "Q, K and V are random. It is graded with other numbers"
    return [
        *lines,
        "",
        f"{words}, and in {classes} of sizes that you do not see." if hidden else f"{words}.",
        "",
        *(_INSTANCES if any(map(instances, map(stages.get, assignment.stages))) else ()),
    ]


def _expected(assignment: Assignment, exercises: dict[int, list[Exercise]]) -> list[str]:
    """The technique that is asked for, in stage.toml's words."""
    lines = []
    for number in exercises:
        lines += [f"- stage {stages.get(number).id}: {one.says}" for one in technique.expectations(number)]
    return ["## The technique", "", "What the simulator's counters must show:", "", *lines, ""] if lines else []


def _points(assignment: Assignment) -> list[str]:
    lines = ["## How points are given", "", "| share of an exercise's points | for |", "| ---: | --- |"]
    lines += [f"| {100 * share:g} % | {CREDIT[name]} |" for name, share in assignment.credit.items() if share]
    return [
        *lines,
        "",
        "What an exercise does not ask for is divided among what it asks for. An answer that does no more than the "
        "stub has no points. Where some hazards are left, part of their points is given for those that are gone; the "
        "report says what the next points need.",
        *(["", *_late(assignment)] if assignment.late else []),
    ]


HARNESS = "harness"
# What runs in the students' folder; what these import comes with them.
PROGRAMS = ("flashladder.classroom.check", "flashladder.building.bootstrap", "flashladder.running.worker")
TREES = {  # by folder, the kinds of files that are taken
    "common/cmake": (".cmake", ".map"),
    "common/host": (".cpp", ".cu", ".h", ".txt"),
    "common/simulator": (".cpp", ".h", ".map", ".txt"),
}
FILES = ("CMakeLists.txt", "LICENSE")
TEMPLATES = Path(__file__).with_name("templates")


def write(assignment: Assignment, folder: Path) -> Path:
    """Writes the folder, whole or not at all. FlashLadderError where it exists, or would give a solution away."""
    if os.path.lexists(folder):
        raise FlashLadderError(f"{folder} exists, and nothing is written over it: name another one by OUT=folder.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
        made = Path(scratch) / "made"
        _write(assignment, made)
        found = leaks(assignment, made)
        if found:
            raise FlashLadderError(
                "The folder would give solutions away:\n"
                + "\n".join(f"  {line}" for line in found[:10])
                + "\nBlank these lines there, too (by an exercise of that stage), or leave one of the two out."
            )
        os.rename(made, folder)
    return folder


def chosen(assignment: Assignment, number: int) -> list[Exercise]:
    """The assignment's exercises of a stage, with its points and the hints that students get."""
    secret = {line for one in _solutions(assignment, number) for line in _bare_lines(one.solution)}
    found = []
    for item in assignment.items:
        if item.stage != number:
            continue
        one = described.get(assignment.kernel(number), item.name)
        if isinstance(one, Mend):
            raise FlashLadderError(
                f"{item.name} of stage {number:02d} is one to mend: assignments are of what is written."
            )
        hints = tuple(hint for hint in one.hints[: assignment.hints] if not _holds(hint, secret))
        found.append(replace(one, points=item.points, hints=hints))
    return found


def starter(assignment: Assignment, number: int) -> str:
    """The stage's kernel.cu with stubs, and the assignment's points in the marks. What is to be written in another
    stage and stands here, too, is a stub as well, between marks of its own: students put their answer there."""
    kernel = assignment.kernel(number)
    text = described.starter(kernel, list(assignment.names(number)))
    for one in chosen(assignment, number):
        text = text.replace(described.get(kernel, one.name).opening, one.opening)
    secret = _secrets(assignment)
    for other in assignment.stages:
        for one in _solutions(assignment, other) if other != number else ():
            if any(line in secret for line in _bare_lines(one.solution)):
                text = _carried(text, one)
    return text


def _carried(text: str, one: Exercise) -> str:
    """The text with the lines of another stage's exercise replaced by its stub."""
    lines, wanted = text.splitlines(), _bare_lines(one.solution)
    numbers = [number for number, line in enumerate(lines) if re.search(r"\w", _bare(line))]
    for at in range(len(numbers) - len(wanted) + 1):
        here = numbers[at : at + len(wanted)]
        if [_bare(lines[number]) for number in here] == wanted:
            indent = re.match(r"\s*", lines[here[0]])[0]
            opening = f"// === {one.name}: your answer in {file_name(one.stage.number)} is put here by `make check` ==="
            stub = [opening, *one.stub.splitlines(), f"// === end of {one.name} ==="]
            lines[here[0] : here[-1] + 1] = [f"{indent}{line}" if line else line for line in stub]
            return "\n".join(lines) + "\n"
    return text


def _write(assignment: Assignment, folder: Path) -> None:
    harness = folder / HARNESS
    for name in FILES:
        _copy(ROOT / name, harness / name)
    for file in [*_sources(), *_headers(assignment)]:
        _copy(file, harness / file.relative_to(ROOT))
    for file in closure(*PROGRAMS).values():
        _copy(file, harness / "common/python" / file.relative_to(PACKAGE))
    (harness / "pyproject.toml").write_text(_project())
    (harness / "README.md").write_text(
        "What builds, runs and checks the kernels: parts of FlashLadder (MIT licence).\n"
    )
    for number in assignment.stages:
        _write_stage(assignment, assignment.kernel(number), harness / "stages" / stages.get(number).name)
        (folder / file_name(number)).write_text(starter(assignment, number))
    (harness / "assignment.json").write_text(json.dumps(_public(assignment), indent=2) + "\n")
    every = {number: chosen(assignment, number) for number in assignment.stages}
    (folder / "README.md").write_text(task_sheet(assignment, every))
    for file in sorted(TEMPLATES.rglob("*")):
        if file.is_file():
            _copy(file, folder / _template_place(file))


def _sources() -> list[Path]:
    """What builds the simulator and the host's part of a run."""
    found = [(file, kinds) for tree, kinds in TREES.items() for file in sorted((ROOT / tree).rglob("*"))]
    return [file for file, kinds in found if file.suffix in kinds and file.is_file()]


def _headers(assignment: Assignment) -> list[Path]:
    """Of common/include what the assignment's kernels and these sources include, and what that includes: a header in
    which later stages share what one of them teaches is a solution of that one."""
    kernels = [stages.get(number).kernel for number in assignment.stages]
    return included([*kernels, *_sources()], ROOT / "common/include")


def _template_place(file: Path) -> Path:
    """dot-github/workflows/check.yml -> .github/workflows/check.yml"""
    return Path(*(re.sub("^dot-", ".", part) for part in file.relative_to(TEMPLATES).parts))


def _copy(file: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)


def _project() -> str:
    """pyproject.toml without the commands that are not there."""
    text = (ROOT / "pyproject.toml").read_text()
    return re.sub(r"^\[project\.scripts\]\n.*?(?=^\[)", "", text, flags=re.M | re.S)


def _write_stage(assignment: Assignment, stage: Kernel, folder: Path) -> None:
    """The starter as the stage's kernel, its headers, its description with all that it expects, and the exercises as
    they stand in the starter: between the marks."""
    folder.mkdir(parents=True)
    (folder / "kernel.cu").write_text(starter(assignment, stage.number))
    for header in headers(stage.folder):  # the table of a kernel with several instances
        _copy(header, folder / header.name)
    data = {name: value for name, value in stage.data.items() if name not in ("keeps", "expected", "previous", "tiles")}
    asked = [asdict(one).items() for one in technique.expectations(stage)]
    expected = [{name: value for name, value in one if value} for one in asked]  # without what is left out
    (folder / "stage.toml").write_text(tomli_w.dumps(data | ({"expected": expected} if expected else {})))
    entries = [
        {
            "name": one.name,
            "title": one.title,
            "part": one.part,
            "first": one.opening.strip(),
            "last": one.closing.strip(),
            "stub": one.stub,
            "task": one.task,
            "hints": list(one.hints),
            "points": round(one.points),
        }
        for one in chosen(assignment, stage.number)
    ]
    (folder / "exercises.toml").write_text(tomli_w.dumps({"exercise": entries}))


def _public(assignment: Assignment) -> dict:
    """What classroom/check.py reads: nothing of it is hidden."""
    sizes = [{"class": one.name, "problems": list(map(asdict, one.problems))} for one in assignment.public_sizes]
    asked = assignment.credit.get("technique", 0) > 0
    return {"title": assignment.title, "stages": list(assignment.stages), "sizes": sizes, "technique": asked}


def leaks(assignment: Assignment, folder: Path) -> list[str]:
    """Where in a folder lines of the solutions stand, a sentence each; none is as it should be."""
    secret = _secrets(assignment)
    found = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = file.read_text(errors="replace")
        whole = " ".join(text.split())
        suspects = [line for line in secret if line in whole]
        for number, line in enumerate(text.splitlines() if suspects else (), 1):
            for words in _holds(_bare(line), suspects):
                found.append(f"{file.relative_to(folder)}:{number} shows a line of {secret[words]}: {words}")
    return found


def _secrets(assignment: Assignment) -> dict[str, str]:
    """The lines of the solutions, and which exercise each is of. Comments and blanks do not count, nor lines without a
    letter; and what a stub shows, or the same kernel outside of the exercises, is no secret."""
    stubs = [line for number in assignment.stages for one in _solutions(assignment, number) for line in
             _bare_lines(one.stub)]  # fmt: skip
    found: dict[str, str] = {}
    for number in assignment.stages:
        kernel = described.starter(assignment.kernel(number), list(assignment.names(number)))
        given = "\n".join([*_bare_lines(kernel), *stubs])
        for one in _solutions(assignment, number):
            lines = [line for line in _bare_lines(one.solution) if line not in given]
            found |= dict.fromkeys(lines, f"{one.stage.id} {one.name}")
    return found


def _solutions(assignment: Assignment, number: int) -> Iterator[Exercise]:
    for name in assignment.names(number):
        one = described.get(assignment.kernel(number), name)
        if isinstance(one, Exercise):
            yield one


def _bare(line: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"//.*", "", line)).strip()


def _bare_lines(text: str) -> list[str]:
    return [line for line in map(_bare, text.splitlines()) if re.search(r"\w", line)]


def _holds(text: str, lines) -> list[str]:
    """The lines that stand in a text, long ones also within others."""
    bare = re.sub(r"\s+", " ", text).strip()
    return [line for line in lines if line == bare or len(line) > 20 and line in bare]
