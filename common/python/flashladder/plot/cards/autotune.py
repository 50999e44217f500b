"""The card's picture of stage autotune: a configuration's line, and the stages that its parts come from."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from flashladder.plot.style import GREY, INK, ORANGE, PALE, SKY, new_figure, plain

WORDS = (
    "A configuration's line with the stages that its parts come from, and the tuner's way: rules refuse, the rest is "
    "built, verified and timed, and a choice for each GPU and length is kept"
)
_LINE = (
    (("BF16, 128", "type, d", PALE), ("128, 64, 4", "Br, Bc, warps", PALE), ("swizzled", "05", SKY)),
    (("async", "06", SKY), ("eager", "07", SKY), ("load_2_2_2", "08", SKY), ("kv_buffers_2", "09", SKY)),
    (("opt_softmax", "10", SKY), ("skip_rescale", "10", SKY), ("lean", "11", SKY), ("lean_ldmatrix", "11", SKY)),
)
_STEPS = (("rules", "refuse,\nwith a reason"), ("build", "and verify"), ("time", "beside\nthe peers"),
          ("choice", "by GPU\nand length"))  # fmt: skip


def draw() -> Figure:
    figure = new_figure(5.2, 3.9, WORDS)
    axes = figure.subplots()
    plain(axes)
    for line, chips in enumerate(_LINE):
        width = 10.4 / len(chips)
        for place, (name, whence, colour) in enumerate(chips):
            _box(axes, place * width, line * 1.25, width - 0.15, 1.05, colour)
            middle = place * width + width / 2 - 0.08
            axes.text(middle, line * 1.25 + 0.36, name, ha="center", va="center", fontsize=9.5, color=INK)
            axes.text(middle, line * 1.25 + 0.77, whence, ha="center", va="center", fontsize=9, color=INK)
    axes.text(5.15, 4.15, "one line, one instance of the kernel", ha="center", va="center", fontsize=9.5, color=INK)
    for place, (name, told) in enumerate(_STEPS):
        left = place * 2.6
        _box(axes, left, 4.75, 2.15, 1.5, ORANGE)
        axes.text(left + 1.08, 5.17, name, ha="center", va="center", fontsize=10, weight="bold")
        axes.text(left + 1.08, 5.75, told, ha="center", va="center", fontsize=9, linespacing=1.0)
        if place:
            axes.add_patch(
                FancyArrowPatch((left - 0.45, 5.5), (left, 5.5), arrowstyle="-|>", mutation_scale=11, color=INK)
            )
    axes.set_xlim(-0.1, 10.4)
    axes.set_ylim(6.4, -0.1)
    return figure


def _box(axes, left: float, top: float, width: float, height: float, colour: str) -> None:
    axes.add_patch(
        FancyBboxPatch((left, top), width, height, boxstyle="round,pad=0,rounding_size=0.12", facecolor=colour,
                       edgecolor=GREY, linewidth=0.8)
    )  # fmt: skip
