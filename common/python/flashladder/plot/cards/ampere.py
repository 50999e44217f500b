"""The pictures of the stages that need compute capability 8.0."""

from matplotlib.patches import Patch

from flashladder.plot.cards.drawing import arrow, centred, picture, rectangle, rounded, titled
from flashladder.plot.fragments import MOST, SHAPES, budget, owners
from flashladder.plot.masking import kinds
from flashladder.plot.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALE,
    RED,
    SKY,
    cell,
    cells_by,
    in_order,
    plain,
    stacked,
    text_on,
)
from flashladder.plot.swizzle import place_of

_ON_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # behind words on a hatch


@picture(
    4.3,
    "Matrices C, A and B of mma.m16n8k16 as cells of two neighbouring elements, each with the number of the lane that "
    "holds it: four neighbouring lanes share a row of C, and the left half of A is dealt out as C is",
)
def tensor_cores(figure) -> None:
    shown = (("C", "C: S or O"), ("A", "A: Q or P"), ("B", "B: K or V"))
    widths = [SHAPES[which][1] // (1 if which == "B" else 2) for which, _ in shown]
    for axes, (which, title) in zip(figure.subplots(1, 3, width_ratios=widths), shown):
        plain(axes)
        lanes, _ = owners(which)
        # Two neighbours of B are along the summed dimension, which are rows.
        lanes = lanes[::2, :] if which == "B" else lanes[:, ::2]
        rows, columns = lanes.shape
        height = 16 // rows
        for row in range(rows):
            for column in range(columns):
                lane = int(lanes[row, column])
                colour = in_order(lane // 4, 8)
                if height == 1:
                    cell(axes, (column, row), colour, str(lane), size=9)
                else:
                    rectangle(axes, (column, height * row), (1, height), colour, linewidth=0.7)
                    ink = "white" if lane // 4 < 4 else "black"
                    centred(axes, column + 0.5, height * (row + 0.5), str(lane), 9, color=ink)
        if which in "AC":
            rectangle(axes, (0, 0), (4, 16), "none", edgecolor=RED, linewidth=2.5, zorder=5)
        axes.set(xlim=(-0.1, columns + 0.1), ylim=(16.1, -0.1))
        axes.set_title(title, fontsize=10, color=INK)
    figure.supxlabel("cell: two neighbouring elements; number: their lane", fontsize=9, color=GREY)


@picture(
    3.5,
    "Eight rows of a tile by bank group. On the left chunk 0 of every row lies in bank group 0, which takes 8 "
    "wavefronts; on the right, with the XOR, it lies in a different group in each row, which takes 1",
)
def swizzle(figure) -> None:
    sides = (
        (False, "stage 04: chunk c\nat place c", "1 group: 8 wavefronts"),
        (True, "stage 05: chunk c\nat place c XOR r % 8", "8 groups: 1 wavefront"),
    )
    for axes, (on, title, below) in zip(figure.subplots(1, 2, sharey=True), sides, strict=True):
        for row in range(8):
            for chunk in range(8):
                colour, mark = (in_order(0, 8), RED) if chunk == 0 else (PALE, None)
                cell(axes, (place_of(row, chunk, on), row), colour, str(chunk), mark=mark, width=2, size=9)
        cells_by(axes, list("01234567"), list("01234567"), fontsize=9)
        axes.set(aspect="equal")
        axes.set_title(title, fontsize=9.5)
        axes.set_xlabel(f"bank group\n{below}", fontsize=9.5, color=INK)
    figure.axes[0].set_ylabel("row r of the tile", fontsize=9.5)


@picture(
    4.3,
    "Stage 05: 16 bytes go from global memory through registers to shared memory, and the thread waits in between. "
    "Stage 06: they go straight to shared memory while the thread goes on, until wait and barrier",
)
def cp_async(figure) -> None:
    # What a thread does: (words, length, colour, hatch).
    threads = {
        "stage 05": (("load", 1.4, ORANGE, None), ("waits", 4.8, PALE, "//"), ("store", 1.4, ORANGE, None),
                     ("barrier", 2.0, RED, None)),
        "stage 06": (("ask", 1.4, ORANGE, None), ("free for other work", 4.8, SKY, None), ("wait", 1.4, PALE, "//"),
                     ("barrier", 2.0, RED, None)),
    }  # fmt: skip
    for axes, (name, does) in zip(figure.subplots(2, 1), threads.items(), strict=True):
        titled(axes, name)
        _way_of_bytes(axes, straight=name == "stage 06")
        axes.text(0, -0.55, "the thread", ha="left", va="center", fontsize=9, color=GREY)
        left = 0.0
        for words, length, colour, hatch in does:
            rectangle(axes, (left, -1.6), (length, 0.75), colour, hatch=hatch, linewidth=1)
            look = {"color": INK, "bbox": _ON_WHITE} if hatch else {"color": text_on(colour)}
            centred(axes, left + length / 2, -1.23, words, 9, **look)
            left += length
        axes.set(xlim=(-0.1, 9.7), ylim=(-1.75, 1.75))


def _way_of_bytes(axes, straight: bool) -> None:
    look = {"color": BLUE, "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0}
    for words, left in {"global\nmemory": 0.0, "registers": 3.6, "shared\nmemory": 7.2}.items():
        idle = straight and words == "registers"
        rectangle(axes, (left, 0.0), (2.4, 1.0), "white" if idle else PALE, edgecolor=INK, linewidth=1,
                  linestyle=":" if idle else "-", alpha=0.5 if idle else 1)  # fmt: skip
        centred(axes, left + 1.2, 0.5, words, color=GREY if idle else INK)
    if straight:
        arrow(axes, (1.2, 1.02), (8.4, 1.02), 14, connectionstyle="arc3,rad=-0.1", **look)
        centred(axes, 4.8, 1.25, "cp.async", color=BLUE, bbox=_ON_WHITE | {"pad": 1})
    else:
        arrow(axes, (2.4, 0.5), (3.6, 0.5), 14, **look)
        arrow(axes, (6.0, 0.5), (7.2, 0.5), 14, **look)


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


@picture(
    3.5,
    "One iteration of stages 06 and 07. In 06 the warps wait for K and V, then compute. In 07 V travels during S and "
    "softmax, and the next K during softmax and O += PV; a third barrier tells that K is no longer read",
)
def eager_kv(figure) -> None:
    looks = {"compute": (ORANGE, None), "wait": (PALE, "///"), "barrier": (RED, None)}
    for axes, name in zip(figure.subplots(2, 1, sharex=True), _WARPS, strict=True):
        left = 0.0
        for words, length, kind in _WARPS[name]:
            colour, hatch = looks[kind]
            axes.broken_barh([(left, length)], (0.6, 0.8), facecolor=colour, hatch=hatch, edgecolor=GREY, linewidth=0.5)
            centred(axes, left + length / 2, 1.0, words, 9, bbox=_ON_WHITE if hatch else None)
            left += length
        for lane, (words, start, end, colour) in enumerate(_COPIES[name]):
            low = -0.1 - 0.65 * lane
            axes.broken_barh([(start, end - start)], (low, 0.5), facecolor=colour, edgecolor=BLUE, linewidth=0.8)
            centred(axes, (start + end) / 2, low + 0.24, words, 9, color=text_on(colour))
        axes.set_ylim(-0.9, 1.5)
        axes.set_yticks([1.0, 0.15], ["warps", "copies"], fontsize=9)
        axes.set_xticks([])
        axes.tick_params(length=0)
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.set_title(name, fontsize=9.5, loc="left", weight="bold")
    figure.axes[1].set_xlim(0, 10.3)
    figure.axes[1].set_xlabel("one iteration; lengths are not to scale; red: a barrier", fontsize=9, color=GREY)


@picture(
    2.9,
    "Registers that a thread holds during S = QKᵀ at d = 128: with whole-block fragments 384, more than the 255 that "
    "it can have; with the fragments of one step 216",
)
def fragment_tiles(figure) -> None:
    looks = {"O": (BLUE, None), "S": (SKY, None), "Q fragments": (GREEN, "//"), "K fragments": (ORANGE, None)}
    axes = figure.subplots()
    for y, step in enumerate((False, True)):
        held = budget(128, step)["S = QKᵀ"].items()
        parts = [(count, looks[what], None if step else what) for what, count in held]
        left = stacked(axes, y, parts, least=15, height=0.62, size=9)
        axes.text(left + 5, y, str(left), va="center", fontsize=10, weight="bold", color=RED if left > MOST else INK)
    axes.axvline(MOST, color=RED, linestyle="--", linewidth=1.5)
    axes.text(MOST + 4, -0.5, f"limit: {MOST}", color=RED, fontsize=9, va="bottom")
    axes.set_yticks([0, 1], ["whole\nblock", "one\nstep"], fontsize=9.5)
    axes.set(xlim=(0, 430), ylim=(1.5, -0.75))
    axes.set_xlabel("registers of a thread", fontsize=9.5)
    axes.tick_params(axis="x", labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(fontsize=9, loc="outside upper center", ncols=4, frameon=False, handlelength=1.2, columnspacing=1.0)


@picture(
    2.7,
    "Two buffers over three iterations: while the warps compute on the tile in one buffer, the next tile is copied "
    "into the other; one barrier stands between two iterations",
)
def double_buffering(figure) -> None:
    turns = 3
    axes = figure.subplots()
    plain(axes)
    for turn in range(turns):
        left = 3.2 * turn + 0.1
        centred(axes, left + 1.5, 2.35, f"iteration {turn}")
        for buffer in range(2):
            computed, low = turn % 2 == buffer, 1.1 * (1 - buffer)
            words = f"compute\ntile {turn}" if computed else f"fill with\ntile {turn + 1}"
            colour, edge = (ORANGE, GREY) if computed else (SKY, BLUE)
            axes.broken_barh([(left, 3.0)], (low, 0.95), facecolor=colour, edgecolor=edge, linewidth=0.8)
            centred(axes, left + 1.5, low + 0.47, words, color=text_on(colour))
    for turn in range(turns + 1):
        axes.plot([3.2 * turn, 3.2 * turn], [-0.1, 2.1], color=RED, linewidth=2.2)
    centred(axes, 3.2, -0.35, "wait, then one barrier", 9, color=RED)
    axes.set(xlim=(-0.1, 3.2 * turns + 0.1), ylim=(-0.6, 2.6))
    axes.set_yticks([1.57, 0.47], ["buffer 0", "buffer 1"], fontsize=9.5)
    axes.tick_params(length=0)


_OF_A_SCORE = (
    ("scale", "multiply", False),
    ("maximum", "max", True),
    ("s − m", "add", False),
    ("· log₂e", "multiply", False),
    ("below 2^−126?", "compare", False),
    ("then halve", "multiply", False),
    ("2^x", "ex2", True),
    ("then square", "multiply", False),
    ("sum", "add", True),
)


@picture(
    4.3,
    "What one score takes besides the maximum: in stage 09 eight instructions, in stage 10 a multiply-add, an ex2 and "
    "an addition",
)
def fast_softmax(figure) -> None:
    axes = figure.subplots()
    plain(axes)
    for place, (what, name, stays) in enumerate(_OF_A_SCORE):
        _instruction(axes, 0, place, what, name, SKY if stays else PALE)
    after = {place: (what, name, SKY) for place, (what, name, stays) in enumerate(_OF_A_SCORE) if stays}
    for place, one in sorted((after | {3: ("s · c − m · c", "multiply-add", BLUE)}).items()):
        _instruction(axes, 1, place, *one)
    for bottom, top in ((0.45, 0.45), (2.45, 5.45), (7.45, 7.45)):
        axes.plot([1.06, 1.06], [bottom - 0.4, top + 0.4], color=GREY, linewidth=2)
    for column, title in enumerate(("stage 09", "stage 10")):
        axes.text(column * 1.12 + 0.46, -0.35, title, ha="center", fontsize=11, weight="bold", color=INK)
    axes.set(xlim=(-0.02, 2.1), ylim=(9.05, -0.75))


def _instruction(axes, column: int, place: int, what: str, name: str, colour: str) -> None:
    left, ink = column * 1.12, "white" if colour == BLUE else INK
    rounded(axes, (left, place + 0.06), (0.92, 0.78), colour, 0.06)
    axes.text(left + 0.04, place + 0.47, what, va="center", fontsize=9.5, color=ink)
    axes.text(left + 0.88, place + 0.47, name, va="center", ha="right", fontsize=9, color=ink, style="italic")


@picture(
    3.7,
    "Four registers of a 16x16 piece of K: in stage 10 the two of an operand are r0 and r2, with one between them; in "
    "stage 11 they are neighbours",
)
def lean_addressing(figure) -> None:
    old = [(f"rows {rows}", side, colour) for side in ("left", "right") for rows, colour in (("0-7", SKY),
           ("8-15", ORANGE))]  # fmt: skip
    axes = figure.subplots()
    plain(axes)
    for lane in range(4):
        axes.text(lane + 0.5, -0.62, f"lanes {8 * lane}-{8 * lane + 7}", ha="center", fontsize=9, color=GREY)
    axes.text(-0.12, -0.62, "point at", ha="right", fontsize=9, color=GREY)
    _registers(axes, 0, "stage 10", old, "two pairs, each with a gap: moves")
    _registers(axes, 2.6, "stage 11", [old[0], old[2], old[1], old[3]], "two pairs of neighbours: no moves")
    axes.set(xlim=(-1.15, 4.05), ylim=(4.75, -0.95))


def _registers(axes, top: float, title: str, matrices, told: str) -> None:
    axes.text(-0.12, top + 0.5, title, ha="right", va="center", fontsize=10, weight="bold", color=INK)
    for place, (rows, side, colour) in enumerate(matrices):
        rectangle(axes, (place, top), (1, 1), colour, linewidth=2)
        centred(axes, place + 0.5, top + 0.3, rows, 9)
        centred(axes, place + 0.5, top + 0.7, f"{side}: r{place}", 9)
    for colour in (SKY, ORANGE):
        first, second = (place for place, one in enumerate(matrices) if one[2] == colour)
        bend = f"arc3,rad={0.22 if second - first > 1 else 0.35}"
        arrow(axes, (first + 0.5, top + 1.05), (second + 0.5, top + 1.05), 9, arrowstyle="<|-|>", connectionstyle=bend)
    centred(axes, 2, top + 1.95, told)


_CONFIGURATION = (
    (("BF16, 128", "type, d", PALE), ("128, 64, 4", "Br, Bc, warps", PALE), ("swizzled", "05", SKY)),
    (("async", "06", SKY), ("eager", "07", SKY), ("load_2_2_2", "08", SKY), ("kv_buffers_2", "09", SKY)),
    (("opt_softmax", "10", SKY), ("skip_rescale", "10", SKY), ("lean", "11", SKY), ("lean_ldmatrix", "11", SKY)),
)


@picture(
    3.9,
    "A configuration's line with the stages that its parts come from, and the tuner's way: rules refuse, the rest is "
    "built, verified and timed, and a choice for each GPU and length is kept",
)
def autotune(figure) -> None:
    steps = (("rules", "refuse,\nwith a reason"), ("build", "and verify"), ("time", "beside\nthe peers"),
             ("choice", "by GPU\nand length"))  # fmt: skip
    axes = figure.subplots()
    plain(axes)
    for line, chips in enumerate(_CONFIGURATION):
        width = 10.4 / len(chips)
        for place, (name, whence, colour) in enumerate(chips):
            rounded(axes, (place * width, line * 1.25), (width - 0.15, 1.05), colour, 0.12)
            middle = place * width + width / 2 - 0.08
            centred(axes, middle, line * 1.25 + 0.36, name)
            centred(axes, middle, line * 1.25 + 0.77, whence, 9)
    centred(axes, 5.15, 4.15, "one line, one instance of the kernel")
    for place, (name, told) in enumerate(steps):
        left = place * 2.6
        rounded(axes, (left, 4.75), (2.15, 1.5), ORANGE, 0.12)
        centred(axes, left + 1.08, 5.17, name, 10, weight="bold", color="black")
        centred(axes, left + 1.08, 5.75, told, 9, linespacing=1.0, color="black")
        if place:
            arrow(axes, (left - 0.45, 5.5), (left, 5.5), 11)
    axes.set(xlim=(-0.1, 10.4), ylim=(6.4, -0.1))


@picture(
    4.5,
    "Tiles of S for 384 queries and 512 keys: whole ones on the left, masked ones along the diagonal, which ends at "
    "the bottom right corner, and ones that are never loaded on the right",
)
def masking(figure) -> None:
    looks = {"whole": (SKY, None, "whole: no mask"), "masked": (ORANGE, "///", "on the edge: masked"),
             "skipped": (PALE, None, "empty: never loaded")}  # fmt: skip
    Nq, Nkv, Br, Bc, warp_rows = 384, 512, 128, 64, 32
    axes = figure.subplots()
    plain(axes)
    found = kinds(Nq, Nkv)
    for warp in range(found.shape[0]):
        for tile in range(found.shape[1]):
            colour, hatch, _ = looks[found[warp, tile]]
            rectangle(axes, (tile * Bc, warp * warp_rows), (Bc, warp_rows), colour, hatch=hatch, linewidth=0.6)
    for row in range(0, Nq + 1, Br):
        axes.plot([0, Nkv], [row, row], color=GREY, linewidth=1.3)
    axes.plot([Nkv - Nq, Nkv], [0, Nq], color=RED, linewidth=2)
    arrow(axes, (Nkv - 4, Nq + 26), (8, Nq + 26), 13, clip_on=False)
    centred(axes, Nkv / 2, Nq + 52, "K and V are visited from the last tile that is seen")
    axes.set(xlim=(0, Nkv), ylim=(Nq + 66, 0), aspect="equal")
    axes.set_yticks([64, 192, 320], ["block 0", "block 1", "block 2"], fontsize=9.5)
    axes.tick_params(length=0)
    axes.set_title("512 keys", fontsize=9.5, color=INK)
    handles = [Patch(facecolor=one, hatch=hatch, edgecolor=GREY, label=text) for one, hatch, text in looks.values()]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=9.5, frameon=False)
