"""What instructions take while the tensor cores multiply: beside_products.cu, built and run on a GPU with wgmma."""

import json
import subprocess
import tempfile
from pathlib import Path

from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.measuring import programs, provenance

PROGRAM = Path(__file__).with_suffix(".cu")
SECONDS = 60


def compiled(folder: Path) -> Path:
    """The program, for sm_90a alone."""
    return programs.compiled(PROGRAM, folder, "-gencode", "arch=compute_90a,code=sm_90a")


def measure(device: Device) -> dict:
    """A record: for each instruction, beside no products and beside two kinds, `clocks` that one takes a warp on each
    scheduler, and `clocks_of_a_product`, of one wgmma with 64 rows, 128 columns and 32 bytes of depth."""
    if device.kind != "gpu" or device.gpu.compute != 90:
        raise FlashLadderError(f"wgmma runs on GPUs of compute capability 9.0 alone; this is {device}.")
    with tempfile.TemporaryDirectory(prefix="flashladder-beside-") as folder:
        try:
            done = subprocess.run([compiled(Path(folder))], capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired as error:
            raise FlashLadderError(f"{PROGRAM.name}: not done after {SECONDS} s") from error
    if done.returncode:
        raise FlashLadderError(f"{PROGRAM.name}: {done.stderr.strip()}")
    return {"version": 1, "provenance": provenance.collect(device), "rows": json.loads(done.stdout)}
