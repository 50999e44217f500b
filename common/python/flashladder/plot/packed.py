"""A figure as a PNG in 256 colours: enough for a drawing, and a third of the bytes."""

import io

import numpy as np
from matplotlib.figure import Figure
from PIL import Image  # a dependency of Matplotlib


def png(figure: Figure, dpi: float) -> bytes:
    """The same picture gives the same bytes: no date and no version of Matplotlib inside."""
    drawn, packed = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    reduced(Image.open(drawn).convert("RGB")).save(packed, format="png", optimize=True)
    return packed.getvalue()


def reduced(picture: Image.Image, rare: int = 32) -> Image.Image:
    """The picture in 256 colours.

    The median cut gives colours to what covers much ground, and a thin red line would turn brown; so `rare` places of
    the palette are for the colours that it would miss by most.
    """
    # A colour is one number here: rows of three would be sorted ten times as slowly.
    packed = np.asarray(picture).reshape(-1, 3) @ np.array([1 << 16, 1 << 8, 1], np.int32)
    shades, index = np.unique(packed, return_inverse=True)
    cut = picture.quantize(256 - rare, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    palette = [np.array(colour) for colour in np.array(cut.getpalette()).reshape(-1, 3)[: 256 - rare]]
    wide = np.stack([shades >> 16, shades >> 8 & 255, shades & 255])
    nearest, distance = np.zeros(len(shades), np.uint8), np.full(len(shades), np.iinfo(np.int32).max, np.int32)
    for place in range(256):
        if place >= len(palette):
            palette.append(wide[:, int(distance.argmax())])
        to_this = sum((channel - int(value)) ** 2 for channel, value in zip(wide, palette[place], strict=True))
        closer = to_this < distance
        nearest[closer], distance[closer] = place, to_this[closer]
    drawn = Image.fromarray(nearest[index.reshape(-1)].reshape(picture.height, picture.width), mode="P")
    drawn.putpalette(np.array(palette, dtype=np.uint8).tobytes())
    return drawn
