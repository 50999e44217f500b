"""The card's picture of stage ping_pong: two consumers at one set of tensor cores, in step and taking turns."""

from functools import partial

from matplotlib.figure import Figure

from flashladder.plot.style import BLUE, GREY, ORANGE, PALE, SKY, bars, lanes, new_figure

WORDS = (
    "Without turns both consumers multiply at the same time and then both compute their softmax, while the tensor "
    "cores are idle. With turns one consumer's softmax runs during the other one's PV and next S, and the tensor cores "
    "are almost always busy"
)
_END = 18
_bar = bars(least=1.8)
_lanes = partial(lanes, names=("tensor cores", "consumer 1", "consumer 0"), left=-4.6, right=_END)


def draw() -> Figure:
    figure = new_figure(5.2, 4.2, WORDS)
    before, after = figure.subplots(2, 1)
    _lanes(before, "stage 18: no turns")
    at = 0.0
    while at < _END:  # PV and S of both, each twice as long as alone, then both softmaxes
        for row in (2, 1):
            _bar(before, at, at + 4, row, BLUE, "PV, S")
            _bar(before, at + 4, at + 7, row, SKY, "softmax")
        _bar(before, at, at + 4, 0, ORANGE, "")
        _bar(before, at + 4, at + 7, 0, PALE, "idle")
        at += 7
    _lanes(after, "stage 19: turns")
    at = 0.0
    while at < _END:  # a turn of two, a softmax of three, half a step for the waits
        for row, late in ((2, 0.0), (1, 2.5)):
            _bar(after, at + late, at + late + 2, row, BLUE, "PV, S")
            _bar(after, at + late + 2, at + late + 5, row, SKY, "softmax")
            _bar(after, at + late, at + late + 2, 0, ORANGE, "")
        at += 5
    _bar(after, 0, 2.5, 1, SKY, "")
    figure.supxlabel("time →     order, not to scale", fontsize=9, color=GREY)
    return figure
