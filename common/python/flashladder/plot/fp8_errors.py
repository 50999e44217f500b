"""What e4m3 costs in accuracy, as recorded on the simulator (measuring/fp8_errors.py)."""

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from flashladder.plot.style import BLUE, GREEN, GREY, INK, ORANGE, RED, caption, new_figure

SERIES = (  # type, whether Q and K are transformed, colour, label
    ("bf16", False, GREY, "bf16"),
    ("e4m3", False, ORANGE, "e4m3"),
    ("e4m3", True, BLUE, "e4m3, Q and K times a Hadamard matrix"),
)


def fp8_errors(record: dict, length: int = 1024) -> Figure:
    """Left: the error of O against float64 of the inputs before rounding, by kind of input. Right: what is lost of O
    where tiles are summed in the tensor cores, and outside."""
    figure = new_figure(10.4, 4.2, "Error of O in bf16 and in e4m3, by kind of input; and the part of O lost in sums")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    kinds = list(record["inputs"])
    for place, (dtype, transform, colour, label) in enumerate(SERIES):
        rows = {row["inputs"]: row for row in record["errors"]
                if (row["N"], row["dtype"], row["hadamard"]) == (length, dtype, transform)}  # fmt: skip
        heights = [rows[kind]["error"] for kind in kinds]
        where = [number + (place - 1) * 0.27 for number in range(len(kinds))]
        bars = left.bar(where, heights, 0.25, color=colour, edgecolor=INK, linewidth=0.6, label=label)
        left.bar_label(bars, [f"{height:.1%}" for height in heights], fontsize=7, padding=1)
    left.set_xticks(range(len(kinds)), kinds, fontsize=8)
    left.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    left.set_ylabel("relative error of O")
    left.set_title(f"against float64 of the exact inputs, N = {length}", fontsize=9)
    left.set_ylim(0, 1.2 * max(row["error"] for row in record["errors"] if row["N"] == length))
    left.legend(fontsize=8, frameon=False, loc="upper center", ncols=3)
    keys = [row["Nkv"] for row in record["sums"]]
    for key, colour, marker, label in (
        ("inside", RED, "o", "in the tensor cores"),
        ("outside", GREEN, "s", "in fp32, tile by tile"),
    ):
        right.plot(keys, [row[key] for row in record["sums"]], color=colour, marker=marker, label=label)
    right.set_xscale("log", base=2)
    right.set_xticks(keys, [f"{key:,}" for key in keys])
    right.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    right.set_xlabel("keys")
    right.set_title("part of O that is lost in sums: all weights alike, V positive", fontsize=9)
    right.legend(fontsize=8, frameon=False)
    caption(figure, "d = 128, 2 heads. The simulator sums as the tensor cores do: products of e4m3 to 13 bits.")
    return figure
