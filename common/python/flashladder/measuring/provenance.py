"""What a result was measured with: GPU, driver, toolkit, commit, clocks, date, each kernel's hash.

FLASHLADDER_COMMIT names the commit, whatever git says, where the tree was copied to a machine without its history.
"""

import datetime
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence

from flashladder.building import build
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.ladder import stages
from flashladder.ladder.kernels import WithKernel


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def clocks() -> dict | None:
    """Present SM and memory clocks in MHz, as nvidia-smi reads them."""
    if not shutil.which("nvidia-smi"):
        return None
    query = ["nvidia-smi", "--query-gpu=clocks.sm,clocks.mem,clocks.max.sm", "--format=csv,noheader,nounits"]
    done = subprocess.run(query, capture_output=True, text=True)
    try:
        sm, memory, highest = (int(part) for part in done.stdout.splitlines()[0].split(","))
    except (IndexError, ValueError):
        return None
    return {"sm_mhz": sm, "memory_mhz": memory, "max_sm_mhz": highest}


def collect(device: Device, kernels: Sequence[WithKernel] = ()) -> dict:
    """kernels: whose hashes it has, all of attention where none are given."""
    try:
        built = build.info()
    except FlashLadderError:
        built = {}
    named = os.environ.get("FLASHLADDER_COMMIT")
    commit = named or _git("rev-parse", "--short=12", "HEAD")
    changes = None if named else _git("status", "--porcelain", "--untracked-files=no", "--", "stages", "common")
    record = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit or "unknown",
        "uncommitted_changes": None if changes is None else bool(changes),
        "device": device.short,
        "toolkit": built.get("nvcc_version"),
        "build_type": built.get("build_type"),
        "host": platform.machine(),
        "kernels": {stage.name: stage.kernel_hash() for stage in kernels or stages.all_stages()},
    }
    if device.kind == "gpu":
        gpu = device.gpu
        record |= {"compute_capability": gpu.compute / 10, "driver": gpu.driver, "memory_mib": gpu.memory_mib}
        record["clocks"] = clocks()
    return record
