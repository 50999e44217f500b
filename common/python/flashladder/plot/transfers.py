"""Copies: stage 00's time by chunks and streams beside the limit, copies and compute over time, a lane for each stream;
throughput of several GPUs by the length of the sequence.
"""

from matplotlib.figure import Figure

from flashladder.measuring import recorded
from flashladder.plot.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    MARKERS,
    ORANGE,
    PALE,
    SKY,
    caption,
    in_a_bar,
    in_order,
    new_figure,
)
from flashladder.running.timeline import Timeline


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


HEADS = ((16, 16), (32, 8))


def ring(records: list[dict]) -> Figure:
    """A row for each record and number of GPUs: panels for both groups of heads, without a mask and with one."""
    found = [(one, ranks) for one in records for ranks in sorted({row["ranks"] for row in one["measurements"]})]
    figure = new_figure(12, 0.6 + 3.8 * len(found), "TFLOP/s of each GPU of a host, by the length of the sequence")
    rows = figure.subplots(len(found), 4, squeeze=False, sharey="row")
    names = list(dict.fromkeys(row["name"] for one, _ in found for row in one["measurements"]))
    for axes, (record, ranks) in zip(rows, found, strict=True):
        measured = [row for row in record["measurements"] if row["ranks"] == ranks]
        panels = [(heads, causal) for heads in HEADS for causal in (False, True)]
        for one, (heads, causal) in zip(axes, panels, strict=True):
            _panel(one, measured, names, heads, causal)
        axes[0].set_ylabel(f"TFLOP/s of each of {ranks} GPUs")
        axes[0].set_ylim(bottom=0)  # of all four
    curves = {curve.get_label(): curve for axes in rows.flat for curve in axes.get_lines()}
    shown = [name for name in names if name in curves]
    figure.legend(
        [curves[name] for name in shown], shown, fontsize=9, loc="outside upper center", ncols=5, frameon=False
    )
    runs = {
        row["ranks"]: row.get("run", recorded.label(record)) for record, _ in found for row in record["measurements"]
    }
    caption(figure, " ".join(f"{ranks} GPUs: recorded, {runs[ranks]}." for ranks in sorted(runs)))
    return figure


