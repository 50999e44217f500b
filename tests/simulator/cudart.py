"""Runs PTX kernels and whole CUDA programs for the tests, on the simulator or on a GPU.

A process uses one CUDA runtime, so the runtime lives in a worker process: the simulated one of the build, or
the real one with FLASHLADDER_DEVICE=gpu. Workers persist and are shared by calls with the same environment; a
launch that failed or hung costs its worker.

    result = run_ptx(text, "kernel", grid=1, block=32, args=[np.zeros(32, np.float32), np.uint32(7)])
    result.check().outputs[0]
"""

import atexit
import ctypes
import fcntl
import hashlib
import json
import os
import pickle
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("WARPSIM_BUILD") or REPOSITORY / "build").resolve()
LIBRARY = BUILD / "simulator" / "libcudart.so.13"
PROGRAMS = Path(__file__).parent / "programs"
PRELOAD = os.environ.get(
    "WARPSIM_TEST_PRELOAD"
)  # a sanitizer's runtime library, where the simulator was built with one
ON_GPU = os.environ.get("FLASHLADDER_DEVICE") == "gpu"


def real_runtime():
    """Path of the CUDA Toolkit's own runtime library."""
    nvcc = shutil.which("nvcc")
    roots = [os.environ.get("CUDA_HOME"), nvcc and Path(nvcc).resolve().parents[1], "/usr/local/cuda"]
    for root in filter(None, roots):
        for name in ("lib64", "lib", "targets/x86_64-linux/lib"):
            path = Path(root) / name / "libcudart.so.13"
            if path.exists():
                return path
    return Path("libcudart.so.13")


@dataclass
class Result:
    """What a run left: `outputs` holds the array arguments as they were after the kernel, in order."""

    outputs: list = field(default_factory=list)
    error_code: int = 0
    error_name: str = "cudaSuccess"
    error_string: str = ""
    failed_call: str = ""  # the API call that returned the error
    stdout: str = ""
    stderr: str = ""
    returncode: int = 0  # of a program
    report: dict | None = None  # the simulator's JSON report, where report=True asked for it

    @property
    def ok(self):
        return self.error_code == 0 and self.returncode == 0

    @property
    def hazards(self):
        """All hazards of the report, over all launches."""
        return [h for launch in (self.report or {}).get("launches", []) for h in launch["hazards"]]

    def check(self):
        """Returns itself; raises AssertionError with all that is known if something failed."""
        assert self.ok, (
            f"{self.failed_call or 'program'}: {self.error_name} ({self.error_code}) {self.error_string}, "
            f"exit status {self.returncode}\n{self.stdout[-4000:]}\n{self.stderr[-4000:]}"
        )
        return self


