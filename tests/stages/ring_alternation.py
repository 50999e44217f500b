"""Runs problems in turn over one workspace of each rank; prints, for each run, what is wrong with it, or nothing. The
inputs of each run are others, so that keys left by an earlier run show."""

import json
import sys

import numpy as np

from flashladder.core import abi
from flashladder.core.ring_problem import RingProblem
from flashladder.running import verify
from flashladder.running.cudart import NON_BLOCKING, Cudart
from flashladder.running.ring import Rank


def output(problem: RingProblem, ranks: list[Rank]) -> np.ndarray:
    whole = np.zeros(problem.shape("O"), problem.bits_type("O"))
    for rank in ranks:
        layout = rank.layouts["O"]
        problem.put_rows(problem.to_bhnd(whole), rank.pieces, layout.to_bhnd(layout.view("O", rank.output("O"))))
    return whole


def main() -> None:
    job = json.load(sys.stdin)
    cudart, library = Cudart(job["cudart"]), abi.RingLibrary(job["stage"])
    problems = [RingProblem(**fields) for fields in job["problems"]]
    described = [[library.describe(one.ring_params(), rank) for rank in range(one.ranks)] for one in problems]
    made = [
        [Rank(cudart, one, n, rank) for n, rank in enumerate(ranks)]
        for one, ranks in zip(problems, described, strict=True)
    ]
    largest = max(made, key=lambda ranks: ranks[0].scratch_bytes)
    for shared in largest:
        shared.use()
        shared.stream = cudart.stream(NON_BLOCKING)
        cudart.synchronize()  # what was filled is there for streams that do not join the default stream
    for ranks in made:
        for rank, shared in zip(ranks, largest, strict=True):
            rank.scratch, rank.scratch_bytes = shared.scratch, shared.scratch_bytes
            rank.stream, rank.copy_stream = shared.stream, shared.copy_stream
    said = []
    for number in range(job["rounds"]):
        for problem, ranks in zip(problems, made, strict=True):
            inputs = problem.random(number)
            for rank in ranks:
                rank.keep(inputs)
                rank.prepare()
            library.launch(problem.ring_params(), (abi.FlashRank * len(ranks))(*(rank.struct() for rank in ranks)))
            comparison = verify.check(problem.of_rows(problem.Nq), inputs, output(problem, ranks))
            said.append("" if comparison else comparison.message)
    print(json.dumps(said))


main()
