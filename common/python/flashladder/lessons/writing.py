"""What a reader writes in a notebook, in cells that begin with

%%write rescale           his C++ for that exercise of the lesson
%%puzzle no_conflicts     his lines of a small kernel
%%kernel 06               a whole kernel, judged part by part as `make check KERNEL=my.cu STAGE=06` does; `%%kernel 06
                          scores` judges one part; with nothing but a comment, it shows a page to begin with
"""

import html
import re

from flashladder import plot
from flashladder.classroom import blank, done, exercise, progress, puzzle_judge, puzzles, whole
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
        show(folded_solution(one))

    def _named(self, name: str) -> Exercise | exercise.Mend | puzzles.Puzzle:
        known = {one.name: one for one in puzzles.puzzles(self.stage)}
        return known[name] if name in known else exercise.get(self.stage, name)


def folded_solution(one: Exercise | exercise.Mend | puzzles.Puzzle) -> Shown:
    if isinstance(one, exercise.Mend):
        line, place = one.hints[-1], f"stages/{one.stage.name}/{one.stage.source.name}"
        return note(f"{line} The mended source is {place}.", f"{one.title}:")
    if isinstance(one, puzzles.Puzzle):
        body = code(one.solution, one.first_line, f"a solution of {one.name}")
    else:
        body = code(one.solution, one.first, f"stages/{one.stage.name}/{one.stage.source.name}")
    summary = f"{one.title}: a solution"
    page = f"<details><summary>{html.escape(summary)}</summary>{body.html}</details>"
    return Shown(page, f"{summary}\n{body.text}")


def current_stage(magic: str) -> Stage:
    """What the lesson that was begun last is about. magic: such as %%write, which needs to know."""
    if not _current:
        raise FlashLadderError(f"Run the cell with `lesson = Lesson(...)` first: {magic} is about its stage.")
    return _current[0].stage


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
    _show_wrong(found, one.stage)
    # Without a value: a cell's last one is shown.
    return found if not display.live() else None


def not_written(one: Exercise | puzzles.Puzzle) -> Shown:
    return note(f'{NOT_WRITTEN.summary}. lesson.hint("{one.name}") gives a hint.', f"{one.title}:")


def told(one: Exercise, found: Judgement) -> Shown:
    """A judgement, check by check."""
    points = f"{one.points if found.passed else 0} of {plural(one.points, 'point')}"
    return message(_lines(one, found), f"{one.title}: {found.summary}. {points}.")


def _lines(one: Exercise | puzzles.Puzzle, found: Judgement) -> str:
    lines = [line for finding in found.findings for line in lines_of(finding)]
    return "\n".join([*lines, *([] if found.passed else [f'lesson.hint("{one.name}") gives a hint.'])])


def _show_wrong(found: Judgement, stage: Stage) -> None:
    """The map of the errors, where there are wrong numbers and no hazard that explains them."""
    if found.wrong and not found.hazards:
        Br = stage.data["launch"][-1].get("Br", 0)
        show(plot.error_map(found.wrong.problem, found.wrong.inputs, found.wrong.output, Br=Br))


def lines_of(finding: Finding) -> list[str]:
    mark, label = "✓" if finding.passed else "✗", LABELS[finding.check]
    if finding.check == "hazards" and finding.passed:
        label = "no hazards"
    first, *others = finding.words or ("",)
    return [f"{mark} {label}: {first}" if first else f"{mark} {label}", *(f"    {text}" for text in others)]


# ---- puzzles ----


def puzzle(name: str, text: str) -> Judgement | None:
    """What %%puzzle does with the rest of the cell. Nothing that is wrong with an answer ends the run of a notebook."""
    name = name.strip()
    try:
        one = puzzles.get(current_stage("%%puzzle"), name)
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
    show(message(_lines(one, found), f"{one.title}: {found.summary}."))
    return found if not display.live() else None  # without a value: a cell's last one is shown


# ---- whole kernels ----

_COMMENT = re.compile(r"//.*?$|/\*.*?\*/", re.M | re.S)


def kernel(words: str, text: str) -> list[whole.Part] | None:
    """What %%kernel does with the rest of the cell. Nothing that is wrong with a kernel ends the run of a notebook."""
    which, _, part = words.strip().partition(" ")
    try:
        if not which:
            raise FlashLadderError("Of which stage? `%%kernel 06` judges the cell as a kernel of stage 06.")
        page = blank.page(which)
        if not _COMMENT.sub("", text).strip():
            show(
                message(
                    "Copy this page into the cell, below its first line, and go on from there.", f"%%kernel {which}"
                )
            )
            show(code(blank.skeleton(page), 1, "a blank page"))
            return None
        found = []
        with step(f"Building and running your kernel of stage {page.stage.id}", f"Judged as stage {page.stage.id}."):
            # Line 1 of the cell is %%kernel itself.
            for one in whole.parts(page, text, lambda line: f"line {line + 1} of the cell", part.strip()):
                found.append(one)
        whole.note(page, found, text)
    except FlashLadderError as error:
        show(message(str(error), f"%%kernel {words.strip()}"))
        return None
    for one in found:
        show(message("\n".join(_of_part(one)) or one.summary, f"{one.subgoal.title}: {one.summary}."))
    if found[-1].judgement:
        _show_wrong(found[-1].judgement, page.stage)
    return found if not display.live() else None  # without a value: a cell's last one is shown


def _of_part(one: whole.Part) -> list[str]:
    if one.judgement:
        return [line for finding in one.judgement.findings for line in lines_of(finding)]
    return list(one.words)


def register() -> None:
    """Gives a notebook's kernel the cell magics."""
    if display.live():
        for function in (write, puzzle, kernel):
            display.get_ipython().register_magic_function(function, "cell", function.__name__)