def _panel(axes, measured: list[dict], names: list[str], heads: tuple[int, int], causal: bool) -> None:
    """names: of all panels' curves, so that each has the same marker everywhere."""
    rows = [row for row in measured if (row["Hq"], row["Hkv"], row["causal"]) == (*heads, causal)]
    stages = [name for name in names if any(row["name"] == name and row["kind"] == "stage" for row in rows)]
    for number, name in enumerate(names):
        curve = sorted((row for row in rows if row["name"] == name), key=lambda row: row["N"])
        if not curve:
            continue
        kind = curve[0]["kind"]
        colour = {"peer": GREY}.get(kind, INK)
        if kind == "stage":
            colour = BLUE if name == stages[-1] else in_order(stages.index(name), len(stages))
        if curve[0].get("way"):
            kind, colour = "stage", ORANGE
        style = {"stage": "-", "peer": "--"}.get(kind, ":")
        lengths, values = [row["N"] for row in curve], [row["tflops_per_gpu"] for row in curve]
        marker = MARKERS[number % len(MARKERS)]
        axes.plot(lengths, values, style, marker=marker, color=colour, markersize=4, linewidth=1.3, label=name)
        low, high = (
            [row["tflops_per_gpu"] * row["ms"]["median"] / row["ms"][edge] for row in curve] for edge in ("p80", "p20")
        )
        axes.fill_between(lengths, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set_xscale("log", base=2)
    shown = sorted({row["N"] for row in rows})
    axes.set_xticks(shown, [f"{n // 1024}k" for n in shown])
    axes.set_title(f"{heads[0]}/{heads[1]} heads, {'causal' if causal else 'full'}", fontsize=10)
    axes.set_xlabel("rows of the sequence")


# Facecolour and hatch of each kind of work.
LOOKS = {
    "copy in": (BLUE, None),
    "staged copy in": (SKY, "\\\\"),
    "compute": (ORANGE, "//"),
    "copy out": (GREEN, ".."),
    "host": (PALE, None),
}


def timeline(timelines: Timeline | list[Timeline]) -> Figure:
    """Bars from start to end by lane; several timelines of one unit stand below one another on the same scale."""
    shown = timelines if isinstance(timelines, list) else [timelines]
    rows = [_rows(one) for one in shown]  # by timeline: the number of rows of each lane
    heights = [max(1, sum(count for count in one.values())) for one in rows]
    figure = new_figure(
        10, 0.9 + 0.3 * sum(heights) + 0.85 * len(shown), "Copies and kernels as bars from start to end, by stream"
    )
    panels = figure.subplots(len(shown), 1, height_ratios=heights, squeeze=False, sharex=True)[:, 0]
    end = max((span.end for one in shown for span in one.spans), default=1.0)
    for axes, one, counts in zip(panels, shown, rows, strict=True):
        _draw(axes, one, counts, end)
    unit = shown[0].unit
    panels[-1].set_xlabel("time (ms)" if unit == "ms" else "the host's CUDA calls, in their order (no time)")
    handles = [
        figure.axes[0].barh([0], [0], color=colour, hatch=hatch, edgecolor="white", label=kind)
        for kind, (colour, hatch) in LOOKS.items()
        if any(span.kind == kind for one in shown for span in one.spans)
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=5, fontsize=8, frameon=False)
    if shown[0].note:
        caption(figure, shown[0].note)
    elif unit != "ms":
        words = (
            "A bar reaches from the call that queued the work to the call in which it took effect; numbers are chunks."
        )
        if any(span.kind == "staged copy in" for one in shown for span in one.spans):
            words += (
                "\nStaged: the call has read the host's memory; the bytes are in the driver's own buffer until then."
            )
        caption(figure, words)
    else:
        caption(figure, "From CUDA events around each copy and launch; a bar also holds the wait for its engine.")
    for axes in panels:
        axes.tick_params(colors=INK)
    return figure


def _place(timeline: Timeline, lane: str) -> list[tuple[int, object]]:
    """(row, span) for the lane's spans in order: spans in flight at the same time lie in different rows."""
    ends: list[float] = []
    placed = []
    # What goes on in another kind of bar stays in its row.
    spans = [one for one in timeline.spans if one.lane == lane]
    for span in sorted(spans, key=lambda one: (one.start, one.kind != "staged copy in")):
        row = next((row for row, end in enumerate(ends) if end <= span.start + 1e-9), len(ends))
        ends[row : row + 1] = [span.end]
        placed.append((row, span))
    return placed


def _rows(timeline: Timeline) -> dict[str, int]:
    return {lane: 1 + max(row for row, _ in _place(timeline, lane)) for lane in timeline.lanes()}


def _draw(axes, one: Timeline, counts: dict[str, int], end: float) -> None:
    base, ticks = 0, []
    for lane, count in counts.items():
        for row, span in _place(one, lane):
            colour, hatch = LOOKS[span.kind]
            y, width = base + row, span.end - span.start
            edge = GREY if span.kind == "host" else "white"
            axes.broken_barh([(span.start, width)], (y - 0.45, 0.9), facecolor=colour, hatch=hatch, edgecolor=edge,
                             linewidth=0.6)  # fmt: skip
            if span.kind == "host" or width > (0.006 + 0.006 * len(span.label)) * end:
                words, size = "" if span.kind == "host" and end > 16 else span.label, 8 if span.kind != "host" else 6.5
                in_a_bar(axes, (span.start + width / 2, y), words, LOOKS[span.kind], size=size, pad=1.0, clip_on=True)
        ticks.append(base + (count - 1) / 2)
        base += count
        axes.axhline(base - 0.5, color=GREY, linewidth=0.6)
    axes.set_yticks(ticks, list(counts), fontsize=8)
    axes.set_ylim(base - 0.5, -0.5)
    axes.set_xlim(0, end * 1.01)
    axes.set_title(f"{one.title} ({one.where})", fontsize=9, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
