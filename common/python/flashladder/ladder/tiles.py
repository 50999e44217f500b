"""A stage's kernel with another tile than the one it ships with: the constants Br and Bc of its source, and with them
its launch. stage.toml says which values its kernel is right with:

tiles = { Br = [64, 128], Bc = [32, 64, 128] }  # and threads = "2 * Br", where the tile decides them
"""

import re
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path

from flashladder.core.errors import FlashLadderError
from flashladder.core.expression import evaluate
from flashladder.core.paths import place
from flashladder.ladder.kernels import Kernel

NAMES = ("Br", "Bc")  # as the kernels call them
_SHORT = re.compile(r"(\d+)x(\d+)")


@dataclass(frozen=True)
class Retiled(Kernel):
    """A stage whose kernel.cu is a copy with other constants, below the build folder. All else is the stage's."""

    changed: Path = field(kw_only=True)

    @property
    def kernel(self) -> Path:
        return self.changed


def read(given: str | dict) -> dict[str, int]:
    """What an assignment says of its tile: "64x32", or { Bc = 32 } where the rest stays. FlashLadderError says what is
    wrong with it, whichever stage it is for."""
    if isinstance(given, str):
        short = _SHORT.fullmatch(given)
        given = dict(zip(NAMES, map(int, short.groups()))) if short else {}
    if not isinstance(given, dict) or not given:
        raise FlashLadderError('tile is "64x32" (Br x Bc), or { Br = 64, Bc = 32 }, of which one may be left out')
    for name, value in given.items():
        if name not in NAMES:
            raise FlashLadderError(f"tile has {' and '.join(NAMES)}, not {name}")
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise FlashLadderError(f"tile: {name} is a whole number of rows, not {value!r}")
    return given


def tile_of(stage: Kernel) -> dict[str, int]:
    launch = stage.data["launch"][-1]
    return {name: launch[name] for name in NAMES if name in launch}


def retiled(stage: Kernel, tile: dict[str, int]) -> Kernel:
    """The stage with this tile; the stage itself where that is its own. FlashLadderError says in words why its kernel
    takes no other tile, or which it takes."""
    own = tile_of(stage)
    wanted = own | tile
    if wanted == own and own:
        return stage
    fixed = _why_fixed(stage)
    if fixed:
        raise FlashLadderError(f"stage {stage.id} takes no other tile: {fixed}")
    known = stage.data["tiles"]
    for name, value in tile.items():
        if value != own[name] and value not in known.get(name, ()):
            right = ", ".join(map(str, known.get(name, [own[name]])))
            raise FlashLadderError(f"stage {stage.id} does not take {name} = {value}: its kernel is right with {right}")
    return _made(stage, tuple(wanted.items()))


def _why_fixed(stage: Kernel) -> str:
    launch = stage.data["launch"][-1]
    if not tile_of(stage):
        return "its kernels have none"
    if "configuration" in launch:
        return "its kernel is built as a table of instances, each with a tile of its own (instances.h)"
    if any(name.startswith("d_head_") for name in launch):
        return "its tile goes with the head dim"
    return "" if "tiles" in stage.data else "its warpgroups, with their registers and products, are written for its own"


@cache
def _made(stage: Kernel, tile: tuple[tuple[str, int], ...]) -> Retiled:
    *others, last = stage.data["launch"]
    launch = last | dict(tile)
    if "threads" in stage.data["tiles"]:
        launch["threads"] = evaluate(stage.data["tiles"]["threads"], dict(tile))
    text = source(stage, dict(tile))
    name = f"{stage.name}-{'x'.join(str(value) for _, value in tile)}"
    changed = place("tiles", name, stage.kernel.name, text)
    same = {one.name: getattr(stage, one.name) for one in fields(stage)}
    return Retiled(**same | {"data": stage.data | {"launch": [*others, launch]}}, changed=changed)


def source(stage: Kernel, tile: dict[str, int]) -> str:
    """The stage's kernel with other constants. Its comments speak of rows by number: the first line says of which."""
    text = stage.kernel.read_text()
    for name, value in tile.items():
        constant = re.compile(rf"^(constexpr int {name} = )\d+;", re.M)
        text, count = constant.subn(rf"\g<1>{value};", text)
        if count != 1:
            raise FlashLadderError(f"{stage.kernel} has {count} lines `constexpr int {name} = ...;`, and not one.")
    here, lesson = (", ".join(f"{name} = {one[name]}" for name in NAMES) for one in (tile, tile_of(stage)))
    return f"// The tile is {here}. What comments say of rows is of the lesson's tile, {lesson}.\n{text}"
