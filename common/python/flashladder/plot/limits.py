"""What a stage's time may be limited by: the least that each part of the GPU needs for it, beside what was measured."""

from dataclasses import dataclass

from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.measuring import profile, recorded
from flashladder.measuring.ncu import PROBLEM
from flashladder.plot.style import INK, ORANGE, SKY, caption, new_figure

MULTIPROCESSORS, SCHEDULERS, GHZ = 132, 4, 1.98  # of an H200, at its highest clock
FP32_TFLOPS = 67  # of its data sheet
_WAVEFRONTS = ("shared load wavefronts", "shared store wavefronts", "shared ldmatrix wavefronts")


@dataclass(frozen=True)
class Limit:
    name: str
    ms: float


def limits_of(number: int) -> tuple[float, list[Limit]]:
    """(milliseconds measured, what each part needs at least), of PROBLEM. Instructions and wavefronts are counted by
    Nsight Compute for a small problem, and the large one has so many times the work."""
    name = stages.get(number).name
    roofline, counted = recorded.first("roofline"), recorded.first("counters")
    row = _named(roofline["rows"], "name", name)
    kernels = _named(counted["counters"], "stage", name)["ncu"]
    work = PROBLEM.B * PROBLEM.Hq * PROBLEM.Nq**2 / (profile.PROBLEM.B * profile.PROBLEM.Hq * profile.PROBLEM.Nq**2)
    cycles = MULTIPROCESSORS * GHZ * 1e6  # of all multiprocessors, in a millisecond
    instructions = sum(one["warp instructions (SASS)"] for one in kernels)
    wavefronts = sum(one[key] for one in kernels for key in _WAVEFRONTS)
    (measured,) = recorded.pick(
        recorded.first(), name=name, dtype=PROBLEM.dtype, d_head=PROBLEM.d_head, Nq=PROBLEM.Nq, causal=False
    )
    tensor = any(one["shared ldmatrix wavefronts"] for one in kernels)
    arithmetic = roofline["ceiling_tflops"] if tensor else FP32_TFLOPS
    found = [
        Limit("instructions", instructions * work / (cycles * SCHEDULERS)),
        Limit("shared memory", wavefronts * work / cycles),
        Limit("tensor cores" if tensor else "multiply-adds", row["flops"] / arithmetic / 1e9),
        Limit("DRAM", row["dram_bytes"] / roofline["bandwidth_gb_s"] / 1e6),
    ]
    return row["flops"] / measured["tflops"] / 1e9, [one for one in found if one.ms]


def _named(rows: list[dict], key: str, name: str) -> dict:
    for row in rows:
        if row[key] == name:
            return row
    raise FlashLadderError(f"{name} is not in the record: there are {', '.join(row[key] for row in rows)}.")


def limits(number: int) -> Figure:
    """Bars: the time that a stage takes, and below it what each part of the GPU needs at least."""
    measured, found = limits_of(number)
    stage = stages.get(number)
    bars = [("measured", measured), *((one.name, one.ms) for one in found)]
    figure = new_figure(7.5, 0.75 + 0.34 * len(bars), "The time of a stage, and what each part of the GPU needs of it")
    axes = figure.subplots()
    for y, (_, ms) in enumerate(bars):
        axes.barh(y, ms, 0.7, color=ORANGE if y == 0 else SKY, hatch=None if y == 0 else "//", edgecolor="white")
        axes.text(ms + measured * 0.01, y, f"{ms:.3g} ms", va="center", fontsize=9, color=INK)
    axes.set_yticks(range(len(bars)), [name for name, _ in bars], fontsize=9)
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_xlim(0, measured * 1.15)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.set_title(f"Stage {stage.id}, B = 4, H = 16, N = 4096, d = 128: the time, and the least that each needs",
                   fontsize=9, loc="left")  # fmt: skip
    caption(
        figure,
        f"time recorded: {recorded.label(recorded.first())}; counts: {recorded.label(recorded.first('counters'))}",
    )
    return figure
