"""The pictures of the stages of decoding: a few rows of Q against a long cache of keys and values."""

from functools import partial

from flashladder.plot.cards.drawing import arrow, box, centred, picture, rectangle
from flashladder.plot.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, RED, in_order, plain

_straight = partial(arrow, shrinkA=0, shrinkB=0)

HEADS = 4  # of Q, that share a head of K and V


@picture(
    2.7,
    "Four heads of Q, each with a block of its own, above the K and V of the one head that they share: every block "
    "reads all of its keys and values, so they leave memory four times",
)
def decode_naive(figure) -> None:
    keys, side = 16, 0.6
    axes = figure.subplots()
    plain(axes)
    for head in range(HEADS):
        left = 2.6 * head
        box(axes, (left, 3), (2.2, 1), BLUE, f"head {head}", 10)
        _straight(axes, (left + 1.1, 1.3), (left + 1.1, 2.95), 13, color=RED, linewidth=2.5)
    centred(axes, 11.2, 2.1, "all of\nK and V", 10, color=RED)
    for row, (name, colour) in enumerate((("V", PALE), ("K", ORANGE))):
        for key in range(keys):
            rectangle(axes, (0.625 * key, side * row), (0.625, side), colour, edgecolor=GREY, linewidth=1)
        axes.text(10.2, side * (row + 0.5), name, fontsize=10, va="center", color=INK)
    axes.text(5, -0.5, "the keys of one sequence, in global memory", fontsize=10, ha="center", color=INK)
    axes.text(5, 4.35, "one block for each row of Q", fontsize=10, ha="center", color=INK)
    axes.set(xlim=(-0.2, 12), ylim=(-0.9, 4.8))


@picture(
    3.1,
    "The keys of a sequence are divided into four parts, a block for each; every block leaves its row_max, row_sum and "
    "O in the workspace, and a second kernel scales them to the largest row_max and adds them up",
)
def split_kv(figure) -> None:
    parts, keys = 4, 4
    axes = figure.subplots()
    plain(axes)
    for part in range(parts):
        left = 2.6 * part
        for key in range(keys):
            rectangle(axes, (left + 0.55 * key, 5), (0.55, 0.7), in_order(part, parts), linewidth=1)
        box(axes, (left, 3.4), (2.2, 0.9), BLUE, f"block {part}", 10)
        box(axes, (left, 1.7), (2.2, 1), PALE, "max, sum\nO", 9, edgecolor=GREY, linewidth=1)
        for high, low in ((4.95, 4.35), (3.35, 2.75), (1.65, 1.05)):
            _straight(axes, (left + 1.1, high), (left + 1.1, low), 11, color=GREY, linewidth=1.5)
    box(axes, (0, 0), (10, 1), GREEN, "merge: weights exp2(max - largest max)", 10)
    axes.text(5, 6, "the keys of one sequence", fontsize=10, ha="center", color=INK)
    axes.set(xlim=(-0.2, 10.2), ylim=(-0.2, 6.5))


KEYS, COLUMNS = 16, 8  # of a unit: the keys, and the rows of Q
SIDE = 0.3  # of a number's square


