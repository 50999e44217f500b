"""What the tuner measured: the worth of each flag, the tiles that are fast, the model's bound beside the time."""

import textwrap

import numpy as np
from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.measuring import recorded
from flashladder.plot.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    MARKERS,
    ORANGE,
    PALE,
    PINK,
    SKY,
    caption,
    cell,
    cells_by,
    in_order,
    new_figure,
)
from flashladder.tuning import record
from flashladder.tuning.configuration import Configuration, of_stage
from flashladder.tuning.record import Tuned

UNITS = {"shared memory": BLUE, "matrix units": ORANGE, "issue slots": GREEN, "special functions": PINK}


def _panels(records: list[dict], dtype: str, d: int) -> list[Tuned]:
    found = record.of_head_dim(records, d, dtype)
    if not found:
        raise FlashLadderError(
            f"No tuning is recorded for {dtype}, d = {d} (docs/results/*-tuning.json): `make tune` on a GPU writes it."
        )
    return found


def _label(one: Tuned) -> str:
    return f"recorded: {recorded.label(one.record)}{' (stale)' if record.is_stale(one.record) else ''}"


def _space(one: Tuned) -> str:
    """A line of a title where a record is not of the whole space; else nothing."""
    return "\n" + textwrap.fill(f"of {one.record['space']}", 62) if one.record.get("space") else ""


def _length(one: Tuned, wanted: int, there: list[int]) -> int:
    """The wanted length, or the longest that was measured."""
    if not there:
        raise FlashLadderError(f"{recorded.label(one.record)}: nothing was timed.")
    return wanted if wanted in there else max(there)


def tuning_flags(records: list[dict], dtype: str = "bf16", d: int = 128, N: int = 4096) -> Figure:
    """Bars: how much longer the winner takes with one flag off, in percent. A panel for each recorded GPU."""
    panels = _panels(records, dtype, d)
    bars = [len(one.worth()) for one in panels]
    figure = new_figure(9, sum(1.3 + 0.32 * count for count in bars), "What each flag is worth to the winner, as bars")
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=[count + 2 for count in bars])[:, 0]
    for axes, one in zip(grid, panels, strict=True):
        flags = one.worth()
        length = _length(one, N, sorted({n for flag in flags for n in flag.times_as_long}))
        flags = sorted((flag for flag in flags if length in flag.times_as_long), key=lambda f: -f.times_as_long[length])
        percent = [100 * (flag.times_as_long[length] - 1) for flag in flags]
        drawn = axes.barh(range(len(flags)), percent, color=[BLUE if value > 0 else SKY for value in percent])
        axes.bar_label(drawn, [f"{value:+.1f}%" for value in percent], fontsize=8, padding=3)
        axes.set_yticks(range(len(flags)), [_wrapped(flag.name) for flag in flags], fontsize=8)
        axes.invert_yaxis()
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.margins(x=0.15)
        axes.set_xlabel("more time than the winner takes, percent")
        axes.set_title(f"{_label(one)}\nN = {length}; the winner: {_wrapped(one.winner, 60)}", fontsize=9)
        axes.grid(alpha=0.25, axis="x")
        axes.set_axisbelow(True)
    return figure


def _wrapped(text: str, width: int = 44) -> str:
    lines = [""]
    for word in text.replace("+", "+ ").split(" "):
        if lines[-1] and len(lines[-1]) + len(word) + 1 > width:
            lines.append("")
        lines[-1] += ("" if not lines[-1] or lines[-1].endswith("+") else " ") + word
    return "\n".join(lines)


