"""Banks of shared memory: what one warp's access asks of them, and of global memory's sectors; the XOR swizzle of stage
05 as a permutation of a tile's chunks, and as a rule about address bits.
"""

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from flashladder.core.errors import FlashLadderError
from flashladder.plot.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALE,
    RED,
    caption,
    cell,
    cells_by,
    in_order,
    new_figure,
    plain,
)
from flashladder.simulator.accesses import LANES, Access

CHUNK_BYTES = 16


def place_of(row: int, chunk: int, on: bool = True) -> int:
    """Where a row's 16-byte chunk lies within the row, in chunks: stage 05's tile_offset."""
    return chunk ^ row % 8 if on else chunk


def swizzle(d: int = 128, on: bool | None = None, rows: int = 8, chunk: int = 0) -> Figure:
    """Which chunk lies in which group of 4 banks, row by row; what ldmatrix wants of 8 rows has a heavy border.

    d: head dim, 64 or 128 (8 or 16 chunks a row). on: with or without the swizzle, None: side by side.
    chunk: the one that the 8x8 matrix is made of.
    """
    chunks = 2 * d // CHUNK_BYTES
    if not 0 <= chunk < chunks:
        raise FlashLadderError(f"A row of d = {d} has the chunks 0 to {chunks - 1}; chunk {chunk} is none of them.")
    sides = [False, True] if on is None else [on]
    figure = new_figure(
        4.6 * len(sides) * (1.3 if chunks > 8 else 1),
        1.4 + 0.42 * rows,
        "Rows of a tile by groups of 4 banks: where each 16-byte chunk lies",
    )
    for axes, side in zip(figure.subplots(1, len(sides), squeeze=False)[0], sides, strict=True):
        _permutation(axes, chunks, side, rows, chunk)
    caption(
        figure, f"d = {d}: rows of {2 * d} bytes. Number: the chunk's index c in its row; heavy border: one 8x8 matrix."
    )
    return figure


def _permutation(axes, chunks: int, on: bool, rows: int, chunk: int) -> None:
    groups = set()
    for row in range(rows):
        for c in range(chunks):
            place = place_of(row, c, on)
            colour = in_order(c % 8, 8)
            wanted = c == chunk and row < 8
            ground = colour if wanted or chunks <= 8 else (*colour[:3], 0.8)
            bold = "bold" if wanted else "normal"
            cell(axes, (place, row), ground, str(c), mark=RED if wanted else None, size=9, weight=bold)
            if wanted:
                groups.add(place % 8)
    if chunks > 8:
        axes.axvline(8, color=INK, linewidth=1.5, zorder=5)
    cells_by(axes, [str(place % 8) for place in range(chunks)], [str(row) for row in range(rows)])
    axes.set_xlabel("bank group (4 banks, 16 bytes)")
    axes.set_ylabel("row of the tile")
    count = min(8, rows) // len(groups)
    axes.set_title(
        f"{'chunk c at place c XOR (row mod 8)' if on else 'chunk c at place c'}\n"
        f"one chunk of 8 rows: {len(groups)} bank group{'s' if len(groups) > 1 else ''}, "
        f"{count} wavefront{'s' if count > 1 else ''}",
        fontsize=10,
    )


def swizzle_bits(d: int = 128) -> Figure:
    """Which bits of a byte's address within the tile are XORed into which."""
    row_bytes = 2 * d
    row_shift = row_bytes.bit_length() - 1  # the lowest bit of the row's index
    bits = row_shift + 4
    figure = new_figure(8.6, 2.6, "Bits of an address, with arrows from the row's to those they are XORed into")
    axes = figure.subplots()
    plain(axes)
    names = {}
    for bit in range(bits):
        if bit < 4:
            names[bit] = ("byte in the chunk", PALE)
        elif bit < 7:
            names[bit] = ("chunk: bank group", ORANGE)
        elif bit < row_shift:
            names[bit] = ("chunk", PALE)
        elif bit < row_shift + 3:
            names[bit] = ("row mod 8", GREEN)
        else:
            names[bit] = ("row", PALE)
    for bit, (_, colour) in names.items():
        left = bits - 1 - bit
        axes.add_patch(Rectangle((left, 0), 1, 1, facecolor=colour, edgecolor=INK))
        axes.text(left + 0.5, 0.5, str(bit), ha="center", va="center", fontsize=11)
    for name in dict.fromkeys(name for name, _ in names.values()):
        own = [bit for bit in names if names[bit][0] == name]
        axes.text(bits - (min(own) + max(own) + 1) / 2, 1.12, name, ha="center", va="bottom", fontsize=9)
    for k in range(3):
        start, end = bits - 0.5 - (row_shift + k), bits - 0.5 - (4 + k)
        axes.add_patch(
            FancyArrowPatch(
                (start, -0.05),
                (end, -0.05),
                connectionstyle=f"arc3,rad={0.28 + 0.05 * k}",
                arrowstyle="-|>",
                mutation_scale=14,
                color=BLUE,
                linewidth=1.5,
            )
        )
    middle = bits - 0.5 - (row_shift + 5) / 2
    axes.text(middle, -1.12, "XOR", ha="center", va="top", fontsize=11, color=BLUE, weight="bold")
    axes.set_xlim(-0.2, bits + 0.2)
    axes.set_ylim(-1.55, 1.6)
    axes.set_title(f"Address within a tile of rows of {row_bytes} bytes (d = {d}): bit by bit", fontsize=10, color=INK)
    base = row_shift - 4
    caption(
        figure,
        f"CuTe: Swizzle<3,3,{base}> on 2-byte elements (3 bits, above the lowest 3, XORed with those {base} higher).",
    )
    return figure


