"""The card's picture of stage overlap: one consumer's products and softmax, waited for one by one and overlapped."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from flashladder.plot.style import BLUE, GREY, PALE, SKY, bars, lanes, new_figure

WORDS = (
    "One consumer over time. Stage 19: PV, S and the softmax of a tile follow each other, and the consumer waits for "
    "each product. Stage 20: the next tile's S and this tile's PV are issued together, and the next softmax runs "
    "during PV"
)
_END = 17
_bar = bars(least=1.5)


def draw() -> Figure:
    figure = new_figure(5.2, 3.4, WORDS)
    before, after = figure.subplots(2, 1)
    _axes(before, "stage 19: one product after the other")
    _bar(before, 0, 2, 1, BLUE, "S0")
    at = 2.0
    for tile in range(3):
        _bar(before, at, at + 3, 0, SKY, f"softmax {tile}")
        _bar(before, at + 3, at + 5, 1, BLUE, f"PV{tile}")
        _bar(before, at + 5, at + 7, 1, BLUE, f"S{tile + 1}")
        at += 7
    _axes(after, "stage 20: two products in one turn")
    _bar(after, 0, 2, 1, BLUE, "S0")
    _bar(after, 2, 5, 0, SKY, "softmax 0")
    at = 5.0
    for tile in range(1, 4):
        _bar(after, at, at + 2, 1, BLUE, f"S{tile}")
        _bar(after, at + 2, at + 4, 1, BLUE, f"PV{tile - 1}")
        _bar(after, at + 2, at + 5, 0, SKY, f"softmax {tile}")
        at += 5
    figure.supxlabel("time →     order, not to scale", fontsize=9, color=GREY)
    return figure


def _axes(axes, title: str) -> None:
    lanes(axes, title, ("warps", "tensor cores"), -4.4, _END)
    for row in range(2):
        axes.add_patch(Rectangle((0, row + 0.1), _END, 0.75, facecolor=PALE, edgecolor="none"))
