"""The pictures of the stages that need compute capability 9.0."""

from functools import partial

from matplotlib.patches import FancyBboxPatch

from flashladder.plot.cards.drawing import Bars, arrow, beside, box, centred, lanes, picture, rectangle, titled
from flashladder.plot.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALE,
    RED,
    SKY,
    YELLOW,
    cell,
    in_order,
    plain,
    text_on,
)


@picture(
    4.4,
    "Tiles 0 to 4 pass through two buffers. The barrier full of a buffer completes a phase when a tile has arrived, "
    "the barrier empty when the warps have read it, and the parity of each changes between 0 and 1",
)
def tma(figure) -> None:
    end, bar = 12, Bars()
    for number, axes in enumerate(figure.subplots(2, 1)):
        titled(axes, f"buffer {number}")
        axes.set(xlim=(-2.2, end), ylim=(-0.15, 3))
        # A load takes 2, and reading 2; the other buffer's lie between.
        full, empty, tile, at = [0], [0], number, 2 * number
        while at < end:
            bar(axes, at, at + 2, 2, ORANGE, f"load {tile}")
            bar(axes, at + 2, at + 4, 2, BLUE, f"read {tile}")
            full.append(at + 2)
            empty.append(at + 4)
            at, tile = at + 4, tile + 2
        for begins, row, colour, name in ((full, 1, SKY, "full"), (empty, 0, YELLOW, "empty")):
            beside(axes, row, name)
            for phase, (left, right) in enumerate(zip(begins, [*begins[1:], end])):
                bar(axes, left, right, row, colour if phase % 2 else PALE, str(phase % 2))
    figure.supxlabel("time →; in each bar: the parity of the phase under way", fontsize=9, color=GREY)


@picture(
    6.4,
    "K: a step of 16 columns adds 2 to the descriptor, and the stride to the next 8 rows is 64. V: a step of 16 rows "
    "adds 128, and the leading distance, to the next panel, is 8 Bc. S: lane 5 of a warp holds columns of rows 1 and 9",
)
def wgmma(figure) -> None:
    top, bottom = figure.subfigures(2, 1, height_ratios=(3.1, 2.6))
    K, V = top.subplots(1, 2)
    _K(K)
    _V(V)
    top.supxlabel("a descriptor counts 16 bytes as 1", fontsize=9, color=GREY)
    _S(bottom.subplots())


_descriptor = partial(arrow, size=12, color=BLUE, linewidth=1.6, shrinkA=0, shrinkB=0)


def _step(axes, number: int, place: tuple[float, float], width: float) -> None:
    """The piece of K or V that a step along k takes; the first one stands out."""
    rectangle(axes, place, (width, 0.92), ORANGE if number == 0 else PALE)
    centred(axes, place[0] + width / 2, place[1] + 0.46, f"k{number}")


def _K(axes) -> None:
    """A panel of K: 64 columns, rows in groups of 8."""
    titled(axes, "K (and Q): k along a row")
    for group in range(3):
        for step in range(4):
            _step(axes, step, (step, -group), 1)
    _descriptor(axes, (0.5, 1.15), (1.5, 1.15))
    axes.text(1.7, 1.17, "step: + 2", ha="left", va="center", fontsize=9)
    _descriptor(axes, (-0.25, 0.5), (-0.25, -0.5))
    axes.text(-0.45, 0.0, "stride:\n64", ha="right", va="center", fontsize=9)
    axes.text(2, -2.2, "8 rows × 64 columns each", ha="center", va="top", fontsize=9, color=GREY)
    axes.set(xlim=(-2.0, 4.1), ylim=(-2.8, 1.6))


def _V(axes) -> None:
    """Two panels of V: rows in steps of 16."""
    titled(axes, "V: k down the rows")
    for panel in range(2):
        for step in range(3):
            _step(axes, step, (panel * 2.4, -step), 2.0)
    _descriptor(axes, (1.0, 1.15), (3.4, 1.15))
    centred(axes, 2.2, 1.5, "leading: 8 Bc", 9, color="black")
    _descriptor(axes, (-0.25, 0.5), (-0.25, -0.5))
    axes.text(-0.4, 0.0, "step:\n+ 128", ha="right", va="center", fontsize=9)
    axes.text(2.2, -2.2, "16 rows × 64 columns each", ha="center", va="top", fontsize=9, color=GREY)
    axes.set(xlim=(-1.9, 4.5), ylim=(-2.8, 1.8))


