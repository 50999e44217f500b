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

GUARD = 4096  # bytes before and behind each allocation
BYTE = 0x3C


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


class Guarded(Cudart):
    """A runtime whose allocations are of one byte's value, and lie between guards of it."""

    def malloc(self, size: int) -> int:
        base = super().malloc(size + 2 * GUARD)
        self.fill(base, BYTE, size + 2 * GUARD)
        return base + GUARD

    def bytes(self, pointer: int, size: int) -> np.ndarray:
        seen = np.empty(size, np.uint8)
        self.download(seen, pointer)
        return seen

    def guards_changed(self, pointer: int, size: int) -> bool:
        before, behind = self.bytes(pointer - GUARD, GUARD), self.bytes(pointer + size, GUARD)
        return bool((before != BYTE).any() or (behind != BYTE).any())


def arrays(problem: Problem, kind: Kind) -> dict[str, np.ndarray]:
    """What is no tensor: scales, lengths, pages."""
    inputs = problem.random()
    return problem.scales({}) | {name: inputs[name] for name in kind.input_arrays if name in inputs}


def answer(cudart: Guarded, stage: abi.StageLibrary, problem: Problem, kind: Kind, patch: dict) -> dict:
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
    pointers = given | {name: cudart.malloc(size) for name, size in sizes.items()}
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
    outputs = (*kind.outputs, *sums)
    touched = [
        name
        for name, size in sizes.items()
        if cudart.guards_changed(pointers[name], size)
        or name not in outputs
        and (cudart.bytes(pointers[name], size) != BYTE).any()
    ]
    if scratch and cudart.guards_changed(scratch, need):
        touched.append("workspace")
    return {"code": 0, "message": "no error", "touched": touched}


def touched_of(rank: Rank) -> list[str]:
    """Names of the rank's inputs that have changed, and of all its memory that was written beside."""
    cudart, sizes = rank.cudart, rank.sizes | {"workspace": rank.scratch_bytes}
    pointers = rank.pointers | ({"workspace": rank.scratch} if rank.scratch else {})
    rank.use()
    changed = [
        name
        for name, kept in rank.kept.items()
        if (cudart.bytes(pointers[name], sizes[name]) != cudart.bytes(kept, sizes[name])).any()
    ]
    beside = [f"beside {name}" for name, pointer in pointers.items() if cudart.guards_changed(pointer, sizes[name])]
    return [f"{name} of rank {rank.device}" for name in (*changed, *beside)]


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
    return {"code": 0, "message": "no error", "touched": [name for rank in ranks for name in touched_of(rank)]}


def answers_of_ranks(job: dict, cudart: Guarded) -> list[dict]:
    library, problem = abi.RingLibrary(job["stage"]), KINDS["ring"].problem(**job["problem"])
    params = problem.ring_params(job["forward"])
    ranks = [Rank(cudart, problem, rank, library.describe(params, rank)) for rank in range(problem.ranks)]
    for rank in ranks:
        rank.use()
        rank.stream = cudart.stream(NON_BLOCKING)
        rank.keep(problem.random())
        rank.prepare()
    return [answer_of_ranks(library, problem.ring_params(job["forward"]), ranks, patch) for patch in job["patches"]]


def answers(job: dict, cudart: Guarded) -> list[dict]:
    kind = KINDS[job["kind"]]
    stage, problem = kind.library(job["stage"]), kind.problem(**job["problem"])
    return [answer(cudart, stage, problem, kind, patch) for patch in job["patches"]]


if __name__ == "__main__":
    told = json.load(sys.stdin)
    print(json.dumps((answers_of_ranks if told["kind"] == "ring" else answers)(told, Guarded(told["cudart"]))))
