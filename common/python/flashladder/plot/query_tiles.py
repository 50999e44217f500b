"""Which block of a persistent grid works on which query tile when."""

from matplotlib.figure import Figure

from flashladder.measuring import query_tile_order
from flashladder.plot.style import BLUE, caption, in_order, label, new_figure


def query_tiles(
    N: int = 1024,
    heads: int = 6,
    blocks: int = 8,
    orders: tuple[str, ...] = ("heads apart", "head by head, long with short"),
    rows: int = query_tile_order.Br,
    masks: tuple[bool, ...] = (False, True),
) -> Figure:
    """The model of measuring/query_tile_order.py: full above and causal below (masks: those that are causal or not), an
    order in each column; a row for each block, a bar for each query tile of so many rows, with its head's number and
    its row tile's, coloured by head."""
    figure = new_figure(
        11,
        0.6 + 3 * len(masks),
        "Which head and rows each block works on over time, for orders of the query tiles",
    )
    panels = figure.subplots(len(masks), len(orders), sharex="row", sharey=True, squeeze=False)
    for row, causal in zip(panels, masks):
        for axes, order in zip(row, orders):
            _draw(axes, order, N=N, heads=heads, causal=causal, blocks=blocks, rows=rows)
        row[0].set_ylabel("block")
    for axes in panels[-1]:
        axes.set_xlabel("time, in tiles of K and V")
    caption(
        figure,
        f"A model, no measurement: a query tile takes as long as it has tiles of K and V. N = {N}, {heads} heads, "
        f"{blocks} blocks. In a bar: head.row tile (where there is room). Dotted: all blocks busy to the end.",
    )
    return figure


def _draw(axes, order: str, **sizes) -> None:
    pieces = query_tile_order.schedule(order, **sizes)
    for one in pieces:
        colour = in_order(one.head, sizes["heads"])
        length = one.end - one.start
        axes.broken_barh([(one.start, length)], (one.block, 0.92), facecolor=colour, edgecolor="white", linewidth=0.6)
        if length > 2:
            label(axes, one.start + length / 2, one.block + 0.46, colour, f"{one.head}.{one.row_tile}", size=6.5)
    part = query_tile_order.busy(order, **sizes)
    wanted = query_tile_order.heads_at_once(order, **sizes)
    what = "causal" if sizes["causal"] else "full"
    axes.set_title(f"{what}, {order}\n{wanted:.1f} heads at a time, busy {part:.0%}", fontsize=8)
    axes.axvline(sum(one.end - one.start for one in pieces) / sizes["blocks"], color=BLUE, linestyle=":", linewidth=1.2)
    axes.set_ylim(sizes["blocks"], 0)