def simulator_environment(extra=None):
    """os.environ with the wanted CUDA runtime in front and no WARPSIM_* settings but the given ones."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WARPSIM_")}
    if not ON_GPU:
        rest = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = f"{LIBRARY.parent}{':' + rest if rest else ''}"
        if PRELOAD:
            environment["LD_PRELOAD"] = PRELOAD
    environment.update(part.split("=") for part in os.environ.get("WARPSIM_TEST_SETTINGS", "").split())
    environment.update({k: str(v) for k, v in (extra or {}).items()})
    return environment


class WorkerDied(Exception):
    """The worker process ended or did not answer in time."""


class Worker:
    """A process with one CUDA runtime that answers pickled requests over a pair of pipes."""

    def __init__(self, env):
        self.log = tempfile.TemporaryFile()
        to_child, self.requests = os.pipe()
        self.answers, from_child = os.pipe()
        library = real_runtime() if ON_GPU else LIBRARY
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(library), str(to_child), str(from_child)],
            pass_fds=(to_child, from_child),
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env=simulator_environment(env),
        )
        os.close(to_child)
        os.close(from_child)

    def call(self, request, timeout):
        data = pickle.dumps(request)
        try:
            write_all(self.requests, struct.pack("<Q", len(data)) + data)
        except BrokenPipeError:
            raise WorkerDied(self.last_words("it has ended")) from None
        deadline = time.monotonic() + timeout
        (size,) = struct.unpack("<Q", self.read(8, deadline))
        return pickle.loads(self.read(size, deadline))

    def read(self, size, deadline):
        chunks = []
        while size:
            if not select.select([self.answers], [], [], max(0, deadline - time.monotonic()))[0]:
                raise WorkerDied(self.last_words("no answer in time"))
            chunk = os.read(self.answers, min(size, 1 << 20))
            if not chunk:
                raise WorkerDied(self.last_words("it has ended"))
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def last_words(self, why):
        if self.process.poll() is None and why == "it has ended":
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                pass
        self.log.seek(0)
        return f"{why} (status {self.process.poll()}): {self.log.read()[-4000:].decode(errors='replace')}"

    def finish(self):
        """Lets the worker exit in the ordinary way, so that reports that are written at exit exist."""
        os.close(self.requests)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.answers)
        self.log.close()

    def kill(self):
        self.process.kill()
        self.finish()


_workers = {}


@atexit.register
def stop_workers():
    for worker in _workers.values():
        worker.finish()
    _workers.clear()


def run_ptx(ptx, kernel, grid, block, args=(), shared=0, env=None, report=False, cooperative=False, timeout=120):
    """Launches one kernel of a PTX module and waits for it; never raises for a CUDA error (see Result.check).

    grid, block: an int or up to three. args: a NumPy array becomes a device buffer of its exact size (copied in, and
    out again to Result.outputs), a NumPy scalar or 0-d array and bytes go by value, an int as s32 and a float as
    f32. shared: dynamic shared memory in bytes. env: WARPSIM_* options. report=True fills Result.report.
    """
    import numpy as np

    buffers = []
    packed = []
    for argument in args:
        if isinstance(argument, np.ndarray) and argument.ndim:
            buffers.append(np.ascontiguousarray(argument))
            packed.append(("buffer", buffers[-1].tobytes()))
        elif isinstance(argument, bytes):
            packed.append(("value", argument))
        elif isinstance(argument, bool | int):
            packed.append(("value", struct.pack("<i", argument)))
        elif isinstance(argument, float):
            packed.append(("value", struct.pack("<f", argument)))
        else:
            packed.append(("value", np.asarray(argument).tobytes()))
    request = {
        "ptx": ptx.encode() if isinstance(ptx, str) else bytes(ptx),
        "kernel": kernel.encode(),
        "grid": dim3(grid),
        "block": dim3(block),
        "args": packed,
        "shared": shared,
        "cooperative": cooperative,
    }
    env = dict(env or {})
    key = tuple(sorted(env.items()))
    with tempfile.TemporaryDirectory() as folder:
        if report and not ON_GPU:
            path = Path(folder) / "report.json"
            worker = Worker({**env, "WARPSIM_REPORT": path})
        else:
            path = None
            worker = _workers.pop(key, None) or Worker(env)
        try:
            answer = worker.call(request, timeout)
        except WorkerDied as death:
            worker.kill()
            return Result(error_code=-1, error_name="workerDied", error_string=str(death), failed_call="worker")
        outputs = answer.pop("outputs")
        result = Result(**answer)
        result.outputs = [np.frombuffer(o, b.dtype).reshape(b.shape).copy() for o, b in zip(outputs, buffers)]
        if path or not result.ok:  # a failed launch leaves a sticky error behind
            worker.finish()
        else:
            _workers[key] = worker
        if path and path.exists():
            result.report = json.loads(path.read_text())
        return result


def dim3(value):
    values = [value] if isinstance(value, int) else list(value)
    return tuple(values + [1] * (3 - len(values)))


ARCHITECTURE = ("-gencode", "arch=compute_80,code=compute_80")


def share_programs(folder):
    """Has a second build of the simulator, at `folder`, use the programs that this one has, or is still to compile."""
    programs = BUILD / "tests"
    programs.mkdir(parents=True, exist_ok=True)  # a link to nothing is in everybody's way
    link = folder / "tests"
    if not link.exists():
        link.symlink_to(programs)


def headers_of_its_own(source):
    """The headers that a .cu file includes from other folders of tests than PROGRAMS itself."""
    if not isinstance(source, Path):
        return []
    names = re.findall(r'^#include "(.+)"', source.read_text(), re.MULTILINE)
    headers = [(source.parent / name).resolve() for name in names]
    return [header for header in headers if header.is_file() and header.parent != PROGRAMS.resolve()]


def build_program(source, flags=(), architecture=ARCHITECTURE):
    """Compiles a .cu file (a Path) or text (a str) with nvcc; returns the program's path. Cached by content."""
    text = source.read_text() if isinstance(source, Path) else source
    headers = [header.read_text() for header in [*sorted(PROGRAMS.glob("*.h")), *headers_of_its_own(source)]]
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    options = ["-std=c++17", "-O3", "-lineinfo", "-cudart", "shared", "-Wno-deprecated-gpu-targets"]
    options += [*architecture, *flags]
    digest = hashlib.sha256("\0".join([text, *headers, nvcc, *options]).encode()).hexdigest()[:20]
    name = source.stem if isinstance(source, Path) else "program"
    folder = BUILD / "tests" / f"{name}-{digest}"
    program = folder / name
    if program.exists():
        return program
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whoever else wants it waits, and does not compile it a second time
        if program.exists():
            return program
        if not isinstance(source, Path):
            source = folder / "program.cu"
            source.write_text(text)
        partial = folder / f"{name}.{os.getpid()}"
        done = subprocess.run([nvcc, *options, "-o", partial, source], check=False, capture_output=True, text=True)
        assert done.returncode == 0, f"nvcc {' '.join(options)} {source}:\n{done.stdout}{done.stderr}"
        partial.rename(program)
    return program


