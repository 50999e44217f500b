"""The card's picture of stage wgmma: how a descriptor walks through K and V, and which lane holds what of S."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from flashladder.plot.style import BLUE, GREY, INK, ORANGE, PALE, SKY, YELLOW, new_figure, plain, text_on

WORDS = (
    "K: a step of 16 columns adds 2 to the descriptor, and the stride to the next 8 rows is 64. V: a step of 16 rows "
    "adds 128, and the leading distance, to the next panel, is 8 Bc. S: lane 5 of a warp holds columns of rows 1 and 9"
)


def draw() -> Figure:
    figure = new_figure(5.2, 6.4, WORDS)
    top, bottom = figure.subfigures(2, 1, height_ratios=(3.1, 2.6))
    K, V = top.subplots(1, 2)
    _K(K)
    _V(V)
    top.supxlabel("a descriptor counts 16 bytes as 1", fontsize=9, color=GREY)
    _S(bottom.subplots())
    return figure


def _K(axes) -> None:
    """A panel of K: 64 columns, rows in groups of 8."""
    plain(axes)
    axes.set_title("K (and Q): k along a row", fontsize=10, loc="left", weight="bold")
    for group in range(3):
        for step in range(4):
            colour = ORANGE if step == 0 else PALE
            axes.add_patch(Rectangle((step, -group), 1, 0.92, facecolor=colour, edgecolor="white", linewidth=1.5))
            axes.text(step + 0.5, 0.46 - group, f"k{step}", ha="center", va="center", fontsize=9.5, color=INK)
    _arrow(axes, (0.5, 1.15), (1.5, 1.15))
    axes.text(1.7, 1.17, "step: + 2", ha="left", va="center", fontsize=9)
    _arrow(axes, (-0.25, 0.5), (-0.25, -0.5))
    axes.text(-0.45, 0.0, "stride:\n64", ha="right", va="center", fontsize=9)
    axes.text(2, -2.2, "8 rows × 64 columns each", ha="center", va="top", fontsize=9, color=GREY)
    axes.set_xlim(-2.0, 4.1)
    axes.set_ylim(-2.8, 1.6)


def _V(axes) -> None:
    """Two panels of V: rows in steps of 16."""
    plain(axes)
    axes.set_title("V: k down the rows", fontsize=10, loc="left", weight="bold")
    for panel in range(2):
        for step in range(3):
            colour = ORANGE if step == 0 else PALE
            place = (panel * 2.4, -step)
            axes.add_patch(Rectangle(place, 2.0, 0.92, facecolor=colour, edgecolor="white", linewidth=1.5))
            axes.text(place[0] + 1, 0.46 - step, f"k{step}", ha="center", va="center", fontsize=9.5, color=INK)
    _arrow(axes, (1.0, 1.15), (3.4, 1.15))
    axes.text(2.2, 1.5, "leading: 8 Bc", ha="center", va="center", fontsize=9)
    _arrow(axes, (-0.25, 0.5), (-0.25, -0.5))
    axes.text(-0.4, 0.0, "step:\n+ 128", ha="right", va="center", fontsize=9)
    axes.text(2.2, -2.2, "16 rows × 64 columns each", ha="center", va="top", fontsize=9, color=GREY)
    axes.set_xlim(-1.9, 4.5)
    axes.set_ylim(-2.8, 1.8)


def _S(axes) -> None:
    """8 columns of a warp's 16 rows: the lane in each pair of columns."""
    plain(axes)
    axes.set_title("S, 8 columns of a warp's 16 rows: the lanes", fontsize=10, loc="left", weight="bold")
    for place, row in enumerate((0, 1, 7, 8, 9, 15)):
        y = 5 - place - (0.35 if place > 1 else 0) - (0.0 if place < 3 else 0.25) - (0.35 if place == 5 else 0)
        axes.text(-0.15, y + 0.42, f"row {row}", ha="right", va="center", fontsize=9)
        for pair in range(4):
            lane = row % 8 * 4 + pair
            colour = BLUE if lane == 5 else (SKY if row < 8 else YELLOW)
            axes.add_patch(Rectangle((pair * 2, y), 2, 0.84, facecolor=colour, edgecolor="white", linewidth=1.5))
            axes.text(
                pair * 2 + 1, y + 0.42, f"lane {lane}", ha="center", va="center", fontsize=9.5, color=text_on(colour)
            )
        if place == 1:
            axes.text(8.2, y + 0.42, "S[4n], S[4n + 1]", ha="left", va="center", fontsize=9)
        if place == 4:
            axes.text(8.2, y + 0.42, "S[4n + 2], S[4n + 3]", ha="left", va="center", fontsize=9)
    axes.set_xlim(-1.4, 12.6)
    axes.set_ylim(-1.1, 6)


def _arrow(axes, start, end) -> None:
    look = {"arrowstyle": "-|>", "mutation_scale": 12, "color": BLUE, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
    axes.add_patch(FancyArrowPatch(start, end, **look))
