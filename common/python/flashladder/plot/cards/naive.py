"""Three kernels, and what each of them writes to global memory and reads from it."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from flashladder.plot.style import BLUE, GREY, INK, PALE, RED, new_figure, plain, text_on

WORDS = (
    "Three kernels above a bar that is global memory: scores writes S once, softmax reads it three times and writes P, "
    "output reads P once; S and P have N times N numbers, all else N times d"
)
KERNELS = (("scores", 0), ("softmax", 3.6), ("output", 7.2))
# (x, up: read from global memory, what, of N x N)
ARROWS = (
    (0.5, True, "Q, K", False),
    (1.9, False, "S", True),
    (3.9, True, "S", True),
    (4.5, True, "S", True),
    (5.1, True, "S", True),
    (5.8, False, "P", True),
    (7.5, True, "P", True),
    (8.2, True, "V", False),
    (9.3, False, "O", False),
)


def draw() -> Figure:
    figure = new_figure(5.2, 2.9, WORDS)
    axes = figure.subplots()
    plain(axes)
    for name, left in KERNELS:
        axes.add_patch(Rectangle((left, 3.2), 2.6, 1.1, facecolor=BLUE, edgecolor="white"))
        axes.text(left + 1.3, 3.75, name, ha="center", va="center", fontsize=11, color=text_on(BLUE), weight="bold")
    axes.add_patch(Rectangle((-0.2, 0), 10.4, 0.9, facecolor=PALE, edgecolor=GREY))
    axes.text(5, 0.45, "global memory", ha="center", va="center", fontsize=11, color=INK)
    for x, up, what, large in ARROWS:
        tail, head = ((x, 0.95), (x, 3.15)) if up else ((x, 3.15), (x, 0.95))
        axes.add_patch(
            FancyArrowPatch(
                tail,
                head,
                arrowstyle="-|>",
                mutation_scale=13,
                linewidth=3 if large else 1.3,
                color=RED if large else GREY,
                shrinkA=0,
                shrinkB=0,
            )  # fmt: skip
        )
        axes.text(x + 0.12, 2.05, what, fontsize=10, va="center", color=INK, weight="bold" if large else "normal")
    axes.plot([0.2, 0.9], [-0.65, -0.65], color=RED, linewidth=3)
    axes.text(1.05, -0.65, "N x N numbers", fontsize=10, va="center")
    axes.plot([5.2, 5.9], [-0.65, -0.65], color=GREY, linewidth=1.3)
    axes.text(6.05, -0.65, "N x d numbers", fontsize=10, va="center")
    axes.set_xlim(-0.3, 10.3)
    axes.set_ylim(-1.05, 4.4)
    return figure
