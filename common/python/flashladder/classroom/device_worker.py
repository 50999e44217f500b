"""Loads PTX and launches its kernels for one problem, in this process, which was started for that alone.

    python -m flashladder.classroom.device_worker

The working directory holds job.json, kernel.ptx and the bytes of Q, K and V, of e4m3 those of their scales, too
(flashladder.classroom.device_code writes them); those of O and log_sum_exp and result.json are left there. The expected
result is never in this process. It needs the standard library alone, and so starts in a tenth of the time that NumPy
takes.
"""

import ctypes
import json
import sys
from collections.abc import Callable
from ctypes import byref, c_char, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path

from flashladder.core.abi import FlashParams
from flashladder.running import tensor_maps
from flashladder.running.cudart import DEVICE_TO_HOST, HOST_TO_DEVICE, L2_BYTES, MULTIPROCESSORS, CudaError, Cudart

GUARD = 1 << 16  # bytes on either side of a buffer on a GPU; the simulator knows each buffer's bounds
GUARD_BYTE = 0xA5
POISON = 0xFF  # a NaN of every type
DYNAMIC_SHARED_BYTES = 8  # cudaFuncAttributeMaxDynamicSharedMemorySize


class Dim3(ctypes.Structure):
    _fields_ = [("x", c_uint), ("y", c_uint), ("z", c_uint)]


def upload(cudart: Cudart, pointer: int, data: bytes) -> None:
    cudart.call("cudaMemcpy", c_void_p(pointer), data, c_size_t(len(data)), HOST_TO_DEVICE)


def download(cudart: Cudart, pointer: int, size: int) -> bytes:
    data = (c_char * size)()
    cudart.call("cudaMemcpy", data, c_void_p(pointer), c_size_t(size), DEVICE_TO_HOST)
    return data.raw


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
        whole_guard = bytes([GUARD_BYTE]) * self._guard
        return [
            name
            for name, (whole, size) in self._places.items()
            for place in (whole, whole + self._guard + size)
            if self._guard and download(self._cudart, place, self._guard) != whole_guard
        ]


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
        boxes = launch["boxes"]
        maps = [tensor_maps.make(self._cudart, params, *boxes)] if boxes else []
        arguments = (c_void_p * (1 + len(maps)))(*(ctypes.addressof(one) for one in (params, *maps)))
        x, y, z = launch["grid"]
        if launch["resident"]:
            x = min(x, launch["resident"] * self._cudart.attribute(MULTIPROCESSORS))
        grid, block = Dim3(x, y, z), Dim3(launch["threads"], 1, 1)
        self._cudart.call(
            "cudaLaunchKernel", kernel, grid, block, arguments, c_size_t(launch["shared_bytes"]), c_void_p()
        )


class Contender:
    """One of the kernels that are timed against each other."""

    def __init__(self, cudart: Cudart, ptx: str, launches: list[dict]):
        self._module = Module(cudart, Path(ptx).read_bytes())
        self._kernels = [(self._module.prepare(launch), launch) for launch in launches]

    def launch(self, params: FlashParams) -> None:
        for kernel, launch in self._kernels:
            self._module.launch(kernel, launch, params)


def compete(cudart: Cudart, job: dict, params: FlashParams, output: int) -> dict:
    """Seconds of the submission and of the solution, in turns and with a cold L2; whether the submission's output was
    the same each time, which a kernel that saves itself the work of later runs does not achieve."""
    size, seconds, outputs = job["bytes"]["O"], {"submission": [], "solution": []}, set()
    flushed = 2 * cudart.attribute(L2_BYTES)
    flush = cudart.malloc(flushed)
    contenders = {"submission": Contender(cudart, "kernel.ptx", job["launches"])}
    contenders["solution"] = Contender(cudart, "solution.ptx", job["launches"])
    start, stop = cudart.event(), cudart.event()
    for turn in range(job["repeat"] + 3):  # the first three warm up
        for name, contender in contenders.items():
            cudart.fill(output, POISON, size)
            cudart.fill(flush, turn % 256, flushed)
            cudart.record(start)
            contender.launch(params)
            cudart.record(stop)
            cudart.wait(stop)
            if turn >= 3:
                seconds[name].append(cudart.elapsed_ms(start, stop) / 1e3)
            if name == "submission":
                outputs.add(download(cudart, output, size))
    return {"seconds": seconds, "same": len(outputs) == 1}


def execute(job: dict) -> dict:
    cudart = Cudart(job["cudart"])
    buffers = Buffers(cudart, job["guarded"])
    params = FlashParams.from_buffer_copy(bytes.fromhex(job["params"]))
    inputs = {name: Path(name).read_bytes() for name in job["inputs"]}
    pointers = {name: buffers.make(name, size) for name, size in job["bytes"].items()}
    for name, data in inputs.items():
        upload(cudart, pointers[name], data)
    for name in "QKVO":
        getattr(params, name).data = pointers[name]
    for name in ("Q_scales", "K_scales", "V_scales"):
        setattr(params, name, pointers.get(name))
    params.log_sum_exp, params.workspace = pointers.get("log_sum_exp"), pointers.get("workspace")
    params.workspace_bytes = job["bytes"].get("workspace", 0)

    times = compete(cudart, job, params, pointers["O"]) if job["repeat"] else {}
    if times:  # for what is left of it to be the submission's
        cudart.fill(pointers["O"], POISON, job["bytes"]["O"])
    Contender(cudart, "kernel.ptx", job["launches"]).launch(params)
    cudart.synchronize()

    for name in ("O", "log_sum_exp"):
        if name in pointers:
            Path(name).write_bytes(download(cudart, pointers[name], job["bytes"][name]))
    changed = [name for name in inputs if download(cudart, pointers[name], len(inputs[name])) != inputs[name]]
    return {"status": "ok", "changed_inputs": changed, "touched_guards": buffers.touched_guards()} | times


def answer(execute: Callable[[dict], dict]) -> int:
    """What comes of job.json, as result.json; the process's status."""
    try:
        result = execute(json.loads(Path("job.json").read_text()))
    except CudaError as error:
        result = {"status": "error", "message": str(error)}
    Path("result.json").write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(answer(execute))
