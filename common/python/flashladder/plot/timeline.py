"""Copies and compute over time, a lane for each stream."""

from matplotlib.figure import Figure

from flashladder.plot.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, caption, new_figure, text_on
from flashladder.timeline import Timeline

LOOKS = {"copy in": (BLUE, None), "compute": (ORANGE, "//"), "copy out": (GREEN, ".."), "host": (PALE, None)}


def timeline(timelines: Timeline | list[Timeline]) -> Figure:
    """Bars from start to end by lane; several timelines of one unit stand below one another on the same scale."""
    shown = timelines if isinstance(timelines, list) else [timelines]
    heights = [max(1, len(one.lanes())) for one in shown]
    figure = new_figure(10, 0.9 + 0.42 * sum(heights) + 0.75 * len(shown))
    panels = figure.subplots(len(shown), 1, height_ratios=heights, squeeze=False, sharex=True)[:, 0]
    end = max((span.end for one in shown for span in one.spans), default=1.0)
    for axes, one in zip(panels, shown, strict=True):
        lanes = one.lanes()
        for span in one.spans:
            colour, hatch = LOOKS[span.kind]
            y, width = lanes.index(span.lane), span.end - span.start
            axes.broken_barh(
                [(span.start, width)],
                (y - 0.4, 0.8),
                facecolor=colour,
                hatch=hatch,
                edgecolor=GREY if span.kind == "host" else "white",
                linewidth=0.6,
            )
            if width > 0.02 * end * (1 + len(span.label) / 3):
                axes.text(
                    span.start + width / 2,
                    y,
                    span.label,
                    ha="center",
                    va="center",
                    fontsize=8,
                    clip_on=True,
                    color=text_on(colour),
                    bbox={"facecolor": colour, "edgecolor": "none", "pad": 1.5},
                )
        axes.set_yticks(range(len(lanes)), lanes, fontsize=8)
        axes.set_ylim(len(lanes) - 0.4, -0.6)
        axes.set_xlim(0, end * 1.01)
        axes.set_title(f"{one.title} ({one.where})", fontsize=9, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
    unit = shown[0].unit
    panels[-1].set_xlabel("time (ms)" if unit == "ms" else "the host's CUDA calls, in their order (no time)")
    handles = [
        figure.axes[0].barh([0], [0], color=colour, hatch=hatch, edgecolor="white", label=kind)
        for kind, (colour, hatch) in LOOKS.items()
        if any(span.kind == kind for one in shown for span in one.spans)
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=4, fontsize=8, frameon=False)
    if unit != "ms":
        caption(figure, "A bar reaches from the call that queued the work to the call in which it took effect.")
    else:
        caption(figure, "From CUDA events around each copy and launch.")
    for axes in panels:
        axes.tick_params(colors=INK)
    return figure
