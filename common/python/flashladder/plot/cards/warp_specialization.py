"""The card's picture of stage warp_specialization: which warps load and which compute, before and after."""

from matplotlib.figure import Figure

from flashladder.plot.style import BLUE, GREY, ORANGE, PALE, SKY, bars, lanes, new_figure

WORDS = (
    "Stage 15: a warpgroup's own thread waits for a buffer and loads the next tile between its products. Stage 16: a "
    "producer loads K and V ahead, and two consumer warpgroups only multiply and compute the softmax"
)
_END = 14
_bar = bars(least=0.7)
_ITERATION = (("S", 1.5, BLUE), ("softmax", 3.0, SKY), ("PV", 1.5, BLUE))


def draw() -> Figure:
    figure = new_figure(5.2, 4.2, WORDS)
    before, after = figure.subplots(2, 1, height_ratios=(2, 3))
    lanes(before, "stage 15", ("warpgroup 1", "warpgroup 0"), -4.2, _END)
    _consumer(before, 1, 0, loads=True)
    _consumer(before, 0, 0.8, loads=False)
    lanes(after, "stage 16", ("consumer 1", "consumer 0", "producer"), -4.2, _END)
    at = 0.0
    for words in ("K", "V", "K", "V", "K"):
        _bar(after, at, at + 0.8, 2, ORANGE, words)
        at += 0.8
    for left, words in ((7.4, "V"), (8.9, "K"), (13.4, "V")):
        _bar(after, at, left, 2, PALE, "waits" if left - at > 1.6 else "")
        _bar(after, left, left + 0.8, 2, ORANGE, words)
        at = left + 0.8
    _consumer(after, 1, 0.8, loads=False)
    _consumer(after, 0, 1.4, loads=False)
    figure.supxlabel("time →     order, not to scale", fontsize=9, color=GREY)
    return figure


def _consumer(axes, row: int, at: float, loads: bool) -> None:
    while at < _END:
        if loads:
            _bar(axes, at, at + 1.4, row, ORANGE, "load")
            at += 1.4
        for words, length, colour in _ITERATION:
            _bar(axes, at, at + length, row, colour, words)
            at += length
        if not loads and row == 0 and axes.get_title("left") == "stage 15":
            _bar(axes, at, at + 1.4, row, PALE, "")
            at += 1.4
