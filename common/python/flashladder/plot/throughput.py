"""Throughput: the way up as one line beside a sweep over sequence length; ablations; how many points a class got."""

import textwrap
from collections.abc import Sequence

from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.measuring import recorded
from flashladder.plot import climbing
from flashladder.plot.climbing import Run
from flashladder.plot.style import BLUE, GREY, INK, MARKERS, SKY, caption, in_order, label, new_figure

PEER_GREYS = {
    "FlashAttention-2": "#444444",
    "FlashAttention-3": "#666666",
    "FlashAttention-4": "#777777",
    "cuDNN attention": "#999999",
    "cuDNN FP8": "#999999",
}
_CURVES = 4  # of stages, beside those of the peers: the last one, and the largest steps before it


def _chosen(run: Run) -> list[str]:
    """The stages of the main line whose curves are drawn, in order: the last one and the one before it, and before
    these the largest steps among those that a common axis can show."""
    every = [one for one in climbing.steps(run.together()) if not one.branch]
    names = [one.row["name"] for one in every]
    near = [one for one in every[:-2] if one.row["tflops"] > every[-1].row["tflops"] / 8]
    largest = sorted(near, key=lambda one: -one.factor)[: _CURVES - 2]
    wanted = {*names[-2:], *(one.row["name"] for one in largest)}
    return [name for name in names if name in wanted]


def _sweep(axes, run: Run, chosen: list[str], style: str) -> None:
    """Curves of these stages and of the peers over all lengths."""
    rows = run.rows()
    peers = dict.fromkeys(row["name"] for row in rows if row["kind"] == "peer")
    for name in (*chosen, *peers):
        curve = sorted((row["Nq"], row["tflops"], row["ms"]) for row in rows if row["name"] == name)
        if name in chosen:
            index = chosen.index(name)
            colour = BLUE if index == len(chosen) - 1 else in_order(index, len(chosen))
            marker = MARKERS[index]
        else:
            colour, marker = PEER_GREYS.get(name, GREY), "x"
        stale = any(recorded.is_stale(row) for row in rows if row["name"] == name)
        lengths, values = [n for n, _, _ in curve], [t for _, t, _ in curve]
        # From the 20th to the 80th percentile of the run times.
        low = [t * ms["median"] / ms["p80"] for _, t, ms in curve]
        high = [t * ms["median"] / ms["p20"] for _, t, ms in curve]
        axes.plot(
            lengths, values, style, marker=marker, color=colour, markersize=4, linewidth=1.4,
            label=f"{name}{' (stale)' if stale else ''}",
        )  # fmt: skip
        axes.fill_between(lengths, low, high, color=colour, alpha=0.2, linewidth=0)


Results = list[tuple[dict, bool]]  # (results, live): measured here, or recorded


def throughput(results: Results, dtype: str = "bf16", d: int = 128, causal: bool = False) -> Figure:
    """The way up at one length and a sweep over lengths, a row for each run of `results` that has such figures.

    Each is labelled with GPU, date and commit, recorded ones say so, one of gradients says that, and a figure whose
    kernel.cu has changed since is hollow and marked stale. FlashLadderError where there is nothing to plot.
    """
    runs = [(Run(one, dtype, d, causal), live) for one, live in results]
    usable = [(run, live) for run, live in runs if run.rows()]
    if not usable:
        raise FlashLadderError(f"No results for {Run({}, dtype, d, causal).in_words} to plot.")
    what = "Throughput of the stages as one line that climbs, and of the last ones over the sequence length"
    figure = new_figure(12, 0.2 + 4.3 * len(usable), what)
    grid = figure.subplots(len(usable), 2, squeeze=False, width_ratios=(1.75, 1))
    for (climb, sweep), (run, live) in zip(grid, usable, strict=True):
        source = "measured here" if live else "recorded"
        kind = "gradients, " if run.results.get("pass") == "backward" else ""
        at_one = run.at_one_length()
        way = at_one.together()
        climbing.way_up(climb, (5.9, 3.1), way)
        before = recorded.earlier(way.rows()).removesuffix(".").split(". ")
        lines = [f"{source}: {recorded.label(run.results, way.rows())}"]
        lines += [line for one in before for line in textwrap.wrap(one, 90)]
        lines += [f"{kind}{way.in_words}", climbing.shares(way)]
        climb.set_title("\n".join(line for line in lines if line), fontsize=9.5)
        _sweep(sweep, run, _chosen(at_one), "-" if live else "--")
        sweep.set_xscale("log", base=2)
        lengths = sorted({row["Nq"] for row in run.rows()})
        sweep.set_xticks(lengths, [str(n) for n in lengths])
        sweep.minorticks_off()
        drawn = [value for curve in sweep.get_lines() for value in curve.get_ydata()]
        if max(drawn) > 10 * min(drawn):
            sweep.set_yscale("log")
        else:
            sweep.set_ylim(0, max(drawn) * 1.08)
        sweep.set_xlabel("sequence length N")
        sweep.set_ylabel("TFLOP/s")
        tokens = run.results["settings"]["tokens"]
        sweep.set_title(f"{source}, {kind}{run.in_words}\nB·N = {tokens} tokens", fontsize=9.5)
        sweep.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, frameon=False)
        sweep.grid(alpha=0.25, which="both")
        sweep.set_axisbelow(True)
    return figure


