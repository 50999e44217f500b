"""The machine code of the loop over K and V, in which order and how many of which kind; and what Nsight Compute
recorded of it: why warps did not issue, where they were found, and wavefronts.
"""

from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory

from flashladder.core.errors import FlashLadderError
from flashladder.measuring import machine_code, profiler, recorded
from flashladder.plot.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALE,
    PINK,
    RED,
    SKY,
    YELLOW,
    caption,
    new_figure,
    stacked,
)  # fmt: skip

# Lanes of the picture of the order, from the top: name, letters, colour.
_LANES = (
    ("global copies", "Gg", BLUE),
    ("ldmatrix", "L", GREEN),
    ("mma", "MW", ORANGE),
    ("softmax", "e*+^?~yr", SKY),
    ("moves, integer", "mi", GREY),
    ("spilled registers", "<>", RED),
)
# Groups of the bars: name, classes of machine_code.NAMES, colour, hatch.
_GROUPS = (
    ("mma", ("mma", "wgmma"), ORANGE, None),
    ("ldmatrix", ("ldmatrix",), GREEN, None),
    (
        "multiply, add, maximum",
        ("FP32 multiply", "FP32 add", "FP32 maximum", "FP32 compare", "shuffle", "vote"),
        SKY,
        None,
    ),
    ("ex2", ("ex2", "other MUFU"), BLUE, "//"),
    ("conversion", ("conversion",), PINK, None),
    ("moves", ("move",), YELLOW, ".."),
    ("integer, address", ("integer, address",), GREY, None),
    ("spills", ("spill load, store",), RED, "xx"),
)


def _name(row: dict) -> str:
    return row["name"] + (" (stale: the kernel has changed)" if machine_code.is_stale(row) else "")


def order(*which: int | str, d: int = 128) -> Figure:
    """The loops of stages (numbers) and variants (names) below one another: a stroke for each machine instruction.

    FlashLadderError for what is not recorded.
    """
    rows = machine_code.recorded_rows(*which, d=d)
    figure = new_figure(
        11, 0.6 + 1.9 * len(rows), "Order of the machine instructions in the loop over K and V, a row for each kind"
    )
    panels = figure.subplots(len(rows), 1, squeeze=False, sharex=True)[:, 0]
    for axes, row in zip(panels, rows):
        for lane, (_, letters, colour) in enumerate(_LANES):
            at = [index for index, letter in enumerate(row["order"]) if letter in letters]
            axes.eventplot(at, lineoffsets=-lane, linelengths=0.8, linewidths=0.7, colors=colour)
        across = blended_transform_factory(axes.transData, axes.transAxes)
        for index, letter in enumerate(row["order"]):
            if letter in "w|":
                axes.axvline(index, color=INK, linewidth=1.4, linestyle="-" if letter == "|" else ":")
        waits = [index for index, letter in enumerate(row["order"]) if letter == "w"]
        barriers = [index for index, letter in enumerate(row["order"]) if letter == "|"]
        for index in waits:  # the text of a barrier right behind it would lie on top
            near = any(0 < barrier - index < 90 for barrier in barriers)
            text = "wait" if not near else "wait, barrier"
            axes.text(index, 1.01, text, transform=across, fontsize=7, ha="left", va="bottom")
        for index in barriers:
            if not any(0 < index - wait < 90 for wait in waits):
                axes.text(index, 1.01, "barrier", transform=across, fontsize=7, ha="left", va="bottom")
        axes.set_yticks([-lane for lane in range(len(_LANES))], [name for name, _, _ in _LANES], fontsize=8)
        axes.set_ylim(-len(_LANES) + 0.4, 0.6)
        axes.tick_params(length=0, axis="y")
        axes.spines[["top", "right", "left"]].set_visible(False)
        words = f"{_name(row)}: {len(row['order']):,} instructions, {row['spill_bytes']} bytes of spills"
        axes.set_title(words, fontsize=9, loc="left", pad=14)
    panels[-1].set_xlim(-8, max(len(row["order"]) for row in rows) + 8)
    panels[-1].set_xlabel("machine instructions, in the order in which they lie in memory", fontsize=8)
    caption(figure, f"{machine_code.label()}, bf16, d = {d}. Lines across: solid a barrier, dotted a wait for copies.")
    return figure


def instruction_mix(*which: int | str, d: int = 128) -> Figure:
    """Bars of what a warp executes for a K/V tile, by kind; arguments as for order()."""
    rows = machine_code.recorded_rows(*which, d=d)
    figure = new_figure(11, 1.2 + 0.42 * len(rows), "Machine instructions that a warp executes for a K/V tile, by kind")
    axes = figure.subplots()
    named = {name for _, classes, _, _ in _GROUPS for name in classes}
    widest = max(sum(row["in_a_turn"].values()) for row in rows)
    rest = ("all others", tuple(name for name in machine_code.NAMES if name not in named), "#dddddd", None)
    for place, row in enumerate(rows):
        parts = [
            (sum(row["in_a_turn"].get(one, 0) for one in classes), look, None if place else name)
            for name, classes, *look in (*_GROUPS, rest)
        ]
        left = stacked(axes, place, parts, least=widest / 50, height=0.75)
        axes.text(left + widest / 60, place, f"{left:,}", va="center", fontsize=9, weight="bold", color=INK)
    axes.set_yticks(range(len(rows)), [_name(row) for row in rows], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.08 * widest)
    axes.set_xlabel("instructions of a warp for a K/V tile")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    caption(figure, f"{machine_code.label()}, bf16, d = {d}")
    return figure


