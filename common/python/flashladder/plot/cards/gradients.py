"""The pictures of the stages of the backward pass."""

from functools import partial

from flashladder.plot.cards.drawing import Bars, arrow, beside, box, centred, lanes, picture, rectangle, titled
from flashladder.plot.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, SKY, YELLOW, plain, text_on

_flow = partial(arrow, size=12, color=GREY, linewidth=1.5, shrinkA=0, shrinkB=0)

STEP = (3.1, 0.95)  # width and height
# (left, bottom, text, whether it is a matrix product)
STEPS = {
    "S": (0, 6, "S = scale Q Kᵀ", True),
    "dP": (3.6, 6, "dP = dO Vᵀ", True),
    "D": (7.2, 6, "D = rowsum(dO*O)", False),
    "P": (0, 4, "P = exp(S − lse)", False),
    "dS": (3.6, 2, "dS = P * (dP − D)", False),
    "dV": (0, 0, "dV = Pᵀ dO", True),
    "dQ": (3.6, 0, "dQ = scale dS K", True),
    "dK": (7.2, 0, "dK = scale dSᵀ Q", True),
}
NEEDS = (("S", "P"), ("P", "dV"), ("P", "dS"), ("dP", "dS"), ("D", "dS"), ("dS", "dQ"), ("dS", "dK"))


@picture(
    3.7,
    "S from Q and K gives P with the log-sum-exp; dP comes from dO and V, D from dO and O; P, dP and D give dS; dV "
    "needs P and dO, dQ needs dS and K, dK needs dS and Q. Five of the steps are matrix products",
)
def backward_naive(figure) -> None:
    axes = figure.subplots()
    plain(axes)
    for tail, head in NEEDS:
        _needs(axes, tail, head)
    for left, bottom, words, product in STEPS.values():
        box(axes, (left, bottom), STEP, BLUE if product else SKY, words)
    for left, words in ((0, "from Q, K"), (3.6, "from dO, V"), (7.2, "from dO, O")):
        centred(axes, left + STEP[0] / 2, 7.25, words, 9, color=GREY)
    for left, colour, words in ((0.2, BLUE, "a matrix product"), (5.2, SKY, "element by element, or by row")):
        rectangle(axes, (left, -1.25), (0.5, 0.5), colour)
        axes.text(left + 0.7, -1.0, words, ha="left", va="center", fontsize=9.5, color=INK)
    axes.set(xlim=(-0.1, 10.4), ylim=(-1.4, 7.6))


def _needs(axes, tail: str, head: str) -> None:
    """From the lower side of one step to the upper side of another."""
    (left, bottom, _, _), (to_left, to_bottom, _, _) = STEPS[tail], STEPS[head]
    width, height = STEP
    lean = max(-1, min(1, (left - to_left) / 3.6))  # arrows from several sides end apart
    _flow(axes, (left + width / 2 - 0.9 * lean, bottom), (to_left + width / 2 + 0.9 * lean, to_bottom + height))


TILES = 4
MINE = 1  # the column of the block that is drawn


@picture(
    4.0,
    "The score tiles as a square: a row for each tile of queries, a column for each tile of keys. A block computes "
    "one column, tile by tile. Its dK and dV stay in registers until the end of the column. Each tile's part of dQ is "
    "added to sums in global memory, to which the blocks of all columns add",
)
def backward_recompute(figure) -> None:
    axes = figure.subplots()
    plain(axes)
    for row in range(TILES):
        y = TILES - 1 - row
        axes.text(-0.15, y + 0.45, f"Q, dO {row}", ha="right", va="center", fontsize=9, color=INK)
        for column in range(TILES):
            rectangle(axes, (column, y), (0.94, 0.9), SKY if column == MINE else PALE)
        centred(axes, MINE + 0.46, y + 0.45, "P, dS", color=text_on(SKY))
        box(axes, (5.35, y), (1.25, 0.9), ORANGE, f"dQ {row}", 10)
        _flow(axes, (MINE + 0.98, y + 0.45), (5.3, y + 0.45))
        centred(axes, 4.45, y + 0.62, "+", 12)
    for column in range(TILES):
        centred(axes, column + 0.47, TILES + 0.15, f"K, V {column}", 9)
    _flow(axes, (MINE + 0.47, -0.02), (MINE + 0.47, -0.48))
    box(axes, (MINE - 0.5, -1.45), (1.94, 0.9), BLUE, "dK 1, dV 1", 10)
    axes.text(MINE + 1.6, -1.0, "in registers,\nstored once", ha="left", va="center", fontsize=9, color=INK)
    centred(axes, 5.97, -0.62, "fp32 sums in\nglobal memory:\nall blocks add", 9)
    centred(axes, MINE + 0.47, TILES + 0.65, "one block: all queries,\none tile of keys", 9, color=GREY)
    axes.set(xlim=(-1.15, 6.9), ylim=(-1.6, TILES + 1.0))