def ablations(
    results: list[dict], stage: int | None = None, dtype: str = "bf16", d: int = 128, causal: bool = False
) -> Figure:
    """Bars of kernels, each with its variants below it, the fastest first, in percent of it; and of the peers.

    A panel for each recorded GPU. stage: the variants of one stage alone. FlashLadderError where there are none.
    """
    panels = []
    for run in (Run(one, dtype, d, causal) for one in results):
        if not run.rows():
            continue
        run = run.at_one_length()
        families = [
            (kernel, changed)
            for kernel, changed in recorded.variants(run.rows())
            if stage is None or kernel["name"].startswith(f"{stage:02d}_")
        ]
        if families:
            panels.append((run, families, run.rows(kind="peer")))
    if not panels:
        raise FlashLadderError(f"No ablations{'' if stage is None else f' of stage {stage:02d}'} are recorded.")
    bars = [sum(1 + len(changed) for _, changed in families) + len(peers) for _, families, peers in panels]
    figure = new_figure(
        9, sum(1.2 + 0.27 * count for count in bars), "Throughput of kernels, their variants and the peers as bars"
    )
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=bars)[:, 0]
    for axes, (run, families, peers) in zip(grid, panels, strict=True):
        _families(axes, families, peers)
        rows = [row for kernel, changed in families for row in (kernel, *changed)] + peers
        lines = [f"recorded: {recorded.label(run.results, rows)}", run.in_words]
        axes.set_title("\n".join([*lines, *textwrap.wrap(recorded.earlier(rows), 64)]), fontsize=9)
    return figure


def _families(axes, families: list[tuple[dict, list[dict]]], peers: list[dict]) -> None:
    names, position = [], 0

    def bar(row: dict, colour, text: str, name: str, **look) -> None:
        nonlocal position
        stale = recorded.is_stale(row)
        look |= {"hatch": "///", "alpha": 0.5} if stale else {}
        drawn = axes.barh(position, row["tflops"], color=colour, **look)
        axes.bar_label(drawn, [f" {climbing.short(row['tflops'])}{' (stale)' if stale else ''}{text}"], fontsize=8)
        names.append((position, name))
        position += 1

    for kernel, changed in families:
        bar(kernel, BLUE, "", f"{kernel['name']}, the kernel itself", edgecolor=INK, linewidth=1.5)
        for row in changed:
            bar(row, SKY, f"  ({100 * row['tflops'] / kernel['tflops']:.1f}%)", row["name"])
        position += 0.5
    for row in peers:
        bar(row, PEER_GREYS.get(row["name"], GREY), "", row["name"])
    axes.set_yticks([place for place, _ in names], [name for _, name in names], fontsize=8)
    for tick, (_, name) in zip(axes.get_yticklabels(), names, strict=True):
        tick.set_fontweight("bold" if name.endswith("itself") else "normal")
    axes.invert_yaxis()
    stale = any(recorded.is_stale(row) for family in families for row in (family[0], *family[1]))
    axes.margins(x=0.32 if stale else 0.2, y=0.02)  # of the longest bar: room for its figures
    axes.set_xlabel("TFLOP/s; in brackets: of the kernel itself")
    axes.grid(alpha=0.25, axis="x")
    axes.set_axisbelow(True)


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
