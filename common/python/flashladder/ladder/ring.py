"""The stages for several GPUs: stages/NN_name/kernel.cu with a flash_ring() of common/include/attention_ring.h, and
`ring = true` in stage.toml, which may have of its own:

    forward = false   # it has an attention kernel of its own, and takes no other stage's library
    piece_rows = 128  # rows of a piece, of which each rank has two, are a multiple of it
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import STAGES, stage_library
from flashladder.core.problem import Problem
from flashladder.core.ring_problem import RingProblem
from flashladder.ladder.kernels import WithKernel, code_hash
from flashladder.running import verify
from flashladder.running.job import Options, Result
from flashladder.running.verify import Comparison

FORWARD = "shapes"  # whose library computes attention, unless another is asked for
QUICK_FORWARD = "masking"  # which the simulator runs sooner: for what is about the host's part


def library_of(slug: str) -> Path:
    """The library of the stage of that name."""
    found = list(STAGES.glob(f"[0-9][0-9]_{slug}"))
    if len(found) != 1:
        raise FlashLadderError(f"There is no stage '{slug}'.")
    return stage_library(int(found[0].name[:2]))


class Ring(WithKernel):
    KIND = "ring"
    WHAT = "is for several GPUs"
    LESSON = "RingLesson"

    @property
    def by_another_stage(self) -> bool:
        """Whether another stage's library computes attention."""
        return self.data.get("forward", True)

    @property
    def targets(self) -> list[str]:
        """And the libraries that compute attention."""
        names = (FORWARD, QUICK_FORWARD) if self.by_another_stage else ()
        libraries = [*map(library_of, names), *map(self.way_library, self.ways)]
        return [*super().targets, *(library.stem.removeprefix("lib") for library in libraries)]

    @property
    def ways(self) -> list[str]:
        """Other ways to the same result beside kernel.cu, of the same C ABI: "heads_first" of heads_first.cu."""
        return sorted(file.stem for file in self.folder.glob("*.cu") if file.name != "kernel.cu")

    def way_hash(self, way: str) -> str:
        """As kernel_hash(), of that file."""
        return code_hash((self.folder / f"{way}.cu").read_bytes())

    def way_library(self, way: str) -> Path:
        library = stage_library(self.number)
        return library.with_name(f"{library.stem}_{way}.so")

    @property
    def libraries(self) -> list[str]:
        return ["lib/*.so"]

    def wanted(self, problem: RingProblem, inputs: dict[str, np.ndarray]) -> verify.Wanted:
        return verify.Wanted(problem.of_rows(problem.Nq), inputs)

    def compared_with(self, problem: RingProblem, wanted: verify.Wanted, result: Result) -> Comparison:
        return wanted.check(result.bits, result.log_sum_exp)

    def _own_options(self, problem: RingProblem, options: Options) -> Options:
        """On the simulator there is a device for each rank, unless the environment says otherwise."""
        options = super()._own_options(problem, options)
        forward = options.forward or (str(library_of(FORWARD)) if self.by_another_stage else None)
        devices = {"WARPSIM_DEVICES": str(min(problem.ranks, 16))}
        return replace(options, forward=forward, environment=devices | options.environment)

    def usual(self, **fields) -> RingProblem:
        """What a small run and a changed stage are judged by."""
        shape = {"B": 1, "Hq": 2, "Hkv": 1, "Nq": 200, "d_head": 64, "causal": True, "ranks": 3}
        return self.fitted(RingProblem(**shape | fields))

    def fitted(self, problem: RingProblem) -> RingProblem:
        """The problem, or the next longer one that the stage takes."""
        multiple = 2 * problem.ranks * self.data.get("piece_rows", 0) or 1
        rows = -(-problem.Nq // multiple) * multiple
        return replace(problem, Nq=rows, Nkv=rows)

    def judged_by(self) -> list[tuple[Problem, str | None]]:
        """Besides the usual problem one without a mask, and one whose scores are so large that a sum of exponentials
        needs its maximum; and what stage.toml's `[[judged_by]]` says."""
        more = self.data.get("judged_by", [])
        wide = {"scale": 10.0, "ranks": 2, "Nq": 100}
        shapes = [dict(fields) for fields in ({}, {"causal": False, "ranks": 4, "Hkv": 2}, wide, *more)]
        configurations = [fields.pop("configuration", None) for fields in shapes]
        return [(self.usual(**fields), one) for fields, one in zip(shapes, configurations, strict=True)]

    @property
    def judged_options(self) -> dict:
        return {"forward": str(library_of(QUICK_FORWARD)), "own_stream": True} if self.by_another_stage else {}
