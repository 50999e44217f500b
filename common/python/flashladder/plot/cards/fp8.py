"""The card's picture of stage fp8: the order of 16 keys in P and in V transposed, and the way of V to it."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from flashladder.plot.style import GREEN, GREY, INK, ORANGE, PALE, SKY, YELLOW, cell, new_figure, plain

WORDS = (
    "16 keys in the order in which a row of S holds them, coloured by the lane that has them, and in the order in "
    "which P and V transposed hold them: each lane has four neighbouring places. Below, the way of V from TMA through "
    "the transposing warps to wgmma"
)
_LANES = (SKY, ORANGE, GREEN, YELLOW)
_STEPS = (
    ("TMA", "V: [keys][d]"),
    ("transposing\nwarps", "ldmatrix.trans,\nprmt, stmatrix"),
    ("wgmma", "Vᵀ: [d][keys]"),
)
_TOP, _BOTTOM = 0.9, 3.2


def draw() -> Figure:
    figure = new_figure(5.2, 3.9, WORDS)
    axes = figure.subplots()
    plain(axes)
    axes.text(0, _TOP - 0.35, "order of the keys in a row of S", fontsize=9.5, color=INK)
    axes.text(0, _BOTTOM + 1.75, "order of the keys in P and in V transposed", fontsize=9.5, color=INK)
    for place in range(16):
        lane, byte = divmod(place, 4)
        key = 2 * lane + byte % 2 + 8 * (byte // 2)
        cell(axes, (key, _TOP), _LANES[key % 8 // 2], str(key), size=9.5)
        cell(axes, (place, _BOTTOM), _LANES[lane], str(key), size=9.5)
        axes.plot([key + 0.5, place + 0.5], [_TOP + 1.02, _BOTTOM - 0.02], color=_LANES[lane], linewidth=1.6)
    for lane in range(4):
        axes.text(4 * lane + 2, _BOTTOM + 1.2, f"lane {lane}", ha="center", va="center", fontsize=9, color=GREY)
    for number, (who, what) in enumerate(_STEPS):
        left = 5.6 * number
        axes.add_patch(FancyBboxPatch((left, 6.1), 4.0, 2.3, boxstyle="round,pad=0.1", facecolor=PALE, edgecolor=GREY))
        axes.text(left + 2, 6.75, who, ha="center", va="center", fontsize=9.5, weight="bold", color=INK)
        axes.text(left + 2, 7.85, what, ha="center", va="center", fontsize=9, color=INK)
        if number:
            axes.add_patch(FancyArrowPatch((left - 1.45, 7.25), (left - 0.15, 7.25), arrowstyle="-|>",
                                           mutation_scale=13, color=INK))  # fmt: skip
    axes.set_xlim(-0.2, 16.2)
    axes.set_ylim(8.6, 0.2)
    return figure
