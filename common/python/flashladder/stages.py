"""The registry of stages, read from stages/NN_name/stage.toml."""

import hashlib
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from flashladder.errors import FlashLadderError
from flashladder.paths import STAGES

try:
    import tomllib
except ImportError:
    import tomli as tomllib


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


def get(which: int | str) -> Stage:
    """The stage of a number such as 2, "02", "stage-02" or "02_online_softmax"."""
    match = re.fullmatch(r"(?:stage[-_])?(\d{1,2})(?:_\w+)?", str(which))
    for stage in all_stages():
        if match and stage.number == int(match[1]):
            return stage
    if is_program(which):
        raise FlashLadderError(
            "Stage 00 is a program and no kernel: use `make stage-00 run` or flashladder.host_streams."
        )
    numbers = ", ".join(stage.id for stage in all_stages()) or "none yet"
    raise FlashLadderError(f"There is no stage '{which}'. Stages: {numbers}.")


def is_program(which: int | str) -> bool:
    """True for stage 00, which is a program of the host (flashladder.host_streams) and no kernel."""
    match = re.fullmatch(r"(?:stage[-_])?(\d{1,2})(?:_\w+)?", str(which))
    return bool(match) and int(match[1]) == 0


def program_entry() -> tuple[str, str, int]:
    """(name, technique, least compute capability) of stage 00."""
    (file,) = STAGES.glob("00_*/stage.toml")
    data = tomllib.loads(file.read_text())
    return file.parent.name, data["technique"], data["min_compute"]


def previous_of(stage: Stage) -> Stage | None:
    """The stage that this one changes: stage.toml's `previous`."""
    if stage.previous is None:
        return None
    return next((other for other in all_stages() if other.number == stage.previous), None)
