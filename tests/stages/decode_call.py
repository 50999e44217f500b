"""As backward_call.py, of a decode stage."""

import json
import sys

import numpy as np
from abi_call import apply

from flashladder.core.abi import DecodeLibrary, StageRefused
from flashladder.core.decode_problem import DecodeProblem
from flashladder.running.cudart import Cudart

GUARD = 4096  # bytes around each tensor


def answer(cudart: Cudart, stage: DecodeLibrary, problem: DecodeProblem, patch: dict) -> dict:
    sizes = {name: problem.bytes(name) for name in "QKVO"} | {"log_sum_exp": 4 * problem.B * problem.Hq * problem.Nq}
    pointers = {}
    for name, size in sizes.items():
        base = cudart.malloc(size + 2 * GUARD)
        cudart.fill(base, 0x3C, size + 2 * GUARD)
        pointers[name] = base + GUARD
    inputs = problem.random()
    for name in {"lengths", "block_table"} & set(inputs):
        pointers[name] = cudart.malloc(inputs[name].nbytes)
        cudart.upload(pointers[name], inputs[name])
    need = stage.describe(problem.params({"lengths": pointers["lengths"]})).main.workspace_bytes
    scratch = cudart.malloc(need) if need else 0
    if scratch:
        cudart.fill(scratch, 0, need)
    params = problem.params(pointers, scratch, need)
    apply(params, patch)
    try:
        stage.launch(params)
        cudart.synchronize()
    except StageRefused as refusal:
        return {"code": refusal.status, "message": str(refusal)}
    touched = []
    for name, size in sizes.items():
        seen = np.empty(size + 2 * GUARD, np.uint8)
        cudart.download(seen, pointers[name] - GUARD)
        if name in ("O", "log_sum_exp"):
            seen[GUARD : GUARD + size] = 0x3C
        if (seen != 0x3C).any():
            touched.append(name)
    return {"code": 0, "message": "no error", "touched": touched}


def main() -> None:
    job = json.load(sys.stdin)
    cudart, stage = Cudart(job["cudart"]), DecodeLibrary(job["stage"])
    print(json.dumps([answer(cudart, stage, DecodeProblem(**job["problem"]), patch) for patch in job["patches"]]))


main()
