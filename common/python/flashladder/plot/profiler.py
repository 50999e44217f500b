"""What Nsight Compute recorded of a few kernels: why warps did not issue, where they were found, and wavefronts."""

from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.measuring import profiler, recorded
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
)

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
