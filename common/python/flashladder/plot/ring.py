"""Several GPUs: throughput of each by the length of the sequence."""

from matplotlib.figure import Figure

from flashladder.measuring import recorded
from flashladder.plot.style import BLUE, GREY, INK, MARKERS, caption, in_order, new_figure

HEADS = ((16, 16), (32, 8))


def ring(records: list[dict]) -> Figure:
    """A row for each record: panels for both groups of heads, without a mask and with one."""
    figure = new_figure(12, 0.6 + 3.8 * len(records), "TFLOP/s of each GPU of a host, by the length of the sequence")
    rows = figure.subplots(len(records), 4, squeeze=False, sharey="row")
    for axes, record in zip(rows, records, strict=True):
        panels = [(heads, causal) for heads in HEADS for causal in (False, True)]
        for one, (heads, causal) in zip(axes, panels, strict=True):
            _panel(one, record, heads, causal)
        axes[0].set_ylabel("TFLOP/s of each GPU")
        axes[0].set_ylim(bottom=0)  # of all four
        axes[0].legend(fontsize=7, loc="lower right")
    caption(figure, " ".join(f"Recorded: {recorded.label(one)}." for one in records))
    return figure


def _panel(axes, record: dict, heads: tuple[int, int], causal: bool) -> None:
    rows = [row for row in record["measurements"] if (row["Hq"], row["Hkv"], row["causal"]) == (*heads, causal)]
    names = list(dict.fromkeys(row["name"] for row in record["measurements"]))
    stages = [name for name in names if any(row["name"] == name and row["kind"] == "stage" for row in rows)]
    for number, name in enumerate(names):
        curve = sorted((row for row in rows if row["name"] == name), key=lambda row: row["N"])
        if not curve:
            continue
        kind = curve[0]["kind"]
        colour = {"peer": GREY}.get(kind, INK)
        if kind == "stage":
            colour = BLUE if name == stages[-1] else in_order(stages.index(name), len(stages))
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
