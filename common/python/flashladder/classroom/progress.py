"""How far a reader has come: said by his own files, work/NN_name.cu and the %%write cells of the notebooks.

What came of a text is remembered in build/exercises by its hash, so that nothing is built to list it. What was right
once is kept in work/progress.json (classroom/done.py) besides.
"""

import difflib
import hashlib
import json
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flashladder.classroom import done, judge, remembered
from flashladder.classroom.exercise import Exercise, Mend, answer_lines, answers, exercises, mends
from flashladder.classroom.judge import Judgement, Lines
from flashladder.classroom.taking import changed_outside, decoded
from flashladder.core import paths
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory, place, work_directory
from flashladder.ladder.mistakes import Mistake
from flashladder.ladder.stage import Stage

WRITE = "%%write "  # how a notebook's cell with an answer begins


@dataclass(frozen=True)
class State:
    exercise: Exercise | Mend
    words: str  # "not begun", "not written yet", "not checked yet", a judgement's summary, or what is damaged
    passed: bool = False
    place: str = ""  # the file that says so, relative to the project's folder

    @property
    def points(self) -> int:
        return self.exercise.points if self.passed else 0


def file_of(exercise: Exercise | Mend) -> Path:
    """work/05_tile_offset.cu"""
    return work_directory() / f"{exercise.stage.id}_{exercise.name}{exercise.stage.source.suffix}"


def shown(file: Path) -> str:
    """The file as one types it in the project's folder."""
    return str(file.relative_to(ROOT) if file.is_relative_to(ROOT) else file)


def begin(exercise: Exercise | Mend) -> Path:
    """Writes the exercise's file. FlashLadderError where it exists: nothing is ever written over."""
    return write_new(file_of(exercise), first_text(exercise))


def write_new(file: Path, text: str, instead: str = "To start afresh, move it away.") -> Path:
    """instead: what to do where the file exists, in words."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        return paths.write_new(file, text.encode())
    except FileExistsError:
        raise FlashLadderError(f"{shown(file)} exists, and stays as it is. {instead}") from None


def read(file: Path, start: str) -> str:
    """start: the command that writes the file."""
    try:
        return decoded(file.read_bytes(), shown(file))
    except FileNotFoundError:
        raise FlashLadderError(f"{shown(file)} does not exist: `{start}` writes it.") from None
    except OSError as error:
        raise FlashLadderError(f"{shown(file)} cannot be read: {error}") from error


def first_text(exercise: Exercise | Mend) -> str:
    """The starter, with the task as a comment above the lines that are to be written. It shows no other exercise's
    solution before that one is solved."""
    command = f"make exercise-{exercise.stage.id}"
    told = [*textwrap.wrap(f"{exercise.title}. {exercise.task}", 112 - len(getattr(exercise, "indent", "")))]
    told += [f"`{command} check` judges this file, `{command} hint` helps."]
    if isinstance(exercise, Mend):
        return "".join(f"// {line}\n" for line in told) + "\n" + exercise.starter()
    comment = "".join(f"{exercise.indent}// {line}\n" for line in told)
    others = [state.exercise.name for state in states(exercise.stage) if not state.passed]
    return exercise.starter(others).replace(exercise.opening, comment + exercise.opening, 1)


@dataclass(frozen=True)
class Answer:
    """What a file holds, and where."""

    text: str
    line: Lines  # words for a line of the answer
    shipped: Lines | None = None  # for a line of the shipped source outside of the answer: where it stands in the file
    remarks: tuple[str, ...] = ()


def answer_in(exercise: Exercise | Mend, file: Path) -> Answer:
    """The answer that a file holds. FlashLadderError where marks are damaged."""
    text = read(file, f"make exercise-{exercise.stage.id} start NAME={exercise.name}")
    if isinstance(exercise, Mend):
        return Answer(text, f"{shown(file)}:{{}}".format)
    try:
        found, first = answers(exercise.stage, text), answer_lines(exercise.stage, text)
    except FlashLadderError as error:
        raise FlashLadderError(f"{shown(file)}: {error}") from error
    if exercise.name not in found:
        raise FlashLadderError(
            f"{shown(file)}: the lines `{exercise.opening.strip()}` and `{exercise.closing.strip()}` are missing: put "
            "them back, around your answer."
        )
    start, remarks = first[exercise.name], ()
    outside = changed_outside(exercise.stage, text)
    if outside:
        lines = ", ".join(map(str, outside[:5])) + (", ..." if len(outside) > 5 else "")
        remarks = (f"What stands outside of the marks is not judged, the shipped source is: you changed line {lines}.",)
    places = _places(exercise.stage.source.read_text(), text)
    source = exercise.stage.source.name

    def shipped(line: int) -> str:
        return f"{shown(file)}:{places[line]}" if line in places else f"{source}:{line}"

    return Answer(found[exercise.name], lambda line: f"{shown(file)}:{start + line - 1}", shipped, remarks)


def _places(source: str, text: str) -> dict[int, int]:
    """By line number of a source, that of the same line in a reader's file."""
    matcher = difflib.SequenceMatcher(None, source.splitlines(), text.splitlines(), autojunk=False)
    blocks = matcher.get_matching_blocks()
    return {one.a + at + 1: one.b + at + 1 for one in blocks for at in range(one.size)}


