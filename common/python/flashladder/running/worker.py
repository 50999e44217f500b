"""Runs one problem on one stage in this process, which was started for that alone.

    python -m flashladder.running.worker FOLDER [FOLDER...]
    python -m flashladder.running.worker --serve

FOLDER holds what flashladder.running.job.Job wrote: which libcudart.so.13, which stage, Q, K and V.
Leaves what the stage writes there, by name, such as O.npy and log_sum_exp.npy, shown.npy of a kernel that shows its
insides, and result.json. A process has one CUDA runtime for good, and after a failed launch that runtime is of no more
use: hence a process of its own for each run, and of several folders it runs one after the other up to the first that
fails.

With --serve it forks such a process for each line of standard input: flashladder.running.server's other end.
"""

import ctypes
import functools
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from flashladder.core.abi import StageRefused
from flashladder.core.problem import Problem
from flashladder.running import ring
from flashladder.running.cudart import BLOCKING, NON_BLOCKING, CudaError, Cudart
from flashladder.running.job import Job
from flashladder.running.verify import POISON


@functools.lru_cache(maxsize=8)  # of several runs of a problem the files are the same
def _memory(problem: Problem, name: str, file: Path) -> np.ndarray:
    """A tensor as it lies in device memory; where no element lies, a NaN of every type."""
    memory = np.full(problem.bytes(name), 0xFF, np.uint8)
    problem.view(name, memory)[...] = np.load(file)
    return memory


def upload_inputs(cudart: Cudart, folder: Path, job: Job) -> dict[str, int]:
    """The job's tensors, and those arrays that it has of its kind's, in device memory, by name."""
    loaded = {name: _memory(job.problem, name, (folder / f"{name}.npy").resolve()) for name in job.kind.inputs}
    for name in job.kind.input_arrays:
        if (folder / f"{name}.npy").exists():
            loaded[name] = np.load(folder / f"{name}.npy")
    pointers = {}
    for name, array in loaded.items():
        pointers[name] = cudart.malloc(array.nbytes)
        cudart.upload(pointers[name], array)
    return pointers


@functools.cache  # for the whole process
def _sleep_while_waiting(cudart: str) -> None:
    Cudart(cudart).call("cudaSetDeviceFlags", BLOCKING)


def downloaded(cudart: Cudart, size: int, pointer: int) -> np.ndarray:
    """Bytes from device memory."""
    memory = np.empty(size, np.uint8)
    cudart.download(memory, pointer)
    return memory


def written_around(problem: Problem, name: str, memory: np.ndarray) -> bool:
    """Whether a byte of an output's memory that is no element's is not as it was before the run."""
    rest = memory.copy()
    problem.view(name, rest)[...] = POISON
    return bool((rest != 0xFF).any())


def execute(folder: Path, job: Job) -> dict:
    """Runs the job and writes its outputs. All runs share one workspace, which is poisoned before the first but for
    what the stage wants zeroed; outputs are poisoned before each."""
    cudart, library, problem, options = Cudart(job.cudart), job.kind.library(job.library), job.problem, job.options
    if options.sleeps:
        _sleep_while_waiting(job.cudart)
    params = functools.partial(problem.params, configuration=options.configuration, kind=library.PARAMS)
    # Stages that ask the driver about their kernels need no memory for it.
    description = library.describe(params({})).as_dict()
    if job.describe_only:
        return {"status": "ok", "description": description}

    pointers = upload_inputs(cudart, folder, job)
    sizes = {name: problem.bytes(name) for name in job.kind.outputs}
    if options.kind != "forward" or description["supports_log_sum_exp"]:
        sizes |= {name: 4 * problem.B * problem.Hq * problem.Nq for name in job.kind.sums}
    pointers |= {name: cudart.malloc(size) for name, size in sizes.items()}
    if description.get("optional_lengths") and problem.equal_lengths:
        pointers["lengths"] = 0
    scratch_bytes, zeroed = options.shown_bytes or description["workspace_bytes"], zeroed_bytes(description)
    scratch = cudart.malloc(scratch_bytes) if scratch_bytes else 0
    if scratch:
        cudart.fill(scratch, 0xFF, scratch_bytes)
        cudart.fill(scratch, 0, zeroed)
    stream = cudart.stream(NON_BLOCKING) if options.own_stream else ctypes.c_void_p()
    call = functools.partial(library.launch, params(pointers, scratch, scratch_bytes), stream.value or 0)
    call = captured(cudart, call, stream) if options.graph else call
    seconds, outputs, changed = [], {}, set()
    for _ in range(options.repeat):
        before = outputs
        seconds.append(run_once(cudart, call, {pointers[name]: size for name, size in sizes.items()}, stream))
        memory = {name: downloaded(cudart, size, pointers[name]) for name, size in sizes.items()}
        outputs = {
            name: problem.view(name, bits) if name in job.kind.outputs
            else bits.view(np.float32).reshape(problem.B, problem.Hq, problem.Nq)
            for name, bits in memory.items()
        }  # fmt: skip
        changed |= {name for name, old in before.items() if old.tobytes() != outputs[name].tobytes()}
    if options.shown_bytes:  # what it shows is asked for, and O may not be written yet
        outputs["shown"] = downloaded(cudart, scratch_bytes, scratch).view(np.uint32)
    else:
        wrong = what_is_wrong(job, memory) or left_in_workspace(cudart, scratch, zeroed)
        if wrong:
            return {"status": "error", "message": wrong}
    if options.under_tool:  # what another run of this process does outside of its own memory is to be seen
        for pointer in (*pointers.values(), scratch):
            cudart.free(pointer)
        outputs = {}
    save(folder, outputs)
    told = {"status": "ok", "description": description, "written": list(outputs)}
    return told | {"seconds": seconds, "changed": sorted(changed)}


