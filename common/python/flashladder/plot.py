"""The throughput plot: a bar for each stage, and a sweep over sequence length beside it."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from flashladder import recorded
from flashladder.errors import FlashLadderError

# The ladder climbs from dark to light, in a map that colour-blind readers can tell apart; peers are grey.
COLOUR_MAP = "viridis"
MARKERS = "os^Dv<>ph"
PEER_GREYS = {"FlashAttention-2": "#444444", "cuDNN attention": "#999999"}


def _look(results: dict, name: str) -> tuple:
    """(colour, marker) of a stage or peer, the same in every part of the plot."""
    if name in PEER_GREYS:
        return PEER_GREYS[name], "x"
    names = list(dict.fromkeys(row["name"] for row in results["measurements"] if row["kind"] == "stage"))
    index = names.index(name)
    return matplotlib.colormaps[COLOUR_MAP](index / max(len(names), 2) * 0.95), MARKERS[index % len(MARKERS)]


def _bar_length(results: dict, dtype: str, d: int) -> int:
    """The sequence length shown as bars: 4096, or the longest that was measured."""
    lengths = {row["Nq"] for row in recorded.pick(results, dtype=dtype, d_head=d, causal=False)}
    if not lengths:
        raise FlashLadderError(f"No results for {dtype}, d = {d} to plot.")
    return 4096 if 4096 in lengths else max(lengths)


def _short(tflops: float) -> str:
    return f"{tflops:.0f}" if tflops >= 10 else f"{tflops:.2g}"


def _bars(axes, results: dict, dtype: str, d: int, what: str) -> None:
    length = _bar_length(results, dtype, d)
    rows = recorded.pick(results, dtype=dtype, d_head=d, causal=False, Nq=length)
    names = []
    for position, row in enumerate(rows):
        stale = recorded.is_stale(row)
        colour, _ = _look(results, row["name"])
        bar = axes.barh(
            position, row["tflops"], color=colour, hatch="///" if stale else None, alpha=0.5 if stale else 1
        )
        axes.bar_label(bar, [f" {_short(row['tflops'])}{' (stale)' if stale else ''}"], fontsize=8)
        names.append(row["name"])
    ceiling = recorded.ceiling(results, dtype)
    if ceiling:
        axes.axvline(ceiling["tflops"], color="#777777", linestyle=":", linewidth=1)
        axes.text(ceiling["tflops"], -0.75, "cuBLAS matmul ", ha="right", va="center", fontsize=7, color="#555555")
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("TFLOP/s")
    axes.set_title(f"{what}\n{dtype}, d = {d}, N = {length}", fontsize=9)


def _sweep(axes, results: dict, dtype: str, d: int, style: str) -> None:
    rows = recorded.pick(results, dtype=dtype, d_head=d, causal=False)
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


def throughput(file: Path, results: list[tuple[dict, bool]], dtype: str = "bf16", d: int = 128) -> Path:
    """Writes the plot. results: (results, live) pairs; live ones were measured here, others are recorded.

    Each is labelled with GPU, date and commit, recorded ones say so, and a figure whose kernel.cu has changed
    since is hatched and marked stale.
    """
    matplotlib.rcParams["svg.hashsalt"] = "flashladder"  # the same input gives the same file
    usable = [(one, live) for one, live in results if recorded.pick(one, dtype=dtype, d_head=d, causal=False)]
    if not usable:
        raise FlashLadderError(f"No results for {dtype}, d = {d} to plot.")
    figure = Figure(figsize=(11, 1.2 + 3.2 * len(usable)), layout="constrained")
    grid = figure.subplots(len(usable), 2, squeeze=False)
    for (bars, sweep), (one, live) in zip(grid, usable, strict=True):
        what = f"{'measured here' if live else 'recorded'}: {recorded.label(one)}"
        _bars(bars, one, dtype, d, what)
        _sweep(sweep, one, dtype, d, "-" if live else "--")
        sweep.set_xscale("log", base=2)
        lengths = sorted({row["Nq"] for row in recorded.pick(one, dtype=dtype, d_head=d, causal=False)})
        sweep.set_xticks(lengths, [str(n) for n in lengths])
        sweep.minorticks_off()
        sweep.set_yscale("log")
        sweep.set_xlabel("sequence length N")
        sweep.set_ylabel("TFLOP/s")
        sweep.set_title(f"{what}\n{dtype}, d = {d}, B·N = {_tokens(one)} tokens", fontsize=9)
        sweep.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))
        for axes in (bars, sweep):
            axes.grid(alpha=0.25, which="both")
            axes.set_axisbelow(True)
    file.parent.mkdir(parents=True, exist_ok=True)
    # The file must not change with the date or the version of matplotlib.
    figure.savefig(file, dpi=120, metadata={"Software": None} if file.suffix == ".png" else {"Date": None})
    return file


def ablations(file: Path, results: list[dict], dtype: str = "bf16", d: int = 128) -> Path:
    """Writes bars of a stage, its variants and the peers, one panel for each recorded GPU."""
    figure = Figure(figsize=(9, 0.6 + 3.2 * len(results)), layout="constrained")
    for axes, one in zip(figure.subplots(len(results), 1, squeeze=False)[:, 0], results, strict=True):
        _bars(axes, one, dtype, d, f"recorded: {recorded.label(one)}")
        axes.grid(alpha=0.25, axis="x")
        axes.set_axisbelow(True)
    figure.savefig(file, dpi=120, metadata={"Software": None})
    return file


def _tokens(results: dict) -> int:
    return results["settings"]["tokens"]
