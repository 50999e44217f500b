"""What a reader writes in a notebook: a cell that begins with `%%write rescale` holds his C++ for that exercise.

%%write rescale
rescale[r] = __expf(row_max[r] - new_max);
"""

import html

from flashladder import plot
from flashladder.classroom import exercise, progress, puzzles
from flashladder.classroom.exercise import Exercise
from flashladder.classroom.judge import NOT_WRITTEN, Finding, Judgement
from flashladder.classroom.remembered import expected_time
from flashladder.core.console import plural
from flashladder.core.errors import FlashLadderError
from flashladder.ladder.stage import Stage
from flashladder.lessons import display
from flashladder.lessons.display import Shown, code, message, note, show, step

LABELS = {"builds": "compiles", "correct": "result", "hazards": "hazards", "technique": "technique"}
_current: list["Writing"] = []  # the lesson that was begun last: what %%write is about


class Writing:
    """The exercises of a lesson's stage."""

    stage: Stage

    def begin_writing(self) -> None:
        _current[:] = [self]
        self._hints: dict[str, int] = {}

    def hint(self, name: str) -> None:
        """The first hint to an exercise or a puzzle, and each time it is asked the next one."""
        one = self._named(name)
        if not one.hints:
            show(note("there is no hint to this one.", f"{one.title}:"))
            return
        given = self._hints[name] = min(self._hints.get(name, 0) + 1, len(one.hints))
        more = len(one.hints) - given
        rest = (
            f"{plural(more, 'more hint')} to come"
            if more
            else f'the last one; lesson.solution("{name}") shows a solution'
        )
        show(message(one.hints[given - 1], f"{one.title}, hint {given} of {len(one.hints)} ({rest})"))

    def solution(self, name: str) -> None:
        """The lines that an exercise (of the shipped source) or a puzzle asks for, folded: they show when they are
        clicked on."""
        one = self._named(name)
        show(folded_puzzle(one) if isinstance(one, puzzles.Puzzle) else folded_solution(one))

    def _named(self, name: str) -> Exercise | exercise.Mend | puzzles.Puzzle:
        known = {one.name: one for one in puzzles.puzzles(self.stage)}
        return known[name] if name in known else exercise.get(self.stage, name)


def folded_solution(one: Exercise | exercise.Mend) -> Shown:
    if isinstance(one, exercise.Mend):
        line, place = one.hints[-1], f"stages/{one.stage.name}/{one.stage.source.name}"
        return note(f"{line} The mended source is {place}.", f"{one.title}:")
    body = code(one.solution, one.first, f"stages/{one.stage.name}/{one.stage.source.name}")
    return _folded(f"{one.title}: a solution", body)


def folded_puzzle(one: puzzles.Puzzle) -> Shown:
    return _folded(f"{one.title}: a solution", code(one.solution, one.first_line, f"a solution of {one.name}"))


def _folded(summary: str, body: Shown) -> Shown:
    page = f"<details><summary>{html.escape(summary)}</summary>{body.html}</details>"
    return Shown(page, f"{summary}\n{body.text}")


def current_stage(magic: str) -> Stage:
    """What the lesson that was begun last is about. magic: such as %%write, which needs to know."""
    if not _current:
        raise FlashLadderError(f"Run the cell with `lesson = Lesson(...)` first: {magic} is about its stage.")
    return _current[0].stage


def register() -> None:
    """Gives a notebook's kernel the cell magic %%write."""
    if display.live():
        display.get_ipython().register_magic_function(write, "cell", "write")


def write(name: str, text: str) -> Judgement | None:
    """What %%write does with the rest of the cell: judges it as the answer to the exercise `name` of the lesson, and
    shows what came of it. Nothing that is wrong with an answer ends the run of a notebook."""
    name = name.strip()
    try:
        one = exercise.get(current_stage("%%write"), name)
        if not isinstance(one, Exercise):
            raise FlashLadderError(
                f"{name} is mended as a whole file: `make exercise-{one.stage.id} start NAME={name}`."
            )
        if one.is_stub(text):
            show(not_written(one))
            return None
        with step(f"Building and running {name}: {expected_time(one.stage)}", f"Built and run: {name}."):
            # Line 1 of the cell is %%write itself.
            found = progress.check(one, text, lambda line: f"line {line + 1} of the cell")
    except FlashLadderError as error:
        show(message(str(error), f"%%write {name}"))
        return None
    show(told(one, found))
    if found.wrong and not found.hazards:
        Br = one.stage.data["launch"][-1].get("Br", 0)
        show(plot.error_map(found.wrong.problem, found.wrong.inputs, found.wrong.output, Br=Br))
    # Without a value: a cell's last one is shown.
    return found if not display.live() else None


def not_written(one: Exercise) -> Shown:
    return note(f'{NOT_WRITTEN.summary}. lesson.hint("{one.name}") gives a hint.', f"{one.title}:")


def told(one: Exercise, found: Judgement) -> Shown:
    """A judgement, check by check."""
    points = f"{one.points if found.passed else 0} of {plural(one.points, 'point')}"
    lines = [line for finding in found.findings for line in lines_of(finding)]
    lines += [] if found.passed else [f'lesson.hint("{one.name}") gives a hint.']
    return message("\n".join(lines), f"{one.title}: {found.summary}. {points}.")


def lines_of(finding: Finding) -> list[str]:
    mark, label = "✓" if finding.passed else "✗", LABELS[finding.check]
    if finding.check == "hazards" and finding.passed:
        label = "no hazards"
    first, *others = finding.words or ("",)
    return [f"{mark} {label}: {first}" if first else f"{mark} {label}", *(f"    {text}" for text in others)]
