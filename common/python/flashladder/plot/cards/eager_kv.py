"""The card's picture of stage eager_kv: when V and the next K are asked for, and when they must be there."""

from matplotlib.figure import Figure

from flashladder.plot.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, RED, SKY, new_figure, text_on

WORDS = (
    "One iteration of stages 06 and 07. In 06 the warps wait for K and V, then compute. In 07 V travels during S and "
    "softmax, and the next K during softmax and O += PV; a third barrier tells that K is no longer read"
)
# What the warps do: (words, length, kind); the lengths are made up. Copies: (words, start, end, colour).
_WARPS = {
    "stage 06": [("wait", 1.8, "wait"), ("", 0.14, "barrier"), ("S = QKᵀ", 3.0, "compute"), ("softmax", 2.0, "compute"),
                 ("O += PV", 3.0, "compute"), ("", 0.14, "barrier")],
    "stage 07": [("", 0.3, "wait"), ("", 0.14, "barrier"), ("S = QKᵀ", 3.0, "compute"), ("", 0.14, "barrier"),
                 ("softmax", 2.0, "compute"), ("", 0.3, "wait"), ("", 0.14, "barrier"), ("O += PV", 3.0, "compute")],
}  # fmt: skip
_COPIES = {
    "stage 06": [("K, V", 0.0, 1.8, SKY)],
    "stage 07": [("V", 0.44, 5.88, SKY), ("next K", 3.58, 9.02, GREEN)],
}
_LOOKS = {"compute": (ORANGE, None), "wait": (PALE, "///"), "barrier": (RED, None)}


def draw() -> Figure:
    figure = new_figure(5.2, 3.5, WORDS)
    for axes, name in zip(figure.subplots(2, 1, sharex=True), _WARPS, strict=True):
        left = 0.0
        for words, length, kind in _WARPS[name]:
            colour, hatch = _LOOKS[kind]
            axes.broken_barh([(left, length)], (0.6, 0.8), facecolor=colour, hatch=hatch, edgecolor=GREY, linewidth=0.5)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if hatch else None
            axes.text(left + length / 2, 1.0, words, ha="center", va="center", fontsize=9, color=INK, bbox=box)
            left += length
        for lane, (words, start, end, colour) in enumerate(_COPIES[name]):
            low = -0.1 - 0.65 * lane
            axes.broken_barh([(start, end - start)], (low, 0.5), facecolor=colour, edgecolor=BLUE, linewidth=0.8)
            axes.text((start + end) / 2, low + 0.24, words, ha="center", va="center", fontsize=9,
                      color=text_on(colour))  # fmt: skip
        axes.set_ylim(-0.9, 1.5)
        axes.set_yticks([1.0, 0.15], ["warps", "copies"], fontsize=9)
        axes.set_xticks([])
        axes.tick_params(length=0)
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.set_title(name, fontsize=9.5, loc="left", weight="bold")
    figure.axes[1].set_xlim(0, 10.3)
    figure.axes[1].set_xlabel("one iteration; lengths are not to scale; red: a barrier", fontsize=9, color=GREY)
    return figure
