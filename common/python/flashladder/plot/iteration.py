"""One turn over a K/V tile as the stages order it: what the warps do, and which copies are on their way."""

from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.plot.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, RED, SKY, caption, new_figure, text_on

# Lengths are made up, the same for all stages; only the order is true, the source's. A stage's steps: (what, length,
# kind).
S, SOFTMAX, PV = ("S = QKᵀ", 3.0, "compute"), ("softmax", 2.0, "compute"), ("O += PV", 3.0, "compute")
BARRIER = ("", 0.12, "barrier")
_WAIT = 1.6
_EAGER = [("wait K", 0.35, "wait"), BARRIER, S, BARRIER, SOFTMAX, ("wait V", 0.35, "wait"), BARRIER, PV]
STEPS = {
    5: [("load\nK and V", _WAIT, "wait"), BARRIER, S, SOFTMAX, PV, BARRIER],
    6: [("wait for\nK and V", _WAIT, "wait"), BARRIER, S, SOFTMAX, PV, BARRIER],
    7: _EAGER,
    8: _EAGER,
    9: [("wait", 0.2, "wait"), BARRIER, S, SOFTMAX, PV],
}  # fmt: skip
# Copies: (what, index of the step at whose start it is requested, of the step at whose start it must be there; a number
# of steps beyond the turn belongs to the next one).
_COPIES = {
    5: [],
    6: [("K, V", 0, 1)],
    7: [("V", 2, 6), ("next K", 4, 8)],
    8: [("V", 2, 6), ("next K", 4, 8)],
    9: [("next K, V into the other buffer", 2, 5)],
}
# 10 and 11 change what stands between requests, waits and barriers, and none of these; 12 is drawn with 11's flags.
for _number in (10, 11, 12):
    STEPS[_number], _COPIES[_number] = STEPS[9], _COPIES[9]
STEPS[13] = [("wait", 0.2, "wait"), BARRIER, S, ("mask,\nat an edge", 0.9, "compute"), SOFTMAX, PV]
_COPIES[13] = [("next K, V into the other buffer", 2, 6)]
_LOOKS = {"compute": (ORANGE, None), "wait": (PALE, "//"), "barrier": (RED, None)}


TURNS = 2


def iteration(*numbers: int) -> Figure:
    """The stages below one another, two turns of each; a scheme: the order is the source's, no times."""
    unknown = [number for number in numbers if number not in STEPS]
    if unknown or not numbers:
        raise FlashLadderError(f"iteration: choose among the stages {', '.join(map(str, STEPS))}.")
    figure = new_figure(
        10.5, 0.7 + 1.45 * len(numbers), "The order of requests, waits, barriers and products in the loop"
    )
    panels = figure.subplots(len(numbers), 1, squeeze=False, sharex=True)[:, 0]
    for axes, number in zip(panels, numbers):
        _draw(axes, number)
    end = max(TURNS * sum(length for _, length, _ in STEPS[number]) for number in numbers)
    panels[-1].set_xlim(0, end + 0.2)
    caption(
        figure,
        "A scheme: the order is the source's (the assembler's may differ), the lengths are not to scale. "
        "Thin red: a barrier of the block.",
    )
    return figure


def _draw(axes, number: int) -> None:
    steps = STEPS[number]
    starts, now = [], 0.0
    for _ in range(TURNS + 1):
        for _, length, _ in steps:
            starts.append(now)
            now += length
    end = starts[TURNS * len(steps)]
    for turn in range(TURNS):
        for index, (text, length, kind) in enumerate(steps):
            colour, hatch = _LOOKS[kind]
            start = starts[turn * len(steps) + index]
            axes.broken_barh(
                [(start, length)], (0.55, 0.85), facecolor=colour, hatch=hatch, edgecolor=GREY, linewidth=0.5
            )
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85} if hatch else None
            axes.text(start + length / 2, 0.975, text, ha="center", va="center", fontsize=7.5, bbox=box,
                      rotation=90 if length < 0.5 and text else 0, color=INK if hatch else text_on(colour))  # fmt: skip
        for row, (text, asked, needed) in enumerate(_COPIES[number]):
            start, stop = starts[turn * len(steps) + asked], min(starts[turn * len(steps) + needed], end)
            lane, colour = -0.5 * row, (SKY, GREEN)[row % 2]
            axes.broken_barh(
                [(start, stop - start)], (lane - 0.02, 0.42), facecolor=colour, edgecolor=BLUE, linewidth=0.8
            )
            axes.text(
                (start + stop) / 2, lane + 0.19, text, ha="center", va="center", fontsize=7.5, color=text_on(colour)
            )
        axes.axvline(starts[turn * len(steps)], color=INK, linewidth=1.2)
    axes.axvline(end, color=INK, linewidth=1.2)
    axes.set_ylim(-0.65, 1.5)
    axes.set_yticks([0.975, 0.05], ["warps", "copies\non their way"], fontsize=8)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.set_title(stages.get(number).name, fontsize=9, loc="left")
