"""Calls a stage's C ABI with parameters as a test wants them, in a process of its own: JSON in, JSON out.

job: kind (of running.job.KINDS), cudart, stage (paths), problem, and a list of patches as in apply(), each for one
call; of a stage for several GPUs also forward, the library that computes attention or null. Answers with a list: the
status and its text, and the names of the tensors that were written where they must not be.
"""

import json
import sys

import numpy as np

from flashladder.core import abi
from flashladder.core.problem import Problem
from flashladder.running.cudart import NON_BLOCKING, Cudart
from flashladder.running.job import KINDS, Kind
from flashladder.running.ring import Rank

GUARD = 4096  # bytes around each tensor


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


def arrays(problem: Problem, kind: Kind) -> dict[str, np.ndarray]:
    """What is no tensor: scales, lengths, pages."""
    inputs = problem.random()
    return problem.scales({}) | {name: inputs[name] for name in kind.input_arrays if name in inputs}


def answer(cudart: Cudart, stage: abi.StageLibrary, problem: Problem, kind: Kind, patch: dict) -> dict:
    given = {}
    for name, array in arrays(problem, kind).items():
        given[name] = cudart.malloc(array.nbytes)
        cudart.upload(given[name], array)
    try:
        described = stage.describe(problem.params(given, kind=stage.PARAMS)).as_dict()
    except abi.StageRefused:
        described = {"workspace_bytes": 0}
    sums = kind.sums if described.get("supports_log_sum_exp", True) else ()
    sizes = {name: problem.bytes(name) for name in (*kind.inputs, *kind.outputs)}
    if "log_sum_exp" in (*kind.input_arrays, *sums):
        sizes["log_sum_exp"] = 4 * problem.B * problem.Hq * problem.Nq
    pointers = dict(given)
    for name, size in sizes.items():
        base = cudart.malloc(size + 2 * GUARD)
        cudart.fill(base, 0x3C, size + 2 * GUARD)
        pointers[name] = base + GUARD
    need = described["workspace_bytes"]
    scratch = cudart.malloc(need) if need else 0
    if scratch:
        cudart.fill(scratch, 0, need)
    params = problem.params(pointers, scratch, need, kind=stage.PARAMS)
    apply(params, patch)
    try:
        stage.launch(params)
        cudart.synchronize()
    except abi.StageRefused as refusal:
        return {"code": refusal.status, "message": str(refusal), "touched": []}
    touched = []
    for name, size in sizes.items():
        seen = np.empty(size + 2 * GUARD, np.uint8)
        cudart.download(seen, pointers[name] - GUARD)
        if name in (*kind.outputs, *sums):
            seen[GUARD : GUARD + size] = 0x3C
        if (seen != 0x3C).any():
            touched.append(name)
    return {"code": 0, "message": "no error", "touched": touched}


def answer_of_ranks(library: abi.RingLibrary, params: abi.FlashRingParams, ranks: list[Rank], patch: dict) -> dict:
    """A patch changes the parameters, or with "rank." the last rank."""
    structs = (abi.FlashRank * len(ranks))(*(rank.struct() for rank in ranks))
    own = {name.removeprefix("rank."): value for name, value in patch.items() if name.startswith("rank.")}
    if own.get("copy_stream") == 0:
        own["copy_stream"] = structs[-1].stream
    apply(structs[-1], own)
    apply(params, {name: value for name, value in patch.items() if not name.startswith("rank.")})
    try:
        library.launch(params, structs)
    except abi.StageRefused as refusal:
        return {"code": refusal.status, "message": str(refusal), "touched": []}
    for rank in ranks:
        rank.output("O")
    return {"code": 0, "message": "no error", "touched": []}


def answers_of_ranks(job: dict, cudart: Cudart) -> list[dict]:
    library, problem = abi.RingLibrary(job["stage"]), KINDS["ring"].problem(**job["problem"])
    params = problem.ring_params(job["forward"])
    ranks = [Rank(cudart, problem, rank, library.describe(params, rank)) for rank in range(problem.ranks)]
    for rank in ranks:
        rank.use()
        rank.stream = cudart.stream(NON_BLOCKING)
        rank.keep(problem.random())
        rank.prepare()
    return [answer_of_ranks(library, problem.ring_params(job["forward"]), ranks, patch) for patch in job["patches"]]


def answers(job: dict, cudart: Cudart) -> list[dict]:
    kind = KINDS[job["kind"]]
    stage, problem = kind.library(job["stage"]), kind.problem(**job["problem"])
    return [answer(cudart, stage, problem, kind, patch) for patch in job["patches"]]


if __name__ == "__main__":
    told = json.load(sys.stdin)
    print(json.dumps((answers_of_ranks if told["kind"] == "ring" else answers)(told, Cudart(told["cudart"]))))
