"""One picture for each stage: the idea of its technique, drawn for the stage's card (stages/NN_name/README.md).

A function of every_gpu.py, ampere.py or hopper.py, by the GPU that the stage needs, of gradients.py for the backward
pass, of decode.py for decoding or of ring.py for several GPUs, has the name of its stage without the number, and draws
on a figure that is readable where it is 390 pixels wide. @picture says how high it is, and what it shows, for those who
cannot see it: the text that the card has in ![...].

`make results` writes docs/pictures/NAME.svg. A notebook shows the same picture with plot.card("swizzle").
"""

import difflib
import re
import xml.etree.ElementTree as xml
from pathlib import Path

from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.plot.cards import ampere, decode, every_gpu, gradients, hopper, ring  # noqa: F401 (they register)
from flashladder.plot.cards.drawing import PICTURES, Picture
from flashladder.plot.style import save

FOLDER = ROOT / "docs" / "pictures"
# Numbers that differ by less than this (in points) are the same picture, drawn on another machine.
NOISE = 0.5
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
# Matplotlib names clip paths, markers and hatches after a hash of their coordinates.
_HASH = re.compile(r"\b[pmhC][0-9a-f]{10}\b")


def names() -> list[str]:
    """The stages that have a picture, in the order of the alphabet."""
    return sorted(PICTURES)


def card(name: str) -> Figure:
    """The picture of a stage; name: of the stage without its number, such as "swizzle"."""
    return _picture(name).figure()


def words(name: str) -> str:
    """What the picture of a stage shows."""
    return _picture(name).words


def file_of(name: str) -> Path:
    return FOLDER / f"{name}.svg"


def write_all() -> list[Path]:
    """Draws every picture anew; returns the files that changed. A file that differs only by what machines round
    differently stays as it is."""
    changed = []
    for name in names():
        file = file_of(name)
        fresh = save(card(name), file.with_name(f"{name}.new.svg"))
        if file.exists() and _without_noise(file, fresh):
            fresh.unlink()
        else:
            fresh.replace(file)
            changed.append(file)
    return changed


def contents(file: Path) -> tuple[tuple[float, float], list[str]]:
    """(width, height in points) of an SVG, and its texts in the order in which they are drawn."""
    root = xml.parse(file).getroot()
    size = tuple(round(float(root.get(side).removesuffix("pt")), 1) for side in ("width", "height"))
    found = root.iter("{http://www.w3.org/2000/svg}text")
    return size, ["".join(text.itertext()) for text in found]


def _without_noise(left: Path, right: Path) -> bool:
    """Whether two SVGs are the same but for their numbers' last digits."""
    first, second = (_HASH.sub("id", file.read_text()) for file in (left, right))
    if _NUMBER.split(first) != _NUMBER.split(second):
        return False
    pairs = zip(_NUMBER.findall(first), _NUMBER.findall(second), strict=True)
    return all(abs(float(one) - float(other)) < NOISE for one, other in pairs)


def _picture(name: str) -> Picture:
    if name not in names():
        close = difflib.get_close_matches(name, names(), 1)
        raise FlashLadderError(
            f"There is no picture of a stage '{name}'. " + (f"Is it {close[0]}? " if close else "")
            + f"There are: {', '.join(names()) or 'none'}."
        )  # fmt: skip
    return PICTURES[name]
