"""How a class did: how many got how many points."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from flashladder.plot.style import BLUE, caption, label, new_figure

BINS = 10


def points(points: Sequence[float], maximum: float, title: str) -> Figure:
    """A histogram in tenths of the points that there are to get; the last tenth holds full points, too."""
    figure = new_figure(7.2, 3.8, "Histogram: how many of a class got how many points")
    axes = figure.subplots()
    counts = [0] * BINS
    for one in points:
        counts[min(BINS - 1, int(BINS * one / maximum))] += 1
    edges = [maximum * number / BINS for number in range(BINS + 1)]
    axes.bar(edges[:-1], counts, width=maximum / BINS, align="edge", color=BLUE, edgecolor="white")
    for edge, count in zip(edges, counts):
        if count:
            label(axes, edge + maximum / BINS / 2, count + 0.03 * max(counts), "white", str(count))
    axes.set_ylim(0, 1.12 * max(counts + [1]))
    axes.set_xticks(edges, [f"{edge:g}" for edge in edges])
    axes.set_xlabel("points")
    axes.set_ylabel("submissions")
    axes.set_title(title)
    middle = sorted(points)[len(points) // 2] if points else 0
    caption(
        figure,
        f"{len(points)} submissions; median {middle:g}; {sum(one >= maximum for one in points)} with full points.",
    )
    return figure