BANKS = 32
SECTOR_BYTES = 32


def _lanes(axes, access: Access, columns: int, found: str) -> None:
    """The lanes down the axes, and a title: where the access is, and what was found of it."""
    axes.set(xlim=(0, columns), ylim=(LANES, 0), ylabel="lane")
    axes.set_yticks([lane + 0.5 for lane in range(0, LANES, 4)], [str(lane) for lane in range(0, LANES, 4)])
    axes.tick_params(length=0)
    kind = f"{access.kind}{f'.x{access.matrices}' if access.matrices else ''}"
    axes.set_title(f"{access.where}: {kind}\n{access.source}\n{found}", fontsize=10)


def bank_grid(access: Access) -> Figure:
    """Lanes by banks for one access to shared memory: which bank serves which lane, and in which wavefront.

    A cell's number is the wavefront of its group of lanes that serves it; from the second on the lane waits because
    another one wanted another word of the bank: those cells have a heavy border.
    """
    if access.space != "shared":
        raise FlashLadderError(f"{access.where} is an access to global memory: it has sectors and no banks.")
    figure = new_figure(8.6, 7.2, "Lanes of a warp by banks: which bank serves which lane, in which wavefront")
    axes = figure.subplots()
    wavefronts = max(access.wavefronts(group) for group in access.groups)
    for group in access.groups:
        for lane in group:
            turn = access.passes[lane]
            colour = in_order(wavefronts - 1 - turn, wavefronts) if wavefronts > 1 else in_order(1, 2)
            for bank in access.banks(lane):
                mark = RED if turn > 0 else None  # it waits
                cell(axes, (bank % BANKS, lane), colour, str(turn + 1), mark=mark, width=1.6, size=7)
        first, last, count = group[0], group[-1], access.wavefronts(group)
        axes.plot([BANKS + 0.4] * 2, [first + 0.1, last + 0.9], color=INK, linewidth=1.2, clip_on=False)
        text = f"{count} wavefront{'s' if count > 1 else ''}"
        axes.text(BANKS + 0.8, (first + last + 1) / 2, text, va="center", fontsize=9, color=RED if count > 1 else INK)
        axes.axhline(last + 1, color=GREY, linewidth=0.8)
    axes.set_xticks([bank + 0.5 for bank in range(0, BANKS, 4)], [str(bank) for bank in range(0, BANKS, 4)])
    axes.set_xticks(range(BANKS + 1), minor=True)
    axes.grid(which="minor", axis="x", color="#dddddd", linewidth=0.5)
    axes.set_xlabel("bank (4 bytes wide)")
    extra = access.cost - access.ideal
    verdict = f"{extra} of them are bank conflicts" if extra else "no bank conflict"
    _lanes(axes, access, BANKS, f"{access.cost} wavefronts, ideal {access.ideal}: {verdict}")
    caption(
        figure,
        f"Addresses of warp 0 as the simulator saw them; {access.bytes} bytes a lane. "
        "Number: the wavefront that serves the lane; red border: it waits.",
    )
    return figure


def sectors(access: Access) -> Figure:
    """Lanes by 32-byte sectors for one access to global memory: how much of each sector is asked for."""
    if access.space != "global":
        raise FlashLadderError(f"{access.where} is an access to shared memory: it has banks and no sectors.")
    wanted: dict[int, set[int]] = {}  # bytes asked for, by sector
    for address in access.addresses:
        for byte in range(address or 0, (address or 0) + access.bytes if address is not None else 0):
            wanted.setdefault(byte // SECTOR_BYTES, set()).add(byte % SECTOR_BYTES)
    columns = {sector: place for place, sector in enumerate(sorted(wanted))}
    figure = new_figure(9, 6, "Lanes of a warp by 32-byte sectors: which bytes of each are asked for")
    axes = figure.subplots()
    for lane, address in enumerate(access.addresses):
        if address is None:
            continue
        for byte in range(address, address + access.bytes, 2):
            left = columns[byte // SECTOR_BYTES] + byte % SECTOR_BYTES / SECTOR_BYTES
            axes.add_patch(Rectangle((left, lane), 2 / SECTOR_BYTES, 1, color=in_order(lane % 4, 5), linewidth=0.8))
    for sector, place in columns.items():
        axes.axvline(place, color="#bbbbbb", linewidth=0.6)
        if sector - 1 not in columns and place:  # not the neighbour in memory
            axes.axvline(place, color=RED, linewidth=1.6, linestyle="--")
    step = max(1, len(columns) // 16)
    axes.set_xticks(
        [place + 0.5 for place in range(0, len(columns), step)], [str(place) for place in range(0, len(columns), step)]
    )
    axes.set_xlabel("sector of 32 bytes, in order of addresses (dashed red: the next one lies elsewhere)")
    used = sum(len(bytes_) for bytes_ in wanted.values())
    percent = f"{100 * used / (SECTOR_BYTES * len(columns)):.0f}%"
    found = f"{access.cost} sectors, ideal {access.ideal}; {percent} of their bytes are asked for"
    _lanes(axes, access, len(columns), found)
    caption(figure, f"Addresses of warp 0 as the simulator saw them; {access.bytes} bytes a lane.")
    return figure