def _S(axes) -> None:
    """8 columns of a warp's 16 rows: the lane in each pair of columns."""
    titled(axes, "S, 8 columns of a warp's 16 rows: the lanes")
    for row, y in {0: 5, 1: 4, 7: 2.65, 8: 1.4, 9: 0.4, 15: -0.95}.items():
        axes.text(-0.15, y + 0.42, f"row {row}", ha="right", va="center", fontsize=9)
        for pair in range(4):
            lane = row % 8 * 4 + pair
            colour = BLUE if lane == 5 else (SKY if row < 8 else YELLOW)
            box(axes, (pair * 2, y), (2, 0.84), colour, f"lane {lane}")
        held = {1: "S[4n], S[4n + 1]", 9: "S[4n + 2], S[4n + 3]"}.get(row, "")
        axes.text(8.2, y + 0.42, held, ha="left", va="center", fontsize=9)
    axes.set(xlim=(-1.4, 12.6), ylim=(-1.1, 6))


@picture(
    4.2,
    "Stage 15: a warpgroup's own thread waits for a buffer and loads the next tile between its products. Stage 16: a "
    "producer loads K and V ahead, and two consumer warpgroups only multiply and compute the softmax",
)
def warp_specialization(figure) -> None:
    end, bar = 14, Bars(least=0.7)

    def iterations(axes, row: int, at: float, *more: tuple[str, float, str]) -> None:
        while at < end:
            for words, length, colour in (("S", 1.5, BLUE), ("softmax", 3.0, SKY), ("PV", 1.5, BLUE), *more):
                bar(axes, at, at + length, row, colour, words)
                at += length

    before, after = figure.subplots(2, 1, height_ratios=(2, 3))
    lanes(before, "stage 15", ("warpgroup 1", "warpgroup 0"), -4.2, end)
    bar(before, 0, 1.4, 1, ORANGE, "load")
    iterations(before, 1, 1.4, ("load", 1.4, ORANGE))
    iterations(before, 0, 0.8, ("", 1.4, PALE))
    lanes(after, "stage 16", ("consumer 1", "consumer 0", "producer"), -4.2, end)
    at = 0.0
    for words in ("K", "V", "K", "V", "K"):
        bar(after, at, at + 0.8, 2, ORANGE, words)
        at += 0.8
    for left, words in ((7.4, "V"), (8.9, "K"), (13.4, "V")):
        bar(after, at, left, 2, PALE, "waits" if left - at > 1.6 else "")
        bar(after, left, left + 0.8, 2, ORANGE, words)
        at = left + 0.8
    iterations(after, 1, 0.8)
    iterations(after, 0, 1.4)
    figure.supxlabel("time → (in order, not to scale)", fontsize=9, color=GREY)


_tile = Bars(least=0.7, height=0.8, size=9)


@picture(
    5.3,
    "Stage 16: the next block starts when the last one has stored O, and its consumers wait for Q and K. Stage 17: the "
    "producer loads the next Q and K while the consumers finish. Below: a causal head of eight query tiles on four "
    "blocks. Dealt by length the blocks have 12, 10, 8 and 6 tiles of keys, in pairs 9 each",
)
def tile_scheduler(figure) -> None:
    end = 15

    def work(axes, at: float) -> None:
        for words, length, colour in (("S softmax PV", 3.6, BLUE), ("S softmax PV", 3.6, BLUE), ("O", 1.0, YELLOW)):
            _tile(axes, at, at + length, 0, colour, words if at + length <= end else "")
            at += length

    before, after, balance = figure.subplots(3, 1, height_ratios=(2, 2, 4))
    lanes(before, "stage 16", ("consumers", "producer"), -3.6, end)
    for at in (0.0, 11.6):
        _tile(before, at, at + 2.2, 1, SKY if at else ORANGE, "Q K V")
        _tile(before, at, at + 1.6, 0, PALE, "waits" if not at else "")
        if not at:
            _tile(before, 4.0, 6.2, 1, ORANGE, "K V")
        work(before, at + 1.6)
    for row in (1, 0):
        _tile(before, 9.8, 11.6, row, PALE, "starts")
    lanes(after, "stage 17 (light: of the next query tile)", ("consumers", "producer"), -3.6, end)
    for at, words in ((0.0, "Q K V"), (4.0, "K V"), (6.2, "Q K V"), (10.2, "K V"), (13.4, "")):
        _tile(after, at, at + 2.2, 1, SKY if at > 6 else ORANGE, words)
    _tile(after, 0, 1.6, 0, PALE, "waits")
    work(after, 1.6)
    work(after, 9.8)
    balance.set(xlim=(-3.6, end), ylim=(0, 9.6))
    _balance(balance)


