"""make bench-sim: warp instructions per second and core of the simulator, with hazards and counters on."""

import os
import statistics

from flashladder.core.console import say, table
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.run import run_problem

PROBLEM = Problem(B=1, Hq=2, Nq=512, d_head=128, dtype="bf16")
RUNS = 4  # the first one also translates the PTX, and is left out


def run(which: str) -> int:
    stage = stages.get(which)
    cores = len(os.sched_getaffinity(0))
    rows = []
    for threads in dict.fromkeys((1, min(2, cores), cores)):
        result = run_problem(stage, PROBLEM, device="sim", repeat=RUNS, environment={"WARPSIM_THREADS": str(threads)})
        instructions = sum(launch["instructions"]["total"] for launch in result.report["launches"]) / RUNS
        seconds = statistics.median(result.seconds[1:])
        rate = instructions / seconds / threads / 1e6
        rows.append((threads, f"{instructions:.4g}", f"{seconds:.3f}", f"{rate:.1f}"))
    columns = ("cores", "warp instructions", "seconds", "million a second and core")
    table(f"Simulator, {stage.name}, {PROBLEM}, hazards and counters on", columns, rows, right=range(4))
    say("Instructions are PTX's, counted once for each warp.")
    return 0
