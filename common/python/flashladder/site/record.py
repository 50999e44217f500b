"""What a stage's launcher queues for problems, in a process that was started for that alone with browser-record.so of
common/browser before all other libraries (site/page_calls.py starts it).

    python -m flashladder.site.record FOLDER [FOLDER...]

Each FOLDER holds a job (running/job.py) of the same library. Leaves result.json there: "status" and "message" as a
worker does; "recorded": lines of a request, with addresses of this process; "memory": by name, the address and the
bytes of what the call was given; "zeroed": bytes of the workspace.
"""

import ctypes
import functools
import json
import sys
from pathlib import Path

from flashladder.core.abi import StageRefused
from flashladder.core.decode_problem import DecodeProblem
from flashladder.running.cudart import CudaError, Cudart
from flashladder.running.job import Job
from flashladder.running.worker import zeroed_bytes


def sizes(job: Job) -> dict[str, int]:
    """Bytes of all that a call reads and writes, by name."""
    problem, kind = job.problem, job.kind
    found = {name: problem.bytes(name) for name in (*kind.inputs, *kind.outputs)}
    if isinstance(problem, DecodeProblem):
        found |= {"lengths": 4 * problem.B, "block_table": 4 * problem.B * problem.max_pages}
    return found | {"log_sum_exp": 4 * problem.B * problem.Hq * problem.Nq}


def record(job: Job) -> dict:
    cudart, library, problem = Cudart(job.cudart), job.kind.library(job.library), job.problem
    params = functools.partial(problem.params, configuration=job.options.configuration, kind=library.PARAMS)
    description = library.describe(params({})).as_dict()
    needed = sizes(job)
    if description.get("optional_lengths") and problem.equal_lengths:
        del needed["lengths"]
    needed = {name: size for name, size in needed.items() if size}
    scratch = description["workspace_bytes"]
    memory = {name: (cudart.malloc(size), size) for name, size in needed.items()}
    pointers = {name: pointer for name, (pointer, _) in memory.items()}
    if scratch:
        memory["workspace"] = cudart.malloc(scratch), scratch
    call = params(pointers, memory["workspace"][0] if scratch else 0, scratch)
    library.launch(call)
    # The host's memory: no kernel reads it.
    named = ctypes.c_void_p.from_buffer(call, library.PARAMS.configuration.offset).value
    memory |= {"configuration": (named, 1)} if named else {}
    recorded = ctypes.CDLL(None).browser_recorded
    recorded.restype = ctypes.c_char_p
    return {"status": "ok", "recorded": recorded().decode(), "memory": memory, "zeroed": zeroed_bytes(description)}


def main() -> int:
    for folder in map(Path, sys.argv[1:]):
        try:
            result = record(Job.read(folder))
        except (StageRefused, CudaError, OSError) as error:
            result = {"status": "error", "message": str(error)}
        (folder / "result.json").write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
