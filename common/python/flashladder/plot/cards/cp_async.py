"""The card's picture of stage cp_async: which way 16 bytes take, and what the thread does meanwhile."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from flashladder.plot.style import BLUE, GREY, INK, ORANGE, PALE, RED, SKY, new_figure, plain, text_on

WORDS = (
    "Stage 05: 16 bytes go from global memory through registers to shared memory, and the thread waits in between. "
    "Stage 06: they go straight to shared memory while the thread goes on, until wait and barrier"
)
_BOXES = {"global\nmemory": 0.0, "registers": 3.6, "shared\nmemory": 7.2}
_WIDTH = 2.4
# What a thread does: (words, length, colour, hatch).
_THREAD = {
    "stage 05": (("load", 1.4, ORANGE, None), ("waits", 4.8, PALE, "//"), ("store", 1.4, ORANGE, None),
                 ("barrier", 2.0, RED, None)),
    "stage 06": (("ask", 1.4, ORANGE, None), ("free for other work", 4.8, SKY, None), ("wait", 1.4, PALE, "//"),
                 ("barrier", 2.0, RED, None)),
}  # fmt: skip


def draw() -> Figure:
    figure = new_figure(5.2, 4.3, WORDS)
    for axes, name in zip(figure.subplots(2, 1), _THREAD, strict=True):
        plain(axes)
        _way(axes, straight=name == "stage 06")
        _thread(axes, name)
        axes.set_xlim(-0.1, 9.7)
        axes.set_ylim(-1.75, 1.75)
        axes.set_title(name, fontsize=10, loc="left", weight="bold")
    return figure


def _way(axes, straight: bool) -> None:
    for words, left in _BOXES.items():
        idle = straight and words == "registers"
        axes.add_patch(Rectangle((left, 0.0), _WIDTH, 1.0, facecolor="white" if idle else PALE, edgecolor=INK,
                                 linestyle=":" if idle else "-", alpha=0.5 if idle else 1))  # fmt: skip
        colour = GREY if idle else INK
        axes.text(left + _WIDTH / 2, 0.5, words, ha="center", va="center", fontsize=9.5, color=colour)
    if straight:
        _arrow(axes, (1.2, 1.02), (8.4, 1.02), rad=-0.1)
        axes.text(4.8, 1.25, "cp.async", ha="center", va="center", fontsize=9.5, color=BLUE,
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip
    else:
        _arrow(axes, (_WIDTH, 0.5), (3.6, 0.5))
        _arrow(axes, (6.0, 0.5), (7.2, 0.5))


def _arrow(axes, start, end, rad: float = 0) -> None:
    axes.add_patch(FancyArrowPatch(start, end, connectionstyle=f"arc3,rad={rad}", arrowstyle="-|>", mutation_scale=14,
                                   color=BLUE, linewidth=1.8, shrinkA=0, shrinkB=0))  # fmt: skip


def _thread(axes, name: str) -> None:
    axes.text(0, -0.55, "the thread", ha="left", va="center", fontsize=9, color=GREY)
    left = 0.0
    for words, length, colour, hatch in _THREAD[name]:
        axes.add_patch(Rectangle((left, -1.6), length, 0.75, facecolor=colour, hatch=hatch, edgecolor="white"))
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if hatch else None
        axes.text(left + length / 2, -1.23, words, ha="center", va="center", fontsize=9,
                  color=INK if hatch else text_on(colour), bbox=box)  # fmt: skip
        left += length
