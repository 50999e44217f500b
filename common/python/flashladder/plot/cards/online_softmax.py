"""A block walks over the tiles of K and V; when the maximum of a row grows, what was summed before shrinks."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from flashladder.plot.softmax import steps
from flashladder.plot.style import BLUE, GREY, INK, ORANGE, PALE, SKY, new_figure, plain, text_on

WORDS = (
    "Above: a tile of Q meets one tile of K and V after another, and S exists only for the tile in work. Below: the "
    "sum of one row after each of four tiles; the older part is multiplied by a factor of at most 1 when the maximum "
    "grows"
)
# Scores of one row in four tiles of two: the maximum grows with the second and with the fourth tile.
SCORES = np.array([1.0, 0.6, 2.0, 1.4, 1.2, 1.8, 2.6, 1.5])
TILES = 4
NOW = 2  # the tile in work


def draw() -> Figure:
    figure = new_figure(5.2, 4.6, WORDS)
    top, bottom = figure.subplots(2, 1, height_ratios=(1.15, 1))
    _walk(top)
    _sums(bottom)
    return figure


def _box(axes, x: float, y: float, width: float, colour, text: str) -> None:
    axes.add_patch(Rectangle((x, y), width, 1, facecolor=colour, edgecolor="white", linewidth=1.5))
    axes.text(x + width / 2, y + 0.5, text, ha="center", va="center", fontsize=10, color=text_on(colour))


def _walk(axes) -> None:
    plain(axes)
    for j in range(TILES):
        _box(axes, 2.6 + 1.6 * j, 2.3, 1.5, ORANGE if j == NOW else PALE, f"K, V {j}")
    _box(axes, 0.2, 0.6, 1.7, BLUE, "Q tile")
    for j in range(TILES):
        if j == NOW:
            _box(axes, 2.6 + 1.6 * j, 0.6, 1.5, SKY, "S")
        else:
            axes.add_patch(
                Rectangle((2.6 + 1.6 * j, 0.6), 1.5, 1, fill=False, edgecolor=GREY, linestyle=":", linewidth=1.2)
            )
    axes.text(3.35, 1.1, "forgotten", ha="center", va="center", fontsize=9, color=GREY)
    axes.text(4.95, 1.1, "forgotten", ha="center", va="center", fontsize=9, color=GREY)
    axes.text(8.15, 1.1, "not yet", ha="center", va="center", fontsize=9, color=GREY)
    axes.add_patch(FancyArrowPatch((2.7, 3.75), (8.8, 3.75), arrowstyle="-|>", mutation_scale=12, color=INK))
    axes.text(5.7, 4.1, "one tile after the other", ha="center", fontsize=10, color=INK)
    axes.set_title("one block", fontsize=10, loc="left")
    axes.set_xlim(0, 9.2)
    axes.set_ylim(0.4, 4.5)


def _sums(axes) -> None:
    found = steps(SCORES, TILES)
    kept = [0.0] + [before.row_sum * step.rescale for before, step in zip(found, found[1:])]
    for j, (step, old) in enumerate(zip(found, kept)):
        axes.bar(j, old, 0.6, color=SKY, edgecolor="white")
        axes.bar(j, step.row_sum - old, 0.6, bottom=old, color=BLUE, hatch="..", edgecolor="white")
        axes.text(j, step.row_sum + 0.12, f"max {step.row_max:.1f}", ha="center", fontsize=9, color=INK)
        if j:
            factor = "× 1" if step.rescale == 1 else f"× {step.rescale:.2f}"
            axes.annotate("", (j - 0.33, old), (j - 0.67, found[j - 1].row_sum),
                          arrowprops={"arrowstyle": "->", "color": INK})  # fmt: skip
            axes.text(j - 0.5, max(old, found[j - 1].row_sum) + 0.55, factor, ha="center", fontsize=10, color=INK)
    axes.set_xticks(range(TILES), [f"tile {j}" for j in range(TILES)], fontsize=9)
    axes.set_yticks([])
    axes.tick_params(length=0)
    axes.set_ylim(0, max(step.row_sum for step in found) + 1.2)
    axes.set_title("row_sum of one row: older tiles (plain), this tile (dotted)", fontsize=10, loc="left")
    axes.spines[["top", "right", "left"]].set_visible(False)
