"""The card's picture of stage tma_store: how O leaves, who waits for whom, and where its chunks lie."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from flashladder.plot.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PALE,
    RED,
    YELLOW,
    cell,
    in_order,
    new_figure,
    plain,
    text_on,
)

WORDS = (
    "A warp writes O to shared memory and starts the store, and TMA reads O while the warp computes the next query "
    "tile. Before it writes again, it waits until TMA has read. Below: the 16-byte chunks of eight rows in a panel, "
    "chunk c of row r at position c XOR r"
)
_END = 15
_WRITE = (("write", 1.9, ORANGE), ("", 0.5, RED))
_WARP = (("PV", 1.7, BLUE), *_WRITE, ("next query tile", 6.6, BLUE), ("", 0.5, RED), *_WRITE, ("", 1.4, BLUE))


def draw() -> Figure:
    figure = new_figure(5.2, 4.9, WORDS)
    time, chunks = figure.subplots(2, 1, height_ratios=(3.2, 5))
    _time(time)
    _chunks(chunks)
    return figure


def _time(axes) -> None:
    plain(axes)
    axes.set_title("one warp and TMA over time", fontsize=10, loc="left", weight="bold")
    at = 0.0
    for words, length, colour in _WARP:
        _bar(axes, at, at + length, 1, colour, words)
        at += length
    _bar(axes, 4.1, 7.0, 0, YELLOW, "reads O")
    _bar(axes, 13.6, _END, 0, YELLOW, "")
    for row, name in enumerate(("TMA", "warp")):
        axes.text(-0.2, row + 0.47, name, ha="right", va="center", fontsize=9.5, color=INK)
    for x, words in ((3.85, "fence, meet, start"), (10.95, "wait for read")):
        axes.annotate(words, (x, 1.9), (x, 2.35), ha="center", fontsize=9.5, color=RED,
                      arrowprops={"arrowstyle": "-", "color": RED})  # fmt: skip
    axes.set_xlim(-1.8, _END)
    axes.set_ylim(0, 2.8)


def _chunks(axes) -> None:
    plain(axes)
    axes.set_title("position in a row of 128 bytes (a panel of O)", fontsize=10, loc="left", weight="bold")
    for row in range(8):
        axes.text(-0.15, row + 0.52, f"row {row}", ha="right", va="center", fontsize=9.5, color=INK)
        for position in range(8):
            chunk = position ^ row
            colour = in_order(chunk, 8) if chunk == 0 else PALE
            cell(axes, (position, row), colour, str(chunk), size=9.5, width=2)
    axes.text(
        8.2,
        1,
        "stmatrix writes\nthe same chunk\nof 8 rows:\n8 different\nbank groups",
        fontsize=9.5,
        color=GREY,
        va="top",
    )
    axes.set_xlim(-1.3, 11.3)
    axes.set_ylim(8, 0)


def _bar(axes, left: float, right: float, row: float, colour: str, words: str) -> None:
    axes.add_patch(Rectangle((left, row + 0.1), right - left, 0.75, facecolor=colour, edgecolor="white", linewidth=1.2))
    axes.text((left + right) / 2, row + 0.47, words, ha="center", va="center", fontsize=9.5, color=text_on(colour))
