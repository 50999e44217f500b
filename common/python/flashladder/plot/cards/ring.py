"""The pictures of the stages for several GPUs: who copies and computes when, and who has which rows."""

from flashladder.core.ring_problem import RingProblem
from flashladder.measuring import ring_model
from flashladder.plot.cards.drawing import Bars, arrow, box, centred, lanes, picture, rectangle, titled
from flashladder.plot.style import GREY, INK, PALE, RED, in_order

GPUS = 4
# Copies take half as long as attention to the same keys: short enough to hide, long enough to see.
_PROBLEM = RingProblem(Hq=1, Nq=4 * 4096, d_head=128, ranks=GPUS)
_RATES = ring_model.Rates(ring_model.TFLOPS, 2 * ring_model.TFLOPS * 1e3 / 4096)


def _schedule(axes, title: str, slug: str, last: float) -> None:
    """The model's timeline: of each GPU its copies above its kernels, in the colour of the slice's own GPU. last: the
    end of the axis, in steps of attention to one slice."""
    unit = _RATES.attention_ms(_PROBLEM, (_PROBLEM.Nq // GPUS) ** 2)
    lanes(axes, title, [f"GPU {rank}" for rank in reversed(range(GPUS))], 0, last)
    for span in ring_model.modelled(slug, _PROBLEM, _RATES).spans:
        gpu, lane = span.lane.removeprefix("GPU ").split()
        row = GPUS - 1 - int(gpu)
        low, high = (0.56, 0.38) if lane == "copies" else (0.08, 0.46)
        colour = PALE if span.label == "all" else in_order(int(span.label), GPUS)
        words = "attention to all" if span.label == "all" else span.label
        place, extent = (span.start / unit, row + low), ((span.end - span.start) / unit, high)
        box(axes, place, extent, colour, words, 9, **({"edgecolor": GREY} if span.label == "all" else {}))


@picture(
    2.6,
    "Four GPUs in time: each first copies the slices of the other three, one after the other and each from another "
    "GPU, and then computes attention to all keys in one piece; while the copies run no GPU computes",
)
def gather(figure) -> None:
    axes = figure.subplots()
    _schedule(axes, "Copies (upper bars, from which GPU), then one kernel", "gather", 5.6)
    centred(axes, 0.75, -0.25, "copies", 9, color=GREY)
    centred(axes, 3.5, -0.25, "attention", 9, color=GREY)
    axes.set(ylim=(-0.5, GPUS))


@picture(
    2.6,
    "Four GPUs in time: each computes attention to its own slice first, and meanwhile copies the slice that its "
    "neighbour has; three steps later every slice has come round, and no GPU has waited",
)
def ring(figure) -> None:
    axes = figure.subplots()
    _schedule(axes, "Copies (upper bars) under attention (lower bars)", "ring", 5.6)
    for rank in range(GPUS):
        box(axes, (4.05, GPUS - 1 - rank + 0.08), (0.3, 0.46), GREY, "", 9)
    axes.text(4.45, 1.95, "grey: the merge", fontsize=9, va="center", color=INK)
    centred(axes, 2, -0.25, "the number: whose slice of K and V it is", 9, color=GREY)
    axes.set(ylim=(-0.5, GPUS))


@picture(
    3.2,
    "The scores under a causal mask, rows coloured by GPU: cut into four slices the last GPU has seven times the "
    "scores of the first; with eight pieces, an early and a late one for each GPU, all four have the same",
)
def zigzag(figure) -> None:
    pieces = 2 * GPUS
    owners = {
        "slices": [piece // 2 for piece in range(pieces)],
        "zigzag": [min(piece, pieces - 1 - piece) for piece in range(pieces)],
    }
    for axes, (title, owner) in zip(figure.subplots(1, 2), owners.items(), strict=True):
        titled(axes, title)
        for piece, rank in enumerate(owner):
            row, colour = pieces - 1 - piece, in_order(rank, GPUS)
            for column in range(piece):
                rectangle(axes, (column, row), (1, 1), colour, linewidth=0.8)
            axes.fill([piece, piece, piece + 1], [row, row + 1, row], color=colour)
            axes.text(-0.25, row + 0.5, str(rank), fontsize=9, ha="right", va="center", color=INK)
        for rank in range(GPUS):
            work = sum(piece + 0.5 for piece, one in enumerate(owner) if one == rank) / (pieces * pieces / 2)
            x = 2 * rank + 0.1
            box(axes, (x, -2.1), (1.8, 1.4), in_order(rank, GPUS), f"{work:.0%}", 9)
        centred(axes, pieces / 2, -2.6, "of all scores, GPU 0 to 3", 9, color=GREY)
        axes.set(xlim=(-1.2, pieces), ylim=(-3, pieces), aspect="equal")


# Of rank 0 of four, without a mask: who is visited after the own keys, and when their copies end.
VISITS = ((3, 3.4), (2, 6.0), (1, 8.6))
KERNEL, STEP = 4.0, 4.0  # of the own keys; of each other rank's


@picture(
    2.4,
    "One launch on rank 0 of four GPUs: its kernel computes with its own K and V while the copy engine brings those "
    "of rank 3, then of rank 2 and of rank 1; each copy ends with a flag, and the kernel looks at it before it reads",
)
def one_launch(figure) -> None:
    axes = figure.subplots()
    lanes(axes, "one launch on rank 0 of 4", ("kernel", "copy engine"), 0, KERNEL + STEP * len(VISITS))
    bars = Bars()
    bars(axes, 0, KERNEL, 0, in_order(0, GPUS), "own K, V")
    begin = 0.8
    for number, (rank, end) in enumerate(VISITS):
        colour = in_order(rank, GPUS)
        reads = KERNEL + STEP * number
        bars(axes, begin, end, 1, colour, f"rank {rank}")
        bars(axes, reads, reads + STEP, 0, colour, f"K, V of {rank}")
        arrow(axes, (end, 1.1), (reads, 0.87), 11, color=RED, shrinkA=0, shrinkB=0)
        begin = end
    centred(axes, 11.5, 1.5, "flags", 10, color=RED)
