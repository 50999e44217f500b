"""The card's picture of stage shapes: what fits into the registers of a consumer's thread decides the shape."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from flashladder.plot.style import BLUE, GREY, INK, ORANGE, PALE, SKY, new_figure, plain, text_on

WORDS = (
    "Registers of a consumer's thread. d_head 128: two consumers hold O, S, P and even Q within 240. d_head 64: two "
    "consumers need 160 of 240, three consumers need 128 of 160. d_head 128 with three consumers would need 160 of 160"
)
# (name, registers that the thread has, registers of O, S, P, Q)
_SHAPES = (
    ("d = 128, two consumers,\nQ in registers", 240, (64, 64, 32, 32)),
    ("d = 64, two consumers,\nQ in registers", 240, (32, 64, 32, 16)),
    ("d = 64, three consumers", 160, (32, 64, 32, 0)),
    ("d = 128, three consumers:\nnot built", 160, (64, 64, 32, 0)),
)
_PARTS = (("O", BLUE), ("S", SKY), ("P", ORANGE), ("Q", GREY))


def draw() -> Figure:
    figure = new_figure(5.2, 3.6, WORDS)
    axes = figure.subplots()
    plain(axes)
    axes.set_xlim(-4, 246)
    axes.set_ylim(-0.55, len(_SHAPES) * 1.3)
    for place, (name, has, parts) in enumerate(reversed(_SHAPES)):
        row = place * 1.3
        axes.text(0, row + 0.66, name.replace("\n", " "), va="bottom", fontsize=9.5, color=INK)
        axes.add_patch(Rectangle((0, row), has, 0.6, facecolor=PALE, edgecolor=INK, linewidth=1))
        left = 0
        for (words, colour), registers in zip(_PARTS, parts, strict=True):
            if registers:
                axes.add_patch(Rectangle((left, row), registers, 0.6, facecolor=colour, edgecolor="white"))
                axes.text(left + registers / 2, row + 0.3, words, ha="center", va="center", fontsize=9.5,
                          color=text_on(colour))  # fmt: skip
                left += registers
        axes.text(has - 3, row + 0.3, str(has) if has > left else "", ha="right", va="center", fontsize=9, color=INK)
    axes.text(0, -0.5, "pale: left for addresses, sums and temporaries", fontsize=9, color=GREY)
    return figure