def run_program(
    source, args=(), env=None, flags=(), report=False, timeout=300, architecture=ARCHITECTURE, preload=False
):
    """Builds (see build_program) and runs a CUDA program; Result.returncode is its exit status (-1: timed out)."""
    program = build_program(source, flags, architecture)
    with tempfile.TemporaryDirectory() as folder:
        environment = simulator_environment(env)
        path = Path(folder) / "report.json"
        if report and not ON_GPU:
            environment["WARPSIM_REPORT"] = str(path)
        if preload and not ON_GPU:
            environment["LD_PRELOAD"] = " ".join(filter(None, [PRELOAD, str(LIBRARY)]))
        process = subprocess.Popen(
            [program, *map(str, args)],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=timeout)
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            status = -1
            err += f"\nkilled: not done after {timeout} s".encode()
        result = Result(stdout=out.decode(errors="replace"), stderr=err.decode(errors="replace"), returncode=status)
        if path.exists():
            result.report = json.loads(path.read_text())
        return result


# ---- the worker's side: ctypes over the runtime API, standard library only ----


def write_all(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_all(stream, size):
    data = stream.read(size)
    return data if len(data) == size else None


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class CudaError(Exception):
    pass


class Runtime:
    def __init__(self, path):
        self.api = ctypes.CDLL(path)
        self.api.cudaGetErrorName.restype = ctypes.c_char_p
        self.api.cudaGetErrorString.restype = ctypes.c_char_p
        self.kernels = {}

    def call(self, name, *arguments):
        code = getattr(self.api, name)(*arguments)
        if code:
            raise CudaError(code, name)

    def kernel(self, ptx, name):
        key = hashlib.sha256(ptx).digest()
        if (key, name) not in self.kernels:
            library = ctypes.c_void_p()
            kernel = ctypes.c_void_p()
            text = ctypes.create_string_buffer(ptx)
            self.call("cudaLibraryLoadData", ctypes.byref(library), text, None, None, 0, None, None, 0)
            self.call("cudaLibraryGetKernel", ctypes.byref(kernel), library, name)
            self.kernels[key, name] = kernel
        return self.kernels[key, name]

    def run(self, request):
        kernel = self.kernel(request["ptx"], request["kernel"])
        buffers = []
        storage = []
        for kind, data in request["args"]:
            if kind == "buffer":
                pointer = ctypes.c_void_p()
                self.call("cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(len(data)))
                self.call("cudaMemcpy", pointer, data, ctypes.c_size_t(len(data)), 1)
                buffers.append((pointer, len(data)))
                storage.append(pointer)
            else:
                storage.append(ctypes.create_string_buffer(data, len(data)))
        pointers = (ctypes.c_void_p * max(1, len(storage)))(*[ctypes.addressof(s) for s in storage])
        if request["shared"] > 48 * 1024:
            self.call("cudaFuncSetAttribute", kernel, 8, request["shared"])
        launch = "cudaLaunchCooperativeKernel" if request["cooperative"] else "cudaLaunchKernel"
        shared = ctypes.c_size_t(request["shared"])
        self.call(launch, kernel, Dim3(*request["grid"]), Dim3(*request["block"]), pointers, shared, None)
        self.call("cudaDeviceSynchronize")
        outputs = []
        for pointer, size in buffers:
            out = ctypes.create_string_buffer(size)
            self.call("cudaMemcpy", out, pointer, ctypes.c_size_t(size), 2)
            outputs.append(out.raw)
            self.call("cudaFree", pointer)
        return outputs


def serve(library, requests, answers):
    captured = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
    libc = ctypes.CDLL(None)
    runtime = Runtime(library)
    kept = [os.dup(1), os.dup(2)]
    with os.fdopen(requests, "rb") as stream:
        while (header := read_all(stream, 8)) is not None:
            request = pickle.loads(read_all(stream, struct.unpack("<Q", header)[0]))
            for number, file in enumerate(captured):
                file.seek(0)
                file.truncate()
                os.dup2(file.fileno(), number + 1)
            answer = {"outputs": []}
            try:
                answer["outputs"] = runtime.run(request)
            except CudaError as error:
                code, call = error.args
                answer["error_code"] = code
                answer["error_name"] = runtime.api.cudaGetErrorName(code).decode()
                answer["error_string"] = runtime.api.cudaGetErrorString(code).decode()
                answer["failed_call"] = call
            libc.fflush(None)
            for number, (file, name) in enumerate(zip(captured, ("stdout", "stderr"))):
                os.dup2(kept[number], number + 1)
                file.seek(0)
                answer[name] = file.read().decode(errors="replace")
            data = pickle.dumps(answer)
            write_all(answers, struct.pack("<Q", len(data)) + data)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
