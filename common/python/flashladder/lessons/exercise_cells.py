"""The section "Write it yourself" of a notebook: tasks and stubs as stages/NN_name/exercises.toml has them.

python -m flashladder notebooks --exercises     writes the sections anew; --check says where one differs
"""

import re

from flashladder.classroom import exercise
from flashladder.classroom.exercise import Exercise
from flashladder.classroom.judge import NOT_WRITTEN
from flashladder.classroom.progress import WRITE
from flashladder.core.console import plural
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import source
from flashladder.ladder.stage import Stage
from flashladder.ladder.stages import Kernel
from flashladder.lessons.sections import found as found_section
from flashladder.lessons.sections import text_of, wrapped, written
from flashladder.lessons.writing import not_written

HEADING = "## Write it yourself"
BEHIND = "## Build"  # the section stands before the one that shows the kernel
INTRODUCTION = """\
Before the kernel is shown, write some of its lines. A cell that begins with `%%write` holds your C++ in place of the
lines that are left out; run it, and it is compiled, run at several sizes, and judged, in seconds.
`lesson.hint("{name}")` gives one hint after another, `lesson.solution("{name}")` a solution.
Skip what you like: nothing below needs it. In an editor of your own: `make exercise-{id} start`; there you also find
mistakes to mend."""
HOST = """\
Before the program is shown, write some of its lines. It is code of the host, so it is written as a file:
`make exercise-{id} start NAME={name}` writes it, `make exercise-{id} check` judges it, and
`make exercise-{id} hint` gives one hint after another, as `lesson.hint("{name}")` does here."""
CONTEXT = (12, 4)  # lines shown before and behind those that are left out


def section(stage: Stage) -> list[dict]:
    """The cells of the section, with their outputs; none where the stage has no exercises."""
    every = exercise.exercises(stage)
    if not every:
        return []
    kernel = isinstance(stage, Kernel)
    text = (INTRODUCTION if kernel else HOST).format(name=every[0].name, id=stage.id)
    cells = [_prose(f"{HEADING}\n\n{text}")]
    for one in every:
        cells.append(_prose(_task(one, every)))
        if kernel:
            cells.append(_code(one))
    return cells


def _prose(text: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "source": wrapped(text)}


def _code(one: Exercise) -> dict:
    shown = not_written(one)
    output = {
        "output_type": "display_data",
        "data": {"text/html": shown.html, "text/plain": shown.text},
        "metadata": {},
    }
    text = f"{WRITE}{one.name}\n{one.stub}"
    return {"cell_type": "code", "metadata": {}, "execution_count": 1, "outputs": [output], "source": text}


def _task(one: Exercise, every: list[Exercise]) -> str:
    """The task, and the lines around those that are left out; those of another exercise are left out there, too."""
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
    return f"### {one.title} ({plural(one.points, 'point')})\n\n{one.task}\n\n```cpp\n{text}\n```"


def placed(cells: list[dict], stage: Stage) -> list[dict]:
    """A notebook's cells with the section as it is now, before "## Build". FlashLadderError where a cell of it holds
    an answer: the project's notebooks are unsolved ones, and yours stays as it is."""
    first, last = found_section(cells, HEADING, WRITE)
    for cell in cells[first:last]:
        name, text = written(cell, WRITE)
        outputs = str(cell.get("outputs"))
        known = {one.name: one for one in exercise.exercises(stage)}
        stub = (name in known and known[name].is_stub(text)) or NOT_WRITTEN.summary in outputs
        if name and not stub:
            raise FlashLadderError(f"The cell `{WRITE}{name}` holds an answer, which would be lost: keep it elsewhere.")
    rest = cells[:first] + cells[last:]
    for index, cell in enumerate(rest):
        text = text_of(cell)
        at = re.search(rf"^{BEHIND}$", text, re.M) if cell["cell_type"] == "markdown" else None
        if at:
            before = [cell | {"source": text[: at.start()].strip("\n")}] if text[: at.start()].strip() else []
            return [*rest[:index], *before, *section(stage), cell | {"source": text[at.start() :]}, *rest[index + 1 :]]
    raise FlashLadderError(f"Stage {stage.id}'s notebook has no section `{BEHIND}`, before which exercises stand.")


def faults(cells: list[dict], stage: Stage) -> list[str]:
    """Where the section differs from what exercises.toml says, one sentence each."""
    first, last = found_section(cells, HEADING, WRITE)
    there, wanted = [text_of(cell) for cell in cells[first:last]], section(stage)
    texts = [cell["source"] for cell in wanted]
    again = "run `flashladder notebooks --exercises`"
    if there == texts:
        return []
    if not there or not wanted:
        return [f'the section "{HEADING[3:]}" is {"left" if there else "missing"}: {again}']
    found = []
    for cell in cells[first:last]:
        name, text = written(cell, WRITE)
        known = {one.name: one for one in exercise.exercises(stage)}
        if name in known and not known[name].is_stub(text):
            found.append(
                f"the cell `{WRITE}{name}` holds something else than the stub of exercises.toml: {again}, or keep your "
                "answer elsewhere: the project's notebooks are unsolved ones"
            )
    return found or [f'the section "{HEADING[3:]}" differs from exercises.toml: {again}']
