"""A whole kernel from a blank page: `make new STAGE=06` and `make check KERNEL=my.cu STAGE=06`."""

from pathlib import Path

from flashladder.classroom import blank, whole
from flashladder.classroom.blank import WHOLE, Page
from flashladder.classroom.progress import read, shown, write_new
from flashladder.commands import verbs
from flashladder.core.console import coloured, plural, say
from flashladder.core.errors import FlashLadderError


def new(which: str, file: str, give: str = "") -> int:
    """Writes a page that compiles and is not right yet. Never over a file."""
    page = blank.page(which)
    target, naming = Path(file) if file else page.file, f" KERNEL={file}" if file else ""
    _givable(page, give)
    target = write_new(target.resolve(), blank.skeleton(page, give), "KERNEL=another.cu writes another file.")
    place = shown(target)
    say(f"{coloured(place, 'bold')}: stage {page.stage.id}, {page.stage.title}, about {page.minutes} minutes.")
    say(f"The tasks stand at its top. `make check STAGE={page.stage.id}{naming}` judges it.")
    if not give and len(page.subgoals) > 1:
        names = ", ".join(one.name for one in page.subgoals[:-1])
        command = f"make new STAGE={page.stage.id} KERNEL=another.cu GIVE=NAME"
        say(f"`{command}` writes one that has the parts up to NAME: {names}.")
    return 0


def _givable(page: Page, give: str) -> None:
    if not give:
        return
    part = page.subgoal(give)
    if part.name == WHOLE:
        place = f"stages/{page.stage.name}/{page.stage.source.name}"
        raise FlashLadderError(f"With all of it given there is nothing left to write: {place} is a solution.")


def check(which: str, file: str, part: str = "") -> int:
    """Judges a whole kernel, part by part; 1 where something is left to do."""
    page = blank.page(which)
    target = (Path(file) if file else page.file).resolve()
    text = read(target, f"make new STAGE={page.stage.id}{f' KERNEL={file}' if file else ''}")
    say(coloured(f"{shown(target)}, judged as stage {page.stage.id}, {page.stage.title}", "bold"))
    found = []
    for one in whole.parts(page, text, f"{shown(target)}:{{}}".format, part):
        found.append(one)
        verbs.tell(f"{one.subgoal.name}, {one.subgoal.title}", one, one.begun)
    return _end(page, found, text, part)


def _end(page: Page, found: list[whole.Part], text: str, only: str) -> int:
    passed = whole.right(page, found)
    whole.note(page, found, text)
    if WHOLE in passed:
        say(coloured(f"\nAll of it is right: that is stage {page.stage.id}, by your own hand.", "green"))
        return 0
    if only:
        return 0 if only in passed else 1
    left = [one for one in page.subgoals if one.name not in passed]
    say(f"\n{len(passed)} of {plural(len(page.subgoals), 'part')} are right. Next: {left[0].name}, {left[0].title}.")
    return 1
