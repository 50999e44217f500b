"""Throughput over arithmetic intensity, below the roofs of memory bandwidth and of the matrix units."""

import numpy as np
from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.measuring import recorded
from flashladder.plot.style import GREY, INK, MARKERS, caption, in_order, new_figure


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
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6},
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_xlabel("FLOP per byte read from or written to DRAM")
    axes.set_ylabel("TFLOP/s")
    axes.grid(alpha=0.25, which="both")
    axes.set_axisbelow(True)
    axes.set_title(f"Roofline: {record['problem']}", fontsize=10)
