"""`make next`: the way through the ladder for one reader: what each stage asks for, what of it is done, what comes
next, and how long it takes.
"""

from dataclasses import dataclass

from flashladder.classroom import blank, done, progress
from flashladder.classroom.puzzles import puzzles
from flashladder.core.console import coloured, duration, plural, say, table
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
    """All stages of the ladder in their order, then those of each other part in which something is begun."""
    found = [Part(stage, tuple(_steps(stage))) for stage in stages.every_stage()]
    for _, several in _other_parts():
        parts = [Part(stage, tuple(_steps(stage))) for stage in several]
        found += parts if any(part.begun for part in parts) else []
    return found


def _other_parts() -> tuple[tuple[str, tuple[Stage, ...]], ...]:
    """What each is, and its stages."""
    return (
        ("computes gradients", stages.backward_stages()),
        ("computes decode", stages.decode_stages()),
        ("is for several GPUs", stages.ring_stages()),
    )


def current(way: list[Part]) -> Part | None:
    """Where the reader is: the last stage of which something is begun, if something of it is left, else the one after
    it; at the beginning the first stage that is no branch, and None at the end. A reader who skips exercises is not
    sent back to them."""
    begun = [number for number, part in enumerate(way) if part.begun]
    first = begun[-1] if begun else next(number for number, part in enumerate(way) if not part.stage.is_branch)
    return next((part for part in way[first:] if part.left), None)


def next_stop(way: list[Part]) -> Part | None:
    """As current(), of the core path: None where the current stage is one of its stops, or where no stop is left."""
    now = current(way)
    if now is None or now.stage.core:
        return None
    return next((part for part in way[way.index(now) :] if part.stage.core and part.left), None)


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


KINDS = ("puzzle", "exercise", "blank page")
MOST = 3  # steps that are named


def run() -> int:
    every = way()
    rows = [
        [part.stage.id, part.stage.title, part.stage.way, *(_share(part, kind) for kind in KINDS), _left(part)]
        for part in every
    ]
    columns = ("", "stage", "way", "puzzles", "exercises", "blank page", "left")
    table("What is done, of what there is", columns, rows, right=(3, 4, 5, 6))
    core = stages.core_path()
    say(f"\ncore: the stops of the core path, {len(core)} lessons in {duration(sum(minutes for _, minutes in core))}. "
        "branch: no later stage builds on it.")  # fmt: skip
    steps = [step for part in every for step in part.steps]
    finished = [step for step in steps if step.done]
    spent = f": about {duration(sum(step.minutes for step in finished))}" if finished else ""
    say(f"{len(finished)} of {plural(len(steps), 'step')} done{spent}.")
    part = current(every)
    if part is None:
        shown = [part.stage for part in every]
        say(coloured(f"That is all of {'this part' if shown[-1] in stages.other_parts() else 'the ladder'}.", "green"))
        for what, several in _other_parts():
            if several and several[0] not in shown:
                say(f"A part of its own {what}: it begins with {notebook(several[0])}.")
    else:
        _tell_next(part)
        _tell_stop(next_stop(every))
        _tell_skipped(every[: every.index(part)])
    if done.file().exists():
        say("Kept in work/progress.json, which no pull touches.")
    return 0


def _share(part: Part, kind: str) -> str:
    steps = [step for step in part.steps if step.kind == kind]
    return f"{sum(step.done for step in steps)} of {len(steps)}" if steps else ""


def _left(part: Part) -> str:
    return duration(part.minutes_left) if part.left or not part.begun else "done"


def _tell_next(part: Part) -> None:
    stage, lesson = part.stage, notebook(part.stage)
    say(f"\nNext: stage {stage.id}, {coloured(stage.title, 'bold')}, about {duration(part.minutes_left)}.")
    if not part.begun and lesson:
        say(f"  read and run {lesson}: about {duration(part.lesson_minutes)} (`make notebooks`)")
    for step in part.left[:MOST]:
        say(f"  {_words(step)}")
    if len(part.left) > MOST:
        say(f"  and {plural(len(part.left) - MOST, 'more step')}")


def _tell_stop(stop: Part | None) -> None:
    if stop:
        lesson = f"about {duration(stop.lesson_minutes)} for its lesson"
        say(f"It is no stop of the core path. The next one is stage {stop.stage.id}, {stop.stage.title}: {lesson}.")


def _words(step: Step) -> str:
    return f"{step.kind} {step.name}, {step.title}: about {duration(step.minutes)} (`{step.command}`)"


def _tell_skipped(before: list[Part]) -> None:
    left = [step for part in before if part.begun or not part.stage.is_branch for step in part.left]
    if left:
        first = f"{left[0].kind} {left[0].name} of stage {left[0].stage.id}"
        say(f"Skipped so far: {plural(len(left), 'step')}; the first one is {first}.")
