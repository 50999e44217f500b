"""make demo: build, run and verify the forward ladder, print a table and write the throughput plot."""

import os
import time
from pathlib import Path

from flashladder.building import build
from flashladder.core.console import coloured, count, progress, say, table
from flashladder.core.device import choose, find_gpu
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory, results_directory
from flashladder.ladder import host_streams, stages, sweep
from flashladder.ladder.kernels import Kernel
from flashladder.measuring import bench, recorded
from warpsim import counters

SIMULATOR = "warpsim_cudart"  # its target
COUNTED = ("PTX instr.", "bank conflicts", "sectors")


def _host_targets() -> list[str]:
    """What stage 00 runs besides the simulator: the library of a later stage, too."""
    first = [stage for stage in stages.every_stage() if stage.number == 0]
    return [target for stage in first for target in stage.targets if target != SIMULATOR]


def _library(stage: Kernel) -> Path | None:
    """Where no GPU runs the stage, the library that has the kernels of the demo's problems alone; None: the whole
    one."""
    whole = choose(stage.min_compute).kind == "gpu" or f"stage_{stage.id}" in _host_targets()
    return None if whole else build_directory() / f"lib/demo/libstage_{stage.id}.so"


def _verify_all() -> bool:
    rows, failures = [], []
    ladder = stages.all_stages()
    started = time.perf_counter()
    for stage in progress(ladder, "verify"):
        verdicts = [sweep.verify(stage, problem, library=_library(stage)) for problem in sweep.demo_problems()]
        failures += [(stage, verdict) for verdict in verdicts if not verdict.passed]
        shown = verdicts[0]
        device = choose(stage.min_compute)
        error = f"{shown.comparison.frobenius:.1e}" if shown.comparison else "-"
        report = shown.result.report if shown.result else None
        figures = counters.summary(counters.totals(report)) if report else {}
        good = all(verdict.passed for verdict in verdicts)
        counted = [count(figures.get(key)) for key in COUNTED]
        rows.append([stage.name, device.short, "verified" if good else "WRONG", error, *counted, stage.technique])
    problems = sweep.demo_problems()
    seconds = time.perf_counter() - started
    title = f"{len(ladder)} stages against the float64 reference ({seconds:.0f} s); figures: {problems[0]}"
    columns = ["stage", "ran on", "result", "rel. error", *COUNTED, "technique"]
    if all(row[4] == "-" for row in rows):  # a GPU counts nothing
        columns, rows = columns[:4] + columns[-1:], [row[:4] + row[-1:] for row in rows]
    if len({row[1] for row in rows}) == 1:  # which the first line says
        columns, rows = [columns[0], *columns[2:]], [[row[0], *row[2:]] for row in rows]
    table(title, columns, rows, right=range(columns.index("rel. error"), len(columns) - 1))
    for stage, verdict in failures:
        say(coloured(f"\n{stage.name}, {verdict.problem}: {verdict.message}", "red"))
    return not failures


def _verify_host_streams() -> bool:
    result = host_streams.run()
    good = sum(run.passed for run in result.runs)
    say(f"\n{host_streams.stage().name} on {result.device.short}: {good} of {len(result.runs)} variants verified")
    if not result.passed:
        say(coloured(result.message, "red"))
    return result.passed


def _plot() -> None:
    try:
        from flashladder import plot
    except ImportError:
        say("No plot: matplotlib is not installed.")
        return
    live = None
    if choose().kind == "gpu":
        say("\nTiming the stages on this GPU ...")
        settings = bench.Settings(lengths=(1024, 4096), head_dims=(128,), seconds=0.1, slowest_run=1.0)
        try:
            live = recorded.load(bench.run_bench(settings))
        except FlashLadderError as error:
            say(f"No live throughput: {error}")
    shown = recorded.shown(live)
    if not shown:
        say("No throughput plot: nothing is recorded below docs/results yet.")
        return
    file = plot.save(plot.throughput(shown), results_directory() / "throughput.png")
    kind = "measured here, beside recorded runs" if shown[0][1] else f"recorded on {recorded.label(shown[0][0])}"
    say(f"\nThroughput plot ({kind}): {os.path.relpath(file, ROOT)}")


def _targets() -> list[str]:
    """What the demo runs; the first command that needs more builds more."""
    ladder = stages.all_stages()
    libraries = [f"stage_{stage.id}{'_demo' if _library(stage) else ''}" for stage in ladder]
    on_simulator = any(choose(stage.min_compute).kind == "sim" for stage in ladder)
    return [*dict.fromkeys([*libraries, *_host_targets(), *[SIMULATOR] * on_simulator])]


def run() -> int:
    device = choose()
    say(f"Device: {device}")
    if not stages.all_stages():
        raise FlashLadderError("There is no stage below stages/: is the clone complete?")
    build.build(_targets())
    good = _verify_host_streams() and _verify_all()
    _plot()
    if good:
        say(coloured("\nEvery stage of the forward ladder gives the right answer.", "green"))
        say("Next: `make notebooks` opens the lessons (as a text: stages/01_naive/README.md); `make` lists the rest.")
        say("Gradients, decode and several GPUs: `make stage-45 run`, `make stage-54 run`, `make stage-63 run`.")
        if device.kind == "gpu" and find_gpu():
            say("`make bench` measures all lengths and head dims.")
    return 0 if good else 1
