"""The card's picture of stage waits_apart: a warpgroup's tile with one wait for all products, and a wait for each."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from flashladder.plot.style import BLUE, GREY, ORANGE, PALE, SKY, bars, lanes, new_figure

WORDS = (
    "One warpgroup's tile over time. Stage 43: P and dS after both S and dP, and the additions to dQ after all "
    "products. Stage 44: the exponentials of P beside dP, dS beside dV, the additions to dQ beside dK"
)
_END = 18
_bar = bars(least=0.8)
# (begin, end, lane: 0 the warps, 1 the tensor cores, colour, words)
BEFORE = (
    (0, 2, 1, BLUE, "S"),
    (2, 4, 1, BLUE, "dP"),
    (4, 7, 0, SKY, "P"),
    (7, 9, 0, SKY, "dS"),
    (9, 11, 1, BLUE, "dV"),
    (11, 13, 1, BLUE, "dQ"),
    (13, 15, 1, BLUE, "dK"),
    (15, 17, 0, ORANGE, "+ dQ"),
    (17, 18, 1, BLUE, "S"),
)
AFTER = (
    (0, 2, 1, BLUE, "S"),
    (2, 4, 1, BLUE, "dP"),
    (2, 5, 0, SKY, "P"),
    (5, 7, 1, BLUE, "dV"),
    (5, 7, 0, SKY, "dS"),
    (7, 9, 1, BLUE, "dQ"),
    (9, 11, 1, BLUE, "dK"),
    (9, 11, 0, ORANGE, "+ dQ"),
    (11, 13, 1, BLUE, "S"),
    (13, 15, 1, BLUE, "dP"),
    (13, 16, 0, SKY, "P"),
    (16, 18, 1, BLUE, "dV"),
    (16, 18, 0, SKY, "dS"),
)


def draw() -> Figure:
    figure = new_figure(5.2, 3.4, WORDS)
    panels = figure.subplots(2, 1)
    titles = ("stage 43: one wait for all that is under way", "stage 44: a wait for each product")
    for axes, title, parts in zip(panels, titles, (BEFORE, AFTER), strict=True):
        lanes(axes, title, ("warps", "tensor cores"), -4.6, _END)
        for row in range(2):
            axes.add_patch(Rectangle((0, row + 0.1), _END, 0.75, facecolor=PALE, edgecolor="none"))
        for begin, end, row, colour, words in parts:
            _bar(axes, begin, end, row, colour, words)
    figure.supxlabel("time →     order, not to scale; dQ is that of the tile before", fontsize=9, color=GREY)
    return figure
