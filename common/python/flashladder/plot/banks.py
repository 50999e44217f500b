"""What one warp's access asks of shared memory's banks, and of global memory's sectors."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from flashladder.core.errors import FlashLadderError
from flashladder.plot.style import GREY, INK, RED, caption, cell, in_order, new_figure
from flashladder.simulator.accesses import LANES, Access

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
