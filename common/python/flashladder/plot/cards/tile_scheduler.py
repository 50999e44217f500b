"""The card's picture of stage tile_scheduler: the producer in the next query tile, and causal query tiles in pairs."""

from functools import partial

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from flashladder.plot.style import BLUE, GREY, INK, ORANGE, PALE, SKY, YELLOW, lanes, new_figure, plain, text_on

WORDS = (
    "Stage 16: the next block starts when the last one has stored O, and its consumers wait for Q and K. Stage 17: the "
    "producer loads the next Q and K while the consumers finish. Below: a causal head of eight query tiles on four "
    "blocks. Dealt by length the blocks have 12, 10, 8 and 6 tiles of keys, in pairs 9 each"
)
_END = 15
_lanes = partial(lanes, names=("consumers", "producer"), left=-3.6, right=_END)
_WORK = (("S softmax PV", 3.6, BLUE), ("S softmax PV", 3.6, BLUE), ("O", 1.0, YELLOW))
_BLOCKS, _TILES = 4, 8


def draw() -> Figure:
    figure = new_figure(5.2, 5.3, WORDS)
    before, after, balance = figure.subplots(3, 1, height_ratios=(2, 2, 4))
    _lanes(before, "stage 16")
    for at in (0.0, 11.6):
        _bar(before, at, at + 2.2, 1, SKY if at else ORANGE, "Q K V")
        _bar(before, at, at + 1.6, 0, PALE, "waits" if not at else "")
        if not at:
            _bar(before, 4.0, 6.2, 1, ORANGE, "K V")
        _work(before, at + 1.6)
    _bar(before, 9.8, 11.6, 1, PALE, "starts")
    _bar(before, 9.8, 11.6, 0, PALE, "starts")
    _lanes(after, "stage 17 (light: of the next query tile)")
    for at, words in ((0.0, "Q K V"), (4.0, "K V"), (6.2, "Q K V"), (10.2, "K V"), (13.4, "Q K")):
        _bar(after, at, at + 2.2, 1, SKY if at > 6 else ORANGE, words)
    _bar(after, 0, 1.6, 0, PALE, "waits")
    _work(after, 1.6)
    _work(after, 9.8)
    _balance(balance)
    return figure


def _work(axes, at: float) -> None:
    for words, length, colour in _WORK:
        _bar(axes, at, at + length, 0, colour, words)
        at += length


def _balance(axes) -> None:
    plain(axes)
    axes.set_title("causal: tiles of keys that each block reads", fontsize=10, loc="left", weight="bold")
    by_length = [(_TILES - b, _TILES - _BLOCKS - b) for b in range(_BLOCKS)]
    in_pairs = [(_TILES - b, b + 1) for b in range(_BLOCKS)]
    for top, words, dealt in ((9.4, "by length", by_length), (4.2, "in pairs", in_pairs)):
        axes.text(-0.2, top - 2, words, ha="right", va="center", fontsize=9.5, color=INK)
        for block, (first, second) in enumerate(dealt):
            row = top - block - 1
            _bar(axes, 0, first, row, BLUE, str(first))
            _bar(axes, first, first + second, row, SKY, str(second))
            axes.text(first + second + 0.25, row + 0.47, f"= {first + second}", va="center", fontsize=9.5, color=GREY)
    axes.set_xlim(-3.6, _END)
    axes.set_ylim(0, 9.6)


def _bar(axes, left: float, right: float, row: float, colour: str, words: str) -> None:
    if left >= _END:
        return
    words, right = words if right <= _END else "", min(right, _END)
    axes.add_patch(Rectangle((left, row + 0.1), right - left, 0.8, facecolor=colour, edgecolor="white", linewidth=1.5))
    if right - left > 0.7:
        axes.text((left + right) / 2, row + 0.47, words, ha="center", va="center", fontsize=9, color=text_on(colour))
