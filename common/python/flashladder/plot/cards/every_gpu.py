"""The pictures of the stages that run on any GPU."""

import numpy as np

from flashladder.plot.cards.drawing import arrow, box, centred, picture, rectangle
from flashladder.plot.softmax import steps
from flashladder.plot.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, RED, SKY, in_order, plain, text_on

ENGINES = (("copy in", BLUE, 1.2), ("compute", ORANGE, 1.0), ("copy out", GREEN, 0.8))  # and how long a chunk takes
CHUNKS = 3


@picture(
    3.5,
    "Timelines of three chunks on the engines copy in, compute and copy out: in one stream one engine works at a time, "
    "in several streams all three work at once and the batch ends earlier",
)
def host_streams(figure) -> None:
    last = CHUNKS * sum(length for _, _, length in ENGINES)
    for axes, overlap, title in zip(figure.subplots(2, 1, sharex=True), (False, True), ("one stream", "three streams")):
        ends = []
        for chunk, engine, start in _starts(overlap):
            _, colour, length = ENGINES[engine]
            axes.barh(engine, length, 0.86, left=start, color=colour, edgecolor="white")
            centred(axes, start + length / 2, engine, f"{chunk}", 10, color=text_on(colour), weight="bold")
            ends.append(start + length)
        axes.axvline(max(ends), color=INK, linestyle="--", linewidth=1)
        axes.text(max(ends) - 0.1, -0.1, "done", ha="right", va="center", fontsize=9, color=INK)
        axes.set_yticks(range(len(ENGINES)), [name for name, _, _ in ENGINES], fontsize=10)
        axes.set(xlim=(0, last * 1.02), ylim=(len(ENGINES) - 0.5, -0.5), xticks=[])
        axes.tick_params(length=0)
        axes.set_title(title, fontsize=10, loc="left")
        axes.spines[["top", "right", "bottom"]].set_visible(False)
    figure.supxlabel("time (numbers: chunks of the batch)", fontsize=9, color=GREY)


def _starts(overlap: bool) -> list[tuple[int, int, float]]:
    """(chunk, engine, start): an engine serves one chunk at a time, a chunk is on one engine at a time."""
    free, placed, end = [0.0] * len(ENGINES), [], 0.0
    for chunk in range(CHUNKS):
        ready = 0.0 if overlap else end
        for engine, (_, _, length) in enumerate(ENGINES):
            start = max(ready, free[engine])
            placed.append((chunk, engine, start))
            ready = free[engine] = start + length
        end = ready
    return placed


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


@picture(
    2.9,
    "Three kernels above a bar that is global memory: scores writes S once, softmax reads it three times and writes P, "
    "output reads P once; S and P have N times N numbers, all else N times d",
)
def naive(figure) -> None:
    axes = figure.subplots()
    plain(axes)
    for name, left in KERNELS:
        rectangle(axes, (left, 3.2), (2.6, 1.1), BLUE, linewidth=1)
        centred(axes, left + 1.3, 3.75, name, 11, color=text_on(BLUE), weight="bold")
    rectangle(axes, (-0.2, 0), (10.4, 0.9), PALE, edgecolor=GREY, linewidth=1)
    centred(axes, 5, 0.45, "global memory", 11)
    for x, up, what, large in ARROWS:
        tail, head = ((x, 0.95), (x, 3.15)) if up else ((x, 3.15), (x, 0.95))
        look = {"linewidth": 3, "color": RED} if large else {"linewidth": 1.3, "color": GREY}
        arrow(axes, tail, head, 13, shrinkA=0, shrinkB=0, **look)
        axes.text(x + 0.12, 2.05, what, fontsize=10, va="center", color=INK, weight="bold" if large else "normal")
    axes.plot([0.2, 0.9], [-0.65, -0.65], color=RED, linewidth=3)
    axes.text(1.05, -0.65, "N x N numbers", fontsize=10, va="center")
    axes.plot([5.2, 5.9], [-0.65, -0.65], color=GREY, linewidth=1.3)
    axes.text(6.05, -0.65, "N x d numbers", fontsize=10, va="center")
    axes.set(xlim=(-0.3, 10.3), ylim=(-1.05, 4.4))


# Scores of one row in four tiles of two: the maximum grows with the second and with the fourth tile.
SCORES = np.array([1.0, 0.6, 2.0, 1.4, 1.2, 1.8, 2.6, 1.5])
TILES = 4
NOW = 2  # the tile in work