@picture(
    4.3,
    "A consumer warpgroup computes S and dP transposed, 64 keys by the tile's queries. P and dS, transposed, are "
    "operand A of dV and dK straight from registers. Only dQ takes dS from shared memory, where both warpgroups store "
    "it",
)
def backward_wgmma(figure) -> None:
    axes = figure.subplots()
    plain(axes)
    box(axes, (0, 6.0), (2.5, 1.1), BLUE, "Sᵀ = K Qᵀ\n64 keys x Br")
    box(axes, (0, 3.6), (2.5, 1.1), BLUE, "dPᵀ = V dOᵀ\n64 keys x Br")
    box(axes, (3.7, 6.0), (2.0, 1.1), SKY, "Pᵀ\nregisters")
    box(axes, (3.7, 3.6), (2.0, 1.1), SKY, "dSᵀ\nregisters")
    box(axes, (7.9, 6.0), (2.5, 1.1), BLUE, "dV += Pᵀ dO\n64 keys x d")
    box(axes, (7.9, 3.6), (2.5, 1.1), BLUE, "dK += dSᵀ Q\n64 keys x d")
    box(axes, (3.1, 0.7), (3.2, 1.3), YELLOW, "dS of both\nwarpgroups\nshared memory")
    box(axes, (7.9, 0.8), (2.5, 1.1), BLUE, "dQᵀ = Kᵀ dSᵀ\nall 128 keys")
    box(axes, (0, 0.8), (2.0, 1.1), PALE, "the other\nwarpgroup", edgecolor=GREY)
    for y in (6.55, 4.15):
        _flow(axes, (2.55, y), (3.65, y))
        _flow(axes, (5.75, y), (7.85, y))
        centred(axes, 6.8, y + 0.3, "operand A", 9)
    _flow(axes, (4.7, 5.95), (4.7, 4.75))
    _flow(axes, (4.7, 3.55), (4.7, 2.05))
    axes.text(4.85, 2.8, "stmatrix, transposed", ha="left", va="center", fontsize=9, color=INK)
    _flow(axes, (2.05, 1.35), (3.05, 1.35))
    _flow(axes, (6.35, 1.35), (7.85, 1.35))
    centred(axes, 7.1, 1.65, "operand B", 9)
    _flow(axes, (9.15, 0.75), (9.15, -0.05))
    box(axes, (6.9, -1.05), (3.5, 0.95), ORANGE, "+ in global memory")
    axes.set(xlim=(-0.1, 10.5), ylim=(-1.2, 7.3))


@picture(
    3.9,
    "Two warpgroups over time. Stage 42: after the store of dS, and again after dQ, each waits for the other one. "
    "Stage 43: a warpgroup computes dQ of the tile before, whose dS both have stored, and neither waits",
)
def dQ_one_tile_late(figure) -> None:
    end, warpgroups = 22, ("warpgroup 1", "warpgroup 0")
    before, after = figure.subplots(2, 1)
    lanes(before, "stage 42: dQ of this tile, two barriers", warpgroups, -5.2, end)
    # How long P and dS take, the wait for the other's dS, the products, and the second wait.
    for row, tiles in {1: ((3, 2, 4, 1), (5, 0, 3, 1)), 0: ((5, 0, 3, 2), (3, 2, 4, 1))}.items():
        for tile, lengths in enumerate(tiles):
            _in_a_row(before, row, 12 * tile, _with_barriers(tile, *lengths))
    lanes(after, "stage 43: dQ of the tile before, no barrier", warpgroups, -5.2, end)
    for row, works in {1: (3, 5, 3), 0: (5, 3, 3)}.items():
        _in_a_row(after, row, 0, [part for tile, work in enumerate(works) for part in _without_barriers(tile, work)])
    figure.supxlabel(
        "S: products S and dP; dQ: products dV, dQ, dK; +: adds dQ\n"
        "time → (in order, not to scale); grey: waits for the other",
        fontsize=9, color=GREY, multialignment="left",
    )  # fmt: skip


