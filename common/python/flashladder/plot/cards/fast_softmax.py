"""The card's picture of stage fast_softmax: the instructions that one score takes, before and after."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from flashladder.plot.style import BLUE, GREY, INK, PALE, SKY, new_figure, plain

WORDS = (
    "What one score takes besides the maximum: in stage 09 eight instructions, in stage 10 a multiply-add, an ex2 and "
    "an addition"
)
_BEFORE = (
    ("scale", "multiply", False),
    ("maximum", "max", True),
    ("s − m", "add", False),
    ("· log₂e", "multiply", False),
    ("below 2^−126?", "compare", False),
    ("then halve", "multiply", False),
    ("2^x", "ex2", True),
    ("then square", "multiply", False),
    ("sum", "add", True),
)
_AFTER = {1: ("maximum", "max", True), 3: ("s · c − m · c", "multiply-add", True), 6: ("2^x", "ex2", True),
          8: ("sum", "add", True)}  # fmt: skip


def draw() -> Figure:
    figure = new_figure(5.2, 4.3, WORDS)
    axes = figure.subplots()
    plain(axes)
    for place, (what, name, stays) in enumerate(_BEFORE):
        _box(axes, 0, place, what, name, SKY if stays else PALE)
    for place, (what, name, _) in _AFTER.items():
        _box(axes, 1, place, what, name, BLUE if place == 3 else SKY)
    for bottom, top in ((0.45, 0.45), (2.45, 5.45), (7.45, 7.45)):
        axes.plot([1.06, 1.06], [bottom - 0.4, top + 0.4], color=GREY, linewidth=2)
    for column, title in enumerate(("stage 09", "stage 10")):
        axes.text(column * 1.12 + 0.46, -0.35, title, ha="center", fontsize=11, weight="bold", color=INK)
    axes.set_xlim(-0.02, 2.1)
    axes.set_ylim(9.05, -0.75)
    return figure


def _box(axes, column: int, place: int, what: str, name: str, colour: str) -> None:
    left, ink = column * 1.12, "white" if colour == BLUE else INK
    axes.add_patch(
        FancyBboxPatch((left, place + 0.06), 0.92, 0.78, boxstyle="round,pad=0,rounding_size=0.06", facecolor=colour,
                       edgecolor=GREY, linewidth=0.8)
    )  # fmt: skip
    axes.text(left + 0.04, place + 0.47, what, va="center", fontsize=9.5, color=ink)
    axes.text(left + 0.88, place + 0.47, name, va="center", ha="right", fontsize=9, color=ink, style="italic")
