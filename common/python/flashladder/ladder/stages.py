"""The registry of stages, read from stages/NN_name/stage.toml."""

import difflib
import re
from functools import cache
from pathlib import Path

from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import STAGES
from flashladder.ladder import host_streams
from flashladder.ladder.kernels import Kernel
from flashladder.ladder.stage import Stage, read

__all__ = [
    "Kernel",
    "Stage",
    "all_stages",
    "core_path",
    "entry",
    "every_stage",
    "get",
    "main_line",
    "previous_of",
    "since",
]


@cache
def all_stages(folder: Path = STAGES) -> tuple[Kernel, ...]:
    """Every stage with a kernel, in order."""
    found = sorted(folder.glob("*/stage.toml"))
    return tuple(read(file.parent, Kernel) for file in found if (file.parent / "kernel.cu").exists())


def every_stage() -> tuple[Stage, ...]:
    """Stage 00, too, where it is there: what students get of this project holds the stages of their assignment."""
    first = (host_streams.stage(),) if list(STAGES.glob("00_*/stage.toml")) else ()
    return (*first, *all_stages())


def main_line() -> tuple[Stage, ...]:
    """The stages that build on one another, in order; without the branches."""
    return tuple(stage for stage in every_stage() if not stage.is_branch)


def core_path() -> tuple[tuple[Stage, int], ...]:
    """The stops for who has ten or eleven hours, each with the minutes of its lesson."""
    return tuple((stage, stage.minutes) for stage in every_stage() if stage.core)


def since(which: Stage | int | str) -> tuple[Kernel, ...]:
    """The stages with a kernel from this one on, in order."""
    first = entry(which)
    return tuple(stage for stage in all_stages() if stage.number >= first.number)


def entry(which: Stage | int | str) -> Stage:
    """The stage of a name such as "online_softmax", or of its number: 2, "02", "stage-02", "02_online_softmax".

    A stage itself is returned as it is.
    """
    if isinstance(which, Stage):
        return which
    match = re.fullmatch(r"(?:stage[-_])?(?:(\d{1,2})(?:_\w+)?|([a-z]\w*))", str(which).replace("-", "_"))
    for stage in every_stage():
        if match and (stage.slug == match[2] if match[2] else stage.number == int(match[1])):
            return stage
    known = ", ".join(stage.name for stage in every_stage())
    close = difflib.get_close_matches(str(which), [stage.slug for stage in every_stage()], 1)
    raise FlashLadderError(
        f"There is no stage '{which}'. " + (f"Is it {close[0]}? " if close else "") + f"Stages: {known}."
    )


def get(which: Stage | int | str) -> Kernel:
    """As entry(), of the stages with a kernel."""
    stage = entry(which)
    if not isinstance(stage, Kernel):
        raise FlashLadderError(
            f"Stage {stage.id} is a program and no kernel: use `make stage-{stage.id} run`, flashladder.ladder."
            "host_streams, and in a notebook flashladder.lessons.HostLesson()."
        )
    return stage


def previous_of(stage: Stage) -> Kernel | None:
    """The stage that this one changes: stage.toml's `previous`."""
    return None if stage.previous is None else next((one for one in all_stages() if one.slug == stage.previous), None)
