"""The exercises of a notebook: tasks and stubs as stages/NN_name/exercises.toml has them.

Those of the technique itself stand below "## Write it", the optional ones below "## Going deeper".

python -m flashladder notebooks --exercises     writes them anew; --check says where one differs
"""

import re

from flashladder.classroom import exercise
from flashladder.classroom.exercise import Exercise
from flashladder.classroom.progress import WRITE
from flashladder.core.console import plural
from flashladder.ladder import source
from flashladder.ladder.kernels import WithKernel
from flashladder.ladder.stage import Stage
from flashladder.lessons.sections import DEEPER, heading, prose, refuse_answers, text_of, unlike, unsolved, written
from flashladder.lessons.writing import not_written

SECTION = "Write it"
MORE = "### More to write"  # the heading of the optional ones
MOST = 2  # exercises that a lesson asks everyone for
HOW = """\
Put your lines in place of the stub and run the cell: they are compiled, run at several sizes, and judged, in seconds.
`lesson.hint("{name}")` gives one hint after another, `lesson.solution("{name}")` a solution.
In an editor of your own: `make exercise-{id} start`."""
HOST = """\
This is code of the host, so you write it in a file: `make exercise-{id} start NAME={name}` writes the file,
`make exercise-{id} check` judges it, and `make exercise-{id} hint` gives one hint after another, as
`lesson.hint("{name}")` does here."""
MORE_TEXT = """\
These exercises are optional. They are judged like those above. `make exercise-{id}` lists them, and the mistakes to
mend."""
_TASK = re.compile(r"####? .* \(\d+ points?\)(?:\n|$)")
CONTEXT = (12, 4)  # lines shown before and after those that are left out


def section(stage: Stage) -> list[dict]:
    """The cells below "## Write it", with their outputs: a task and a stub for each exercise that is not optional."""
    kernel = isinstance(stage, WithKernel)
    cells = []
    for one in _needed(stage):
        how = "" if cells else "\n\n" + (HOW if kernel else HOST).format(name=one.name, id=stage.id)
        cells.append(prose(f"### {_task(one)}{how}"))
        if kernel:
            cells.append(unsolved(WRITE, one, not_written(one)))
    return cells


def more(stage: Stage) -> list[dict]:
    """The cells below "## Going deeper": the optional exercises; none where there are none."""
    kernel = isinstance(stage, WithKernel)
    optional = [one for one in exercise.exercises(stage) if one.optional]
    cells = [prose(f"{MORE}\n\n{MORE_TEXT.format(id=stage.id)}")] if optional else []
    for one in optional:
        cells += [prose(f"#### {_task(one)}"), *([unsolved(WRITE, one, not_written(one))] if kernel else [])]
    return cells


def _needed(stage: Stage) -> list[Exercise]:
    return [one for one in exercise.exercises(stage) if not one.optional]


def _task(one: Exercise) -> str:
    """The task, and the lines around those that are left out; those of another exercise are left out there, too."""
    every = exercise.exercises(one.stage)
    lines = one.stage.source.read_text().splitlines()
    part = source.find(one.stage.source, one.part)
    function = lines[part.last - 1].startswith("}")
    first = max(one.first - CONTEXT[0], part.first if function else 1)
    last = min(one.last + CONTEXT[1], part.last if function else len(lines))
    gaps = [one, *(other for other in every if other.last < one.first or other.first > one.last)]
    shown: list[str] = []
    for number in range(first, last + 1):
        gap = next((gap for gap in gaps if gap.first <= number <= gap.last), None)
        text = f"{gap.indent}// your lines: {gap.name}" if gap else lines[number - 1]
        if not gap or text not in shown:
            shown.append(text)
    text = "\n".join(shown).strip("\n")
    return f"{one.title} ({plural(one.points, 'point')})\n\n{one.task}\n\n```cpp\n{text}\n```"


def placed(cells: list[dict], stage: Stage) -> list[dict]:
    """A notebook's cells with the exercises as they are now. FlashLadderError where a cell of them holds an answer: the
    project's notebooks are unsolved ones, and yours stays as it is."""
    refuse_answers(cells, WRITE, exercise.exercises(stage))
    return _arranged(cells, stage)


def _arranged(cells: list[dict], stage: Stage) -> list[dict]:
    """FlashLadderError where a section is missing that they stand in."""
    rest = [cell for cell in cells if not _is_generated(cell)]
    for title, those in ((SECTION, section(stage)), (DEEPER, more(stage))):
        if those:
            at = heading(rest, title) + 1
            rest = [*rest[:at], *those, *rest[at:]]
    return rest


def _is_generated(cell: dict) -> bool:
    text = text_of(cell)
    return bool(written(cell, WRITE)[0] or text.startswith(MORE) or _TASK.match(text))


def faults(cells: list[dict], stage: Stage) -> list[str]:
    """Where the exercises differ from what exercises.toml says, one sentence each."""
    again = "run `flashladder notebooks --exercises`"
    known = {one.name: one for one in exercise.exercises(stage)}
    found = []
    for cell in cells:
        name, text = written(cell, WRITE)
        if name in known and not known[name].is_stub(text):
            found.append(
                f"the cell `{WRITE}{name}` holds something else than the stub of exercises.toml: {again}, or keep your "
                "answer elsewhere: the project's notebooks are unsolved ones"
            )
    needed = len(_needed(stage))
    if known and not 1 <= needed <= MOST:
        found.append(
            f"exercises.toml asks everyone for {plural(needed, 'exercise')}: mark all but one or two `optional = true`"
        )
    return found or unlike("exercises", cells, lambda: _arranged(cells, stage))
