"""Runs one problem on one stage in this process, which was started for that alone.

    python -m flashladder.running.worker FOLDER
    python -m flashladder.running.worker --serve

FOLDER holds what flashladder.running.job.Job wrote: which libcudart.so.13, which stage, Q, K and V.
Leaves O.npy, log_sum_exp.npy of a stage that writes it, shown.npy of a kernel that shows its insides, and result.json
there. A process has one CUDA runtime for good, and after a failed launch that runtime is of no more use: hence a
process of its own for each run.

With --serve it forks such a process for each line of standard input: flashladder.running.server's other end.
"""

import ctypes
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from flashladder.core.abi import StageLibrary, StageRefused
from flashladder.running.cudart import CudaError, Cudart
from flashladder.running.job import Job
from flashladder.running.verify import POISON


def execute(folder: Path, job: Job) -> dict:
    cudart = Cudart(job.cudart)
    stage = StageLibrary(job.library)
    problem = job.problem
    # Stages that ask the driver about their kernels need no memory for it.
    description = stage.describe(problem.params({}, configuration=job.options.configuration)).as_dict()
    if job.describe_only:
        return {"status": "ok", "description": description}

    pointers = {name: cudart.malloc(problem.bytes(name)) for name in "QKVO"}
    for name in "QKV":
        memory = np.full(problem.bytes(name), 0xFF, np.uint8)  # where no element lies: a NaN of every type
        problem.view(name, memory)[...] = np.load(folder / f"{name}.npy")
        cudart.upload(pointers[name], memory)
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
    memory = np.empty(problem.bytes("O"), np.uint8)
    cudart.download(memory, pointers["O"])
    output = problem.view("O", memory)
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