def check(
    exercise: Exercise | Mend,
    text: str,
    line: Lines = "line {}".format,
    shipped: Lines | None = None,
    say: Callable[[str], None] = judge.silent,
) -> Judgement:
    """Judges an answer, and remembers what came of it: a second check without a change takes it from there. say: is
    told what is done, and how long it will take."""
    if exercise.is_stub(text):
        return judge.NOT_WRITTEN
    name = remembered.key(exercise, text, line, shipped)
    found = remembered.recall(name)
    if not found:
        say(f"compiling it; {remembered.expected_time(exercise.stage)}")
        begun = time.monotonic()
        found = judge.attempt(exercise, text, line, shipped, say)
        remembered.keep(name, found)
        if found.built:
            remembered.took(exercise.stage, time.monotonic() - begun)
    if found.written:
        kept = {"passed": found.passed, "summary": found.summary}
        place("exercises", "judged", _key(exercise, text), json.dumps(kept))
    if found.passed:
        done.note(exercise.stage, done.EXERCISE, [_lasting(exercise)])
    return found


def states(stage: Stage) -> list[State]:
    """Each exercise of a stage. The better of what its file and its notebook's cell say."""
    cells = _cells(stage)
    return [_state(one, cells.get(one.name)) for one in (*exercises(stage), *mends(stage))]


def to_mend(mistake: Mistake) -> Mend | None:
    """The exercise of which this is the mistake, where it has one that is not passed yet: who is to find a mistake is
    not to be shown it."""
    for one in mends(mistake.stage):
        if one.mistake.name == mistake.name:
            return None if _state(one, None).passed else one
    return None


def _state(exercise: Exercise | Mend, cell: tuple[str, str] | None) -> State:
    found = []
    if file_of(exercise).exists():
        file = file_of(exercise)
        try:
            found.append(_remembered(exercise, answer_in(exercise, file).text, shown(file)))
        except FlashLadderError:
            found.append(State(exercise, "damaged marks", place=shown(file)))
    if cell and not exercise.is_stub(cell[0]):
        found.append(_remembered(exercise, *cell))
    return max(found, key=lambda state: state.passed) if found else State(exercise, "not begun")


def _remembered(exercise: Exercise | Mend, text: str, where: str) -> State:
    if exercise.is_stub(text):
        return State(exercise, "not written yet", place=where)
    file = build_directory() / "exercises/judged" / _key(exercise, text)
    if not file.exists():
        return State(exercise, "not checked yet", place=where)
    kept = json.loads(file.read_text())
    return State(exercise, kept["summary"], kept["passed"], where)


def was_right(exercise: Exercise | Mend) -> bool:
    """Whether an answer to it was ever right, whatever has become of it and of the stage since."""
    return done.is_done(exercise.stage, done.EXERCISE, _lasting(exercise))


def _lasting(exercise: Exercise | Mend) -> str:
    """A name that stays: mends are numbered, and another one may be put before."""
    return f"mend {exercise.mistake.name}" if isinstance(exercise, Mend) else exercise.name


def _key(exercise: Exercise | Mend, text: str) -> str:
    """Of all that a judgement follows from: the text, the stage's source and description, and the checks."""
    files = [file.read_bytes() for file in (exercise.stage.source, exercise.stage.folder / "stage.toml")]
    words = json.dumps([exercise.stage.id, exercise.name, exercise.checks, text]).encode()
    return hashlib.sha256(b"\0".join([words, *files])).hexdigest()


def _cells(stage: Stage) -> dict[str, tuple[str, str]]:
    """The answers in the cells of the stage's notebook: name -> (text, file)."""
    found = {}
    for file in (ROOT / "notebooks").glob(f"{stage.id}_*.ipynb"):
        try:
            cells = json.loads(file.read_text())["cells"]
        except (OSError, ValueError, KeyError):  # half written, by an editor: the next listing finds it
            continue
        for cell in cells:
            first, _, text = "".join(cell["source"]).partition("\n")
            if cell["cell_type"] == "code" and first.startswith(WRITE):
                found[first.removeprefix(WRITE).strip()] = (text, shown(file))
    return found


def count_hint(folder: str, name: str, total: int) -> int:
    """How many hints of a thing were given on the command line with this one, `total` of them at last."""
    file = build_directory() / folder / "hints" / name
    given = min(total, 1 + (int(file.read_text()) if file.exists() else 0))
    place(folder, "hints", name, str(given))
    return given