_SAVED: dict[str, tuple[Path, np.ndarray]] = {}  # by name: the output that this process saved last


def save(folder: Path, outputs: dict[str, np.ndarray]) -> None:
    """By name; what is as in the folder before is a link to that."""
    for name, array in outputs.items():
        place, before = _SAVED.get(name, (None, None))
        if place and np.array_equal(array, before):
            (folder / f"{name}.npy").symlink_to(place)
        else:
            np.save(folder / f"{name}.npy", array)
            _SAVED[name] = folder.absolute() / f"{name}.npy", array


def what_is_wrong(job: Job, memory: dict[str, np.ndarray]) -> str:
    """With the outputs' memory, whatever numbers are in it; "" where nothing is."""
    if job.options.kind == "forward":
        output = job.problem.view("O", memory["O"])
        untouched = output.size and (output == POISON).all()
        return "the launch reported success, but its kernel wrote nothing" if untouched else ""
    around = [name for name in job.kind.outputs if written_around(job.problem, name, memory[name])]
    return f"wrote between or behind the rows of {around[0]}" if around else ""


def left_in_workspace(cudart: Cudart, scratch: int, zeroed: int) -> str:
    """Whether a call has not left the workspace as it was, in words."""
    left = downloaded(cudart, zeroed, scratch) if zeroed and scratch else np.zeros(0, np.uint8)
    found = int(np.count_nonzero(left))
    return f"{found} of {left.size} bytes of the workspace are not zero after the call" if found else ""


def zeroed_bytes(description: dict) -> int:
    """How much of the workspace, from its beginning, a stage wants zeroed before its first call."""
    return description.get("zeroed_bytes", description["workspace_bytes"] * description.get("zeroed_workspace", 0))


def captured(cudart: Cudart, call: Callable[[], None], stream: ctypes.c_void_p) -> Callable[[], None]:
    """The launch of a CUDA graph of what two such calls queue on the stream: nothing is between them."""
    graph, launched = ctypes.c_void_p(), ctypes.c_void_p()
    cudart.call("cudaStreamBeginCapture", stream, 0)
    call()
    call()
    cudart.call("cudaStreamEndCapture", stream, ctypes.byref(graph))
    cudart.call("cudaGraphInstantiate", ctypes.byref(launched), graph, ctypes.c_ulonglong(0))
    return functools.partial(cudart.call, "cudaGraphLaunch", launched, stream)


def run_once(cudart: Cudart, call: Callable[[], None], outputs: dict[int, int], stream: ctypes.c_void_p) -> float:
    """One run over poisoned outputs (pointers, with their bytes), and the host's seconds for it."""
    for pointer, size in outputs.items():
        cudart.fill(pointer, 0xFF, size)
    cudart.synchronize()
    started = time.perf_counter()
    call()
    if stream:
        cudart.call("cudaStreamSynchronize", stream)
    else:
        cudart.synchronize()
    return time.perf_counter() - started


def serve() -> Path | None:
    """Forks for each request, a line of JSON: {"folder", "cwd", "environment"}; prints the exit status (negative: the
    signal that ended the process). Returns the folder in each forked process, whose output goes there, and None when
    there are no more requests. Nothing but modules is loaded before the fork: no CUDA runtime, no stage."""
    for line in sys.stdin.buffer:
        request = json.loads(line)
        process = os.fork()
        if process == 0:
            folder = Path(request["folder"])
            for number, name in enumerate((os.devnull, folder / "stdout", folder / "stderr")):
                file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
                os.dup2(file, number)
                os.close(file)
            os.chdir(request["cwd"])
            os.environ.update(request["environment"])
            return folder
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(status_of(process)))
    return None


def status_of(process: int) -> int:
    """That of a forked worker, when it has ended. If the process that sends the requests ends first, no one needs the
    worker, which may have minutes to go: it is killed, and this process too."""
    try:
        ended = os.pidfd_open(process)
    except (AttributeError, OSError):  # Linux before 5.3
        return os.waitpid(process, 0)[1]
    waiting = select.poll()
    waiting.register(ended, select.POLLIN)
    waiting.register(0, 0)  # stdin: only that it is closed at the other end
    if 0 in dict(waiting.poll()):
        os.killpg(0, signal.SIGKILL)
    os.close(ended)
    return os.waitpid(process, 0)[1]


def run(folder: Path) -> bool:
    """Whether the job of a folder came to its end; result.json says what became of it."""
    try:
        job = Job.read(folder)
        result = ring.execute(folder, job) if job.options.kind == "ring" else execute(folder, job)
    except StageRefused as refusal:
        result = {"status": "refused", "code": refusal.status, "message": str(refusal)}
    except (CudaError, OSError) as error:
        result = {"status": "error", "message": str(error)}
    (folder / "result.json").write_text(json.dumps(result))
    return result["status"] == "ok"


def main() -> int:
    if sys.argv[1] == "--serve":
        folder = serve()
        folders = [folder] if folder else []
    else:
        folders = [Path(one) for one in sys.argv[1:]]
    for folder in folders:
        if not run(folder):
            break
    if sys.argv[1] == "--serve" and folders:
        # The runtime and the stage have their end as in any process. Python's modules need none: to take them down in
        # a fork takes longer than to start it.
        sys.stdout.flush()
        sys.stderr.flush()
        ctypes.CDLL(None).exit(0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
