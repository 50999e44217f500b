"""Masks: which tiles of S are whole, at an edge, or empty; and what the order of blocks does to a causal grid."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from flashladder.measuring import block_order
from flashladder.plot.style import BLUE, GREY, INK, ORANGE, PALE, RED, SKY, caption, in_order, new_figure

WARP_ROWS = 32  # of a block's 128: each warp asks for itself whether it has to mask
_LOOKS = {"whole": (SKY, None), "masked": (ORANGE, "///"), "skipped": (PALE, None), "outside": ("white", None)}


def kinds(Nq: int, Nkv: int, causal: bool = True, Br: int = 128, Bc: int = 64) -> np.ndarray:
    """What stage 13 does with each warp's rows of each tile: [rows / 32, columns / Bc] of "whole", "masked" and
    "skipped" (by the whole block); "outside" for warps without any row of Q."""
    blocks, tiles = -(-Nq // Br), -(-Nkv // Bc)
    found = np.full((blocks * Br // WARP_ROWS, tiles), "skipped", dtype=object)
    diagonal = Nkv - Nq if causal else Nkv
    for warp in range(len(found)):
        block_end = min(Nkv, (warp * WARP_ROWS // Br + 1) * Br + diagonal)
        visited = max(1, -(-block_end // Bc))  # a block that sees no key visits one tile, all masked
        for tile in range(min(visited, tiles)):
            all_seen = (tile + 1) * Bc <= min(Nkv, warp * WARP_ROWS + 1 + diagonal)
            found[warp, tile] = "whole" if all_seen else "masked"
        if warp * WARP_ROWS >= Nq:
            found[warp] = "outside"
    return found


def tile_kinds(*problems: tuple[int, int]) -> Figure:
    """S = QKᵀ of each (Nq, Nkv) as tiles: whole, masked, skipped; the line is the edge of what is seen, aligned at the
    bottom right."""
    problems = problems or ((640, 640), (320, 640), (640, 320))
    figure = new_figure(
        3.2 * len(problems) + 1, 4.6, "Tiles of S that are computed whole, masked at the edge, or skipped"
    )
    panels = figure.subplots(1, len(problems), squeeze=False)[0]
    for axes, (Nq, Nkv) in zip(panels, problems):
        _draw_tiles(axes, Nq, Nkv)
    panels[0].set_ylabel("rows of Q")
    handles = [
        Patch(facecolor=_LOOKS[kind][0], hatch=_LOOKS[kind][1], edgecolor=GREY, label=text)
        for kind, text in (("whole", "whole"), ("masked", "masked by its warp"), ("skipped", "never loaded"))
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=9, frameon=False)
    caption(figure, "A small cell: 32 rows of a warp and 64 keys. Heavy lines: blocks of 128 rows. Below red: seen.")
    return figure


def _draw_tiles(axes, Nq: int, Nkv: int) -> None:
    found, Br, Bc = kinds(Nq, Nkv), block_order.Br, block_order.Bc
    for (warp, tile), kind in np.ndenumerate(found):
        colour, hatch = _LOOKS[kind]
        place = tile * Bc, warp * WARP_ROWS
        axes.add_patch(Rectangle(place, Bc, WARP_ROWS, facecolor=colour, hatch=hatch, edgecolor="white", linewidth=0.6))
    rows, columns = len(found) * WARP_ROWS, found.shape[1] * Bc
    for row in range(0, rows + 1, Br):
        axes.plot([0, columns], [row, row], color=GREY, linewidth=1.2)
    axes.plot([0, Nkv, Nkv], [Nq, Nq, 0], color=INK, linewidth=1, linestyle=":")  # where Q and K end
    first = max(0, Nq - Nkv)  # the first row that sees a key
    axes.plot([first + Nkv - Nq, Nkv], [first, Nq], color=RED, linewidth=2)
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    axes.set_aspect("equal")
    axes.set_xticks(sorted({0, Nkv}))
    axes.set_yticks(sorted({0, Nq}))
    axes.set_xlabel("keys")
    counts = {kind: int((found == kind).sum()) for kind in ("whole", "masked", "skipped")}
    axes.set_title(f"Nq = {Nq}, Nkv = {Nkv}\n" + ", ".join(f"{n} {kind}" for kind, n in counts.items()), fontsize=9)


def block_orders(N: int = 2048, heads: int = 16, places: int = 48) -> Figure:
    """The model of measuring/block_order.py: a panel for each order, a row for each place of a resident block, a bar
    for each block of the grid, darker for longer ones."""
    figure = new_figure(
        10, 7.2, "Which places for blocks are busy over time, for four orders of a causal grid's blocks"
    )
    panels = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    for axes, order in zip(panels, block_order.ORDERS):
        costs = block_order.work(order, N, heads)
        for (place, start, end), cost in zip(block_order.schedule(costs, places), costs):
            colour = in_order(max(costs) - cost, max(costs))
            axes.broken_barh([(start, end - start)], (place, 0.9), facecolor=colour, edgecolor="white", linewidth=0.3)
        part = block_order.busy(order, N, heads, places)
        axes.set_title(f"{order}: busy {part:.0%} of the time", fontsize=9)
        axes.axvline(sum(costs) / places, color=BLUE, linestyle=":", linewidth=1.2)
    for axes in panels[2:]:
        axes.set_xlabel("time, in tiles of K and V")
    for axes in panels[::2]:
        axes.set_ylabel("place for a block")
    caption(
        figure,
        f"A model, no measurement: a block takes as long as it has tiles. N = {N}, {heads} heads, {places} places. "
        "Dotted: all places busy to the end.",
    )
    return figure
