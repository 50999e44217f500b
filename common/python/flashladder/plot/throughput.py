"""Throughput: a bar for each stage and a sweep over sequence length; ablations; the climb from stage to stage."""

import matplotlib
from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.measuring import recorded
from flashladder.plot.style import BLUE, GREY, INK, MARKERS, SEQUENCE, SKY, caption, new_figure

# The ladder climbs from dark to light; peers are grey.
PEER_GREYS = {"FlashAttention-2": "#444444", "cuDNN attention": "#999999", "cuDNN FP8": "#999999"}


def _look(results: dict, name: str) -> tuple:
    """(colour, marker) of a stage or peer, the same in every part of the plot."""
    if name in PEER_GREYS:
        return PEER_GREYS[name], "x"
    names = list(dict.fromkeys(row["name"] for row in results["measurements"] if row["kind"] == "stage"))
    index = names.index(name)
    return matplotlib.colormaps[SEQUENCE](index / max(len(names), 2) * 0.95), MARKERS[index % len(MARKERS)]


def _masked(causal: bool) -> str:
    return ", causal" if causal else ""


def _bar_length(results: dict, dtype: str, d: int, causal: bool = False) -> int:
    """The sequence length shown as bars: 4096, or the longest that was measured."""
    lengths = {row["Nq"] for row in recorded.pick(results, dtype=dtype, d_head=d, causal=causal)}
    if not lengths:
        raise FlashLadderError(f"No results for {dtype}, d = {d}{_masked(causal)} to plot.")
    return 4096 if 4096 in lengths else max(lengths)


def _short(tflops: float) -> str:
    return f"{tflops:.0f}" if tflops >= 10 else f"{tflops:.2g}"


def _percent(row: dict, whole: dict) -> str:
    percent = 100 * row["tflops"] / whole["tflops"]
    return f"{percent:.0f}%" if percent >= 1 else f"{percent:.1f}%"


def _shares(row: dict, rows: list[dict], ceiling: dict | None) -> str:
    """A stage's throughput in percent of FlashAttention-2's and of the matrix product's, in the same run."""
    if row["kind"] != "stage":
        return ""
    parts = []
    peer = next((other for other in rows if other["name"] == "FlashAttention-2"), None)
    if peer:
        parts.append(f"{_percent(row, peer)} of FA-2")
    if ceiling:
        parts.append(f"{_percent(row, ceiling)} of matmul")
    return f"  ({', '.join(parts)})" if parts else ""


def _bars(axes, results: dict, dtype: str, d: int, causal: bool, what: str) -> None:
    length = _bar_length(results, dtype, d, causal)
    rows = recorded.pick(results, dtype=dtype, d_head=d, causal=causal, Nq=length)
    names = []
    ceiling = recorded.ceiling(results, dtype)
    for position, row in enumerate(rows):
        stale = recorded.is_stale(row)
        colour, _ = _look(results, row["name"])
        bar = axes.barh(
            position, row["tflops"], color=colour, hatch="///" if stale else None, alpha=0.5 if stale else 1
        )
        label = f"{_short(row['tflops'])}{' (stale)' if stale else ''}{_shares(row, rows, ceiling)}"
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 0}  # the line of the matrix product stays behind
        axes.bar_label(bar, [label], fontsize=7.5, padding=4, bbox=ground)
        names.append(row["name"])
    if ceiling:
        axes.axvline(ceiling["tflops"], color=GREY, linestyle=":", linewidth=1)
        # At the line's end, below the bars and what is written beside them.
        end = axes.get_xaxis_transform()  # y from 0, the axes' lower edge, to 1
        axes.text(ceiling["tflops"], 0.005, " cuBLAS matmul", va="bottom", fontsize=7, color="#555555", transform=end)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=1.35)  # for what is written beside the bars: the longest bar has the longest text
    axes.set_xlabel("TFLOP/s")
    axes.set_title(f"{what}\n{dtype}, d = {d}, N = {length}{_masked(causal)}", fontsize=9)


