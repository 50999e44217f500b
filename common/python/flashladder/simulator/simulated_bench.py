"""`bench` where there is no GPU: counters instead of times, for a simulator's time says nothing about a GPU's."""

import datetime
import json
import os

from flashladder.core.console import count, progress, say, table
from flashladder.core.device import Device
from flashladder.core.paths import ROOT, results_directory
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.run import run_problem
from flashladder.simulator import counters

PROBLEM = Problem(B=1, Hq=2, Nq=256, d_head=128, dtype="bf16")


def run(numbers: tuple[int, ...], where: Device) -> None:
    """Prints counters of the stages (all where none is named) and writes them to build/results."""
    say(f"Device: {where}. It has no throughput to measure: these are counters.")
    wanted = [stages.get(number) for number in numbers] or list(stages.all_stages())
    sums = {
        stage.name: counters.totals(run_problem(stage, stage.own(PROBLEM), device="sim").report)
        for stage in progress(wanted, "count")
    }
    rows = [[name, *(count(value) for value in counters.summary(total).values())] for name, total in sums.items()]
    columns = ["", *counters.summary(next(iter(sums.values())))]
    table(f"{PROBLEM}; by warp, summed over the launch", columns, rows, right=range(1, len(columns)))
    folder = results_directory()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"simulator-{datetime.datetime.now(datetime.timezone.utc):%Y%m%d-%H%M%S}.json"
    record = {"version": 1, "provenance": {"device": where.short}, "problem": str(PROBLEM), "simulated": sums}
    file.write_text(json.dumps(record, indent=2) + "\n")
    say(f"\nWritten: {os.path.relpath(file, ROOT)}. Recorded throughput: docs/results.")