@picture(
    4.6,
    "Above: a tile of Q meets one tile of K and V after another, and S exists only for the tile in work. Below: the "
    "sum of one row after each of four tiles; the older part is multiplied by a factor of at most 1 when the maximum "
    "grows",
)
def online_softmax(figure) -> None:
    top, bottom = figure.subplots(2, 1, height_ratios=(1.15, 1))
    _walk(top)
    _sums(bottom)


def _walk(axes) -> None:
    plain(axes)
    for j in range(TILES):
        box(axes, (2.6 + 1.6 * j, 2.3), (1.5, 1), ORANGE if j == NOW else PALE, f"K, V {j}", 10)
    box(axes, (0.2, 0.6), (1.7, 1), BLUE, "Q tile", 10)
    for j in range(TILES):
        if j == NOW:
            box(axes, (2.6 + 1.6 * j, 0.6), (1.5, 1), SKY, "S", 10)
        else:
            rectangle(axes, (2.6 + 1.6 * j, 0.6), (1.5, 1), "none", edgecolor=GREY, linestyle=":", linewidth=1.2)
    for j, words in {0: "forgotten", 1: "forgotten", 3: "not yet"}.items():
        centred(axes, 3.35 + 1.6 * j, 1.1, words, 9, color=GREY)
    arrow(axes, (2.7, 3.75), (8.8, 3.75), 12)
    axes.text(5.7, 4.1, "one tile after the other", ha="center", fontsize=10, color=INK)
    axes.set_title("one block", fontsize=10, loc="left")
    axes.set(xlim=(0, 9.2), ylim=(0.4, 4.5))


def _sums(axes) -> None:
    found = steps(SCORES, TILES)
    kept = [0.0] + [before.row_sum * step.rescale for before, step in zip(found, found[1:])]
    for j, (step, old) in enumerate(zip(found, kept)):
        axes.bar(j, old, 0.6, color=SKY, edgecolor="white")
        axes.bar(j, step.row_sum - old, 0.6, bottom=old, color=BLUE, hatch="..", edgecolor="white")
        axes.text(j, step.row_sum + 0.12, f"max {step.row_max:.1f}", ha="center", fontsize=9, color=INK)
        if j:
            before, factor = found[j - 1].row_sum, "× 1" if step.rescale == 1 else f"× {step.rescale:.2f}"
            axes.annotate("", (j - 0.33, old), (j - 0.67, before), arrowprops={"arrowstyle": "->", "color": INK})
            axes.text(j - 0.5, max(old, before) + 0.55, factor, ha="center", fontsize=10, color=INK)
    axes.set_xticks(range(TILES), [f"tile {j}" for j in range(TILES)], fontsize=9)
    axes.set_yticks([])
    axes.tick_params(length=0)
    axes.set_ylim(0, max(step.row_sum for step in found) + 1.2)
    axes.set_title("row_sum of one row: older tiles (plain), this tile (dotted)", fontsize=10, loc="left")
    axes.spines[["top", "right", "left"]].set_visible(False)


SECTORS, SECTOR_BYTES, LANES = 16, 32, 32


@picture(
    2.3,
    "Sixteen sectors of 32 bytes in a row, twice: a load of 2 bytes a lane fills the first two, with sixteen lanes "
    "each; a load of 16 bytes a lane fills all sixteen, with two lanes each",
)
def vectorized_loads(figure) -> None:
    above, below = figure.subplots(2, 1)
    _sectors(above, 2, "stage 02: 2 bytes a lane, 64 bytes an instruction")
    _sectors(below, 16, "stage 03: 16 bytes a lane, 512 bytes an instruction")
    told = "lanes 0 to 31; the other 14 sectors are not asked for"
    ground = {"facecolor": PALE, "edgecolor": "none", "pad": 1.5}
    above.text(2.15, 0.5, told, va="center", fontsize=9, color=INK, bbox=ground)
    figure.supxlabel("sectors of 32 bytes (numbers: every second lane)", fontsize=9, color=GREY)


def _sectors(axes, bytes_a_lane: int, title: str) -> None:
    plain(axes)
    for sector in range(SECTORS):
        rectangle(axes, (sector, 0), (1, 1), PALE, edgecolor=GREY, linewidth=0.8)
    width = bytes_a_lane / SECTOR_BYTES
    for lane in range(LANES):
        colour = in_order(lane % 4, 5)
        rectangle(axes, (lane * width, 0.08), (width, 0.84), colour, linewidth=0.4)
        if bytes_a_lane > 2 and lane % 2 == 0:
            centred(axes, (lane + 0.5) * width, 0.5, str(lane), 9, color=text_on(colour))
    axes.set_title(title, fontsize=10, loc="left")
    axes.set(xlim=(-0.05, SECTORS + 0.05), ylim=(-0.05, 1.05))