def _sweep(axes, results: dict, dtype: str, d: int, causal: bool, style: str) -> None:
    rows = recorded.pick(results, dtype=dtype, d_head=d, causal=causal)
    for name in dict.fromkeys(row["name"] for row in rows):
        curve = sorted((row["Nq"], row["tflops"], row["ms"]) for row in rows if row["name"] == name)
        colour, marker = _look(results, name)
        stale = any(recorded.is_stale(row) for row in rows if row["name"] == name)
        lengths, values = [n for n, _, _ in curve], [t for _, t, _ in curve]
        # From the 20th to the 80th percentile of the run times.
        low = [t * ms["median"] / ms["p80"] for _, t, ms in curve]
        high = [t * ms["median"] / ms["p20"] for _, t, ms in curve]
        axes.plot(
            lengths, values, style, marker=marker, color=colour, markersize=4, linewidth=1.2,
            label=f"{name}{' (stale)' if stale else ''}",
        )  # fmt: skip
        axes.fill_between(lengths, low, high, color=colour, alpha=0.2, linewidth=0)


Results = list[tuple[dict, bool]]  # (results, live): measured here, or recorded


def throughput(results: Results, dtype: str = "bf16", d: int = 128, causal: bool = False) -> Figure:
    """Bars at one length and a sweep over lengths, a row for each run of `results` that has such figures.

    Each is labelled with GPU, date and commit, recorded ones say so, and a figure whose kernel.cu has changed
    since is hatched and marked stale. FlashLadderError where there is nothing to plot.
    """
    usable = [(one, live) for one, live in results if recorded.pick(one, dtype=dtype, d_head=d, causal=causal)]
    if not usable:
        raise FlashLadderError(f"No results for {dtype}, d = {d}{_masked(causal)} to plot.")
    # Room for a line of text for each bar, and for each name beside the curves.
    kernels = [{row["name"] for row in recorded.pick(one, dtype=dtype, d_head=d, causal=causal)} for one, _ in usable]
    heights = [1.4 + max(2.0, 0.19 * len(names)) for names in kernels]
    figure = new_figure(12, 0.4 + sum(heights), "Throughput by stage as bars, and over the sequence length as curves")
    grid = figure.subplots(len(usable), 2, squeeze=False, height_ratios=heights)
    for (bars, sweep), (one, live) in zip(grid, usable, strict=True):
        what = f"{'measured here' if live else 'recorded'}: {recorded.label(one)}".replace(", ", "\n", 1)
        _bars(bars, one, dtype, d, causal, what)
        _sweep(sweep, one, dtype, d, causal, "-" if live else "--")
        sweep.set_xscale("log", base=2)
        lengths = sorted({row["Nq"] for row in recorded.pick(one, dtype=dtype, d_head=d, causal=causal)})
        sweep.set_xticks(lengths, [str(n) for n in lengths])
        sweep.minorticks_off()
        sweep.set_yscale("log")
        sweep.set_xlabel("sequence length N")
        sweep.set_ylabel("TFLOP/s")
        tokens = one["settings"]["tokens"]
        sweep.set_title(f"{what}\n{dtype}, d = {d}{_masked(causal)}, B·N = {tokens} tokens", fontsize=9)
        sweep.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
        for axes in (bars, sweep):
            axes.grid(alpha=0.25, which="both")
            axes.set_axisbelow(True)
    return figure


