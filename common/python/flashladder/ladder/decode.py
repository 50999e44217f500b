"""The decode stages: stages/NN_name/kernel.cu with a flash_decode() of common/include/attention_decode.h, and
`decode = true` in stage.toml, which may have of its own:

    page_multiple = 16  # of which page_size is a multiple; else 1
    configuration = "..."  # with which its counters are looked at and changed kernels are judged; else its own choice
    [names]
    splits = "..."      # into how many parts a sequence is divided; else 1
"""

import numpy as np

from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.problem import Problem
from flashladder.ladder.kernels import WithKernel
from flashladder.running import decoding
from flashladder.running.job import Result
from flashladder.running.verify import Comparison


class Decode(WithKernel):
    KIND = "decode"
    WHAT = "computes decode"
    LESSON = "DecodeLesson"

    def wanted(self, problem: Problem, inputs: dict[str, np.ndarray]) -> tuple[tuple, tuple]:
        return decoding.expected(problem, inputs)

    def compared_with(self, problem: Problem, wanted: tuple[tuple, tuple], result: Result) -> Comparison:
        return decoding.check_with(problem, wanted, result.outputs)

    @property
    def page_multiple(self) -> int:
        return self.data.get("page_multiple", 1)

    def configuration(self, problem: Problem) -> str | None:
        return self.data.get("configuration")

    def usual(self, **fields) -> DecodeProblem:
        """What counters are looked at and changed kernels are judged by: a group of heads, a sequence of several
        parts, bf16 with d_head 128."""
        shape = {"B": 1, "Hq": 8, "Hkv": 2, "Nkv": 600, "d_head": 128}
        return DecodeProblem(**shape | fields)

    def judged_by(self) -> list[tuple[Problem, str | None]]:
        """Besides the usual problem one whose sequence has more parts than keys; unequal lengths, one of them 0, in
        pages, with several rows of Q; and what stage.toml's `[[judged_by]]` says."""
        ends = {"B": 3, "Nkv": 150, "lengths": (150, 0, 67), "Nq": 3, "page_size": 32}
        found = []
        for entry in ({}, {"lengths": (3,)}, ends, *self.data.get("judged_by", [])):
            problem = self.usual(**{name: value for name, value in entry.items() if name != "configuration"})
            found.append((problem, entry.get("configuration", self.configuration(problem))))
        return found
