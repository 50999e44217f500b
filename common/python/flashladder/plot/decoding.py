"""Pictures of decode: its place under the roofs of memory and tensor cores, and blocks on a machine in waves."""

import numpy as np
from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.measuring import recorded
from flashladder.plot.cards.drawing import rectangle
from flashladder.plot.style import BLUE, GREY, INK, MARKERS, ORANGE, PALE, caption, in_order, new_figure, plain

PREFILL = "shapes"  # the stage that stands for it
READING = "reading K and V"
LARGEST = {"dtype": "bf16", "d_head": 128}


def decode_roofline() -> Figure:
    """TFLOP/s over operations for each byte that has to be read or written, log-log: decode stages by their heads of Q
    for each head of K and V, a forward stage by its length. Of the first GPU that has a record of decode."""
    decode = recorded.first("decode")
    whole = decode and recorded.first(gpu=decode["provenance"]["device"])
    ceiling = whole and recorded.ceiling(whole, "bf16")
    if not ceiling:
        raise FlashLadderError("No GPU has decode and the forward stages recorded: `make gpu-report` measures both.")
    what = "decode below the slope of memory, prefill at the roof of the tensor cores"
    figure = new_figure(8, 5, f"TFLOP/s over operations for each byte: {what}")
    axes = figure.subplots()
    _roofs(axes, max(row["gb_per_s"] for row in decode["measurements"] if row["name"] == READING), ceiling["tflops"])
    _decode_points(axes, decode)
    _prefill_points(axes, whole)
    axes.set(xscale="log", yscale="log", xlim=(0.5, 2e4), ylim=(0.05, 2e3))
    axes.set_xlabel("operations for each byte of Q, K, V and O")
    axes.set_ylabel("TFLOP/s")
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    axes.legend(loc="lower right", fontsize=9, frameon=False)
    caption(figure, f"recorded: {recorded.label(decode)}; prefill {recorded.label(whole)}")
    return figure


def _roofs(axes, gb_per_s: float, tflops: float) -> None:
    x = np.geomspace(0.5, 2e4, 300)
    axes.plot(x, np.minimum(x * gb_per_s / 1e3, tflops), color=INK, linewidth=1.5)
    axes.text(20, tflops * 1.15, f"cuBLAS, {tflops:.0f} TFLOP/s", fontsize=9, color=GREY, ha="left")
    axes.annotate(
        f"reading K and V alone, {gb_per_s / 1e3:.1f} TB/s", (20, 20 * gb_per_s / 1e3), (0.7, 260),
        fontsize=9, color=GREY, arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.8},
    )  # fmt: skip


def _decode_points(axes, record: dict) -> None:
    """One for each stage and group: the shape with the most bytes."""
    names = [stage.name for stage in stages.decode_stages() if recorded.pick(record, name=stage.name, **LARGEST)]
    for index, name in enumerate(names):
        largest: dict[float, dict] = {}
        for row in recorded.pick(record, name=name, **LARGEST):
            group = row["Hq"] / row["Hkv"]
            if row["bytes"] >= largest.get(group, {"bytes": 0})["bytes"]:
                largest[group] = row
        x = sorted(largest)
        y = [largest[group]["bytes"] * group / largest[group]["us"]["median"] / 1e6 for group in x]
        look = {"color": in_order(index, len(names)), "markeredgecolor": INK, "markeredgewidth": 0.6}
        for group, height in zip(x, y, strict=True) if name == names[-1] else ():
            axes.annotate(f"{group:.0f}", (group, height), (group / 1.25, height * 1.35), fontsize=9, ha="center")
        axes.plot(x, y, MARKERS[index % len(MARKERS)], markersize=8, linestyle="", label=f"decode, {name}", **look)


def _prefill_points(axes, record: dict) -> None:
    name = stages.entry(PREFILL).name
    rows = sorted(recorded.pick(record, name=name, causal=False, **LARGEST), key=lambda row: row["Nq"])
    x = [row["Nq"] / 2 for row in rows]  # 4 N² d operations, and N d numbers each of Q, K, V and O
    axes.plot(x, [row["tflops"] for row in rows], "*", color=ORANGE, markersize=12, linestyle="",
              markeredgecolor=INK, markeredgewidth=0.6, label=f"prefill, {name}")  # fmt: skip
    for row, place in ((rows[0], x[0]), (rows[-1], x[-1])):
        axes.annotate(f"N = {row['Nq']}", (place, row["tflops"]), (place, row["tflops"] / 1.9), ha="center", fontsize=8)


def waves(rows: int = 32, places: int = 132, parts: tuple[int, ...] = (1, 4, 5, 9), most: int = 24) -> Figure:
    """Equal blocks on a machine with so many places for them, `rows` times the number of parts: the machine for some
    numbers of parts, a strip of each place for each wave; and the share of its time that is used, over that number."""
    what = f"{rows} rows of Q, divided into parts, on a machine with {places} places: how many are busy in each wave"
    figure = new_figure(8.4, 4.6, what)
    above, below = figure.subfigures(2, 1, height_ratios=(1.15, 1))
    for axes, number in zip(above.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
        _machine(axes, rows * number, places)
        axes.set_title(f"{number} {'part' if number == 1 else 'parts'}: {rows * number} blocks, "
                       f"{busy(rows * number, places):.0%}", fontsize=9)  # fmt: skip
    axes = below.subplots()
    x = range(1, most + 1)
    axes.bar(x, [100 * busy(rows * one, places) for one in x], 0.75,
             color=[BLUE if one in parts else PALE for one in x], edgecolor=GREY, linewidth=0.8)  # fmt: skip
    axes.set(ylim=(0, 105), xlim=(0.3, most + 0.7))
    axes.set_xticks([1, *range(4, most + 1, 4)])
    axes.set_xlabel("parts of a sequence", fontsize=9)
    axes.set_ylabel("busy, % of the time", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def busy(blocks: int, places: int) -> float:
    """Of the time until the last of equal blocks ends, the share in which a place is taken."""
    return blocks / (-(-blocks // places) * places)


def _machine(axes, blocks: int, places: int) -> None:
    """A square for each place, with a strip for each wave from the top down: coloured where a block is there."""
    plain(axes)
    turns = -(-blocks // places)
    columns, height = round((1.1 * places) ** 0.5), 0.9 / turns
    for place in range(places):
        column, row = place % columns, place // columns
        for turn in range(turns):
            colour = in_order(turn, max(turns, 2)) if turn * places + place < blocks else PALE
            rectangle(axes, (column, -row - height * turn), (0.9, -height), colour, edgecolor=GREY, linewidth=0.3)
    axes.set(xlim=(-0.2, columns + 0.1), ylim=(-places / columns - 1, 0.2), aspect="equal")
