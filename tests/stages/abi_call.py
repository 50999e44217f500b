"""Calls a stage's C ABI with parameters as a test wants them, in a process of its own: JSON in, JSON out.

job: cudart, stage (paths), problem, and a list of patches as in apply(), each for one call. Answers with a list: the
status and its text, or the names of the tensors that were written where they must not be.
"""

import json
import sys

import numpy as np

from flashladder.core.abi import StageLibrary, StageRefused
from flashladder.core.problem import Problem
from flashladder.running.cudart import Cudart


def apply(params, patch: dict) -> None:
    """Keys name fields ("O.stride_row", "d_head"); {"add": n} adds to what is there."""
    for key, value in patch.items():
        *path, field = key.split(".")
        target = params
        for name in path:
            target = getattr(target, name)
        old = getattr(target, field)
        value = (old or 0) + value["add"] if isinstance(value, dict) else value
        setattr(target, field, value.encode() if isinstance(value, str) else value)


def answer(cudart: Cudart, stage: StageLibrary, problem: Problem, patch: dict) -> dict:
    guard = 4096  # bytes around each tensor
    pointers = {}
    for name in "QKVO":
        base = cudart.malloc(problem.bytes(name) + 2 * guard)
        cudart.fill(base, 0x3C, problem.bytes(name) + 2 * guard)
        pointers[name] = base + guard
    for name, scales in problem.scales({}).items():
        pointers[name] = cudart.malloc(scales.nbytes)
        cudart.upload(pointers[name], scales)
    try:
        need = stage.describe(problem.params({})).workspace_bytes
    except StageRefused:
        need = 0
    scratch = cudart.malloc(need) if need else 0
    params = problem.params(pointers, scratch, need)
    apply(params, patch)
    try:
        stage.launch(params)
        cudart.synchronize()
    except StageRefused as refusal:
        return {"code": refusal.status, "message": str(refusal)}
    touched = []
    for name in "QKVO":
        size = problem.bytes(name) + 2 * guard
        seen = np.empty(size, np.uint8)
        cudart.download(seen, pointers[name] - guard)
        data = seen.tobytes()
        inside = data[guard:-guard]
        if data[:guard] + data[-guard:] != b"\x3c" * (2 * guard) or (name != "O" and inside != b"\x3c" * len(inside)):
            touched.append(name)
    return {"code": 0, "message": "no error", "touched": touched}


def main() -> None:
    job = json.load(sys.stdin)
    cudart = Cudart(job["cudart"])
    stage = StageLibrary(job["stage"])
    print(json.dumps([answer(cudart, stage, Problem(**job["problem"]), patch) for patch in job["patches"]]))


if __name__ == "__main__":
    main()
