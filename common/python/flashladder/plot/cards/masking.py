"""The card's picture of stage masking: the tiles of S that are whole, on the edge, and never loaded."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Patch, Rectangle

from flashladder.plot.masking import kinds
from flashladder.plot.style import GREY, INK, ORANGE, PALE, RED, SKY, new_figure

WORDS = (
    "Tiles of S for 384 queries and 512 keys: whole ones on the left, masked ones along the diagonal, which ends at "
    "the bottom right corner, and ones that are never loaded on the right"
)
_LOOKS = {
    "whole": (SKY, None, "whole: no mask"),
    "masked": (ORANGE, "///", "on the edge: masked"),
    "skipped": (PALE, None, "empty: never loaded"),
}
_NQ, _NKV, _BR, _BC, _WARP_ROWS = 384, 512, 128, 64, 32


def draw() -> Figure:
    figure = new_figure(5.2, 4.5, WORDS)
    axes = figure.subplots()
    found = kinds(_NQ, _NKV)
    for warp in range(found.shape[0]):
        for tile in range(found.shape[1]):
            colour, hatch, _ = _LOOKS[found[warp, tile]]
            axes.add_patch(Rectangle((tile * _BC, warp * _WARP_ROWS), _BC, _WARP_ROWS, facecolor=colour, hatch=hatch,
                                     edgecolor="white", linewidth=0.6))  # fmt: skip
    for row in range(0, _NQ + 1, _BR):
        axes.plot([0, _NKV], [row, row], color=GREY, linewidth=1.3)
    axes.plot([_NKV - _NQ, _NKV], [0, _NQ], color=RED, linewidth=2)
    axes.add_patch(FancyArrowPatch((_NKV - 4, _NQ + 26), (8, _NQ + 26), arrowstyle="-|>", mutation_scale=13, color=INK,
                                   clip_on=False))  # fmt: skip
    axes.text(_NKV / 2, _NQ + 52, "K and V are visited from the last tile that is seen", ha="center", va="center",
              fontsize=9.5, color=INK)  # fmt: skip
    axes.set_xlim(0, _NKV)
    axes.set_ylim(_NQ + 66, 0)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([64, 192, 320], ["block 0", "block 1", "block 2"], fontsize=9.5)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_title("512 keys", fontsize=9.5, color=INK)
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=GREY, label=text) for colour, hatch, text in _LOOKS.values()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=9.5, frameon=False)
    return figure