def _balance(axes, blocks: int = 4, tiles: int = 8) -> None:
    titled(axes, "causal: tiles of keys that each block reads")
    by_length = [(tiles - b, tiles - blocks - b) for b in range(blocks)]
    in_pairs = [(tiles - b, b + 1) for b in range(blocks)]
    for top, words, dealt in ((9.4, "by length", by_length), (4.2, "in pairs", in_pairs)):
        axes.text(-0.2, top - 2, words, ha="right", va="center", fontsize=9.5, color=INK)
        for block, (first, second) in enumerate(dealt):
            row = top - block - 1
            _tile(axes, 0, first, row, BLUE, str(first))
            _tile(axes, first, first + second, row, SKY, str(second))
            axes.text(first + second + 0.25, row + 0.47, f"= {first + second}", va="center", fontsize=9.5, color=GREY)


_WRITE = (("write", 1.9, ORANGE), ("", 0.5, RED))


@picture(
    4.9,
    "A warp writes O to shared memory and starts the store, and TMA reads O while the warp computes the next query "
    "tile. Before it writes again, it waits until TMA has read. Below: the 16-byte chunks of eight rows in a panel, "
    "chunk c of row r at position c XOR r",
)
def tma_store(figure) -> None:
    time, chunks = figure.subplots(2, 1, height_ratios=(3.2, 5))
    _time(time)
    _chunks(chunks)


def _time(axes) -> None:
    bar = Bars()
    titled(axes, "one warp and TMA over time")
    axes.set(xlim=(-1.8, 15), ylim=(0, 2.8))
    at = 0.0
    for words, length, colour in (
        ("PV", 1.7, BLUE), *_WRITE, ("next query tile", 6.6, BLUE), ("", 0.5, RED), *_WRITE, ("", 1.4, BLUE),
    ):  # fmt: skip
        bar(axes, at, at + length, 1, colour, words)
        at += length
    bar(axes, 4.1, 7.0, 0, YELLOW, "reads O")
    bar(axes, 13.6, 15, 0, YELLOW, "")
    for row, name in enumerate(("TMA", "warp")):
        beside(axes, row, name)
    for x, words in ((3.85, "fence, meet, start"), (10.95, "wait for read")):
        line = {"arrowstyle": "-", "color": RED}
        axes.annotate(words, (x, 1.9), (x, 2.35), ha="center", fontsize=9.5, color=RED, arrowprops=line)


def _chunks(axes) -> None:
    titled(axes, "position in a row of 128 bytes (a panel of O)")
    for row in range(8):
        axes.text(-0.15, row + 0.52, f"row {row}", ha="right", va="center", fontsize=9.5, color=INK)
        for position in range(8):
            chunk = position ^ row
            cell(axes, (position, row), PALE if chunk else in_order(0, 8), str(chunk), size=9.5, width=2)
    told = "stmatrix writes\nthe same chunk\nof 8 rows:\n8 different\nbank groups"
    axes.text(8.2, 1, told, fontsize=9.5, color=GREY, va="top")
    axes.set(xlim=(-1.3, 11.3), ylim=(8, 0))


@picture(
    4.2,
    "Without turns both consumers multiply at the same time and then both compute their softmax, while the tensor "
    "cores are idle. With turns one consumer's softmax runs during the other one's PV and next S, and the tensor cores "
    "are almost always busy",
)
def ping_pong(figure) -> None:
    end, bar = 18, Bars(least=1.8)
    names = ("tensor cores", "consumer 1", "consumer 0")
    before, after = figure.subplots(2, 1)
    lanes(before, "stage 18: no turns", names, -4.6, end)
    for at in range(0, end, 7):  # PV and S of both, each twice as long as alone, then both softmaxes
        for row in (2, 1):
            bar(before, at, at + 4, row, BLUE, "PV, S")
            bar(before, at + 4, at + 7, row, SKY, "softmax")
        bar(before, at, at + 4, 0, ORANGE, "")
        bar(before, at + 4, at + 7, 0, PALE, "idle")
    lanes(after, "stage 19: turns", names, -4.6, end)
    for at in range(0, end, 5):  # a turn of two, a softmax of three, half a step for the waits
        for row, late in ((2, 0.0), (1, 2.5)):
            bar(after, at + late, at + late + 2, row, BLUE, "PV, S")
            bar(after, at + late + 2, at + late + 5, row, SKY, "softmax")
            bar(after, at + late, at + late + 2, 0, ORANGE, "")
    bar(after, 0, 2.5, 1, SKY, "")
    figure.supxlabel("time → (in order, not to scale)", fontsize=9, color=GREY)


