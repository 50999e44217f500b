"""The card's picture of stage lean_addressing: which registers ldmatrix fills, and which two mma wants."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from flashladder.plot.style import GREY, INK, ORANGE, SKY, new_figure, plain

WORDS = (
    "Four registers of a 16x16 piece of K: in stage 10 the two of an operand are r0 and r2, with one between them; in "
    "stage 11 they are neighbours"
)
_OLD = (("rows 0-7", "left", SKY), ("rows 8-15", "left", ORANGE), ("rows 0-7", "right", SKY),
        ("rows 8-15", "right", ORANGE))  # fmt: skip
_NEW = (_OLD[0], _OLD[2], _OLD[1], _OLD[3])


def draw() -> Figure:
    figure = new_figure(5.2, 3.7, WORDS)
    axes = figure.subplots()
    plain(axes)
    for lane in range(4):
        axes.text(lane + 0.5, -0.62, f"lanes {8 * lane}-{8 * lane + 7}", ha="center", fontsize=9, color=GREY)
    axes.text(-0.12, -0.62, "point at", ha="right", fontsize=9, color=GREY)
    _row(axes, 0, "stage 10", _OLD, "two pairs, each with a gap: moves")
    _row(axes, 2.6, "stage 11", _NEW, "two pairs of neighbours: no moves")
    axes.set_xlim(-1.15, 4.05)
    axes.set_ylim(4.75, -0.95)
    return figure


def _row(axes, top: float, title: str, matrices, told: str) -> None:
    axes.text(-0.12, top + 0.5, title, ha="right", va="center", fontsize=10, weight="bold", color=INK)
    for place, (rows, side, colour) in enumerate(matrices):
        axes.add_patch(Rectangle((place, top), 1, 1, facecolor=colour, edgecolor="white", linewidth=2))
        axes.text(place + 0.5, top + 0.3, rows, ha="center", va="center", fontsize=9, color=INK)
        axes.text(place + 0.5, top + 0.7, f"{side}: r{place}", ha="center", va="center", fontsize=9, color=INK)
    for colour, low in ((SKY, 1.05), (ORANGE, 1.05)):
        first, second = (place for place, one in enumerate(matrices) if one[2] == colour)
        axes.add_patch(
            FancyArrowPatch((first + 0.5, top + low), (second + 0.5, top + low), arrowstyle="<|-|>", color=INK,
                            connectionstyle=f"arc3,rad={0.22 if second - first > 1 else 0.35}", mutation_scale=9)
        )  # fmt: skip
    axes.text(2, top + 1.95, told, ha="center", va="center", fontsize=9.5, color=INK)
