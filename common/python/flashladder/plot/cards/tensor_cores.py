"""Which lane holds which elements of mma.m16n8k16's matrices; a cell is two neighbouring elements."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from flashladder.plot.fragments import SHAPES, owners
from flashladder.plot.style import GREY, INK, RED, cell, in_order, new_figure, plain

WORDS = (
    "Matrices C, A and B of mma.m16n8k16 as cells of two neighbouring elements, each with the number of the lane that "
    "holds it: four neighbouring lanes share a row of C, and the left half of A is dealt out as C is"
)
SHOWN = (("C", "C: S or O"), ("A", "A: Q or P"), ("B", "B: K or V"))


def draw() -> Figure:
    figure = new_figure(5.2, 4.3, WORDS)
    widths = [SHAPES[which][1] // (1 if which == "B" else 2) for which, _ in SHOWN]
    for axes, (which, title) in zip(figure.subplots(1, 3, width_ratios=widths), SHOWN):
        plain(axes)
        lanes, _ = owners(which)
        if which == "B":  # two neighbours along the summed dimension, which are rows
            lanes = lanes[::2, :]
        else:
            lanes = lanes[:, ::2]
        rows, columns = lanes.shape
        height = 16 // rows
        for row in range(rows):
            for column in range(columns):
                lane = int(lanes[row, column])
                colour = in_order(lane // 4, 8)
                if height == 1:
                    cell(axes, (column, row), colour, str(lane), size=9)
                else:
                    _tall(axes, column, height * row, height, colour, lane)
        if which == "A":
            axes.add_patch(Rectangle((0, 0), 4, 16, fill=False, edgecolor=RED, linewidth=2.5, zorder=5))
        if which == "C":
            axes.add_patch(Rectangle((0, 0), 4, 16, fill=False, edgecolor=RED, linewidth=2.5, zorder=5))
        axes.set_xlim(-0.1, columns + 0.1)
        axes.set_ylim(16.1, -0.1)
        axes.set_title(title, fontsize=10, color=INK)
    figure.supxlabel("cell: two neighbouring elements; number: their lane", fontsize=9, color=GREY)
    return figure


def _tall(axes, column: int, row: int, height: int, colour, lane: int) -> None:
    axes.add_patch(Rectangle((column, row), 1, height, facecolor=colour, edgecolor="white", linewidth=0.7))
    axes.text(column + 0.5, row + height / 2, str(lane), ha="center", va="center", fontsize=9,
              color="white" if lane // 4 < 4 else "black")  # fmt: skip
