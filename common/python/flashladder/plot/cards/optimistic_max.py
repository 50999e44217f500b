"""The card's picture of stage optimistic_max: what precedes the exponentials, and the room that a bet has."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from flashladder.plot.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, RED, SKY, new_figure, plain, text_on

WORDS = (
    "Above: stage 20 takes a maximum and compares it before the exponentials. Stage 21 computes the exponentials at "
    "once and then tests the sum; a lost bet adds maximum, rescaling and the exponentials again. Below: in bf16 a "
    "row's maximum starts at 2^-32 and a lane's sum may reach 2^64"
)
_STEPS = (
    ("stage 20", (("maximum", 3.0, ORANGE), ("rescale?", 2.4, ORANGE), ("exponentials", 4.2, SKY))),
    ("21, won", (("exponentials", 4.2, SKY), ("test", 1.2, GREEN))),
    (
        "21, lost",
        (
            ("exponentials", 4.2, SKY),
            ("test", 1.2, RED),
            ("maximum", 2.8, ORANGE),
            ("O", 0.9, ORANGE),
            ("again", 4.2, SKY),
        ),
    ),
)  # fmt: skip


def draw() -> Figure:
    figure = new_figure(5.2, 4.4, WORDS)
    steps, room = figure.subplots(2, 1, height_ratios=(3, 2.4))
    plain(steps)
    steps.set_title("a warp's softmax of one tile", fontsize=10, loc="left", weight="bold")
    for row, (name, parts) in enumerate(reversed(_STEPS)):
        steps.text(-0.2, row + 0.47, name, ha="right", va="center", fontsize=9.5, color=INK)
        at = 0.0
        for words, length, colour in parts:
            steps.add_patch(
                Rectangle((at, row + 0.1), length, 0.75, facecolor=colour, edgecolor="white", linewidth=1.5)
            )
            at_middle = at + length / 2
            steps.text(at_middle, row + 0.47, words, ha="center", va="center", fontsize=9, color=text_on(colour))
            at += length
    steps.set_xlim(-2.6, 13.4)
    steps.set_ylim(0, 3)
    _room(room)
    return figure


def _room(axes) -> None:
    plain(axes)
    axes.set_title("P in bf16, as a power of two", fontsize=10, loc="left", weight="bold")
    for left, right, colour, words in (
        (-126, -32, PALE, "smaller weights"),
        (-32, 64, SKY, "scores may grow"),
        (64, 127, RED, "bet lost"),
    ):
        axes.add_patch(Rectangle((left, 0), right - left, 1, facecolor=colour, edgecolor="white", linewidth=1.5))
        axes.text((left + right) / 2, 0.47, words, ha="center", va="center", fontsize=9, color=text_on(colour))
    for power in (-126, -32, 64, 127):
        axes.text(power, -0.15, f"{power}".replace("-", "−"), ha="center", va="top", fontsize=9, color=GREY)
    axes.annotate(
        "the row's maximum,\nwhen it was taken", (-32, 1), (-32, 1.55), ha="center", va="bottom", fontsize=9,
        color=BLUE, arrowprops={"arrowstyle": "-", "color": BLUE},
    )  # fmt: skip
    axes.annotate(
        "a lane's sum\nis tested here", (64, 1), (64, 1.55), ha="center", va="bottom", fontsize=9, color=INK,
        arrowprops={"arrowstyle": "-", "color": INK},
    )  # fmt: skip
    axes.set_xlim(-140, 140)
    axes.set_ylim(-0.7, 2.9)
