"""At which problems an answer is judged, by the kind of its stage, and on which inputs: plain ones, and such as a
careless softmax gets wrong.
"""

from dataclasses import dataclass

import numpy as np

from flashladder.core.problem import GAPS, Problem
from flashladder.ladder import technique
from flashladder.ladder.backward import Backward
from flashladder.ladder.decode import Decode
from flashladder.ladder.kernels import Kernel, WithKernel

SEED = 1


@dataclass(frozen=True)
class Case:
    """A run of a kernel that is judged."""

    problem: Problem
    configuration: str | None = None  # of the instance that runs it, where a stage has several
    inputs: str = "normal"  # a kind of inputs.draw()
    counted: technique.Run | None = None  # a run by which the technique is judged, with inputs of its own

    def arrays(self, stage: WithKernel) -> dict[str, np.ndarray]:
        if not isinstance(stage, Kernel):
            return stage.random_inputs(self.problem, SEED)
        return self.counted.arrays() if self.counted else draw(self.problem, self.inputs, SEED)

    def __str__(self) -> str:
        other = self.counted.inputs if self.counted else self.inputs
        words = [str(self.problem), self.configuration or ""]
        words += [other.replace("_", " ")] if other not in ("normal", "random") else []
        return ", ".join(word for word in words if word)


def cases(stage: WithKernel) -> list[Case]:
    """What an answer is verified at: what changed kernels are judged by, and what its kind adds."""
    judged = [Case(problem, configuration) for problem, configuration in stage.judged_by()]
    more = next(of for kind, of in _KINDS.items() if isinstance(stage, kind))(stage)
    return [*judged, *(Case(problem, stage.configuration(problem), inputs) for problem, inputs in more)]


def _of_attention(stage: Kernel) -> list[tuple[Problem, str]]:
    """Two batches with strides of which no two are equal, two of the other type, head dim and layout, scores far beyond
    what exp() takes and far below 0, one tile and many, rows of which only few raise their maximum; of a persistent
    kernel five query tiles a block; of a stage with masks a last tile of one column, rows that see no key, a single
    key."""
    Br, Bc = stage.launch.get("Br", 64), stage.launch.get("Bc", 64)
    more = [
        (Problem(B=2, Hq=2, Nq=Br, Nkv=2 * Bc, d_head=128, dtype="bf16", layout=GAPS), "normal"),
        (Problem(B=2, Hq=2, Nq=2 * Br, Nkv=2 * Bc, d_head=64, dtype="fp16", layout="bnhd"), "normal"),
        (Problem(B=1, Hq=1, Nq=Br, Nkv=4 * Bc, d_head=64, dtype="bf16", scale=16.0), "normal"),
        (Problem(B=1, Hq=2, Nq=Br, Nkv=Bc, d_head=64, dtype="bf16"), "negative"),
        (Problem(B=1, Hq=1, Nq=Br, Nkv=7 * Bc, d_head=64, dtype="fp16"), "half_negative"),
        (Problem(B=1, Hq=1, Nq=Br, Nkv=4 * Bc, d_head=128, dtype="bf16"), "lone_last"),
        (Problem(B=1, Hq=1, Nq=Br, Nkv=4 * Bc, d_head=128, dtype="bf16"), "lone_first"),
    ]
    if stage.simulated:  # a block's query tiles follow each other through its buffers more than once
        more.append((Problem(B=1, Hq=5, Nq=3 * Br, Nkv=Bc, d_head=128, dtype="bf16"), "normal"))
    if stage.data.get("masks"):
        more += [
            (Problem(B=1, Hq=4, Hkv=2, Nq=Br + 1, Nkv=2 * Bc + 1, d_head=64, dtype="fp16", layout="bnhd"), "normal"),
            (Problem(B=2, Hq=2, Nq=2 * Br + 37, Nkv=Bc + 1, d_head=64, dtype="bf16", causal=True), "normal"),
            (Problem(B=1, Hq=1, Nq=1, Nkv=1, d_head=64, dtype="bf16"), "normal"),
        ]
    return [(stage.own(problem), inputs) for problem, inputs in more]


