"""`make next`: what a reader has done, what comes next, and how long it takes."""

from flashladder.classroom import done, path
from flashladder.classroom.path import Part, Step
from flashladder.core.console import coloured, duration, plural, say, table
from flashladder.ladder import stages

KINDS = ("puzzle", "exercise", "blank page")
MOST = 3  # steps that are named


def run() -> int:
    way = path.way()
    rows = [
        [part.stage.id, part.stage.title, part.stage.way, *(_share(part, kind) for kind in KINDS), _left(part)]
        for part in way
    ]
    columns = ("", "stage", "way", "puzzles", "exercises", "blank page", "left")
    table("What is done, of what there is", columns, rows, right=(3, 4, 5, 6))
    core = stages.core_path()
    say(f"\ncore: the stops of the core path, {len(core)} lessons in {duration(sum(minutes for _, minutes in core))}. "
        "branch: no later stage builds on it.")  # fmt: skip
    steps = [step for part in way for step in part.steps]
    finished = [step for step in steps if step.done]
    spent = duration(sum(step.minutes for step in finished))
    say(f"{len(finished)} of {plural(len(steps), 'step')} done: about {spent}.")
    part = path.current(way)
    if part is None:
        say(coloured("That is all of the ladder.", "green"))
        for what, part in (("computes gradients", stages.backward_stages()), ("is of decode", stages.decode_stages())):
            for stage in part[:1]:
                say(f"A part of its own {what}: it begins with {path.notebook(stage)}.")
    else:
        _tell_next(part)
        _tell_stop(path.next_stop(way))
        _tell_skipped(way[: way.index(part)])
    if done.file().exists():
        say("Kept in work/progress.json, which no pull touches.")
    return 0


def _share(part: Part, kind: str) -> str:
    steps = [step for step in part.steps if step.kind == kind]
    return f"{sum(step.done for step in steps)} of {len(steps)}" if steps else ""


def _left(part: Part) -> str:
    return duration(part.minutes_left) if part.left or not part.begun else "done"


def _tell_next(part: Part) -> None:
    stage, notebook = part.stage, path.notebook(part.stage)
    say(f"\nNext: stage {stage.id}, {coloured(stage.title, 'bold')}, about {duration(part.minutes_left)}.")
    if not part.begun and notebook:
        say(f"  read and run {notebook}: about {duration(part.lesson_minutes)} (`make notebooks`)")
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
    left = [step for part in before for step in part.left]
    if left:
        first = f"{left[0].kind} {left[0].name} of stage {left[0].stage.id}"
        say(f"Skipped so far: {plural(len(left), 'step')}, first {first}.")
