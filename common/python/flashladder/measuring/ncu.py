"""Nsight Compute's counters for one run of a stage, where ncu is installed."""

import csv
import functools
import io
import math
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from flashladder.core.device import Device, cudart
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import stage_library
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.running.job import Job

PROBLEM = Problem(B=4, Hq=16, Nq=4096, d_head=128, dtype="bf16")  # of the records of a profiler and of a roofline
_WAVEFRONTS = "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_"
_CONFLICTS = "sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_"
_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_"

# Name here -> metric. The sass metrics count instructions' own wavefronts; the plain hardware counters have noise.
METRICS = {
    "shared load wavefronts": _WAVEFRONTS + "ld.sum",
    "shared store wavefronts": _WAVEFRONTS + "st.sum",
    "shared ldmatrix wavefronts": _WAVEFRONTS + "ldsm.sum",
    "shared load conflicts": _CONFLICTS + "ld.sum",
    "shared store conflicts": _CONFLICTS + "st.sum",
    "shared ldmatrix conflicts": _CONFLICTS + "ldsm.sum",
    "global load sectors": _SECTORS + "ld.sum",  # with those of cp_async
    "global store sectors": _SECTORS + "st.sum",
    "shared cp_async wavefronts": _WAVEFRONTS + "ldgsts.sum",
    "shared cp_async conflicts": _CONFLICTS + "ldgsts.sum",
    "global cp_async sectors": "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum",
    "L2 read sectors": "lts__t_sectors_op_read.sum",
    "warp instructions (SASS)": "smsp__inst_executed.sum",
    "local load sectors": "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "registers": "launch__registers_per_thread",
    "DRAM bytes read": "dram__bytes_read.sum",
    "nanoseconds": "gpu__time_duration.sum",
}


@functools.cache
def known() -> frozenset[str]:
    """Metrics of this GPU without their endings (.sum, .ratio); those of a launch are none of them. Empty: not told."""
    done = subprocess.run(["ncu", "--query-metrics"], capture_output=True, text=True)
    return frozenset(line.split()[0] for line in done.stdout.splitlines() if line.split())


@functools.cache
def metrics() -> dict[str, str]:
    """METRICS without those of asynchronous copies (LDGSTS) that this GPU does not know: ncu refuses unknown ones."""
    return {name: metric for name, metric in METRICS.items() if "ldgsts" not in metric or metric[:-4] in known()}


def available() -> bool:
    return shutil.which("ncu") is not None


# What ncu says where it may not or cannot read counters, and what that means.
REFUSALS = {
    "ERR_NVGPUCTRPERM": "this user may not read the GPU's counters: run as root, or have the driver loaded with "
    "NVreg_RestrictProfilingToAdminUsers=0 (https://developer.nvidia.com/ERR_NVGPUCTRPERM)",
    "LibraryNotLoaded": "the profiler cannot reach the driver: seen in sandboxes, which have no counters to give",
    "resource was unavailable": "another profiler is using the GPU's counters: end it, or the monitor that does",
}


def run(
    stage: stages.Stage, problem: Problem, device: Device, options: Iterable[str], library: Path | None = None
) -> str:
    """What ncu with these options prints (it may be to a file) about one run of the stage.

    library: another build of the stage. FlashLadderError where there is no ncu, or where it gave nothing.
    """
    if not available():
        raise FlashLadderError("ncu not found: install Nsight Compute and put it on PATH.")
    with tempfile.TemporaryDirectory(prefix="flashladder-ncu-") as name:
        folder = Path(name)
        job = Job(str(cudart(device)), str(library or stage_library(stage.number)), problem)
        worker = job.write(folder, problem.random())
        # The GPU's own clocks: what is set on it is not for a measurement to change.
        command = ["ncu", "--clock-control", "none", *options, *worker]
        done = subprocess.run(command, env=for_python(), capture_output=True, text=True, errors="replace")
    said = done.stdout + done.stderr
    reason = next((words for sign, words in REFUSALS.items() if sign in said), "")
    if reason or done.returncode:
        text = said.strip()[-600:]
        raise FlashLadderError(f"ncu gave no figures for stage {stage.id}{': ' + reason if reason else ''}\n{text}")
    return done.stdout


def measure(stage: stages.Stage, problem: Problem, device: Device, wanted: dict[str, str] | None = None) -> list[dict]:
    """One dict for each kernel that the stage launches: "kernel" and the figures of `wanted`, metrics() by default."""
    wanted = wanted or metrics()
    options = ["--csv", "--page", "raw", "--print-units", "base", "--metrics", ",".join(wanted.values())]
    printed = run(stage, problem, device, options)
    kernels = parse(printed, wanted)
    if not kernels:
        raise FlashLadderError(f"ncu gave no figures for stage {stage.id}:\n{printed.strip()[-600:]}")
    return kernels


def parse(printed: str, wanted: dict[str, str]) -> list[dict]:
    """The kernels of `ncu --csv --page raw`, with those of the wanted figures that are there."""
    found = []
    for row in rows(printed):
        figures = {name: number(row.get(metric)) for name, metric in wanted.items()}
        found.append({"kernel": row["Kernel Name"]} | {k: v for k, v in figures.items() if v is not None})
    return found


def rows(printed: str) -> list[dict[str, str]]:
    """The rows of `ncu --csv`, behind whatever it says before them; the row of units has no ID."""
    start = printed.find('"ID"')
    found = csv.DictReader(io.StringIO(printed[start:])) if start >= 0 else ()
    return [row for row in found if row.get("ID")]


def number(text: str | None) -> float | int | None:
    """1,234 or 5.5 as ncu prints it; None for n/a and for nothing."""
    text = (text or "").replace(",", "").strip()
    for kind in (int, float):
        try:
            value = kind(text)
            return value if math.isfinite(value) else None
        except ValueError:
            continue
    return None