@picture(
    3.4,
    "One consumer over time. Stage 19: PV, S and the softmax of a tile follow each other, and the consumer waits for "
    "each product. Stage 20: the next tile's S and this tile's PV are issued together, and the next softmax runs "
    "during PV",
)
def overlap(figure) -> None:
    end, bar = 17, Bars(least=1.5)
    before, after = figure.subplots(2, 1)
    for axes, title in ((before, "19: one product after the other"), (after, "20: two products in one turn")):
        lanes(axes, f"stage {title}", ("warps", "tensor cores"), -4.4, end)
        for row in range(2):
            rectangle(axes, (0, row + 0.1), (end, 0.75), PALE, edgecolor="none", linewidth=1)
        bar(axes, 0, 2, 1, BLUE, "S0")
    for tile, at in enumerate((2, 9, 16)):
        bar(before, at, at + 3, 0, SKY, f"softmax {tile}")
        bar(before, at + 3, at + 5, 1, BLUE, f"PV{tile}")
        bar(before, at + 5, at + 7, 1, BLUE, f"S{tile + 1}")
    bar(after, 2, 5, 0, SKY, "softmax 0")
    for tile, at in enumerate((5, 10, 15), 1):
        bar(after, at, at + 2, 1, BLUE, f"S{tile}")
        bar(after, at + 2, at + 4, 1, BLUE, f"PV{tile - 1}")
        bar(after, at + 2, at + 5, 0, SKY, f"softmax {tile}")
    figure.supxlabel("time → (in order, not to scale)", fontsize=9, color=GREY)


_AGAIN = (("test", 1.2, RED), ("maximum", 2.8, ORANGE), ("O", 0.9, ORANGE), ("again", 4.2, SKY))
_SOFTMAXES = (  # from the lowest row up
    ("21, lost", (("exponentials", 4.2, SKY), *_AGAIN)),
    ("21, won", (("exponentials", 4.2, SKY), ("test", 1.2, GREEN))),
    ("stage 20", (("maximum", 3.0, ORANGE), ("rescale?", 2.4, ORANGE), ("exponentials", 4.2, SKY))),
)


@picture(
    4.4,
    "Above: stage 20 takes a maximum and compares it before the exponentials. Stage 21 computes the exponentials at "
    "once and then tests the sum; a lost bet adds maximum, rescaling and the exponentials again. Below: in bf16 a "
    "row's maximum starts at 2^-32 and a lane's sum may reach 2^64",
)
def optimistic_max(figure) -> None:
    bar = Bars(size=9)
    steps, room = figure.subplots(2, 1, height_ratios=(3, 2.4))
    titled(steps, "a warp's softmax of one tile")
    steps.set(xlim=(-2.6, 13.4), ylim=(0, 3))
    for row, (name, parts) in enumerate(_SOFTMAXES):
        beside(steps, row, name)
        at = 0.0
        for words, length, colour in parts:
            bar(steps, at, at + length, row, colour, words)
            at += length
    _room(room)


def _room(axes) -> None:
    titled(axes, "P in bf16, as a power of two")
    for left, right, colour, words in (
        (-126, -32, PALE, "smaller weights"),
        (-32, 64, SKY, "scores may grow"),
        (64, 127, RED, "bet lost"),
    ):
        rectangle(axes, (left, 0), (right - left, 1), colour)
        centred(axes, (left + right) / 2, 0.47, words, 9, color=text_on(colour))
    for power in (-126, -32, 64, 127):
        axes.text(power, -0.15, f"{power}".replace("-", "−"), ha="center", va="top", fontsize=9, color=GREY)
    for x, words, colour in (
        (-32, "the row's maximum,\nwhen it was taken", BLUE), (64, "a lane's sum\nis tested here", INK),
    ):  # fmt: skip
        line = {"arrowstyle": "-", "color": colour}
        axes.annotate(words, (x, 1), (x, 1.55), ha="center", va="bottom", fontsize=9, color=colour, arrowprops=line)
    axes.set(xlim=(-140, 140), ylim=(-0.7, 2.9))


