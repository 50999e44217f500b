"""The card's picture of stage double_buffering: two buffers, of which one is read while the other fills."""

from matplotlib.figure import Figure

from flashladder.plot.style import BLUE, GREY, INK, ORANGE, RED, SKY, new_figure, plain, text_on

WORDS = (
    "Two buffers over three iterations: while the warps compute on the tile in one buffer, the next tile is copied "
    "into the other; one barrier stands between two iterations"
)
_TURNS = 3


def draw() -> Figure:
    figure = new_figure(5.2, 2.7, WORDS)
    axes = figure.subplots()
    plain(axes)
    for turn in range(_TURNS):
        left = 3.2 * turn + 0.1
        axes.text(left + 1.5, 2.35, f"iteration {turn}", ha="center", va="center", fontsize=9.5, color=INK)
        for buffer in range(2):
            computed = turn % 2 == buffer
            words = f"compute\ntile {turn}" if computed else f"fill with\ntile {turn + 1}"
            colour, low = (ORANGE, 1.1 * (1 - buffer)) if computed else (SKY, 1.1 * (1 - buffer))
            axes.broken_barh([(left, 3.0)], (low, 0.95), facecolor=colour, edgecolor=GREY if computed else BLUE,
                             linewidth=0.8)  # fmt: skip
            ink = text_on(colour)
            axes.text(left + 1.5, low + 0.47, words, ha="center", va="center", fontsize=9.5, color=ink)
    for turn in range(_TURNS + 1):
        axes.plot([3.2 * turn, 3.2 * turn], [-0.1, 2.1], color=RED, linewidth=2.2)
    axes.text(3.2, -0.35, "wait, then one barrier", ha="center", va="center", fontsize=9, color=RED)
    axes.set_xlim(-0.1, 3.2 * _TURNS + 0.1)
    axes.set_ylim(-0.6, 2.6)
    axes.set_yticks([1.57, 0.47], ["buffer 0", "buffer 1"], fontsize=9.5)
    axes.tick_params(length=0)
    return figure