@picture(
    3.4,
    "A unit of 16 keys times eight columns, the rows of Q of heads 0 to 3 with two rows each, gives 16 times 8 scores: "
    "the keys fill the first operand, and all heads share one read of them",
)
def packed_gqa(figure) -> None:
    axes = figure.subplots()
    plain(axes)
    of_head = [in_order(column * HEADS // COLUMNS, HEADS) for column in range(COLUMNS)]
    grids = ((0, "K", KEYS, [GREY] * COLUMNS), (3.3, "Qᵀ", COLUMNS, of_head), (6.6, "Sᵀ", KEYS, of_head))
    for left, name, rows, colours in grids:
        _grid(axes, left, rows, colours)
        centred(axes, left + SIDE * COLUMNS / 2, 5.25, name, 11, color="black", weight="bold")
    centred(axes, 2.85, 3.6, "×", 14, color="black")
    centred(axes, 6.15, 3.6, "=", 14, color="black")
    centred(axes, 1.2, -0.3, "16 keys, read once", 10)
    centred(axes, 7.8, -0.3, "16 keys by 8 rows", 10)
    for head in range(HEADS):
        box(axes, (3.3 + 0.6 * head, 1.4), (0.6, 0.6), in_order(head, HEADS), str(head), 10)
    centred(axes, 4.5, 0.95, "heads of Q", 10)
    axes.set(xlim=(-0.2, 9.3), ylim=(-0.7, 5.6))


def _grid(axes, left: float, rows: int, colours: list) -> None:
    """Rows of squares from the top down; colours: of the columns."""
    for row in range(rows):
        for column, colour in enumerate(colours):
            rectangle(axes, (left + SIDE * column, 4.8 - SIDE * (row + 1)), (SIDE, SIDE), colour, linewidth=0.5)


@picture(
    3.2,
    "Two timelines of a short problem. Stage 52: the launch begins, K and V arrive, Q after them, then the keys are "
    "computed, and after a gap a second kernel merges. Stage 53: the beginning lies under the launch before, Q comes "
    "first, and the last block merges in the same kernel",
)
def short_ends(figure) -> None:
    axes = figure.subplots()
    plain(axes)
    rows = (
        (2.6, "stage 52", ((0, 1.2, GREY, "begin"), (1.2, 2.6, ORANGE, "K, V"), (3.8, 0.9, BLUE, "Q"),
                           (4.7, 1.6, PALE, "compute"), (7.3, 1.2, GREY, "begin"), (8.5, 1.3, GREEN, "merge"))),
        (0.6, "stage 53", ((-1.2, 1.2, GREY, "begin"), (0, 0.6, BLUE, "Q"), (0.6, 2.6, ORANGE, "K, V"),
                           (3.2, 1.5, PALE, "compute"), (4.7, 1.2, GREEN, "merge"))),
    )  # fmt: skip
    for low, name, pieces in rows:
        for left, width, colour, words in pieces:
            box(axes, (left, low), (width, 0.9), colour, words, 9)
        axes.text(0.1, low + 1.1, name, fontsize=10, ha="left", color=INK, weight="bold")
    centred(axes, 6.8, 3.05, "gap", 9, color=RED)
    axes.plot([0, 0], [0.3, 3.8], color=RED, linewidth=1.5, linestyle="--")
    axes.text(0.1, 0.05, "the launch before is over", fontsize=9, ha="left", color=RED)
    axes.set(xlim=(-1.4, 10), ylim=(-0.2, 4.2))


@picture(
    2.9,
    "The units of three heads, six each, stand in one row and are cut into four equal shares; a share may have the end "
    "of one head and the beginning of the next",
)
def lean(figure) -> None:
    heads, each, blocks = 3, 6, 4
    width, share = 0.55, 3 * 6 * 0.55 / 4
    axes = figure.subplots()
    plain(axes)
    for unit in range(heads * each):
        rectangle(axes, (width * unit, 2), (width, 0.8), in_order(unit // each, heads), edgecolor=GREY, linewidth=1)
    for head in range(heads):
        centred(axes, width * each * (head + 0.5), 3.15, f"head {head}", 10)
    for block in range(blocks):
        box(axes, (share * block + 0.08, 0.5), (share - 0.16, 0.8), BLUE, f"block {block}", 10)
        _straight(axes, (share * (block + 0.5), 1.95), (share * (block + 0.5), 1.35), 11, color=GREY, linewidth=1.5)
    for border in range(1, blocks):
        axes.plot([share * border] * 2, [0.4, 2.95], color=RED, linewidth=2)
    axes.text(4.95, -0.1, "equal shares: a red line within a head makes two parts of it", fontsize=9, ha="center",
              color=INK)  # fmt: skip
    axes.set(xlim=(-0.2, 10.1), ylim=(-0.4, 3.5))


@picture(
    3.4,
    "The units of three sequences of five, one and three units stand in one row; each lane of a warp looks up another "
    "unit in the block table, which names a page anywhere in memory",
)
def paged_kv(figure) -> None:
    lengths, pages = (5, 1, 3), (6, 2, 9, 0, 4, 7, 1, 8, 3)
    width = 1.05
    owners = [sequence for sequence, units in enumerate(lengths) for _ in range(units)]
    axes = figure.subplots()
    plain(axes)
    for unit, (owner, page) in enumerate(zip(owners, pages, strict=True)):
        colour = in_order(owner, len(lengths))
        box(axes, (width * unit, 3.4), (width, 0.7), colour, str(unit), 9)
        box(axes, (width * unit, 2.2), (width, 0.7), PALE, str(page), 9, edgecolor=GREY, linewidth=1)
        box(axes, (width * page * 0.95, 0), (width * 0.9, 0.7), colour, str(page), 9)
        _straight(axes, (width * (unit + 0.5), 3.35), (width * (unit + 0.5), 2.95), 9, color=GREY, linewidth=1.2)
        _straight(axes, (width * (unit + 0.5), 2.15), (width * (page * 0.95 + 0.45), 0.75), 9, color=GREY, linewidth=1)
    axes.text(0, 4.3, "units of three sequences, a lane for each", fontsize=10, ha="left", color=INK)
    axes.text(9.6, 2.55, "block\ntable", fontsize=9, ha="left", va="center", color=INK)
    axes.text(0, -0.45, "pages in memory", fontsize=10, ha="left", color=INK)
    axes.set(xlim=(-0.2, 10.6), ylim=(-0.7, 4.8))
