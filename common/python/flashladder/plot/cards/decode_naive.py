"""Four blocks, one for each head of Q, that read the same keys and values."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from flashladder.plot.style import BLUE, GREY, INK, ORANGE, PALE, RED, new_figure, plain, text_on

WORDS = (
    "Four heads of Q, each with a block of its own, above the K and V of the one head that they share: every block "
    "reads all of its keys and values, so they leave memory four times"
)
HEADS, KEYS = 4, 16


def draw() -> Figure:
    figure = new_figure(5.2, 2.7, WORDS)
    axes = figure.subplots()
    plain(axes)
    for head in range(HEADS):
        left = 2.6 * head
        axes.add_patch(Rectangle((left, 3), 2.2, 1, facecolor=BLUE, edgecolor="white"))
        axes.text(left + 1.1, 3.5, f"head {head}", ha="center", va="center", fontsize=10, color=text_on(BLUE))
        arrow = FancyArrowPatch((left + 1.1, 1.3), (left + 1.1, 2.95), arrowstyle="-|>", mutation_scale=13, color=RED,
                                linewidth=2.5, shrinkA=0, shrinkB=0)  # fmt: skip
        axes.add_patch(arrow)
    axes.text(11.2, 2.1, "all of\nK and V", fontsize=10, va="center", ha="center", color=RED)
    for key in range(KEYS):
        for row, colour in enumerate((PALE, ORANGE)):
            axes.add_patch(Rectangle((0.625 * key, 0.6 * row), 0.625, 0.6, facecolor=colour, edgecolor=GREY))
    axes.text(10.2, 0.9, "K", fontsize=10, va="center", color=INK)
    axes.text(10.2, 0.3, "V", fontsize=10, va="center", color=INK)
    axes.text(5, -0.5, "the keys of one sequence, in global memory", fontsize=10, ha="center", color=INK)
    axes.text(5, 4.35, "one block for each row of Q", fontsize=10, ha="center", color=INK)
    axes.set_xlim(-0.2, 12)
    axes.set_ylim(-0.9, 4.8)
    return figure
