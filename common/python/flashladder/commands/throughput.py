"""What `bench` and `plot` do: time the stages where there is a GPU, count where there is none, draw what is there."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from flashladder.core import device
from flashladder.core.console import count, progress, say, table
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, results_directory
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.measuring import bench, recorded
from warpsim import counters

PROBLEM = Problem(B=1, Hq=2, Nq=256, d_head=128, dtype="bf16")  # where there is no GPU


def bench_or_count(settings: bench.Settings) -> None:
    """Throughput on a GPU; on the simulator its counters, for a time there says nothing about a GPU."""
    where = device.choose()
    if where.kind == "gpu":
        file = bench.run_bench(settings, where)
        say(f"\nWritten: {os.path.relpath(file, ROOT)}")
        plot_latest()
    else:
        _count(settings.stages, where)


def _count(numbers: tuple[int, ...], where: Device) -> None:
    """Prints counters of the stages (all where none is named) and writes them to build/results."""
    say(f"Device: {where}. It has no throughput to measure: these are counters.")
    wanted = [stages.get(number) for number in numbers] or list(stages.all_stages())
    sums = {
        stage.name: counters.totals(stage.run(stage.own(PROBLEM), device="sim").report)
        for stage in progress(wanted, "count")
    }
    show_counters(f"{PROBLEM}; by warp, summed over the launch", list(sums.items()))
    record = {"version": 1, "provenance": {"device": where.short}, "problem": str(PROBLEM), "simulated": sums}
    file = recorded.write_live(record, "simulator")
    say(f"\nWritten: {os.path.relpath(file, ROOT)}. Recorded throughput: docs/results.")


def show_counters(title: str, totals: list[tuple[str, dict]]) -> None:
    """A row for each name and its counters.totals()."""
    sums = [(name, counters.summary(total)) for name, total in totals]
    columns = ["", *sums[0][1]]
    table(title, columns, [[name, *map(count, one.values())] for name, one in sums], right=range(1, len(columns)))


def plot_latest() -> None:
    """Draws the newest results beside the recorded ones."""
    shown = recorded.shown(recorded.latest_live())
    if not shown:
        raise FlashLadderError("Nothing to plot: no results below build/results or docs/results. Run `make bench`.")
    for file in draw(shown, results_directory()):
        say(f"Plot: {os.path.relpath(file, ROOT)}")


def draw(shown: list[tuple[dict, bool]], folder: Path) -> Iterator[Path]:
    """A picture for each type, head dim and mask that one of the records has."""
    from flashladder import plot  # matplotlib is slow to load, and not everyone has it

    for what in itertools.product(("bf16", "e4m3"), (64, 128), (False, True)):
        dtype, d, causal = what
        usable = [pair for pair in shown if recorded.pick(pair[0], dtype=dtype, d_head=d, causal=causal)]
        if usable:
            yield plot.save(plot.throughput(usable, *what), folder / recorded.picture(*what))
