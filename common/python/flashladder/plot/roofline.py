"""What limits a kernel: throughput over arithmetic intensity, below the roofs of memory bandwidth and of the matrix
units; the least that each part of the GPU needs for a stage; decode's place below the roofs, and its blocks in waves.
"""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.measuring import profile, recorded
from flashladder.measuring.ncu import PROBLEM
from flashladder.plot.cards.drawing import rectangle
from flashladder.plot.style import BLUE, GREY, INK, MARKERS, ORANGE, PALE, SKY, caption, in_order, new_figure, plain


def roofline(records: list[dict]) -> Figure:
    """One panel for each record of measuring.roofline: TFLOP/s against FLOP per byte of DRAM traffic, log-log."""
    records = [one for one in records if one["ceiling_tflops"]]
    if not records:
        raise FlashLadderError("No roofline is recorded: `make gpu-report` on a GPU, with Nsight Compute, makes one.")
    figure = new_figure(9, 5.4 * len(records), "Throughput of each stage over its FLOP per byte of DRAM traffic")
    for axes, record in zip(figure.subplots(len(records), 1, squeeze=False)[:, 0], records, strict=True):
        _panel(axes, record)
    caption(figure, "; ".join(f"recorded: {recorded.label(record)}, {record['problem']}" for record in records))
    return figure


def _panel(axes, record: dict) -> None:
    rows = [row for row in record["rows"] if row["tflops"]]
    bandwidth, ceiling = record["bandwidth_gb_s"], record["ceiling_tflops"]
    x = [row["flops"] / row["dram_bytes"] for row in rows]
    low, high = min(x) / 3, max(max(x) * 9, ceiling * 1e3 / bandwidth * 6)
    line = np.geomspace(low, high, 200)
    axes.plot(line, np.minimum(line * bandwidth / 1e3, ceiling), color=INK, linewidth=1.5)
    axes.text(
        low * 1.15,
        low * 1.15 * bandwidth / 1e3 * 1.5,
        f"DRAM, {bandwidth:.0f} GB/s (copy)",
        rotation=33,
        rotation_mode="anchor",
        fontsize=8,
        color=GREY,
    )
    axes.text(high / 1.1, ceiling * 1.1, f"cuBLAS matmul, {ceiling:.0f} TFLOP/s", ha="right", fontsize=8, color=GREY)
    # A label stands right of its point, or left where another point is near on the right; labels on one side
    # keep their distance.
    placed: list[tuple[bool, float]] = []
    for index, (row, intensity) in sorted(enumerate(zip(rows, x)), key=lambda item: -item[1][0]["tflops"]):
        left = any(1.2 < other / intensity < 4 for other in x)
        y = row["tflops"]
        while any(side == left and abs(np.log(y / other)) < 0.3 for side, other in placed):
            y /= 1.12
        placed.append((left, y))
        axes.plot(
            intensity,
            row["tflops"],
            MARKERS[index % len(MARKERS)],
            color=in_order(index, len(rows)),
            markersize=8,
            markeredgecolor=INK,
            markeredgewidth=0.6,
            zorder=3,
        )
        axes.annotate(
            f"{row['name']}  {row['tflops']:.3g}",
            (intensity, row["tflops"]),
            (intensity * (0.74 if left else 1.35), y),
            fontsize=8,
            va="center",
            ha="right" if left else "left",
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "relpos": (1 if left else 0, 0.5)},
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_xlabel("FLOP per byte read from or written to DRAM")
    axes.set_ylabel("TFLOP/s")
    axes.grid(alpha=0.25, which="both")
    axes.set_axisbelow(True)
    axes.set_title(f"Roofline: {record['problem']}", fontsize=10)


MULTIPROCESSORS, SCHEDULERS, GHZ = 132, 4, 1.98  # of an H200, at its highest clock
FP32_TFLOPS = 67  # of its data sheet
_WAVEFRONTS = ("shared load wavefronts", "shared store wavefronts", "shared ldmatrix wavefronts")


@dataclass(frozen=True)
class Limit:
    name: str
    ms: float


def limits_of(number: int) -> tuple[float, list[Limit]]:
    """(milliseconds measured, what each part needs at least), of PROBLEM. Instructions and wavefronts are counted by
    Nsight Compute for a small problem, and the large one has so many times the work."""
    name = stages.get(number).name
    roofline, counted = recorded.first("roofline"), recorded.first("counters")
    row = _named(roofline["rows"], "name", name)
    kernels = _named(counted["counters"], "stage", name)["ncu"]
    work = PROBLEM.B * PROBLEM.Hq * PROBLEM.Nq**2 / (profile.PROBLEM.B * profile.PROBLEM.Hq * profile.PROBLEM.Nq**2)
    cycles = MULTIPROCESSORS * GHZ * 1e6  # of all multiprocessors, in a millisecond
    instructions = sum(one["warp instructions (SASS)"] for one in kernels)
    wavefronts = sum(one[key] for one in kernels for key in _WAVEFRONTS)
    (measured,) = recorded.pick(
        recorded.first(), name=name, dtype=PROBLEM.dtype, d_head=PROBLEM.d_head, Nq=PROBLEM.Nq, causal=False
    )
    tensor = any(one["shared ldmatrix wavefronts"] for one in kernels)
    arithmetic = roofline["ceiling_tflops"] if tensor else FP32_TFLOPS
    found = [
        Limit("instructions", instructions * work / (cycles * SCHEDULERS)),
        Limit("shared memory", wavefronts * work / cycles),
        Limit("tensor cores" if tensor else "multiply-adds", row["flops"] / arithmetic / 1e9),
        Limit("DRAM", row["dram_bytes"] / roofline["bandwidth_gb_s"] / 1e6),
    ]
    return row["flops"] / measured["tflops"] / 1e9, [one for one in found if one.ms]


def _named(rows: list[dict], key: str, name: str) -> dict:
    for row in rows:
        if row[key] == name:
            return row
    raise FlashLadderError(f"{name} is not in the record: there are {', '.join(row[key] for row in rows)}.")


def limits(number: int) -> Figure:
    """Bars: the time that a stage takes, and below it what each part of the GPU needs at least."""
    measured, found = limits_of(number)
    stage = stages.get(number)
    bars = [("measured", measured), *((one.name, one.ms) for one in found)]
    figure = new_figure(7.5, 0.75 + 0.34 * len(bars), "The time of a stage, and what each part of the GPU needs of it")
    axes = figure.subplots()
    for y, (_, ms) in enumerate(bars):
        axes.barh(y, ms, 0.7, color=ORANGE if y == 0 else SKY, hatch=None if y == 0 else "//", edgecolor="white")
        axes.text(ms + measured * 0.01, y, f"{ms:.3g} ms", va="center", fontsize=9, color=INK)
    axes.set_yticks(range(len(bars)), [name for name, _ in bars], fontsize=9)
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_xlim(0, measured * 1.15)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.set_title(f"Stage {stage.id}, B = 4, H = 16, N = 4096, d = 128: the time, and the least that each needs",
                   fontsize=9, loc="left")  # fmt: skip
    caption(
        figure,
        f"time recorded: {recorded.label(recorded.first())}; counts: {recorded.label(recorded.first('counters'))}",
    )
    return figure


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
    source = f"recorded: {recorded.label(decode)}; prefill {recorded.label(whole)}"
    caption(figure, f"numbers at the points of decode: heads of Q that share a head of K and V\n{source}")
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
