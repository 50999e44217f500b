"""Puzzles on the command line: `make puzzle-05`, `make puzzle-05 start NAME=no_conflicts`, `check`, `hint`, ..."""

from flashladder.classroom import done, puzzle_judge
from flashladder.classroom.progress import read, shown, write_new
from flashladder.classroom.puzzles import Puzzle, answer, get, puzzles
from flashladder.commands import verbs
from flashladder.core.console import coloured, plural, say, table
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.ladder.stages import Stage


def command(which: str, words: list[str], name: str = "") -> int:
    """Does what the words ask for, in their order; without any it lists the stage's puzzles."""
    stage = stages.entry(which)
    if not puzzles(stage):
        get(stage, name)  # says which stages have some
    return verbs.follow("puzzle", VERBS, stage, words, name)


def _list(stage: Stage, name: str) -> int:
    rows = []
    for one in puzzles(stage):
        state = "right" if done.is_done(stage, done.PUZZLE, one.name) else "begun" if one.file.exists() else "not begun"
        rows.append([one.name, one.title, plural(one.minutes, "minute"), state])
    table(f"Puzzles of stage {stage.id}, {stage.title}", ("NAME", "", "", ""), rows)
    first = puzzles(stage)[0].name
    say(f"\n`make puzzle-{stage.id} start NAME={first}` begins one; then `check`, `hint` and `solution`.")
    say(f"In the stage's notebook they are cells that begin with `%%puzzle {first}`.")
    return 0


def _start(stage: Stage, name: str) -> int:
    chosen = get(stage, name or _next(stage).name)
    write_new(chosen.file, chosen.page())
    say(f"{coloured(chosen.title, 'bold')} (about {plural(chosen.minutes, 'minute')}): {shown(chosen.file)}")
    say(chosen.task)
    say(f"Write it there, between the marks; `make puzzle-{stage.id} check` judges it.")
    return 0


def _next(stage: Stage) -> Puzzle:
    """The first that is not begun, else the first."""
    every = puzzles(stage)
    return next((one for one in every if not one.file.exists()), every[0])


def _begun(stage: Stage, name: str) -> list[Puzzle]:
    if name:
        return [get(stage, name)]
    return verbs.begun("puzzle", stage, puzzles(stage), lambda one: one.file)


def _check(stage: Stage, name: str) -> int:
    return 0 if all([_judged(one) for one in _begun(stage, name)]) else 1


def _judged(one: Puzzle) -> bool:
    place = shown(one.file)
    page = read(one.file, f"make puzzle-{one.stage.id} start NAME={one.name}")
    try:
        text, first = answer(page)
    except FlashLadderError as error:
        raise FlashLadderError(f"{place}: {error}") from error
    found = puzzle_judge.judge(one, text, lambda line: f"{place}:{first + line - 1}")
    if found.passed:
        done.note(one.stage, done.PUZZLE, [one.name])
    return verbs.tell(f"{coloured(one.name, 'bold')}, {one.title}", found, found.written)


def _hint(stage: Stage, name: str) -> int:
    open_ones = [one for one in _begun(stage, name) if name or not done.is_done(stage, done.PUZZLE, one.name)]
    return verbs.hint("puzzle", stage, open_ones, "`make puzzle-{stage} solution NAME={name}` shows a solution")


def _solution(stage: Stage, name: str) -> int:
    for one in [get(stage, name)] if name else puzzles(stage):
        say(f"{coloured(one.name, 'bold')}, {one.title}:\n\n{one.solution}\n")
    return 0


VERBS = {"list": _list, "start": _start, "check": _check, "hint": _hint, "solution": _solution}
