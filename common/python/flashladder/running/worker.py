"""Runs one problem on one stage in this process, which was started for that alone.

    python -m flashladder.running.worker FOLDER
    python -m flashladder.running.worker --serve

FOLDER holds what flashladder.running.job.Job wrote: which libcudart.so.13, which stage, Q, K and V.
Leaves O.npy, log_sum_exp.npy of a stage that writes it, shown.npy of a kernel that shows its insides, and result.json
there; of a stage of another kind what that writes, by name. A process has one CUDA runtime for good, and after
a failed launch that runtime is of no more use: hence a process of its own for each run.

With --serve it forks such a process for each line of standard input: flashladder.running.server's other end.
"""

import ctypes
import functools
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from flashladder.core.abi import BackwardLibrary, DecodeLibrary, StageLibrary, StageRefused
from flashladder.core.problem import Problem
from flashladder.running import ring
from flashladder.running.cudart import NON_BLOCKING, CudaError, Cudart
from flashladder.running.job import KINDS, Job, Kind
from flashladder.running.verify import POISON


def upload_inputs(cudart: Cudart, folder: Path, job: Job) -> dict[str, int]:
    """The job's input tensors in device memory, by name."""
    pointers = {}
    for name in job.inputs:
        size = job.problem.bytes(name)
        memory = np.full(size, 0xFF, np.uint8)  # where no element lies: a NaN of every type
        job.problem.view(name, memory)[...] = np.load(folder / f"{name}.npy")
        pointers[name] = cudart.malloc(size)
        cudart.upload(pointers[name], memory)
    return pointers


def upload_arrays(cudart: Cudart, folder: Path, kind: Kind) -> dict[str, int]:
    """The arrays that the job has of those of its kind, by name."""
    pointers = {}
    for name in kind.input_arrays:
        if (folder / f"{name}.npy").exists():
            array = np.load(folder / f"{name}.npy")
            pointers[name] = cudart.malloc(array.nbytes)
            cudart.upload(pointers[name], array)
    return pointers


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
    by_kind = {"forward": execute_forward, "ring": ring.execute}
    return by_kind.get(job.kind, execute_outputs)(folder, job)


