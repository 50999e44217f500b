"""Nsight Compute's counters for one run of a stage, where ncu is installed."""

import csv
import functools
import io
import shutil
import subprocess
import tempfile
from pathlib import Path

from flashladder.core.device import Device, cudart
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import stage_library
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.running.job import Job

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
def metrics() -> dict[str, str]:
    """METRICS without those of asynchronous copies (LDGSTS) that this GPU does not know: ncu refuses unknown ones."""
    done = subprocess.run(["ncu", "--query-metrics"], capture_output=True, text=True)
    known = {line.split()[0] for line in done.stdout.splitlines() if line.split()}
    return {name: metric for name, metric in METRICS.items() if "ldgsts" not in metric or metric[:-4] in known}


def available() -> bool:
    return shutil.which("ncu") is not None


def measure(stage: stages.Stage, problem: Problem, device: Device, wanted: dict[str, str] | None = None) -> list[dict]:
    """One dict for each kernel that the stage launches: "kernel" and the figures of `wanted`, metrics() by default."""
    if not available():
        raise FlashLadderError("ncu not found: install Nsight Compute and put it on PATH.")
    wanted = wanted or metrics()
    with tempfile.TemporaryDirectory(prefix="flashladder-ncu-") as name:
        folder = Path(name)
        job = Job(str(cudart(device)), str(stage_library(stage.number)), problem)
        worker = job.write(folder, problem.random())
        command = ["ncu", "--csv", "--page", "raw", "--clock-control", "none", "--print-units", "base"]
        command += ["--metrics", ",".join(wanted.values()), *worker]
        done = subprocess.run(command, env=for_python(), capture_output=True, text=True)
    start = done.stdout.find('"ID"')
    if start < 0:
        text = (done.stdout + done.stderr).strip()[-600:]
        raise FlashLadderError(f"ncu gave no figures for stage {stage.id}:\n{text}")
    return parse(done.stdout[start:], wanted)


def parse(text: str, wanted: dict[str, str]) -> list[dict]:
    """Rows of `ncu --csv --page raw`: a header, a row of units, then one row for each kernel."""
    rows = list(csv.DictReader(io.StringIO(text)))
    names = {metric: name for name, metric in wanted.items()}
    kernels = []
    for row in rows:
        if not row.get("ID"):
            continue
        kernel: dict = {"kernel": row["Kernel Name"]}
        for metric, name in names.items():
            value = (row.get(metric) or "").replace(",", "")
            try:
                kernel[name] = float(value) if "." in value else int(value)
            except ValueError:
                continue
        kernels.append(kernel)
    return kernels