# What is stacked: name, what it sums up, colour, hatch. The one with no reasons takes what no other does.
_STALLS = (
    ("issued (selected)", ("selected",), PALE, None),
    ("another warp went first (not selected)", ("not_selected",), GREY, None),
    ("fixed latency (wait)", ("wait",), YELLOW, ".."),
    ("pipe busy (math pipe throttle)", ("math_pipe_throttle", "gmma"), ORANGE, None),
    ("shared memory, MUFU (short scoreboard)", ("short_scoreboard",), GREEN, None),
    ("queue to shared memory full (mio throttle)", ("mio_throttle",), SKY, "//"),
    ("global memory (long scoreboard)", ("long_scoreboard", "lg_throttle"), BLUE, "\\\\"),
    ("barrier", ("barrier", "membar"), RED, "xx"),
    ("all others", (), PINK, "--"),
)
_SAMPLES = {
    "mma": (ORANGE, None),
    "ldmatrix": (GREEN, None),
    "wait for cp.async": (BLUE, "\\\\"),
    "wait for wgmma": (PALE, "oo"),
    "barrier": (RED, "xx"),
    "copies": (SKY, "//"),
    "softmax": (YELLOW, ".."),
    "spills": (PINK, "--"),
    "the rest": (GREY, None),
}
_WAVEFRONTS = (
    ("ldmatrix", "shared ldmatrix wavefronts", GREEN, None),
    ("stores", "shared store wavefronts", ORANGE, "//"),
    ("cp.async", "shared cp_async wavefronts", BLUE, "\\\\"),
    ("loads", "shared load wavefronts", GREY, None),
)


def _there(record: dict, key: str) -> list[dict]:
    entries = [one for one in record["kernels"] if one[key]]
    if not entries:
        raise FlashLadderError(f"Nothing of this kind ({key}) is recorded; PARTS=ncu make gpu-report records it.")
    return entries


def _bars(record: dict, what: str, entries: list[dict], parts, unit: str, text) -> Figure:
    """Horizontal stacked bars. parts: (name, colour, hatch, value of each entry); text(value): in the bar."""
    figure = new_figure(10, 1.6 + 0.5 * len(entries), what)
    axes = figure.subplots()
    parts = [part for part in parts if any(part[-1])]
    longest = max(sum(values[index] for *_, values in parts) for index in range(len(entries)))
    for y in range(len(entries)):
        own = [(values[y], (colour, hatch), None if y else name) for name, colour, hatch, values in parts]
        stacked(axes, y, own, least=0.055 * longest, size=7, text=text)
    stale = ["\n(stale)" if recorded.is_stale(one) else "" for one in entries]
    names = [one["name"].replace(" (", "\n(") for one in entries]
    axes.set_yticks(range(len(entries)), [name + old for name, old in zip(names, stale, strict=True)], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    axes.spines[["top", "right"]].set_visible(False)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))
    caption(figure, f"recorded: {recorded.label(record)}; {record['problem']}")
    return figure


def profiler_stalls(record: dict) -> Figure:
    """For each kernel: the cycles that a warp spends for an instruction, by why it did not issue."""
    entries = _there(record, "stalls")
    named = {reason for _, reasons, _, _ in _STALLS for reason in reasons}
    parts = []
    for name, reasons, colour, hatch in _STALLS:
        taken = reasons or tuple(reason for reason in profiler.STALLS if reason not in named)
        parts.append((name, colour, hatch, [sum(one["stalls"].get(reason, 0) for reason in taken) for one in entries]))
    what = "Cycles that a warp spends for an instruction, by why it did not issue, as stacked bars"
    return _bars(record, what, entries, parts, "cycles of a warp for each instruction that it issues", "{:.2f}".format)


def profiler_samples(record: dict) -> Figure:
    """For each kernel: at which machine instructions its warps were found, in percent of the samples."""
    entries = _there(record, "samples")
    parts = [(name, *look, [100 * profiler.share(one, name) for one in entries]) for name, look in _SAMPLES.items()]
    what = "At which machine instructions the warps of each kernel were found, as stacked bars"
    return _bars(record, what, entries, parts, "percent of the samples", "{:.0f}".format)


def profiler_wavefronts(record: dict) -> Figure:
    """For each kernel: wavefronts of shared memory in millions, by what asked for them."""
    entries = _there(record, "figures")
    parts = [
        (name, colour, hatch, [(one["figures"].get(figure) or 0) / 1e6 for one in entries])
        for name, figure, colour, hatch in _WAVEFRONTS
    ]
    what = "Wavefronts of shared memory of each kernel, by what asked for them, as stacked bars"
    return _bars(record, what, entries, parts, "wavefronts of shared memory, millions", "{:.0f}".format)
