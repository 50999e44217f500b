"""What `bench` and `plot` do: time the stages where there is a GPU, count where there is none, draw what is there."""

import itertools
import os

from flashladder.core import device
from flashladder.core.console import say
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, results_directory
from flashladder.measuring import bench, recorded
from flashladder.simulator import simulated_bench


def bench_or_count(settings: bench.Settings) -> None:
    """Throughput on a GPU; on the simulator its counters, for a time there says nothing about a GPU."""
    where = device.choose()
    if where.kind == "gpu":
        file = bench.run_bench(settings, where)
        say(f"\nWritten: {os.path.relpath(file, ROOT)}")
        plot_latest()
    else:
        simulated_bench.run(settings.stages, where)


def plot_latest() -> None:
    """Draws the newest results beside the recorded ones."""
    from flashladder import plot  # matplotlib is slow to load, and not everyone has it

    shown = recorded.shown(recorded.latest_live())
    if not shown:
        raise FlashLadderError("Nothing to plot: no results below build/results or docs/results. Run `make bench`.")
    for what in itertools.product(("bf16", "e4m3"), (64, 128), (False, True)):
        dtype, d, causal = what
        usable = [pair for pair in shown if recorded.pick(pair[0], dtype=dtype, d_head=d, causal=causal)]
        if usable:
            file = plot.save(plot.throughput(usable, *what), results_directory() / recorded.picture(*what))
            say(f"Plot: {os.path.relpath(file, ROOT)}")