_BETWEEN_TILES = {
    "stage 21": (
        (("S PV", 0, 2.4, BLUE), ("PV", 4.8, 1.2, BLUE), ("S", 9.0, 1.2, SKY)),
        (
            ("", 0, 2.4, PALE), ("softmax", 2.4, 2.4, BLUE), ("", 4.8, 1.2, PALE), ("sums", 6.0, 1.2, ORANGE),
            ("store", 7.2, 1.8, YELLOW), ("", 9.0, 1.2, PALE), ("softmax", 10.2, 2.4, SKY),
        ),
    ),
    "stage 22": (
        (("S PV", 0, 2.4, BLUE), ("S", 4.8, 1.2, SKY), ("PV", 6.0, 1.2, BLUE), ("S PV", 11.4, 2.4, SKY)),
        (
            ("", 0, 2.4, PALE), ("softmax", 2.4, 2.4, BLUE), ("sums", 4.8, 1.2, ORANGE), ("", 6.0, 1.2, PALE),
            ("softmax", 7.2, 2.4, SKY), ("store", 9.6, 1.8, YELLOW), ("", 11.4, 2.4, PALE),
        ),
    ),
}  # fmt: skip
_LOADS = (("K1", BLUE), ("K0", BLUE), ("V1", BLUE), ("K1", SKY), ("V0", BLUE), ("K0", SKY), ("V1", SKY), ("V0", SKY))


@picture(
    4.5,
    "Between two query tiles. Stage 21: the last PV runs alone, then the sums are reduced and O is stored, then the "
    "next query tile's first S runs alone. Stage 22: this S and the last PV run together, the sums are reduced during "
    "both, and O is stored after the next softmax. The producer loads V one tile after K",
)
def no_gap(figure) -> None:
    end, bar = 13.8, Bars(height=0.8, size=9)
    *both, loads = figure.subplots(3, 1, height_ratios=(2, 2, 1))
    for axes, (title, rows) in zip(both, _BETWEEN_TILES.items(), strict=True):
        lanes(axes, title, ("warps", "products"), -2.6, end)
        for row, work in zip((1, 0), rows, strict=True):
            for words, at, length, colour in work:
                bar(axes, at, at + length, row, colour, words)
    lanes(loads, "stage 22: order of the loads, two tiles each", ("producer",), -2.6, end)
    width = end / len(_LOADS)
    for place, (words, colour) in enumerate(_LOADS):
        bar(loads, place * width, (place + 1) * width, 0, colour, words)
    figure.supxlabel("dark: one query tile, light: the next; not to scale", fontsize=9, color=GREY)


# (name, registers that the thread has, registers of O, S, P, Q), from the lowest up
_SHAPES = (
    ("d = 128, three consumers: not built", 160, (64, 64, 32, 0)),
    ("d = 64, three consumers", 160, (32, 64, 32, 0)),
    ("d = 64, two consumers, Q in registers", 240, (32, 64, 32, 16)),
    ("d = 128, two consumers, Q in registers", 240, (64, 64, 32, 32)),
)


@picture(
    3.6,
    "Registers of a consumer's thread. d_head 128: two consumers hold O, S, P and even Q within 240. d_head 64: two "
    "consumers need 144 of 240, three consumers need 128 of 160. d_head 128 with three consumers would need 160 of 160",
)
def shapes(figure) -> None:
    axes = figure.subplots()
    plain(axes)
    axes.set(xlim=(-4, 246), ylim=(-0.55, len(_SHAPES) * 1.3))
    for place, (name, has, parts) in enumerate(_SHAPES):
        row, left = place * 1.3, 0
        axes.text(0, row + 0.66, name, va="bottom", fontsize=9.5, color=INK)
        rectangle(axes, (0, row), (has, 0.6), PALE, edgecolor=INK, linewidth=1)
        for words, colour, registers in zip("OSPQ", (BLUE, SKY, ORANGE, GREY), parts, strict=True):
            if registers:
                box(axes, (left, row), (registers, 0.6), colour, words, linewidth=1)
                left += registers
        axes.text(has - 3, row + 0.3, str(has) if has > left else "", ha="right", va="center", fontsize=9, color=INK)
    axes.text(0, -0.5, "pale: left for addresses, sums and temporaries", fontsize=9, color=GREY)


