"""The way through the ladder for one reader: what each stage asks for, what of it is done, and how long it takes."""

from dataclasses import dataclass

from flashladder.classroom import blank, done, progress
from flashladder.classroom.puzzles import puzzles
from flashladder.core.paths import ROOT
from flashladder.ladder import stages
from flashladder.ladder.stage import Stage
from flashladder.ladder.stages import Kernel

MINUTES_A_POINT = 3  # of an exercise: what its points are given by


@dataclass(frozen=True)
class Step:
    stage: Stage
    kind: str  # "puzzle", "exercise" or "blank page"
    name: str
    title: str
    minutes: int
    done: bool
    begun: bool
    command: str  # that begins or goes on with it


@dataclass(frozen=True)
class Part:
    """A stage with its steps."""

    stage: Stage
    steps: tuple[Step, ...]

    @property
    def lesson_minutes(self) -> int:
        return self.stage.minutes

    @property
    def begun(self) -> bool:
        return any(one.done or one.begun for one in self.steps)

    @property
    def left(self) -> list[Step]:
        return [one for one in self.steps if not one.done]

    @property
    def minutes_left(self) -> int:
        lesson = 0 if self.begun else self.lesson_minutes
        return lesson + sum(one.minutes for one in self.left)


def way() -> list[Part]:
    """All stages in their order."""
    return [Part(stage, tuple(_steps(stage))) for stage in stages.every_stage()]


def current(way: list[Part]) -> Part | None:
    """Where the reader is: the last stage of which something is begun, if something of it is left, else the one after
    it; None at the end. Who skips exercises is not sent back to them."""
    begun = [number for number, part in enumerate(way) if part.begun]
    first = begun[-1] if begun else 0
    return next((part for part in way[first:] if part.left or not part.begun), None)


def next_stop(way: list[Part]) -> Part | None:
    """As current(), of the core path: None where the current stage is one of its stops, or where no stop is left."""
    now = current(way)
    if now is None or now.stage.core:
        return None
    return next((part for part in way[way.index(now) :] if part.stage.core and (part.left or not part.begun)), None)


def notebook(stage: Stage) -> str:
    """Relative to the project's folder; "" where there is none."""
    found = sorted((ROOT / "notebooks").glob(f"{stage.id}_*.ipynb"))
    return str(found[0].relative_to(ROOT)) if found else ""


def _steps(stage: Stage) -> list[Step]:
    found = []
    for one in puzzles(stage):
        verb = "check" if one.file.exists() else "start"
        command, right = f"make puzzle-{stage.id} {verb} NAME={one.name}", done.is_done(stage, done.PUZZLE, one.name)
        found.append(Step(stage, "puzzle", one.name, one.title, one.minutes, right, one.file.exists(), command))
    for state in progress.states(stage):
        one, verb = state.exercise, "check" if progress.file_of(state.exercise).exists() else "start"
        right, command = state.passed or progress.was_right(one), f"make exercise-{stage.id} {verb} NAME={one.name}"
        minutes = MINUTES_A_POINT * one.points
        found.append(Step(stage, "exercise", one.name, one.title, minutes, right, bool(state.place), command))
    if isinstance(stage, Kernel) and blank.has_page(stage):
        page = blank.page(stage)
        verb, begun = ("check", True) if page.file.exists() else ("new", False)
        for one in page.subgoals:
            right = any(done.is_done(stage, done.BLANK, name) for name in (one.name, blank.WHOLE))
            command = f"make {verb} STAGE={stage.id}"
            found.append(Step(stage, "blank page", one.name, one.title, one.minutes, right, begun, command))
    return found
