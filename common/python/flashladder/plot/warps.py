"""When the warps of a multiprocessor compute, wait and ask, by the timeline's model."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.plot.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, RED, SKY, caption, in_a_bar, new_figure
from flashladder.simulator.warps import BACKGROUND, KINDS, WarpSpan, WarpTimeline

# Facecolour and hatch of each kind.
LOOKS = {
    "product": (BLUE, None),
    "wgmma": (BLUE, None),
    "arithmetic": (ORANGE, "//"),
    "copy": (GREEN, None),
    "bytes": (GREEN, ".."),
    "wait": (PALE, None),
}
_UNITS = {"tensor": ("tensor core busy", BLUE), "special": ("exponentials busy", RED), "memory": ("L2 path busy", SKY)}
_BINS, _HEIGHT = 150, 0.55
_CHARACTER = 0.0064  # of the picture's width
_WORDS = {"online softmax": "softmax"}
_SHORT = {"S = QKᵀ": "S", "O += PV": "PV"}


def warps(timeline: WarpTimeline, start: float = 0, end: float = 0, scheduler: int = 0) -> Figure:
    """A row for each warp of one scheduler, who share its tensor core, and for what that and others are busy with.

    start, end: clocks; end 0: to the end. Below each warp stands what goes on in the background: its wgmma, and the
    bytes that it has asked for.
    """
    end = min(end or timeline.end, timeline.end)
    rows = timeline.of_scheduler(scheduler)
    if not rows:
        raise FlashLadderError(f"{timeline.title}: no warp of scheduler {scheduler} does anything")
    if not 0 <= start < end:
        raise FlashLadderError(
            f"{timeline.title}: no clocks from {start:,.0f} to {end:,.0f}; it has {timeline.end:,.0f}"
        )
    units = [unit for unit in _UNITS if (unit, 0 if unit == "memory" else scheduler) in timeline.busy]
    height = 1.5 + 0.75 * len(rows) + 0.27 * len(units)
    figure = new_figure(10.5, height, "What the warps of one scheduler do over time, by a model, and what its units do")
    axes = figure.subplots()
    ticks = []
    for place, row in enumerate(rows):
        _draw_warp(axes, timeline, row, 2.0 * place, start, end)
        ticks.append((2.0 * place + 0.15, timeline.warps[row].name(timeline.blocks)))
    for place, unit in enumerate(units):
        y = 2.0 * len(rows) + 0.72 * place
        words, colour = _UNITS[unit]
        bars = timeline.busy[unit, 0 if unit == "memory" else scheduler]
        _draw_unit(axes, bars, y - 0.1, colour, start, end)
        ticks.append((y - 0.37, words))
    bottom = 2.0 * len(rows) + 0.72 * len(units) - 0.5
    axes.axhline(2.0 * len(rows) - 0.85, color=GREY, linewidth=0.8)
    axes.set_yticks([y for y, _ in ticks], [name for _, name in ticks], fontsize=8)
    axes.set_ylim(bottom, -0.75)
    axes.set_xlim(start, end)
    axes.set_xlabel("clocks of the multiprocessor, by the model", fontsize=8)
    axes.tick_params(colors=INK, labelsize=8)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    shown = [kind for kind in KINDS if any(span.kind == kind and span.warp in rows for span in timeline.spans)]
    axes.set_title(timeline.title, fontsize=9, loc="left", pad=24 if len(shown) <= 5 else 38)  # above it
    handles = []
    for kind in shown:
        colour, hatch = LOOKS[kind]
        edge = GREY if kind == "wait" else "white"
        handles.append(axes.barh([0], [0], color=colour, hatch=hatch, edgecolor=edge, label=KINDS[kind]))
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=5, fontsize=7.5, frameon=False,
                borderaxespad=0.1, handlelength=1.6, columnspacing=1.2)  # fmt: skip
    words = "A model, not a measurement: the order is the simulator's, the clocks are computed (docs/timeline.md)."
    caption(figure, f"{words} Scheduler {scheduler} of 4, the others look alike.")
    return figure


def _within(bars: list[tuple[float, float]], start: float, end: float) -> list[tuple[float, float]]:
    """(start, width) of what lies in the window."""
    cut = [(max(first, start), min(last, end)) for first, last in bars]
    return [(first, last - first) for first, last in cut if last > first]


def _joined(bars: list[tuple[float, float]], gap: float) -> list[tuple[float, float]]:
    """Bars with less than the gap between them as one: nobody could see it."""
    joined: list[tuple[float, float]] = []
    for first, last in sorted(bars):
        if joined and first - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def _draw_unit(axes, bars: list[tuple[float, float]], bottom: float, colour, start: float, end: float) -> None:
    """As high as the unit is busy, from nothing to always, in each of _BINS parts of the window."""
    step = (end - start) / _BINS
    shares = [0.0] * _BINS
    for first, width in _within(bars, start, end):
        for place in range(int((first - start) / step), min(int((first + width - start) / step), _BINS - 1) + 1):
            left = start + place * step
            shares[place] += max(0.0, min(first + width, left + step) - max(first, left)) / step
    edges = [start + place * step for place in range(_BINS + 1)]
    axes.stairs(
        [bottom - _HEIGHT * min(share, 1.0) for share in shares], edges, baseline=bottom, fill=True, color=colour
    )
    axes.plot([start, end], [bottom, bottom], color=GREY, linewidth=0.5)


def _draw_warp(axes, timeline: WarpTimeline, row: int, y: float, start: float, end: float) -> None:
    spans = [span for span in timeline.spans if span.warp == row and span.end > start and span.start < end]
    for kind in LOOKS:
        own = [span for span in spans if span.kind == kind]
        if not own:
            continue
        colour, hatch = LOOKS[kind]
        background = kind in BACKGROUND
        low, tall = (y - 0.55, 0.9)
        if background:
            low, tall = y + 0.42, 0.36
        if kind == "bytes" and any(span.kind == "wgmma" for span in timeline.spans if span.warp == row):
            low = y + 0.86
        bars = [(span.start, span.end) for span in own]
        if kind == "bytes":
            bars = _joined(bars, 0)
        axes.broken_barh(_within(bars, start, end), (low, tall), facecolor=colour, hatch=hatch,
                         edgecolor=GREY if kind == "wait" else "white", linewidth=0.4)  # fmt: skip
        for first, last, labels in _groups(own, start, end) if kind != "bytes" else []:
            words = next((one for one in labels if last - first > _CHARACTER * (len(one) + 1.5) * (end - start)), "")
            if words:
                size = 6.5 if background else 7.5
                in_a_bar(axes, ((first + last) / 2, low + tall / 2), words, LOOKS[kind], size=size, clip_on=True)


def _groups(spans: list[WarpSpan], start: float, end: float) -> Iterator[tuple[float, float, list[str]]]:
    """(from, to, labels to choose from, the longest first) of what lies in the window. Arithmetic of several phases
    that stands together has one label, that of the longest; all else has its own."""
    together: list[list[WarpSpan]] = []
    for span in spans:
        follows = together and span.kind == "arithmetic" and span.start <= together[-1][-1].end + 0.004 * (end - start)
        if follows:
            together[-1].append(span)
        else:
            together.append([span])
    for group in together:
        longest = max(group, key=lambda span: span.end - span.start)
        label = _WORDS.get(longest.label, longest.label)
        waits = [f"wait: {label}"] if longest.kind == "wait" else []  # the colour says so, too
        short = [_SHORT[label]] if longest.kind == "wgmma" and label in _SHORT else []
        choice = [*waits, label, *short] if label else []
        yield max(group[0].start, start), min(group[-1].end, end), choice