@picture(
    3.9,
    "16 keys in the order in which a row of S holds them, coloured by the lane that has them, and in the order in "
    "which P and V transposed hold them: each lane has four neighbouring places. Below, the way of V from TMA through "
    "the transposing warps to wgmma",
)
def fp8(figure) -> None:
    colours, top, bottom = (SKY, ORANGE, GREEN, YELLOW), 0.9, 3.2
    steps = (("TMA", "V: [keys][d]"), ("transposing\nwarps", "ldmatrix.trans,\nprmt, stmatrix"),
             ("wgmma", "Vᵀ: [d][keys]"))  # fmt: skip
    axes = figure.subplots()
    plain(axes)
    axes.text(0, top - 0.35, "order of the keys in a row of S", fontsize=9.5, color=INK)
    axes.text(0, bottom + 1.75, "order of the keys in P and in V transposed", fontsize=9.5, color=INK)
    for place in range(16):
        lane, byte = divmod(place, 4)
        key = 2 * lane + byte % 2 + 8 * (byte // 2)
        cell(axes, (key, top), colours[key % 8 // 2], str(key), size=9.5)
        cell(axes, (place, bottom), colours[lane], str(key), size=9.5)
        axes.plot([key + 0.5, place + 0.5], [top + 1.02, bottom - 0.02], color=colours[lane], linewidth=1.6)
    for lane in range(4):
        centred(axes, 4 * lane + 2, bottom + 1.2, f"lane {lane}", 9, color=GREY)
    for number, (who, what) in enumerate(steps):
        left = 5.6 * number
        axes.add_patch(FancyBboxPatch((left, 6.1), 4.0, 2.3, boxstyle="round,pad=0.1", facecolor=PALE, edgecolor=GREY))
        centred(axes, left + 2, 6.75, who, weight="bold")
        centred(axes, left + 2, 7.85, what, 9)
        if number:
            arrow(axes, (left - 1.45, 7.25), (left - 0.15, 7.25), 13)
    axes.set(xlim=(-0.2, 16.2), ylim=(8.6, 0.2))


@picture(
    4.6,
    "A copy that block 0 starts brings a tile of K or V from the L2 to buffer 0 of both blocks, a copy that block 1 "
    "starts brings the next tile to buffer 1 of both. The consumers of each block arrive at the barriers empty of both "
    "blocks, and each of these counts 16 arrivals",
)
def multicast(figure) -> None:
    axes = figure.subplots()
    plain(axes)
    axes.set(xlim=(-0.1, 16.1), ylim=(10.6, -0.7))
    axes.text(0, -0.2, "L2", fontsize=9.5, color=INK, weight="bold")
    blocks, copies = (0.0, 8.4), (BLUE, ORANGE)
    for block, left in enumerate(blocks):
        box(axes, (left, 0), (7.6, 0.9), copies[block], f"tile {3 - block}: block {block} starts the copy")
        rectangle(axes, (left, 3.1), (7.6, 7.3), PALE, edgecolor=GREY)
        for number, colour in enumerate(copies):
            box(axes, (left + 0.3 + 3.6 * number, 3.5), (3.4, 0.9), colour, f"buffer {number}")
            arrow(axes, (left + 2 + 3.6 * number, 4.4), (left + 2 + 3.6 * number, 5.25), 11)
        box(axes, (left + 0.3, 5.3), (7, 0.9), GREEN, "8 consumer warps")
        box(axes, (left + 0.3, 8.1), (7, 0.9), YELLOW, "empty: 16 arrivals")
        centred(axes, left + 3.8, 9.7, f"block {block}: query tile {block}", weight="bold")
    for number, colour in enumerate(copies):
        start = blocks[number] + 3.8
        for left in blocks:
            arrow(axes, (start, 0.9), (left + 2 + 3.6 * number, 3.45), 12, color=colour, linewidth=1.6)
            arrow(axes, (start, 6.2), (left + 3.6 + 0.4 * number, 8.05), 11, color=GREEN)
