"""DRAM traffic of each stage, by Nsight Compute, and the bandwidth of a copy: what the roofline is drawn from."""

import math
import time

import numpy as np

from flashladder.core.console import say
from flashladder.core.device import Device, cudart
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.measuring import gpu_memory, ncu, peers, provenance, recorded
from flashladder.measuring.ncu import PROBLEM
from flashladder.running.cudart import Cudart
from flashladder.running.job import StageError

METRICS = {
    "DRAM bytes read": "dram__bytes_read.sum",
    "DRAM bytes written": "dram__bytes_write.sum",
    "L2 bytes": "lts__t_bytes.sum",
}
COPY_BYTES = 1 << 32


def copy_bandwidth(device: Device) -> float:
    """GB/s of a copy within the device's memory, bytes read plus bytes written, the median of ten."""
    runtime = Cudart(gpu_memory.loaded_cudart() or cudart(device))
    source, target = runtime.malloc(COPY_BYTES), runtime.malloc(COPY_BYTES)
    start, stop, times = runtime.event(), runtime.event(), []
    for _ in range(12):
        runtime.record(start)
        runtime.copy_on_device(target, source, COPY_BYTES)
        runtime.record(stop)
        runtime.wait(stop)
        times.append(runtime.elapsed_ms(start, stop))
    runtime.free(source)
    runtime.free(target)
    return 2 * COPY_BYTES / float(np.median(times[2:])) / 1e6


def measure(device: Device, results: dict | None, which: list[stages.Kernel], ends: float = math.inf) -> dict:
    """The record: traffic of the stages measured now, throughput from `results` (a run of `make bench`), None where it
    has none. ends: of time.monotonic(), after which no further stage is begun."""
    rows, figures = [], {}
    if results:
        wanted = {"dtype": PROBLEM.dtype, "d_head": PROBLEM.d_head, "causal": False, "Nq": PROBLEM.Nq}
        figures = {row["name"]: row["tflops"] for row in recorded.pick(results, **wanted)}
    for stage in which:
        if PROBLEM.dtype not in stage.dtypes or time.monotonic() > ends:
            say(f"roofline: not of {stage.name}")
            continue
        try:
            kernels = ncu.measure(stage, PROBLEM, device, METRICS)
        except (FlashLadderError, StageError) as error:
            say(f"roofline: {stage.name}: {str(error)[:300]}")
            continue
        read, written, l2 = (int(sum(kernel.get(name, 0) for kernel in kernels)) for name in METRICS)
        rows.append(
            {
                "name": stage.name,
                "kind": "stage",
                "kernel_sha256": stage.kernel_hash(),
                "flops": PROBLEM.flops(),
                "dram_bytes": read + written,
                "dram_read": read,
                "dram_written": written,
                "l2_bytes": l2,
                "tflops": figures.get(stage.name),
            }
        )
    ceiling = recorded.ceiling(results, PROBLEM.dtype) if results else None
    return {
        "provenance": provenance.collect(device) | peers.versions(),
        "problem": str(PROBLEM),
        "bandwidth_gb_s": round(copy_bandwidth(device), 1),
        "ceiling_tflops": ceiling and ceiling["tflops"],
        "rows": rows,
    }
