"""The registry of stages, read from stages/NN_name/stage.toml."""

import difflib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import STAGES
from flashladder.ladder import host_streams
from flashladder.ladder.backward import Backward
from flashladder.ladder.decode import Decode
from flashladder.ladder.kernels import Kernel, WithKernel
from flashladder.ladder.ring import Ring
from flashladder.ladder.stage import Stage, read

KINDS = {"backward": Backward, "decode": Decode, "ring": Ring}  # besides Kernel, by the word of stage.toml


@cache
def all_stages(folder: Path = STAGES) -> tuple[Kernel, ...]:
    """Every stage whose kernel computes attention, in order."""
    return tuple(stage for stage in _with_kernel(folder) if isinstance(stage, Kernel))


@cache
def backward_stages() -> tuple[Backward, ...]:
    """Every stage whose kernels compute gradients, in order. They are a part of their own: every_stage() and what goes
    through it, such as demo and the tables of the ladder, leave them out."""
    return tuple(stage for stage in _with_kernel(STAGES) if isinstance(stage, Backward))


@cache
def decode_stages() -> tuple[Decode, ...]:
    """Every decode stage, in order: another such part."""
    return tuple(stage for stage in _with_kernel(STAGES) if isinstance(stage, Decode))


@cache
def ring_stages() -> tuple[Ring, ...]:
    """Every stage for several GPUs, in order: another such part."""
    return tuple(stage for stage in _with_kernel(STAGES) if isinstance(stage, Ring))


def other_parts() -> tuple[WithKernel, ...]:
    """The stages of the parts besides the one that every_stage() is about."""
    return (*backward_stages(), *decode_stages(), *ring_stages())


@cache
def _with_kernel(folder: Path) -> tuple[WithKernel, ...]:
    found = sorted(folder.glob("*/stage.toml"))
    return tuple(read(file.parent, Kernel, others=KINDS) for file in found if (file.parent / "kernel.cu").exists())


def every_stage() -> tuple[Stage, ...]:
    """Stage 00, too, where it is there: what students get of this project holds the stages of their assignment."""
    first = (host_streams.stage(),) if list(STAGES.glob("00_*/stage.toml")) else ()
    return (*first, *all_stages())


def with_kernel() -> tuple[WithKernel, ...]:
    """Every stage that has kernels, of all parts."""
    return (*all_stages(), *other_parts())


def all_parts() -> tuple[Stage, ...]:
    """every_stage(), then the other parts': all that have a card, a picture and a page of the site."""
    return (*every_stage(), *other_parts())


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
    every = all_parts()
    for stage in every:
        if match and (stage.slug == match[2] if match[2] else stage.number == int(match[1])):
            return stage
    close = difflib.get_close_matches(str(which), [stage.slug for stage in every], 1)
    raise FlashLadderError(
        f"There is no stage '{which}'. {f'Is it {close[0]}? ' if close else ''}The stages are {_ranges(every)}; "
        "`make exercises` lists them by name."
    )


def _ranges(every: Sequence[Stage]) -> str:
    """00 to 25, 40 to 47, ..."""
    numbers = [stage.number for stage in every]
    firsts = [number for number in numbers if number - 1 not in numbers]
    lasts = [number for number in numbers if number + 1 not in numbers]
    return ", ".join(f"{first:02d} to {last:02d}" for first, last in zip(firsts, lasts, strict=True))


def get(which: Stage | int | str) -> Kernel:
    """As entry(), of the stages whose kernel computes attention."""
    stage = entry(which)
    if isinstance(stage, WithKernel) and not isinstance(stage, Kernel):
        raise FlashLadderError(
            f"Stage {stage.id} {stage.WHAT}, and this takes only stages that compute attention: use "
            f"`make stage-{stage.id} run`, test, bench or break, and in a notebook "
            f"flashladder.lessons.{stage.LESSON}({stage.number})."
        )
    if not isinstance(stage, Kernel):
        raise FlashLadderError(
            f"Stage {stage.id} is a program and no kernel: use `make stage-{stage.id} run`, flashladder.ladder."
            "host_streams, and in a notebook flashladder.lessons.HostLesson()."
        )
    return stage


def with_timeline(which: Stage | int | str) -> WithKernel:
    """As get(), and of the stages whose kernels compute gradients, too."""
    stage = entry(which)
    return stage if isinstance(stage, Backward) else get(stage)


def previous_of(stage: Stage) -> WithKernel | None:
    """The stage that this one changes: stage.toml's `previous`."""
    return (
        None
        if stage.previous is None
        else next((one for one in _with_kernel(STAGES) if one.slug == stage.previous), None)
    )