def _of_gradients(stage: Backward) -> list[tuple[Problem, str]]:
    """Two batches with strides of which no two are equal; the other type, head dim and layout, with groups of heads,
    the diagonal and last tiles of one row and one column; weights that are nearly all 0 or 1; a single key."""
    Br, Bc = stage.launch.get("Br", 64), stage.launch.get("Bc", 64)
    ends = {"Nq": 2 * Br + 1, "Nkv": Bc + 1, "causal": True}
    problems = (
        Problem(B=2, Hq=2, Nq=Br, Nkv=2 * Bc, d_head=128, layout=GAPS),
        Problem(B=1, Hq=2, Hkv=1, d_head=64, dtype="fp16", layout="bnhd", **ends),
        Problem(B=1, Hq=1, Nq=Br, Nkv=Bc, d_head=64, scale=2.0),
        Problem(B=1, Hq=1, Nq=1, Nkv=1, d_head=64, dtype="fp16"),
    )
    return [(problem, "normal") for problem in problems]


def _of_decode(stage: Decode) -> list[tuple[Problem, str]]:
    """The other type, head dim and layout, with unequal lengths; a single key; more rows of Q of a group than 16."""
    other = stage.usual(B=2, d_head=64, dtype="fp16", layout="bnhd", lengths=(600, 77))
    single, many_rows = stage.usual(Nkv=1, d_head=64), stage.usual(Nkv=70, Nq=8, d_head=64)
    return [(problem, "normal") for problem in (other, single, many_rows)]


_KINDS = {Kernel: _of_attention, Backward: _of_gradients, Decode: _of_decode}


def larger(stage: WithKernel) -> Problem:
    """What the simulator would take long for, and a GPU runs."""
    if isinstance(stage, Decode):
        return stage.usual(B=4, Nkv=8192)
    return stage.own(Problem(B=2, Hq=4, Nq=8 * stage.launch.get("Br", 64), d_head=128))


LONE = (3, 44, 81, 126)  # rows, each among another 8 of its warp's 32


def draw(problem: Problem, kind: str, seed: int) -> dict[str, np.ndarray]:
    """Q, K and V as bit patterns in the problem's layout, of e4m3 with scales. kind:

    normal: standard normal numbers. large: logits of several thousands, whose exp() overflows. negative: all scores far
    below 0. half_negative: those of each second row that a lane holds, and the others far above. one_hot: each row of P
    is all but one zero, and the hot key is among the last. lone_last: a few rows, of which no two share a warp's 32,
    have their maximum at the end, and all other scores are 0; lone_first: at the beginning.
    """
    generator = np.random.default_rng(seed)
    values = {name: generator.standard_normal(problem.shape(name), np.float32) for name in "QKV"}
    Q, K = problem.to_bhnd(values["Q"]), problem.to_bhnd(values["K"])  # views
    if kind == "large":
        Q *= 30
        K *= 30
    elif kind in ("negative", "half_negative"):
        Q[...], K[...] = np.abs(Q) * 8, -np.abs(K) * 8
        if kind == "half_negative":
            Q[:, :, np.arange(problem.Nq) % 16 < 8] *= -1
    elif kind == "one_hot":
        Q[...], K[...] = 0, 0
        Q[..., 0] = 60
        K[:, :, -1 - seed % min(8, problem.Nkv), 0] = 60
    elif kind in ("lone_last", "lone_first"):
        Q[...], K[...] = 0, 0
        Q[:, :, [row for row in LONE if row < problem.Nq], 0] = 8
        K[:, :, max(0, problem.Nkv - 3) if kind == "lone_last" else min(3, problem.Nkv - 1), 0] = 40
    return problem.rounded(values, rooms=3)