def ablations(
    results: list[dict], stage: int | None = None, dtype: str = "bf16", d: int = 128, causal: bool = False
) -> Figure:
    """Bars of kernels, each with its variants below it, the fastest first, in percent of it; and of the peers.

    A panel for each recorded GPU. stage: the variants of one stage alone. FlashLadderError where there are none.
    """
    panels = []
    for one in results:
        if not recorded.pick(one, dtype=dtype, d_head=d, causal=causal):
            continue
        length = _bar_length(one, dtype, d, causal)
        rows = recorded.pick(one, dtype=dtype, d_head=d, causal=causal, Nq=length)
        families = [
            (kernel, changed)
            for kernel, changed in recorded.variants(rows)
            if stage is None or kernel["name"].startswith(f"{stage:02d}_")
        ]
        if families:
            panels.append((one, length, families, [row for row in rows if row["kind"] == "peer"]))
    if not panels:
        raise FlashLadderError(f"No ablations{'' if stage is None else f' of stage {stage:02d}'} are recorded.")
    bars = [sum(1 + len(changed) for _, changed in families) + len(peers) for _, _, families, peers in panels]
    figure = new_figure(
        9, sum(1.2 + 0.27 * count for count in bars), "Throughput of kernels, their variants and the peers as bars"
    )
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=bars)[:, 0]
    for axes, (one, length, families, peers) in zip(grid, panels, strict=True):
        _families(axes, families, peers)
        axes.set_title(f"recorded: {recorded.label(one)}\n{dtype}, d = {d}, N = {length}{_masked(causal)}", fontsize=9)
    return figure


def _families(axes, families: list[tuple[dict, list[dict]]], peers: list[dict]) -> None:
    names, position = [], 0

    def bar(row: dict, colour, text: str, name: str, **look) -> None:
        nonlocal position
        stale = recorded.is_stale(row)
        look |= {"hatch": "///", "alpha": 0.5} if stale else {}
        drawn = axes.barh(position, row["tflops"], color=colour, **look)
        axes.bar_label(drawn, [f" {_short(row['tflops'])}{' (stale)' if stale else ''}{text}"], fontsize=8)
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
    axes.margins(x=0.2, y=0.02)  # of the longest bar: room for its figures
    axes.set_xlabel("TFLOP/s; in brackets: of the kernel itself")
    axes.grid(alpha=0.25, axis="x")
    axes.set_axisbelow(True)


def climb(results: Results, dtype: str = "bf16", d: int = 128) -> Figure:
    """The ladder as a climb: each stage's factor over the one before, with the peers as lines, for the first run."""
    one, live = results[0]
    length = _bar_length(one, dtype, d)
    rows = recorded.pick(one, dtype=dtype, d_head=d, causal=False, Nq=length)
    steps = [row for row in rows if row["kind"] == "stage"]
    if not steps:
        raise FlashLadderError(f"No stage was measured for {dtype}, d = {d}.")
    figure = new_figure(10, 4.8, "Throughput by stage, with each one's factor over the stage before")
    axes = figure.subplots()
    for position, row in enumerate(steps):
        colour, _ = _look(one, row["name"])
        axes.bar(position, row["tflops"], color=colour, width=0.7, hatch="///" if recorded.is_stale(row) else None)
        text = _short(row["tflops"])
        if position:
            text += f"\n×{row['tflops'] / steps[position - 1]['tflops']:.2f}"
        axes.text(position, row["tflops"] * 1.08, text, ha="center", va="bottom", fontsize=9, color=INK)
    lines = [row for row in rows if row["kind"] == "peer"] + [recorded.ceiling(one, dtype)]
    for place, row in enumerate(row for row in lines if row):  # side by side: two of them may be close
        axes.axhline(row["tflops"], color=GREY, linestyle=":", linewidth=1)
        text = f"{row['name']} {_short(row['tflops'])}"
        axes.text(-0.45 + 1.6 * place, row["tflops"] * 1.03, text, fontsize=8, color=INK)
    axes.set_yscale("log")
    axes.set_ylim(top=axes.get_ylim()[1] * 1.6)
    axes.set_ylabel("TFLOP/s (log scale)")
    axes.set_xticks(
        range(len(steps)), [row["name"].replace("_", " ", 1).replace("_", "\n") for row in steps], fontsize=8
    )
    axes.set_title(f"{dtype}, d = {d}, N = {length}; × is the factor over the stage before", fontsize=10)
    caption(figure, f"{'measured here' if live else 'recorded'}: {recorded.label(one)}")
    return figure
