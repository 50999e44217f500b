"""Loads PTX and launches its kernels for one problem, in this process, which was started for that alone.

    python -m flashladder.classroom.device_worker

The working directory holds job.json, kernel.ptx and Q.npy, K.npy, V.npy (flashladder.classroom.device_code writes
them); O.npy, log_sum_exp.npy and result.json are left there. The expected result is never in this process.
"""

import ctypes
import json
import sys
from ctypes import byref, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path

import numpy as np

from flashladder.core.abi import FlashParams
from flashladder.running.cudart import CudaError, Cudart

GUARD = 1 << 16  # bytes on either side of a buffer on a GPU; the simulator knows each buffer's bounds
GUARD_BYTE = 0xA5
POISON = 0xFF  # a NaN of every type
DYNAMIC_SHARED_BYTES = 8  # cudaFuncAttributeMaxDynamicSharedMemorySize


class Dim3(ctypes.Structure):
    _fields_ = [("x", c_uint), ("y", c_uint), ("z", c_uint)]


class Buffers:
    """Device memory by name, each with guards around it where `guarded`."""

    def __init__(self, cudart: Cudart, guarded: bool):
        self._cudart, self._guard = cudart, GUARD if guarded else 0
        self._places: dict[str, tuple[int, int]] = {}  # the allocation, the buffer's bytes

    def make(self, name: str, size: int) -> int:
        whole = self._cudart.malloc(size + 2 * self._guard)
        if self._guard:
            self._cudart.fill(whole, GUARD_BYTE, size + 2 * self._guard)
        self._places[name] = (whole, size)
        self._cudart.fill(whole + self._guard, POISON, size)
        return whole + self._guard

    def touched_guards(self) -> list[str]:
        """Which buffers something was written before or behind of."""
        found, guard = [], np.empty(self._guard, np.uint8)
        for name, (whole, size) in self._places.items() if self._guard else ():
            for place in (whole, whole + self._guard + size):
                self._cudart.download(guard, place)
                if (guard != GUARD_BYTE).any():
                    found.append(name)
        return found


class Module:
    """PTX as the CUDA runtime has loaded it: by the simulator, or compiled by a GPU's driver."""

    def __init__(self, cudart: Cudart, ptx: bytes):
        self._cudart, self._library = cudart, c_void_p()
        self._text = ctypes.create_string_buffer(ptx)
        cudart.call("cudaLibraryLoadData", byref(self._library), self._text, None, None, 0, None, None, 0)

    def prepare(self, launch: dict) -> c_void_p:
        """The kernel of a launch, allowed its shared memory."""
        kernel = c_void_p()
        self._cudart.call("cudaLibraryGetKernel", byref(kernel), self._library, launch["symbol"].encode())
        shared_bytes = c_int(launch["shared_bytes"])
        self._cudart.call("cudaFuncSetAttribute", kernel, DYNAMIC_SHARED_BYTES, shared_bytes)
        return kernel

    def launch(self, kernel: c_void_p, launch: dict, params: FlashParams) -> None:
        arguments = (c_void_p * 1)(ctypes.addressof(params))
        grid, block = Dim3(*launch["grid"]), Dim3(launch["threads"], 1, 1)
        self._cudart.call(
            "cudaLaunchKernel", kernel, grid, block, arguments, c_size_t(launch["shared_bytes"]), c_void_p()
        )


def execute(job: dict) -> dict:
    cudart = Cudart(job["cudart"])
    buffers = Buffers(cudart, job["guarded"])
    params = FlashParams.from_buffer_copy(bytes.fromhex(job["params"]))
    inputs = {name: np.load(f"{name}.npy") for name in "QKV"}
    pointers = {name: buffers.make(name, size) for name, size in job["bytes"].items()}
    for name in "QKV":
        cudart.upload(pointers[name], inputs[name])
    for name in "QKVO":
        getattr(params, name).data = pointers[name]
    params.log_sum_exp, params.workspace = pointers.get("log_sum_exp"), pointers.get("workspace")
    params.workspace_bytes = job["bytes"].get("workspace", 0)

    module = Module(cudart, Path("kernel.ptx").read_bytes())
    kernels = [(module.prepare(launch), launch) for launch in job["launches"]]
    for kernel, launch in kernels:
        module.launch(kernel, launch, params)
    cudart.synchronize()

    for name, dtype in (("O", np.uint16), ("log_sum_exp", np.float32)):
        if name in pointers:
            array = np.empty(job["bytes"][name] // np.dtype(dtype).itemsize, dtype)
            cudart.download(array, pointers[name])
            np.save(f"{name}.npy", array)
    changed = []
    for name in "QKV":
        after = np.empty_like(inputs[name])
        cudart.download(after, pointers[name])
        changed += [name] if (after != inputs[name]).any() else []
    return {"status": "ok", "changed_inputs": changed, "touched_guards": buffers.touched_guards()}


def main() -> int:
    try:
        result = execute(json.loads(Path("job.json").read_text()))
    except CudaError as error:
        result = {"status": "error", "message": str(error)}
    Path("result.json").write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