def tuning_lengths(records: list[dict], dtype: str = "bf16", d: int = 128) -> Figure:
    """A grid of flags and lengths: how many times as long the winner takes without the flag; those that do not pay are
    crossed out. A panel for each recorded GPU."""
    panels = _panels(records, dtype, d)
    rows = [len(one.worth()) for one in panels]
    figure = new_figure(
        9, sum(1.4 + 0.42 * count for count in rows), "What each flag is worth at each length, as a grid"
    )
    for axes, one in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels, strict=True):
        flags = one.worth()
        lengths = sorted({n for flag in flags for n in flag.times_as_long})
        highest = max((value for flag in flags for value in flag.times_as_long.values()), default=1.0)
        for row, flag in enumerate(flags):
            for column, n in enumerate(lengths):
                value = flag.times_as_long.get(n)
                if value is None:
                    continue
                pays = value > record.PAYS
                colour = in_order(round(100 * np.log(value) / np.log(highest)), 101) if pays else PALE
                cell(axes, (column, row), colour, f"{value:.3f}" if pays else f"{value:.3f}, no", size=8)
        cells_by(axes, [f"N = {n}" for n in lengths], [_wrapped(flag.name) for flag in flags], fontsize=8)
        axes.set_title(f"{_label(one)}\n{one}: times as long as the winner", fontsize=9)
    caption(
        figure, f'"no": the flag does not pay there; without it the winner takes at most {record.PAYS:g} times as long'
    )
    return figure


