"""The same three chunks in one stream and in several: three engines take turns, or work side by side."""

from matplotlib.figure import Figure

from flashladder.plot.style import BLUE, GREEN, GREY, INK, ORANGE, new_figure, text_on

WORDS = (
    "Timelines of three chunks on the engines copy in, compute and copy out: in one stream one engine works at a time, "
    "in several streams all three work at once and the batch ends earlier"
)
ENGINES = (("copy in", BLUE), ("compute", ORANGE), ("copy out", GREEN))
LENGTHS = (1.2, 1.0, 0.8)  # of a chunk on each engine
CHUNKS = 3


def _starts(overlap: bool) -> list[tuple[int, int, float]]:
    """(chunk, engine, start): an engine serves one chunk at a time, a chunk is on one engine at a time."""
    free, placed, end = [0.0] * len(ENGINES), [], 0.0
    for chunk in range(CHUNKS):
        ready = 0.0 if overlap else end
        for engine, length in enumerate(LENGTHS):
            start = max(ready, free[engine])
            placed.append((chunk, engine, start))
            ready = free[engine] = start + length
        end = ready
    return placed


def draw() -> Figure:
    figure = new_figure(5.2, 3.5, WORDS)
    last = CHUNKS * sum(LENGTHS)
    for axes, overlap, title in zip(figure.subplots(2, 1, sharex=True), (False, True), ("one stream", "three streams")):
        ends = []
        for chunk, engine, start in _starts(overlap):
            colour = ENGINES[engine][1]
            axes.barh(engine, LENGTHS[engine], 0.86, left=start, color=colour, edgecolor="white")
            axes.text(start + LENGTHS[engine] / 2, engine, f"{chunk}", ha="center", va="center", fontsize=10,
                      color=text_on(colour), weight="bold")  # fmt: skip
            ends.append(start + LENGTHS[engine])
        axes.axvline(max(ends), color=INK, linestyle="--", linewidth=1)
        axes.text(max(ends) - 0.1, -0.1, "done", ha="right", va="center", fontsize=9, color=INK)
        axes.set_yticks(range(len(ENGINES)), [name for name, _ in ENGINES], fontsize=10)
        axes.set_ylim(len(ENGINES) - 0.5, -0.5)
        axes.set_xlim(0, last * 1.02)
        axes.set_xticks([])
        axes.tick_params(length=0)
        axes.set_title(title, fontsize=10, loc="left")
        for side in ("top", "right", "bottom"):
            axes.spines[side].set_visible(False)
    figure.supxlabel("time (numbers: chunks of the batch)", fontsize=9, color=GREY)
    return figure
