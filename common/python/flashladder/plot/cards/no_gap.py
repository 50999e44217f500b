"""The card's picture of stage no_gap: one consumer warpgroup where a query tile ends and the next begins."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from flashladder.plot.style import BLUE, GREY, ORANGE, PALE, SKY, YELLOW, lanes, new_figure, text_on

WORDS = (
    "Between two query tiles. Stage 21: the last PV runs alone, then the sums are reduced and O is stored, then the "
    "next query tile's first S runs alone. Stage 22: this S and the last PV run together, the sums are reduced during "
    "both, and O is stored after the next softmax. The producer loads V one tile after K"
)
_BEFORE = (
    (("S PV", 0, 2.4, BLUE), ("PV", 4.8, 1.2, BLUE), ("S", 9.0, 1.2, SKY)),
    (
        ("", 0, 2.4, PALE), ("softmax", 2.4, 2.4, BLUE), ("", 4.8, 1.2, PALE), ("sums", 6.0, 1.2, ORANGE),
        ("store", 7.2, 1.8, YELLOW), ("", 9.0, 1.2, PALE), ("softmax", 10.2, 2.4, SKY),
    ),
)  # fmt: skip
_AFTER = (
    (("S PV", 0, 2.4, BLUE), ("S", 4.8, 1.2, SKY), ("PV", 6.0, 1.2, BLUE), ("S PV", 11.4, 2.4, SKY)),
    (
        ("", 0, 2.4, PALE), ("softmax", 2.4, 2.4, BLUE), ("sums", 4.8, 1.2, ORANGE), ("", 6.0, 1.2, PALE),
        ("softmax", 7.2, 2.4, SKY), ("store", 9.6, 1.8, YELLOW), ("", 11.4, 2.4, PALE),
    ),
)  # fmt: skip
_LOADS = (("K1", BLUE), ("K0", BLUE), ("V1", BLUE), ("K1", SKY), ("V0", BLUE), ("K0", SKY), ("V1", SKY), ("V0", SKY))
_END = 13.8


def draw() -> Figure:
    figure = new_figure(5.2, 4.5, WORDS)
    before, after, loads = figure.subplots(3, 1, height_ratios=(2, 2, 1))
    for axes, title, rows in ((before, "stage 21", _BEFORE), (after, "stage 22", _AFTER)):
        lanes(axes, title, ("warps", "products"), -2.6, _END)
        for row, bars in zip((1, 0), rows, strict=True):
            for words, at, length, colour in bars:
                _bar(axes, at, at + length, row, colour, words)
    lanes(loads, "stage 22: order of the loads, two tiles each", ("producer",), -2.6, _END)
    width = _END / len(_LOADS)
    for place, (words, colour) in enumerate(_LOADS):
        _bar(loads, place * width, (place + 1) * width, 0, colour, words)
    figure.supxlabel("dark: one query tile, light: the next; not to scale", fontsize=9, color=GREY)
    return figure


def _bar(axes, left: float, right: float, row: float, colour: str, words: str) -> None:
    axes.add_patch(Rectangle((left, row + 0.1), right - left, 0.8, facecolor=colour, edgecolor="white", linewidth=1.5))
    if words:
        axes.text((left + right) / 2, row + 0.47, words, ha="center", va="center", fontsize=9, color=text_on(colour))
