"""Sᵀ = K Qᵀ: 16 keys by the 8 rows of Q that share them, with which row is of which head."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from flashladder.plot.style import GREY, INK, PALE, in_order, new_figure, plain, text_on

WORDS = (
    "A unit of 16 keys times eight columns, the rows of Q of heads 0 to 3 with two rows each, gives 16 times 8 scores: "
    "the keys fill the first operand, and all heads share one read of them"
)
KEYS, COLUMNS, HEADS = 16, 8, 4
SIDE = 0.3


def _grid(axes, left: float, top: float, shape: tuple[int, int], colour) -> None:
    """rows x columns of squares; colour: of a column's number."""
    rows, columns = shape
    for row in range(rows):
        for column in range(columns):
            place = (left + SIDE * column, top - SIDE * (row + 1))
            axes.add_patch(Rectangle(place, SIDE, SIDE, facecolor=colour(column), edgecolor="white", linewidth=0.5))


def draw() -> Figure:
    figure = new_figure(5.2, 3.4, WORDS)
    axes = figure.subplots()
    plain(axes)
    of_head = [in_order(column * HEADS // COLUMNS, HEADS) for column in range(COLUMNS)]
    _grid(axes, 0, 4.8, (KEYS, COLUMNS), lambda column: GREY)
    _grid(axes, 3.3, 4.8, (COLUMNS, COLUMNS), lambda column: of_head[column])
    _grid(axes, 6.6, 4.8, (KEYS, COLUMNS), lambda column: of_head[column])
    axes.text(2.85, 3.6, "×", fontsize=14, ha="center", va="center")
    axes.text(6.15, 3.6, "=", fontsize=14, ha="center", va="center")
    for left, name in ((0, "K"), (3.3, "Qᵀ"), (6.6, "Sᵀ")):
        axes.text(left + SIDE * COLUMNS / 2, 5.25, name, fontsize=11, ha="center", va="center", weight="bold")
    axes.text(1.2, -0.3, "16 keys, read once", fontsize=10, ha="center", va="center", color=INK)
    axes.text(7.8, -0.3, "16 keys by 8 rows", fontsize=10, ha="center", va="center", color=INK)
    for head in range(HEADS):
        colour, place = in_order(head, HEADS), (3.3 + 0.6 * head, 1.4)
        axes.add_patch(Rectangle(place, 0.6, 0.6, facecolor=colour, edgecolor=PALE))
        axes.text(place[0] + 0.3, 1.7, str(head), fontsize=10, ha="center", va="center", color=text_on(colour))
    axes.text(4.5, 0.95, "heads of Q", fontsize=10, ha="center", va="center", color=INK)
    axes.set_xlim(-0.2, 9.3)
    axes.set_ylim(-0.7, 5.6)
    return figure
