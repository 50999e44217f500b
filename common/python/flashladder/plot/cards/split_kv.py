"""A sequence in four parts, the three results of each part, and their merging."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from flashladder.plot.style import BLUE, GREEN, GREY, INK, PALE, in_order, new_figure, plain, text_on

WORDS = (
    "The keys of a sequence are divided into four parts, a block for each; every block leaves its row_max, row_sum and "
    "O in the workspace, and a second kernel scales them to the largest row_max and adds them up"
)
PARTS, KEYS = 4, 4


def draw() -> Figure:
    figure = new_figure(5.2, 3.1, WORDS)
    axes = figure.subplots()
    plain(axes)
    for part in range(PARTS):
        left, colour = 2.6 * part, in_order(part, PARTS)
        for key in range(KEYS):
            axes.add_patch(Rectangle((left + 0.55 * key, 5), 0.55, 0.7, facecolor=colour, edgecolor="white"))
        axes.add_patch(Rectangle((left, 3.4), 2.2, 0.9, facecolor=BLUE, edgecolor="white"))
        axes.text(left + 1.1, 3.85, f"block {part}", ha="center", va="center", fontsize=10, color=text_on(BLUE))
        axes.add_patch(Rectangle((left, 1.7), 2.2, 1, facecolor=PALE, edgecolor=GREY))
        axes.text(left + 1.1, 2.2, "max, sum\nO", ha="center", va="center", fontsize=9, color=INK)
        for high, low in ((4.95, 4.35), (3.35, 2.75), (1.65, 1.05)):
            arrow = FancyArrowPatch((left + 1.1, high), (left + 1.1, low), arrowstyle="-|>", mutation_scale=11,
                                    color=GREY, linewidth=1.5, shrinkA=0, shrinkB=0)  # fmt: skip
            axes.add_patch(arrow)
    axes.add_patch(Rectangle((0, 0), 10, 1, facecolor=GREEN, edgecolor="white"))
    axes.text(5, 0.5, "merge: weights exp2(max - largest max)", ha="center", va="center", fontsize=10,
              color=text_on(GREEN))  # fmt: skip
    axes.text(5, 6, "the keys of one sequence", fontsize=10, ha="center", color=INK)
    axes.set_xlim(-0.2, 10.2)
    axes.set_ylim(-0.2, 6.5)
    return figure
