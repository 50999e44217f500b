"""How near to the tensor cores' rate each stage comes, whatever clock it was given."""

from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.measuring import power, recorded
from flashladder.plot.style import BLUE, GREY, INK, caption, new_figure

PEER = "#999999"


def step_clocks(record: dict | None, d: int = 128, N: int = 16384) -> Figure:
    """Bars of the clocks that a multiprocessor has for 128 rows of Q and 128 of K and V, without a mask and causal, of
    a record of measuring.power; beside each its part of the tensor cores' rate, and the clock at which it ran."""
    if not record:
        raise FlashLadderError("No clocks are recorded (docs/results/*-power.json): PARTS=power make gpu-report.")
    figure = new_figure(11, 5.6, "Clocks of a step of each kernel as bars, beside the tensor cores' own")
    for axes, causal in zip(figure.subplots(1, 2, sharey=True), (False, True), strict=True):
        rows = recorded.pick(record, dtype="bf16", d_head=d, Nq=N, causal=causal, inputs="normal")
        clocks = [power.clocks_a_step(row, record["multiprocessors"]) for row in rows]
        colours = [PEER if row["kind"] == "peer" else BLUE for row in rows]
        bars = axes.barh(range(len(rows)), clocks, color=colours)
        floor = power.floor(d)
        texts = []
        for one, row in zip(clocks, rows, strict=True):
            stale = " (stale)" if recorded.is_stale(row) else ""
            texts.append(f"{one:,.0f}   {floor / one:.0%}, {row['mhz']['median']:,} MHz{stale}")
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 0}
        axes.bar_label(bars, texts, fontsize=7.5, padding=4, bbox=ground)
        axes.axvline(floor, color=INK, linestyle=":", linewidth=1)
        axes.text(floor, -0.9, f" tensor cores alone: {floor:,.0f}", fontsize=7.5, color=GREY, va="center")
        axes.set_ylim(len(rows) - 0.4, -1.4)
        axes.set_yticks(range(len(rows)), [row["name"] for row in rows], fontsize=8)
        axes.margins(x=0.42)
        beside = "beside: part of the tensor cores' rate, and the clock that it was given"
        axes.set_xlabel(f"clocks of a multiprocessor for 128 rows of Q and of K;\n{beside}", fontsize=9)
        axes.set_title(f"bf16, d = {d}, N = {N}{', causal' if causal else ''}", fontsize=9)
    caption(figure, f"recorded: {recorded.label(record)}")
    return figure
