"""As backward_call.py, of a stage for several GPUs: a patch changes the parameters, or with "rank." the last rank."""

import json
import sys

from abi_call import apply

from flashladder.core import abi
from flashladder.core.ring_problem import RingProblem
from flashladder.running.cudart import NON_BLOCKING, Cudart
from flashladder.running.ring import Rank


def answer(library: abi.RingLibrary, params: abi.FlashRingParams, ranks: list[Rank], patch: dict) -> dict:
    structs = (abi.FlashRank * len(ranks))(*(rank.struct() for rank in ranks))
    own = {name.removeprefix("rank."): value for name, value in patch.items() if name.startswith("rank.")}
    if own.get("copy_stream") == 0:
        own["copy_stream"] = structs[-1].stream
    patch = {name: value for name, value in patch.items() if not name.startswith("rank.")}
    apply(structs[-1], own)
    apply(params, patch)
    try:
        library.launch(params, structs)
    except abi.StageRefused as refusal:
        return {"code": refusal.status, "message": str(refusal)}
    for rank in ranks:
        rank.output("O")
    return {"code": 0, "message": "no error"}


def main() -> None:
    job = json.load(sys.stdin)
    cudart, library = Cudart(job["cudart"]), abi.RingLibrary(job["stage"])
    problem = RingProblem(**job["problem"])
    params = problem.ring_params(job["forward"])
    ranks = [Rank(cudart, problem, rank, library.describe(params, rank)) for rank in range(problem.ranks)]
    for rank in ranks:
        rank.use()
        rank.stream = cudart.stream(NON_BLOCKING)
        rank.keep(problem.random())
        rank.prepare()
    print(json.dumps([answer(library, problem.ring_params(job["forward"]), ranks, patch) for patch in job["patches"]]))


main()
