"""A puzzle in a notebook: a cell that begins with `%%puzzle no_conflicts` holds the reader's lines of a small kernel.

%%puzzle no_conflicts
return row * 32 + (column ^ row);
"""

from flashladder.classroom import done, puzzle_judge, puzzles
from flashladder.classroom.judge import NOT_WRITTEN, Judgement
from flashladder.classroom.puzzles import Puzzle
from flashladder.core.errors import FlashLadderError
from flashladder.lessons import display, writing
from flashladder.lessons.display import Shown, message, note, show, step


def puzzle(name: str, text: str) -> Judgement | None:
    """What %%puzzle does with the rest of the cell. Nothing that is wrong with an answer ends the run of a notebook."""
    name = name.strip()
    try:
        one = puzzles.get(writing.current_stage("%%puzzle"), name)
        if one.is_stub(text):
            show(not_written(one))
            return None
        with step(f"Building and running {name}", f"Built and run: {name}."):
            # Line 1 of the cell is %%puzzle itself.
            found = puzzle_judge.judge(one, text, lambda line: f"line {line + 1} of the cell")
        if found.passed:
            done.note(one.stage, done.PUZZLE, [one.name])
    except FlashLadderError as error:
        show(message(str(error), f"%%puzzle {name}"))
        return None
    lines = [line for finding in found.findings for line in writing.lines_of(finding)]
    lines += [] if found.passed else [f'lesson.hint("{one.name}") gives a hint.']
    show(message("\n".join(lines), f"{one.title}: {found.summary}."))
    return found if not display.live() else None  # without a value: a cell's last one is shown


def not_written(one: Puzzle) -> Shown:
    return note(f'{NOT_WRITTEN.summary}. lesson.hint("{one.name}") gives a hint.', f"{one.title}:")


def register() -> None:
    """Gives a notebook's kernel the cell magic %%puzzle."""
    if display.live():
        display.get_ipython().register_magic_function(puzzle, "cell", "puzzle")