def tuning_tiles(records: list[dict], dtype: str = "bf16", N: int = 4096) -> Figure:
    """TFLOP/s of the fastest configuration with each tile, Br down and Bc across; a panel for each GPU and head dim."""
    panels = [one for made in records for one in record.tuned(made) if one.dtype == dtype]
    if not panels:
        raise FlashLadderError(f"No tuning is recorded for {dtype}: `make tune` on a GPU writes docs/results.")
    figure = new_figure(
        9, 3.3 * ((len(panels) + 1) // 2), "TFLOP/s of the fastest configuration with each tile, as a grid"
    )
    grid = figure.subplots((len(panels) + 1) // 2, 2, squeeze=False).flat
    for axes in grid:
        axes.set_visible(False)
    for axes, one in zip(figure.axes, panels, strict=False):
        axes.set_visible(True)
        length = _length(one, N, list(one.record["settings"]["short_list"]))
        _tiles(axes, one.best_by_tile(length))
        label = _label(one).replace(", ", "\n", 1)
        axes.set_title(f"{label}{_space(one)}\n{one}, N = {length}", fontsize=8)
    caption(
        figure,
        "TFLOP/s in the first heats, and the warps of that configuration; its other fields were free.",
    )
    return figure


def _tiles(axes, best: dict) -> None:
    rows, columns = sorted({Br for Br, _ in best}), sorted({Bc for _, Bc in best})
    ranked = sorted(best, key=lambda tile: best[tile][1]["tflops"])
    for (Br, Bc), (one, figures) in best.items():
        colour = in_order(ranked.index((Br, Bc)), len(ranked))
        text = f"{figures['tflops']:.0f}\n{one.warps} warps"
        cell(axes, (columns.index(Bc), rows.index(Br)), colour, text, mark=INK if (Br, Bc) == ranked[-1] else None)
    cells_by(axes, [f"Bc = {Bc}" for Bc in columns], [f"Br = {Br}" for Br in rows], fontsize=8)


def tuning_predicted(records: list[dict], dtype: str = "bf16", d: int = 128, N: int = 4096) -> Figure:
    """Measured time of each configuration over the least that the model allows, both in milliseconds."""
    panels = _panels(records, dtype, d)
    figure = new_figure(
        8, 4.6 * len(panels), "Measured time of each configuration over the least time that the model allows"
    )
    for axes, one in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels, strict=True):
        length = _length(one, N, list(one.record["settings"]["short_list"]))
        points = one.predicted(length)
        if not points:
            raise FlashLadderError(f"{recorded.label(one.record)}: no clock was seen, so nothing is predicted.")
        for marker, (unit, colour) in zip(MARKERS, UNITS.items(), strict=False):
            own = [point for point in points if point.unit == unit]
            if own:
                look = {"color": colour, "markersize": 5, "markeredgecolor": INK, "markeredgewidth": 0.4}
                x, y = [point.least_ms for point in own], [point.ms for point in own]
                axes.plot(x, y, marker, linestyle="none", label=f"busiest: {unit}", **look)
        top = max(point.ms for point in points) * 1.05
        axes.plot([0, top], [0, top], color=GREY, linestyle="--", linewidth=1)
        right = max(point.least_ms for point in points) * 1.15
        axes.text(right * 0.98, right * 0.8, "the model's least", fontsize=8, color=GREY, ha="right", va="top")
        axes.set_xlim(0, right)
        axes.set_ylim(0, top)
        axes.set_xlabel("least time by the model, ms")
        axes.set_ylabel("measured, ms")
        times = [point.ms / point.least_ms for point in points]
        axes.set_title(
            f"{_label(one)}{_space(one)}\n{one}, N = {length}: {len(points)} configurations take\n"
            f"{min(times):.2f} to {max(times):.2f} times the least, half of them below {np.median(times):.2f} times",
            fontsize=9,
        )
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
        axes.grid(alpha=0.25)
        axes.set_axisbelow(True)
    return figure


# ---- which techniques are on, of stages and configurations side by side ----

# A row of the picture: what it is called, the stage that brings it, and its value in a configuration. False, 1 and
# "whole" are what the ladder begins with.
_ROWS = (
    ("swizzled", 5, lambda c: c.swizzled),
    ("async", 6, lambda c: c.async_copy),
    ("eager", 7, lambda c: c.eager),
    ("load_Q", 8, lambda c: c.load_Q or "whole"),
    ("load_K", 8, lambda c: c.load_K or "whole"),
    ("load_V", 8, lambda c: c.load_V or "whole"),
    ("kv_buffers", 9, lambda c: c.kv_stages),
    ("fragment_buffers", 9, lambda c: c.fragment_stages),
    ("opt_softmax", 10, lambda c: c.fast_softmax),
    ("skip_rescale", 10, lambda c: c.skip_rescale),
    ("lean", 11, lambda c: c.lean),
    ("lean_ldmatrix", 11, lambda c: c.lean_ldmatrix),
    ("Q_registers", 12, lambda c: c.Q_in_registers),
    ("blocks", 12, lambda c: c.resident_blocks or "-"),
    ("Br", 12, lambda c: c.Br),
    ("Bc", 12, lambda c: c.Bc),
    ("warps", 12, lambda c: c.warps),
)


def configurations(*others: Configuration) -> Figure:
    """A column for each stage from 04 to 11, and for each of the others; a row for each field of the short form."""
    columns = [(f"{number:02d}", of_stage(number)) for number in range(4, 12)]
    columns += [(f"({chr(ord('a') + number)})", one) for number, one in enumerate(others)]
    figure = new_figure(4.2 + 0.62 * len(columns), 0.32 * len(_ROWS) + 1.1 + 0.22 * len(others),
                        "Which fields of a configuration each stage sets")  # fmt: skip
    axes = figure.subplots()
    first = columns[0][1]
    for row, (name, stage, value_of) in enumerate(_ROWS):
        where = f"from stage {stage:02d}" if stage < 12 else "stage 12 alone"
        axes.text(-0.2, row + 0.5, f"{name}  ({where})", ha="right", va="center", fontsize=9, color=INK)
        for column, (_, one) in enumerate(columns):
            value = value_of(one)
            told = {True: "on", False: ""}.get(value, str(value)) if isinstance(value, bool) else str(value)
            cell(axes, (column, row), PALE if value == value_of(first) else BLUE, told)
    for column, (title, _) in enumerate(columns):
        axes.text(column + 0.5, -0.2, title, ha="center", va="bottom", fontsize=10, color=INK)
    axes.set(xlim=(-0.05, len(columns) + 0.05), ylim=(len(_ROWS) + 0.05, -0.9))
    axes.set_axis_off()
    axes.set_title("Blue: not as in stage 04", loc="left", fontsize=10, color=GREY)
    told = "\n".join(f"{title} {one}" for title, one in columns[8:])
    figure.supxlabel(told, fontsize=8, color=GREY, x=0.01, ha="left")
    return figure
