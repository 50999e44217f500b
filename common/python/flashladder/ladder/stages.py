"""The registry of stages, read from stages/NN_name/stage.toml."""

import hashlib
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import STAGES
from flashladder.core.toml import tomllib


@dataclass(frozen=True)
class Stage:
    number: int
    name: str  # folder name, e.g. 02_online_softmax
    title: str
    technique: str
    min_compute: int  # 80 for compute capability 8.0
    previous: int | None
    folder: Path
    data: dict = field(repr=False, compare=False)  # all of stage.toml

    @property
    def kernel(self) -> Path:
        return self.folder / "kernel.cu"

    @property
    def is_program(self) -> bool:
        """True for stage 00: a program of the host (flashladder.measuring.host_streams) with no kernel."""
        return self.data.get("program", False)

    @property
    def source(self) -> Path:
        """The file that the lesson is about: kernel.cu, of stage 00 host_streams.cpp."""
        return self.folder / "host_streams.cpp" if self.is_program else self.kernel

    @property
    def id(self) -> str:
        return f"{self.number:02d}"

    def kernel_hash(self) -> str:
        """sha256 of kernel.cu: a recorded figure is stale when it no longer matches."""
        return hashlib.sha256(self.kernel.read_bytes()).hexdigest()


def _read(folder: Path) -> Stage:
    file = folder / "stage.toml"
    try:
        data = tomllib.loads(file.read_text())
        previous = data.get("previous")
        if isinstance(previous, str):  # a folder name or a number as text; empty: none
            previous = int(previous[:2]) if previous else None
        stage = Stage(
            number=int(data["number"]),
            name=folder.name,
            title=data["title"],
            technique=data["technique"],
            min_compute=int(data["min_compute"]),
            previous=previous,
            folder=folder,
            data=data,
        )
    except (tomllib.TOMLDecodeError, KeyError, ValueError) as error:
        raise FlashLadderError(f"{file} is not a valid stage description: {error!r}") from error
    if not folder.name.startswith(f"{stage.number:02d}_"):
        raise FlashLadderError(f"{file} says number = {stage.number}, but its folder is {folder.name}")
    return stage


@cache
def all_stages(folder: Path = STAGES) -> tuple[Stage, ...]:
    """Every stage with a kernel, in order."""
    found = [_read(file.parent) for file in sorted(folder.glob("*/stage.toml")) if (file.parent / "kernel.cu").exists()]
    return tuple(found)


def _number(which: int | str) -> int | None:
    match = re.fullmatch(r"(?:stage[-_])?(\d{1,2})(?:_\w+)?", str(which))
    return int(match[1]) if match else None


def get(which: int | str) -> Stage:
    """The stage of a number such as 2, "02", "stage-02" or "02_online_softmax"."""
    number = _number(which)
    for stage in all_stages():
        if stage.number == number:
            return stage
    if is_program(which):
        raise FlashLadderError(
            "Stage 00 is a program and no kernel: use `make stage-00 run` or flashladder.measuring.host_streams."
        )
    numbers = ", ".join(stage.id for stage in all_stages()) or "none yet"
    raise FlashLadderError(f"There is no stage '{which}'. Stages: {numbers}.")


def is_program(which: int | str) -> bool:
    """True for a name of stage 00."""
    return _number(which) == 0


@cache
def program() -> Stage:
    """Stage 00."""
    (file,) = STAGES.glob("00_*/stage.toml")
    return _read(file.parent)


def entry(which: int | str) -> Stage:
    """As get(), and stage 00, too."""
    return program() if is_program(which) else get(which)


def previous_of(stage: Stage) -> Stage | None:
    """The stage that this one changes: stage.toml's `previous`."""
    if stage.previous is None:
        return None
    return next((other for other in all_stages() if other.number == stage.previous), None)
