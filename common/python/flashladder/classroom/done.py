"""What a reader has done, kept in work/progress.json: a pull that changes a stage, a removed build folder or a moved
notebook takes nothing of it away.

An entry is "swizzle/tile_offset": the stage by its name without its number, which may change, and what was right. Only
what was right is kept, with the day.
"""

import datetime
import json
import re
from pathlib import Path

from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import work_directory, write
from flashladder.ladder.stage import Stage

EXERCISE, PUZZLE, BLANK = "exercise", "puzzle", "blank page"


def file() -> Path:
    return work_directory() / "progress.json"


def key(stage: Stage, kind: str, name: str) -> str:
    """cp_async/blank page/tiles"""
    return "/".join([re.sub(r"^\d+_", "", stage.name), kind, name])


def everything() -> dict[str, str]:
    """Each entry and its day. FlashLadderError where the file is damaged: nothing is written over it."""
    try:
        found = json.loads(file().read_text())["done"]
        return {str(name): str(day) for name, day in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FlashLadderError(
            f"{file()} cannot be read ({error!r}). It holds what you have done so far: mend it, or move it away to "
            "begin anew."
        ) from error


def is_done(stage: Stage, kind: str, name: str) -> bool:
    return key(stage, kind, name) in everything()


def note(stage: Stage, kind: str, names: list[str]) -> None:
    """Adds what is right now; the day of what was right before stays."""
    before = everything()
    new = [key(stage, kind, name) for name in names if key(stage, kind, name) not in before]
    if not new:
        return
    today = datetime.date.today().isoformat()
    content = {"version": 1, "done": dict(sorted((before | dict.fromkeys(new, today)).items()))}
    write(file(), json.dumps(content, indent=1) + "\n")
