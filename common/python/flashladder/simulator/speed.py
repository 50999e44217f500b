"""make bench-sim: how fast the simulator itself is, with hazards and counters on, and what a second core gives."""

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from flashladder.building import build
from flashladder.building.toolchain import require_nvcc
from flashladder.core.console import say, table
from flashladder.core.device import Device, environment
from flashladder.core.environment import prepended
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory
from flashladder.core.problem import Problem
from flashladder.ladder import stages

PROBLEM = Problem(B=1, Hq=2, Nq=512, d_head=128, dtype="bf16")
RUNS = 6  # the first one also translates the PTX, and is left out
SOURCE = ROOT / "common/simulator/bench/workloads.cu"
# Blocks for each workload of SOURCE: a few tenths of a second each on one core.
WORKLOADS = {
    "histogram": 2000,
    "float_sum": 3000,
    "float_scatter": 1000,
    "work_queue": 4000,
    "grid_sync": 264,
    "short_launches": 16,
}


def build_workloads() -> Path:
    """The program of SOURCE, compiled to PTX. Built again where it is older than its source."""
    program = build_directory() / "bench" / "workloads"
    if program.exists() and program.stat().st_mtime >= SOURCE.stat().st_mtime:
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    command = [require_nvcc(), "-std=c++17", "-O3", "-lineinfo", "-cudart", "shared"]
    command += ["-gencode", "arch=compute_80,code=compute_80", "-o", program, SOURCE]
    env = prepended(LIBRARY_PATH=build_directory() / "cudart-links")
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise FlashLadderError(f"{SOURCE} does not compile:\n{(done.stdout + done.stderr)[-3000:]}")
    return program


def run_workload(name: str, blocks: int, threads: int, runs: int = RUNS) -> tuple[list[float], list[dict]]:
    """Seconds of each run after the first one, and the report's launches of all runs."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        env = environment(Device("sim", None)) | {"WARPSIM_THREADS": str(threads), "WARPSIM_REPORT": str(report)}
        command = [build_workloads(), name, str(blocks), str(runs)]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        if done.returncode:
            raise FlashLadderError(f"{' '.join(map(str, command))}:\n{(done.stdout + done.stderr)[-3000:]}")
        return [float(word) for word in done.stdout.split()][1:], json.loads(report.read_text())["launches"]


def run_stage(stage: stages.Kernel, threads: int) -> tuple[list[float], list[dict]]:
    result = stage.run(PROBLEM, device="sim", repeat=RUNS, environment={"WARPSIM_THREADS": str(threads)})
    return result.seconds[1:], result.report["launches"]


def run(which: str) -> int:
    build.build()
    stage = stages.get(which)
    cores = len(os.sched_getaffinity(0))
    works = [(stage.name, lambda threads: run_stage(stage, threads))]
    for name, blocks in WORKLOADS.items():
        works.append((f"{name}, {blocks} blocks", lambda threads, w=(name, blocks): run_workload(*w, threads)))
    rows = []
    for name, work in works:
        one_thread = None
        for threads in dict.fromkeys((1, min(2, cores), cores)):
            times, launches = work(threads)
            instructions = sum(launch["instructions"]["total"] for launch in launches) / RUNS
            seconds = statistics.median(times)
            one_thread = one_thread or seconds
            rate = instructions / seconds / threads / 1e6
            gain = f"{one_thread / seconds:.2f}"
            rows.append((name, threads, f"{instructions:.4g}", f"{seconds:.3f}", f"{rate:.1f}", gain))
    columns = ("workload", "cores", "warp instructions", "seconds", "million a second and core", "times one core")
    table(f"Simulator, hazards and counters on; the stage with {PROBLEM}", columns, rows, right=range(1, 6))
    say("Instructions are PTX's, counted once for each warp; seconds are the median of several runs.")
    return 0
