"""Copies and compute over time, a lane for each stream."""

from matplotlib.figure import Figure

from flashladder.plot.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, SKY, caption, in_a_bar, new_figure
from flashladder.running.timeline import Timeline

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
