"""What one load instruction of a warp brings: 2 bytes a lane, and 16 bytes a lane."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from flashladder.plot.style import GREY, INK, PALE, in_order, new_figure, plain, text_on

WORDS = (
    "Sixteen sectors of 32 bytes in a row, twice: a load of 2 bytes a lane fills the first two, with sixteen lanes "
    "each; a load of 16 bytes a lane fills all sixteen, with two lanes each"
)
SECTORS, SECTOR_BYTES, LANES = 16, 32, 32


def _row(axes, bytes_a_lane: int, title: str) -> None:
    plain(axes)
    for sector in range(SECTORS):
        axes.add_patch(Rectangle((sector, 0), 1, 1, facecolor=PALE, edgecolor=GREY, linewidth=0.8))
    width = bytes_a_lane / SECTOR_BYTES
    for lane in range(LANES):
        colour = in_order(lane % 4, 5)
        axes.add_patch(Rectangle((lane * width, 0.08), width, 0.84, facecolor=colour, edgecolor="white", linewidth=0.4))
        if bytes_a_lane > 2 and lane % 2 == 0:
            axes.text((lane + 0.5) * width, 0.5, str(lane), ha="center", va="center", fontsize=9, color=text_on(colour))
    if bytes_a_lane == 2:
        axes.text(
            2.15, 0.5, "lanes 0 to 31; the other 14 sectors are not asked for", va="center", fontsize=9, color=INK
        )
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlim(-0.05, SECTORS + 0.05)
    axes.set_ylim(-0.05, 1.05)


def draw() -> Figure:
    figure = new_figure(5.2, 2.3, WORDS)
    above, below = figure.subplots(2, 1)
    _row(above, 2, "stage 02: 2 bytes a lane, 64 bytes an instruction")
    _row(below, 16, "stage 03: 16 bytes a lane, 512 bytes an instruction")
    figure.supxlabel("sectors of 32 bytes (numbers: every second lane)", fontsize=9, color=GREY)
    return figure
