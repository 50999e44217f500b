"""The card's picture of stage no_scratch_pass: who rounds dQ, in a pass of its own or in the kernel that makes it."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from flashladder.plot.style import BLUE, GREY, ORANGE, SKY, YELLOW, bars, lanes, new_figure, plain, text_on

WORDS = (
    "Above: stage 44 has three kernels, and the last one reads the fp32 sums of dQ again. Stage 45 has two: idle "
    "warps round a head while the others are computed. Below: consumers add to the sums and a counter tells when a "
    "head is complete; a converter rounds its sums to dQ and leaves zeros"
)
_bar = bars(least=1.0)


def draw() -> Figure:
    figure = new_figure(5.2, 4.7, WORDS)
    top, bottom = figure.subfigures(2, 1, height_ratios=(2.3, 2.4))
    _kernels(top.subplots())
    _roles(bottom.subplots())
    return figure


def _kernels(axes) -> None:
    lanes(axes, "kernels over time", ("idle warps", "stage 45", "stage 44"), -3.0, 15.4)
    _bar(axes, 0, 2.4, 2, SKY, "D, zeros")
    _bar(axes, 2.4, 12, 2, BLUE, "five products, additions to dQ")
    _bar(axes, 12, 15.4, 2, ORANGE, "rounds dQ")
    _bar(axes, 0, 1.4, 1, SKY, "D")
    _bar(axes, 1.4, 11, 1, BLUE, "five products, additions to dQ")
    for head in range(4):
        _bar(axes, 3.4 + 2.1 * head, 5.3 + 2.1 * head, 0, ORANGE, f"head {head}")


def _roles(axes) -> None:
    plain(axes)
    axes.set_title("stage 45: from the sums to dQ", fontsize=10, loc="left", weight="bold")
    _box(axes, (0, 2.4), (2.9, 1.2), BLUE, "8 consumer\nwarps")
    _box(axes, (4.0, 2.4), (3.0, 1.2), YELLOW, "fp32 sums of a\nhead, in L2")
    _box(axes, (8.2, 2.4), (2.6, 1.2), SKY, "converter\nwarps")
    _box(axes, (8.2, 0), (2.6, 1.0), ORANGE, "dQ, 16 bits")
    _box(axes, (0, 0), (2.9, 1.0), BLUE, "telling thread")
    _box(axes, (4.0, 0), (3.0, 1.0), YELLOW, "units of the head")
    _arrow(axes, (2.95, 3.2), (3.95, 3.2), "+")
    _arrow(axes, (7.05, 3.3), (8.15, 3.3), "bulk")
    _arrow(axes, (8.15, 2.65), (7.05, 2.65), "0")
    _arrow(axes, (1.45, 2.35), (1.45, 1.05))
    _arrow(axes, (2.95, 0.5), (3.95, 0.5), "+ 1")
    _arrow(axes, (6.6, 1.05), (8.4, 2.35))
    axes.text(6.9, 1.75, "all?", ha="right", va="center", fontsize=9)
    _arrow(axes, (9.5, 2.35), (9.5, 1.05))
    axes.set_xlim(-0.1, 10.9)
    axes.set_ylim(-0.2, 3.9)


def _box(axes, place: tuple[float, float], size: tuple[float, float], colour: str, text: str) -> None:
    axes.add_patch(Rectangle(place, *size, facecolor=colour, edgecolor="white", linewidth=1.2))
    middle = (place[0] + size[0] / 2, place[1] + size[1] / 2)
    axes.text(*middle, text, ha="center", va="center", fontsize=9.5, color=text_on(colour))


def _arrow(axes, start, end, words: str = "") -> None:
    look = {"arrowstyle": "-|>", "mutation_scale": 12, "color": GREY, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
    axes.add_patch(FancyArrowPatch(start, end, **look))
    axes.text((start[0] + end[0]) / 2, start[1] + 0.2, words, ha="center", va="center", fontsize=9)
