"""The puzzles of a notebook, at the end of "The idea": what stages/NN_name/exercises.toml has of them.

python -m flashladder notebooks --exercises     writes them anew; --check says where one differs
"""

import re

from flashladder.classroom.puzzles import CLOSE, OPEN, Puzzle, puzzles
from flashladder.core.console import plural
from flashladder.ladder.stage import Stage
from flashladder.lessons.sections import heading, prose, refuse_answers, text_of, unlike, unsolved, written
from flashladder.lessons.writing import not_written

BEFORE = "Predict"  # the section that they stand before
PUZZLE = "%%puzzle "  # how a cell with an answer begins
HOW = """\
This kernel has one idea and nothing else. Put your lines in place of the stub and run the cell: they are compiled,
run on the simulator, and judged, in seconds. `lesson.hint("{name}")` gives a hint,
`lesson.solution("{name}")` a solution."""
_TASK = re.compile(r"### A puzzle: .* \(about \d+ minutes?\)(?:\n|$)")


def section(stage: Stage) -> list[dict]:
    """A task and a stub for each puzzle, with their outputs; none where the stage has no puzzles."""
    cells = []
    for one in puzzles(stage):
        how = "" if cells else "\n\n" + HOW.format(name=one.name)
        cells += [prose(_task(one) + how), unsolved(PUZZLE, one, not_written(one))]
    return cells


def placed(cells: list[dict], stage: Stage) -> list[dict]:
    """A notebook's cells with the puzzles as they are now. FlashLadderError where a cell of them holds an answer: the
    project's notebooks are unsolved ones, and yours stays as it is."""
    refuse_answers(cells, PUZZLE, puzzles(stage))
    return _arranged(cells, stage)


def _arranged(cells: list[dict], stage: Stage) -> list[dict]:
    """FlashLadderError where the section is missing that they stand before."""
    rest = [cell for cell in cells if not (written(cell, PUZZLE)[0] or _TASK.match(text_of(cell)))]
    those = section(stage)
    if not those:
        return rest
    at = heading(rest, BEFORE)
    return [*rest[:at], *those, *rest[at:]]


def faults(cells: list[dict], stage: Stage) -> list[str]:
    """Where the puzzles differ from what exercises.toml says, one sentence each."""
    return unlike("puzzles", cells, lambda: _arranged(cells, stage))


def _task(one: Puzzle) -> str:
    before, rest = one.code.split(f"{OPEN}\n", 1)
    after = rest.split(f"{CLOSE}\n", 1)[1]
    kernel = f"{before}// your lines: {one.name}\n{after}".strip("\n")
    return f"### A puzzle: {one.title} (about {plural(one.minutes, 'minute')})\n\n{one.task}\n\n```cpp\n{kernel}\n```"
