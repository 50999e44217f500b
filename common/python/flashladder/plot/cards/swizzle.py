"""The card's picture of stage swizzle: the chunks of eight rows by bank group, without and with the XOR."""

from matplotlib.figure import Figure

from flashladder.plot.style import INK, PALE, RED, cell, in_order, new_figure
from flashladder.plot.swizzle import place_of

WORDS = (
    "Eight rows of a tile by bank group. On the left chunk 0 of every row lies in bank group 0, which takes 8 "
    "wavefronts; on the right, with the XOR, it lies in a different group in each row, which takes 1"
)
_SIDES = ((False, "stage 04: chunk c\nat place c", "1 group: 8 wavefronts"),
          (True, "stage 05: chunk c\nat place c XOR r % 8", "8 groups: 1 wavefront"))  # fmt: skip


def draw() -> Figure:
    figure = new_figure(5.2, 3.5, WORDS)
    for axes, (on, title, below) in zip(figure.subplots(1, 2, sharey=True), _SIDES, strict=True):
        for row in range(8):
            for chunk in range(8):
                wanted = chunk == 0
                colour = in_order(chunk, 8) if wanted else PALE
                place = (place_of(row, chunk, on), row)
                cell(axes, place, colour, str(chunk), mark=RED if wanted else None, width=2, size=9)
        axes.set_xlim(0, 8)
        axes.set_ylim(8, 0)
        axes.set_aspect("equal")
        axes.set_xticks([place + 0.5 for place in range(8)], [str(place) for place in range(8)], fontsize=9)
        axes.set_yticks([row + 0.5 for row in range(8)], [str(row) for row in range(8)], fontsize=9)
        axes.tick_params(length=0)
        axes.set_title(title, fontsize=9.5)
        axes.set_xlabel(f"bank group\n{below}", fontsize=9.5, color=INK)
    figure.axes[0].set_ylabel("row r of the tile", fontsize=9.5)
    return figure
