"""The card's picture of stage ping_pong: two consumers at one set of tensor cores, in step and taking turns."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from flashladder.plot.style import BLUE, GREY, INK, ORANGE, PALE, SKY, new_figure, plain, text_on

WORDS = (
    "Without turns both consumers multiply at the same time and then both compute their softmax, while the tensor "
    "cores are idle. With turns one consumer's softmax runs during the other one's PV and next S, and the tensor cores "
    "are almost always busy"
)
_END = 18
_BUSY = "tensor cores"


def draw() -> Figure:
    figure = new_figure(5.2, 4.2, WORDS)
    before, after = figure.subplots(2, 1)
    _axes(before, "stage 18: no turns")
    at = 0.0
    while at < _END:  # PV and S of both, each twice as long as alone, then both softmaxes
        for row in (2, 1):
            _bar(before, at, at + 4, row, BLUE, "PV, S")
            _bar(before, at + 4, at + 7, row, SKY, "softmax")
        _bar(before, at, at + 4, 0, ORANGE, "")
        _bar(before, at + 4, at + 7, 0, PALE, "idle")
        at += 7
    _axes(after, "stage 19: turns")
    at = 0.0
    while at < _END:  # a turn of two, a softmax of three, half a step for the waits
        for row, late in ((2, 0.0), (1, 2.5)):
            _bar(after, at + late, at + late + 2, row, BLUE, "PV, S")
            _bar(after, at + late + 2, at + late + 5, row, SKY, "softmax")
            _bar(after, at + late, at + late + 2, 0, ORANGE, "")
        at += 5
    _bar(after, 0, 2.5, 1, SKY, "")
    figure.supxlabel("time →     order, not to scale", fontsize=9, color=GREY)
    return figure


def _axes(axes, title: str) -> None:
    plain(axes)
    axes.set_title(title, fontsize=10, loc="left", weight="bold")
    for row, name in enumerate((_BUSY, "consumer 1", "consumer 0")):
        axes.text(-0.2, row + 0.47, name, ha="right", va="center", fontsize=9.5, color=INK)
    axes.set_xlim(-4.6, _END)
    axes.set_ylim(0, 3)


def _bar(axes, left: float, right: float, row: float, colour: str, words: str) -> None:
    right = min(right, _END)
    if left >= right:
        return
    axes.add_patch(Rectangle((left, row + 0.1), right - left, 0.75, facecolor=colour, edgecolor="white", linewidth=1.5))
    if right - left > 1.8:
        axes.text((left + right) / 2, row + 0.47, words, ha="center", va="center", fontsize=9.5, color=text_on(colour))