def _with_barriers(tile: int, work: float, wait: float, products: float, second: float) -> list:
    """(length, colour, words): S, P and dS, a wait, the products, a wait; then the additions."""
    return [
        (2, BLUE, f"S{tile}"),
        (work, SKY, "P, dS"),
        (wait, PALE, ""),
        (3, BLUE, f"dQ{tile}"),
        (products - 3 + second - 1, PALE, ""),
        (1.3, ORANGE, "+"),
    ]


def _without_barriers(tile: int, work: float) -> list:
    """(length, colour, words)"""
    parts = [(2, BLUE, f"S{tile}"), (work, SKY, "P, dS"), (3, BLUE, f"dQ{tile - 1}" if tile else "dK0")]
    return [*parts, (1.3, ORANGE, "+")] if tile else parts


def _in_a_row(axes, row: float, at: float, parts: list) -> None:
    bar = Bars(least=1.2)
    for length, colour, words in parts:
        bar(axes, at, at + length, row, colour, words)
        at += length


# (begin, end, row: 0 the warps, 1 the tensor cores, colour, words)
ONE_WAIT = (
    (0, 2, 1, BLUE, "S"),
    (2, 4, 1, BLUE, "dP"),
    (4, 7, 0, SKY, "P"),
    (7, 9, 0, SKY, "dS"),
    (9, 11, 1, BLUE, "dV"),
    (11, 13, 1, BLUE, "dQ"),
    (13, 15, 1, BLUE, "dK"),
    (15, 17, 0, ORANGE, "+ dQ"),
    (17, 18, 1, BLUE, "S"),
)
WAITS_APART = (
    (0, 2, 1, BLUE, "S"),
    (2, 4, 1, BLUE, "dP"),
    (2, 5, 0, SKY, "P"),
    (5, 7, 1, BLUE, "dV"),
    (5, 7, 0, SKY, "dS"),
    (7, 9, 1, BLUE, "dQ"),
    (9, 11, 1, BLUE, "dK"),
    (9, 11, 0, ORANGE, "+ dQ"),
    (11, 13, 1, BLUE, "S"),
    (13, 15, 1, BLUE, "dP"),
    (13, 16, 0, SKY, "P"),
    (16, 18, 1, BLUE, "dV"),
    (16, 18, 0, SKY, "dS"),
)


@picture(
    3.4,
    "One warpgroup's tile over time. Stage 43: P and dS after both S and dP, and the additions to dQ after all "
    "products. Stage 44: the exponentials of P beside dP, dS beside dV, the additions to dQ beside dK",
)
def waits_apart(figure) -> None:
    end, bar = 18, Bars(least=0.8)
    above, below = figure.subplots(2, 1)
    for axes, title, parts in (
        (above, "stage 43: one wait for all that is under way", ONE_WAIT),
        (below, "stage 44: a wait for each product", WAITS_APART),
    ):
        lanes(axes, title, ("warps", "tensor cores"), -4.6, end)
        for row in range(2):
            rectangle(axes, (0, row + 0.1), (end, 0.75), PALE)
        for part in parts:
            bar(axes, *part)
    figure.supxlabel("time → (in order, not to scale); dQ is that of the tile before", fontsize=9, color=GREY)


@picture(
    4.7,
    "Above: stage 44 has three kernels, and the last one reads the fp32 sums of dQ again. Stage 45 has two: idle "
    "warps round a head while the others are computed. Below: consumers add to the sums and a counter tells when a "
    "head is complete; a converter rounds its sums to dQ and leaves zeros",
)
def no_scratch_pass(figure) -> None:
    top, bottom = figure.subfigures(2, 1, height_ratios=(2.3, 2.4))
    _kernels(top.subplots())
    _roles(bottom.subplots())


def _kernels(axes) -> None:
    bar = Bars(least=1.0)
    lanes(axes, "kernels over time", ("idle warps", "stage 45", "stage 44"), -3.0, 15.4)
    bar(axes, 0, 2.4, 2, SKY, "D, zeros")
    bar(axes, 2.4, 12, 2, BLUE, "five products, additions to dQ")
    bar(axes, 12, 15.4, 2, ORANGE, "rounds dQ")
    bar(axes, 0, 1.4, 1, SKY, "D")
    bar(axes, 1.4, 11, 1, BLUE, "five products, additions to dQ")
    for head in range(4):
        bar(axes, 3.4 + 2.1 * head, 5.3 + 2.1 * head, 0, ORANGE, f"head {head}")


