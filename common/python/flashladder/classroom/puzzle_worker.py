"""Launches a puzzle's kernel in this process, which was started for that alone.

    python -m flashladder.classroom.puzzle_worker

The working directory holds job.json, kernel.ptx and the bytes of `in`; those of `out` and result.json are left there.
It needs the standard library alone.
"""

import ctypes
import sys
from ctypes import byref, c_size_t, c_void_p
from pathlib import Path

from flashladder.classroom.device_worker import Dim3, Module, answer, download, upload
from flashladder.running.cudart import Cudart

POISON = 0xFF


def execute(job: dict) -> dict:
    cudart = Cudart(job["cudart"])
    data = Path("in").read_bytes()
    source, result = cudart.malloc(len(data)), cudart.malloc(job["output_bytes"])
    upload(cudart, source, data)
    cudart.fill(result, POISON, job["output_bytes"])
    kernel = Module(cudart, Path("kernel.ptx").read_bytes()).prepare({"symbol": "puzzle", "shared_bytes": 0})
    pointers = [c_void_p(source), c_void_p(result)]
    arguments = (c_void_p * 2)(*(ctypes.addressof(one) for one in pointers))
    grid, block = Dim3(1, 1, 1), Dim3(job["threads"], 1, 1)
    cudart.call("cudaLaunchKernel", kernel, grid, block, byref(arguments), c_size_t(0), c_void_p())
    cudart.synchronize()
    Path("out").write_bytes(download(cudart, result, job["output_bytes"]))
    return {"status": "ok"}


if __name__ == "__main__":
    sys.exit(answer(execute))
