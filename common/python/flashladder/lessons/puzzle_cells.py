"""The section "A puzzle first" of a notebook: tasks, kernels and stubs as stages/NN_name/puzzles.toml has them.

python -m flashladder notebooks --exercises     writes the sections anew; --check says where one differs
"""

from flashladder.classroom.judge import NOT_WRITTEN
from flashladder.classroom.puzzles import CLOSE, OPEN, Puzzle, puzzles
from flashladder.core.console import plural
from flashladder.core.errors import FlashLadderError
from flashladder.ladder.stage import Stage
from flashladder.lessons import exercise_cells
from flashladder.lessons.puzzling import not_written
from flashladder.lessons.sections import found as found_section
from flashladder.lessons.sections import text_of, wrapped, written

HEADING = "## A puzzle first"
PUZZLE = "%%puzzle "  # how a cell with an answer begins
INTRODUCTION = """\
A small kernel with one idea, and nothing else. Write the lines that are left out in place of the stub and run the cell:
they are compiled, run on the simulator, and judged, in seconds. `lesson.hint("{name}")` gives a hint,
`lesson.solution("{name}")` a solution. In an editor of your own: `make puzzle-{id} start`."""


def section(stage: Stage) -> list[dict]:
    """The cells of the section, with their outputs; none where the stage has no puzzles."""
    every = puzzles(stage)
    if not every:
        return []
    cells = [_prose(f"{HEADING}\n\n{INTRODUCTION.format(name=every[0].name, id=stage.id)}")]
    for one in every:
        cells += [_prose(_task(one)), _code(one)]
    return cells


def placed(cells: list[dict], stage: Stage) -> list[dict]:
    """A notebook's cells with the section as it is now, before that of the exercises. FlashLadderError where a cell of
    it holds an answer: the project's notebooks are unsolved ones, and yours stays as it is."""
    first, last = found_section(cells, HEADING, PUZZLE)
    for cell in cells[first:last]:
        name, text = written(cell, PUZZLE)
        known = {one.name: one for one in puzzles(stage)}
        stub = (name in known and known[name].is_stub(text)) or NOT_WRITTEN.summary in str(cell.get("outputs"))
        if name and not stub:
            raise FlashLadderError(
                f"The cell `{PUZZLE}{name}` holds an answer, which would be lost: keep it elsewhere."
            )
    rest = cells[:first] + cells[last:]
    if not section(stage):
        return rest
    for index, cell in enumerate(rest):
        if text_of(cell).startswith(exercise_cells.HEADING):
            return [*rest[:index], *section(stage), *rest[index:]]
    heading = exercise_cells.HEADING
    raise FlashLadderError(f"Stage {stage.id}'s notebook has no section `{heading}`, before which puzzles stand.")


def faults(cells: list[dict], stage: Stage) -> list[str]:
    """Where the section differs from what puzzles.toml says, one sentence each."""
    first, last = found_section(cells, HEADING, PUZZLE)
    if [text_of(cell) for cell in cells[first:last]] == [cell["source"] for cell in section(stage)]:
        return []
    return [f'the section "{HEADING[3:]}" differs from puzzles.toml: run `flashladder notebooks --exercises`']


def _prose(text: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "source": wrapped(text)}


def _code(one: Puzzle) -> dict:
    shown = not_written(one)
    data = {"text/html": shown.html, "text/plain": shown.text}
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    text = f"{PUZZLE}{one.name}\n{one.stub}"
    return {"cell_type": "code", "metadata": {}, "execution_count": 1, "outputs": [output], "source": text}


def _task(one: Puzzle) -> str:
    before, rest = one.code.split(f"{OPEN}\n", 1)
    after = rest.split(f"{CLOSE}\n", 1)[1]
    kernel = f"{before}// your lines: {one.name}\n{after}".strip("\n")
    return f"### {one.title} (about {plural(one.minutes, 'minute')})\n\n{one.task}\n\n```cpp\n{kernel}\n```"