def _roles(axes) -> None:
    titled(axes, "stage 45: from the sums to dQ")
    box(axes, (0, 2.4), (2.9, 1.2), BLUE, "8 consumer\nwarps")
    box(axes, (4.0, 2.4), (3.0, 1.2), YELLOW, "fp32 sums of a\nhead, in L2")
    box(axes, (8.2, 2.4), (2.6, 1.2), SKY, "converter\nwarps")
    box(axes, (8.2, 0), (2.6, 1.0), ORANGE, "dQ, 16 bits")
    box(axes, (0, 0), (2.9, 1.0), BLUE, "telling thread")
    box(axes, (4.0, 0), (3.0, 1.0), YELLOW, "units of the head")
    for start, end, words in (
        ((2.95, 3.2), (3.95, 3.2), "+"),
        ((7.05, 3.3), (8.15, 3.3), "bulk"),
        ((8.15, 2.65), (7.05, 2.65), "0"),
        ((1.45, 2.35), (1.45, 1.05), ""),
        ((2.95, 0.5), (3.95, 0.5), "+ 1"),
        ((6.6, 1.05), (8.4, 2.35), ""),
        ((9.5, 2.35), (9.5, 1.05), ""),
    ):
        _flow(axes, start, end)
        centred(axes, (start[0] + end[0]) / 2, start[1] + 0.2, words, 9)
    axes.text(6.9, 1.75, "all?", ha="right", va="center", fontsize=9)
    axes.set(xlim=(-0.1, 10.9), ylim=(-0.2, 3.9))


@picture(
    3.8,
    "Four blocks over time, with a causal mask; each computes the tiles of queries that see its keys. Above: the first "
    "keys add first, and the other blocks wait. Below: the last keys add first. Q3, marked, passes from one block to "
    "the next, and none waits",
)
def deterministic(figure) -> None:
    above, below = figure.subplots(2, 1)
    _in_turn(above, "the first keys first", waits=True)
    _in_turn(below, "the last keys first", waits=False)
    figure.supxlabel("time →; grey: waits for its turn", fontsize=9, color=GREY)


def _in_turn(axes, title: str, waits: bool) -> None:
    bar = Bars(least=0.3)
    lanes(axes, title, [f"keys {block}" for block in reversed(range(TILES))], -1.1, 2 * TILES)
    for block in range(TILES):
        row = TILES - 1 - block
        begin = 2 * block if waits else 0  # its first tile's turn comes when the block before it has left it
        bar(axes, 0, begin, row, PALE, "")
        for tile in range(block, TILES):
            at = begin + tile - block
            bar(axes, at, at + 1, row, ORANGE if tile == TILES - 1 else BLUE, f"Q{tile}")


@picture(
    3.0,
    "Two blocks walk over query tiles 0 and 1. Block 0 computes dS of tile 1, sends it to block 1, then computes dS of "
    "tile 0, which it keeps. Block 1 sends dS of tile 0 and keeps that of tile 1. During the next pair each computes "
    "dQ of the tile that it kept, over the keys of both",
)
def clusters(figure) -> None:
    end, bar = 16, Bars()
    axes = figure.subplots()
    plain(axes)
    axes.set(xlim=(-3.6, end), ylim=(-0.1, 5.6))
    for block, dS, dQ in ((0, 4.5, 3.3), (1, 0, 1.2)):
        beside(axes, dS, f"block {block}: dS")
        beside(axes, dQ, f"block {block}: dQ")
        for pair in range(2):
            sent, kept = 2 * pair + 1 - block, 2 * pair + block
            bar(axes, 8 * pair, 8 * pair + 4, dS, ORANGE, f"tile {sent}: sent")
            bar(axes, 8 * pair + 4, 8 * pair + 8, dS, BLUE, f"tile {kept}: kept")
        bar(axes, 11.2, 14, dQ, GREEN, f"tile {block}")
    arrow(axes, (4, 4.5), (11.1, 1.7), 11, color=ORANGE, linewidth=1.6)
    arrow(axes, (4, 0.95), (11.1, 3.7), 11, color=ORANGE, linewidth=1.6)
    figure.supxlabel("time → (in order, not to scale)", fontsize=9, color=GREY)
