"""The card's picture of stage fragment_tiles: what a thread holds during S = QKᵀ, beside what it can hold."""

from matplotlib.figure import Figure

from flashladder.plot.registers import MOST, budget
from flashladder.plot.style import BLUE, GREEN, INK, ORANGE, RED, SKY, new_figure, text_on

WORDS = (
    "Registers that a thread holds during S = QKᵀ at d = 128: with whole-block fragments 384, more than the 255 that "
    "it can have; with the fragments of one step 216"
)
_LOOKS = {"O": (BLUE, None), "S": (SKY, None), "Q fragments": (GREEN, "//"), "K fragments": (ORANGE, None)}


def draw() -> Figure:
    figure = new_figure(5.2, 2.9, WORDS)
    axes = figure.subplots()
    for y, step in enumerate((False, True)):
        left = 0
        for what, count in budget(128, step)["S = QKᵀ"].items():
            colour, hatch = _LOOKS[what]
            axes.barh(y, count, left=left, height=0.62, color=colour, hatch=hatch, edgecolor="white",
                      label=None if step else what)  # fmt: skip
            if count >= 16:
                box = {"facecolor": colour, "edgecolor": "none", "pad": 0.8} if hatch else None
                axes.text(left + count / 2, y, str(count), ha="center", va="center", fontsize=9,
                          color=text_on(colour), bbox=box)  # fmt: skip
            left += count
        axes.text(left + 5, y, str(left), va="center", fontsize=10, weight="bold", color=RED if left > MOST else INK)
    axes.axvline(MOST, color=RED, linestyle="--", linewidth=1.5)
    axes.text(MOST + 4, -0.5, f"limit: {MOST}", color=RED, fontsize=9, va="bottom")
    axes.set_yticks([0, 1], ["whole\nblock", "one\nstep"], fontsize=9.5)
    axes.set_ylim(1.5, -0.75)
    axes.set_xlim(0, 430)
    axes.set_xlabel("registers of a thread", fontsize=9.5)
    axes.tick_params(axis="x", labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(fontsize=9, loc="outside upper center", ncols=4, frameon=False, handlelength=1.2, columnspacing=1.0)
    return figure
