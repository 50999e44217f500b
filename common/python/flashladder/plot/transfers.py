"""Stage 00's results: time by chunks and streams beside the limit, and the bandwidth of copies."""

from matplotlib.figure import Figure

from flashladder.measuring import recorded
from flashladder.plot.style import GREY, INK, MARKERS, ORANGE, SKY, caption, in_order, new_figure


def transfers(record: dict) -> Figure:
    """Bars of the copies' bandwidth, then for each case of the record time over the number of chunks by streams."""
    cases = record["cases"]
    figure = new_figure(11, 3.6, "Bandwidth of copies, and time of a batch over the number of chunks, by streams")
    panels = figure.subplots(1, 1 + len(cases), width_ratios=[1.1, *[1.3] * len(cases)])
    _bandwidth(panels[0], record["bandwidth"])
    for axes, case in zip(panels[1:], cases, strict=True):
        _case(axes, case)
    panels[1].set_ylabel("time (ms), log scale")
    panels[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    caption(figure, f"recorded: {recorded.label(record)}")
    return figure


def _bandwidth(axes, rows: list[dict]) -> None:
    names = {"h2d": "host to\ndevice", "d2h": "device to\nhost", "both": "both at\nonce"}
    for memory, offset, colour, hatch in (("pageable", -0.2, SKY, "//"), ("pinned", 0.2, ORANGE, None)):
        for row in rows:
            if row["memory"] == memory:
                x = list(names).index(row["direction"]) + offset
                bar = axes.bar(
                    x,
                    row["gb_s"],
                    0.38,
                    color=colour,
                    hatch=hatch,
                    edgecolor="white",
                    label=memory if row["direction"] == "h2d" else None,
                )
                axes.bar_label(bar, [f"{row['gb_s']:.0f}"], fontsize=8)
    axes.set_xticks(range(len(names)), names.values(), fontsize=8)
    axes.set_ylabel("GB/s")
    axes.legend(fontsize=8)
    axes.set_title("copies", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def _case(axes, case: dict) -> None:
    streams = sorted({row["streams"] for row in case["sweep"]})
    for index, count in enumerate(streams):
        rows = sorted((row["chunks"], row["ms"]["median"]) for row in case["sweep"] if row["streams"] == count)
        axes.plot(
            *zip(*rows),
            marker=MARKERS[index % len(MARKERS)],
            color=in_order(index, len(streams)),
            markersize=4,
            label=f"{count} stream{'s' if count > 1 else ''}",
        )
    for name, style, y in (
        ("serial, pageable", ":", case["serial_ms"]["pageable"]),
        ("serial, pinned", "--", case["serial_ms"]["pinned"]),
        ("limit: the slowest part", "-", case["limit_ms"]),
    ):
        axes.axhline(y, color=INK if style == "-" else GREY, linestyle=style, linewidth=1.2, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    chunks = sorted({row["chunks"] for row in case["sweep"]})
    axes.set_xticks(chunks, [str(count) for count in chunks])
    axes.minorticks_off()
    low, high = axes.get_ylim()
    ticks = [t for t in (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500) if low <= t <= high]
    axes.set_yticks(ticks, [str(t) for t in ticks])
    axes.set_xlabel("chunks")
    parts = case["parts_ms"]
    axes.set_title(
        f"{case['title']}\nin {parts['copy in']:.1f}, compute {parts['compute']:.1f}, out {parts['copy out']:.1f} ms",
        fontsize=9,
    )
    axes.grid(alpha=0.25)
