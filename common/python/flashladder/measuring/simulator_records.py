"""Records of a GPU that the simulator is held to: sums of tensor cores, and what comes of mistakes that it names.

The scripts that make them lie beside the simulator's tests, with the programs that they run.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from flashladder.core.device import Device
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory
from flashladder.measuring import provenance

SECONDS = 400


def _made(device: Device, script: str, *options: str, env: dict | None = None) -> dict:
    """What a script of tests/simulator writes, behind the provenance."""
    with tempfile.TemporaryDirectory(prefix="flashladder-record-") as folder:
        file = Path(folder) / "record.json"
        command = [sys.executable, str(ROOT / "tests" / "simulator" / script), str(file), *options]
        environment = for_python() | {"WARPSIM_BUILD": str(build_directory())} | (env or {})
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
        except subprocess.TimeoutExpired as error:
            raise FlashLadderError(f"{script}: not done after {SECONDS} s") from error
        if not file.exists():
            raise FlashLadderError(f"{script} ended with status {done.returncode}: {done.stderr.strip()[-1500:]}")
        made = json.loads(file.read_text())
    return {"version": 1, "provenance": provenance.collect(device)} | made


def sums(device: Device) -> dict:
    """The bits that mma.sync and wgmma leave on operands made from whole numbers: tests/simulator/recorded_sums.py."""
    return _made(device, "recorded_sums.py", env={"FLASHLADDER_DEVICE": device.kind})


def faults(device: Device) -> dict:
    """Each faulty kernel for Hopper and its mended twin: tests/simulator/record_faults.py."""
    return _made(device, "record_faults.py", "--device", device.kind)


def outcomes(record: dict, twin: str = "gpu") -> dict[str, int]:
    """How many of the faults ("gpu") or of their mended twins ("gpu mended") came to each outcome."""
    found = {}
    for row in record["faults"]:
        found[row[twin]["outcome"]] = found.get(row[twin]["outcome"], 0) + 1
    return found
