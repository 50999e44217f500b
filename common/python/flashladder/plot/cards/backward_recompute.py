"""The card's picture of stage backward_recompute: a block's column of score tiles, and where its three sums lie."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from flashladder.plot.style import BLUE, GREY, INK, ORANGE, PALE, SKY, new_figure, plain, text_on

WORDS = (
    "The score tiles as a square: a row for each tile of queries, a column for each tile of keys. A block computes "
    "one column, tile by tile. Its dK and dV stay in registers until the end of the column. Each tile's part of dQ is "
    "added to sums in global memory, to which the blocks of all columns add"
)
TILES = 4
MINE = 1  # the column of the block that is drawn


def draw() -> Figure:
    figure = new_figure(5.2, 4.0, WORDS)
    axes = figure.subplots()
    plain(axes)
    for row in range(TILES):
        y = TILES - 1 - row
        axes.text(-0.15, y + 0.45, f"Q, dO {row}", ha="right", va="center", fontsize=9, color=INK)
        for column in range(TILES):
            colour = SKY if column == MINE else PALE
            axes.add_patch(Rectangle((column, y), 0.94, 0.9, facecolor=colour, edgecolor="white", linewidth=1.5))
        axes.text(MINE + 0.46, y + 0.45, "P, dS", ha="center", va="center", fontsize=9.5, color=text_on(SKY))
        _box(axes, (5.35, y), 1.25, ORANGE, f"dQ {row}")
        _arrow(axes, (MINE + 0.98, y + 0.45), (5.3, y + 0.45))
        axes.text(4.45, y + 0.62, "+", ha="center", va="center", fontsize=12, color=INK)
    for column in range(TILES):
        text = f"K, V {column}"
        axes.text(column + 0.47, TILES + 0.15, text, ha="center", va="center", fontsize=9, color=INK)
    _arrow(axes, (MINE + 0.47, -0.02), (MINE + 0.47, -0.48))
    _box(axes, (MINE - 0.5, -1.45), 1.94, BLUE, "dK 1, dV 1")
    axes.text(MINE + 1.6, -1.0, "in registers,\nstored once", ha="left", va="center", fontsize=9, color=INK)
    axes.text(5.97, -0.62, "fp32 sums in\nglobal memory:\nall blocks add", ha="center", va="center", fontsize=9)
    axes.text(
        MINE + 0.47, TILES + 0.65, "one block: all queries,\none tile of keys", ha="center", va="center", fontsize=9,
        color=GREY,
    )  # fmt: skip
    axes.set_xlim(-1.15, 6.9)
    axes.set_ylim(-1.6, TILES + 1.0)
    return figure


def _box(axes, place: tuple[float, float], width: float, colour: str, text: str) -> None:
    axes.add_patch(Rectangle(place, width, 0.9, facecolor=colour, edgecolor="white", linewidth=1.5))
    middle = (place[0] + width / 2, place[1] + 0.45)
    axes.text(*middle, text, ha="center", va="center", fontsize=10, color=text_on(colour))


def _arrow(axes, start, end) -> None:
    look = {"arrowstyle": "-|>", "mutation_scale": 12, "color": GREY, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
    axes.add_patch(FancyArrowPatch(start, end, **look))
