"""The card's picture of stage backward_wgmma: which transposed tile feeds which product, from registers or not."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from flashladder.plot.style import BLUE, GREY, INK, ORANGE, PALE, SKY, YELLOW, new_figure, plain, text_on

WORDS = (
    "A consumer warpgroup computes S and dP transposed, 64 keys by the tile's queries. P and dS, transposed, are "
    "operand A of dV and dK straight from registers. Only dQ takes dS from shared memory, where both warpgroups store "
    "it"
)


def draw() -> Figure:
    figure = new_figure(5.2, 4.3, WORDS)
    axes = figure.subplots()
    plain(axes)
    _box(axes, (0, 6.0), (2.5, 1.1), BLUE, "Sᵀ = K Qᵀ\n64 keys x Br")
    _box(axes, (0, 3.6), (2.5, 1.1), BLUE, "dPᵀ = V dOᵀ\n64 keys x Br")
    _box(axes, (3.7, 6.0), (2.0, 1.1), SKY, "Pᵀ\nregisters")
    _box(axes, (3.7, 3.6), (2.0, 1.1), SKY, "dSᵀ\nregisters")
    _box(axes, (7.9, 6.0), (2.5, 1.1), BLUE, "dV += Pᵀ dO\n64 keys x d")
    _box(axes, (7.9, 3.6), (2.5, 1.1), BLUE, "dK += dSᵀ Q\n64 keys x d")
    _box(axes, (3.1, 0.7), (3.2, 1.3), YELLOW, "dS of both\nwarpgroups\nshared memory")
    _box(axes, (7.9, 0.8), (2.5, 1.1), BLUE, "dQᵀ = Kᵀ dSᵀ\nall 128 keys")
    _box(axes, (0, 0.8), (2.0, 1.1), PALE, "the other\nwarpgroup")
    for y in (6.55, 4.15):
        _arrow(axes, (2.55, y), (3.65, y))
        _arrow(axes, (5.75, y), (7.85, y))
        axes.text(6.8, y + 0.3, "operand A", ha="center", va="center", fontsize=9, color=INK)
    _arrow(axes, (4.7, 5.95), (4.7, 4.75))
    _arrow(axes, (4.7, 3.55), (4.7, 2.05))
    axes.text(4.85, 2.8, "stmatrix, transposed", ha="left", va="center", fontsize=9, color=INK)
    _arrow(axes, (2.05, 1.35), (3.05, 1.35))
    _arrow(axes, (6.35, 1.35), (7.85, 1.35))
    axes.text(7.1, 1.65, "operand B", ha="center", va="center", fontsize=9, color=INK)
    _arrow(axes, (9.15, 0.75), (9.15, -0.05))
    _box(axes, (6.9, -1.05), (3.5, 0.95), ORANGE, "+ in global memory")
    axes.set_xlim(-0.1, 10.5)
    axes.set_ylim(-1.2, 7.3)
    return figure


def _box(axes, place: tuple[float, float], size: tuple[float, float], colour: str, text: str) -> None:
    edge = GREY if colour == PALE else "white"
    axes.add_patch(Rectangle(place, *size, facecolor=colour, edgecolor=edge, linewidth=1.2))
    middle = (place[0] + size[0] / 2, place[1] + size[1] / 2)
    axes.text(*middle, text, ha="center", va="center", fontsize=9.5, color=text_on(colour), linespacing=1.15)


def _arrow(axes, start, end) -> None:
    look = {"arrowstyle": "-|>", "mutation_scale": 12, "color": GREY, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
    axes.add_patch(FancyArrowPatch(start, end, **look))