def execute_forward(folder: Path, job: Job) -> dict:
    cudart = Cudart(job.cudart)
    stage = StageLibrary(job.library)
    problem = job.problem
    # Stages that ask the driver about their kernels need no memory for it.
    description = stage.describe(problem.params({}, configuration=job.options.configuration)).as_dict()
    if job.describe_only:
        return {"status": "ok", "description": description}

    pointers = upload_inputs(cudart, folder, job)
    pointers["O"] = cudart.malloc(problem.bytes("O"))
    for name in problem.scales({}):
        scales = np.load(folder / f"{name}.npy")
        pointers[name] = cudart.malloc(scales.nbytes)
        cudart.upload(pointers[name], scales)
    cudart.fill(pointers["O"], 0xFF, problem.bytes("O"))
    log_sum_exp = np.empty((problem.B, problem.Hq, problem.Nq), np.float32)
    if description["supports_log_sum_exp"]:
        pointers["log_sum_exp"] = cudart.malloc(log_sum_exp.nbytes)
        cudart.fill(pointers["log_sum_exp"], 0xFF, log_sum_exp.nbytes)
    scratch_bytes = job.options.shown_bytes or description["workspace_bytes"]
    scratch = cudart.malloc(scratch_bytes) if scratch_bytes else 0
    if scratch:
        cudart.fill(scratch, 0xFF, scratch_bytes)
    seconds = []
    for _ in range(job.options.repeat):
        started = time.perf_counter()
        stage.forward(problem.params(pointers, scratch, scratch_bytes, job.options.configuration))
        cudart.synchronize()
        seconds.append(time.perf_counter() - started)
    output = problem.view("O", downloaded(cudart, problem.bytes("O"), pointers["O"]))
    if job.options.shown_bytes:  # what it shows is asked for, and O may not be written yet
        shown = np.empty(job.options.shown_bytes // 4, np.uint32)
        cudart.download(shown, scratch)
        np.save(folder / "shown.npy", shown)
    elif output.size and (output == POISON).all():
        return {"status": "error", "message": "the launch reported success, but its kernel wrote nothing"}
    np.save(folder / "O.npy", output)
    if "log_sum_exp" in pointers:
        cudart.download(log_sum_exp, pointers["log_sum_exp"])
        np.save(folder / "log_sum_exp.npy", log_sum_exp)
    return {"status": "ok", "description": description, "seconds": seconds}


# Of the kinds of running.job.KINDS besides forward: the library, and the method of the problem that makes its params.
LIBRARIES = {"backward": (BackwardLibrary, "backward_params"), "decode": (DecodeLibrary, "decode_params")}


def execute_outputs(folder: Path, job: Job) -> dict:
    """All runs share one workspace, which is poisoned before the first but for what the stage wants zeroed; outputs are
    poisoned before each."""
    cudart = Cudart(job.cudart)
    kind, (library, params_of) = KINDS[job.kind], LIBRARIES[job.kind]
    stage, problem, configuration = library(job.library), job.problem, job.options.configuration
    make_params = getattr(problem, params_of)
    description = stage.describe(make_params({}, configuration=configuration)).as_dict()
    if job.describe_only:
        return {"status": "ok", "description": description}

    pointers = upload_inputs(cudart, folder, job) | upload_arrays(cudart, folder, kind)
    sizes = {name: problem.bytes(name) for name in kind.outputs}
    sizes |= {name: 4 * problem.B * problem.Hq * problem.Nq for name in kind.sums}
    pointers |= {name: cudart.malloc(size) for name, size in sizes.items()}
    if description.get("optional_lengths") and problem.equal_lengths:
        pointers["lengths"] = 0
    scratch_bytes, zeroed = description["workspace_bytes"], zeroed_bytes(description)
    scratch = cudart.malloc(scratch_bytes) if scratch_bytes else 0
    if scratch:
        cudart.fill(scratch, 0xFF, scratch_bytes)
        cudart.fill(scratch, 0, zeroed)
    stream = cudart.stream(NON_BLOCKING) if job.options.own_stream else ctypes.c_void_p()
    call = functools.partial(
        stage.launch, make_params(pointers, scratch, scratch_bytes, configuration), stream.value or 0
    )
    call = captured(cudart, call, stream) if job.options.graph else call
    seconds, outputs, changed = [], {}, set()
    for _ in range(job.options.repeat):
        before = outputs
        seconds.append(run_once(cudart, call, {pointers[name]: size for name, size in sizes.items()}, stream))
        memory = {name: downloaded(cudart, sizes[name], pointers[name]) for name in sizes}
        outputs = {name: problem.view(name, memory[name]) for name in kind.outputs}
        outputs |= {
            name: memory[name].view(np.float32).reshape(problem.B, problem.Hq, problem.Nq) for name in kind.sums
        }
        changed |= {name for name, old in before.items() if old.tobytes() != outputs[name].tobytes()}
    for name in kind.outputs:
        if written_around(problem, name, memory[name]):
            return {"status": "error", "message": f"wrote between or behind the rows of {name}"}
    if zeroed and scratch:
        left = downloaded(cudart, zeroed, scratch)
        if left.any():
            told = f"{int(np.count_nonzero(left))} of {left.size} bytes of the workspace are not zero after the call"
            return {"status": "error", "message": told}
    for name, array in outputs.items():
        np.save(folder / f"{name}.npy", array)
    return {"status": "ok", "description": description, "seconds": seconds, "changed": sorted(changed)}


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
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
    return None


def main() -> int:
    folder = serve() if sys.argv[1] == "--serve" else Path(sys.argv[1])
    if folder is None:
        return 0
    try:
        result = execute(folder, Job.read(folder))
    except StageRefused as refusal:
        result = {"status": "refused", "code": refusal.status, "message": str(refusal)}
    except (CudaError, OSError) as error:
        result = {"status": "error", "message": str(error)}
    (folder / "result.json").write_text(json.dumps(result))
    if sys.argv[1] == "--serve":
        # The runtime and the stage have their end as in any process. Python's modules need none: to take them down in
        # a fork takes longer than to start it.
        sys.stdout.flush()
        sys.stderr.flush()
        ctypes.CDLL(None).exit(0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
