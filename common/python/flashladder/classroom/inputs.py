"""Q, K and V that kernels are tried with: plain ones, and such as a careless softmax gets wrong."""

import numpy as np

from flashladder.core.problem import Problem

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
