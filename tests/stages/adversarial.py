"""Inputs that an online softmax gets wrong if it is careless."""

import numpy as np

from flashladder.dtypes import to_bits
from flashladder.problem import Problem

KINDS = ("large logits", "all scores negative", "one-hot rows", "constant rows", "rising maxima", "zero V", "tiny V")


def adversarial(kind: str, problem: Problem) -> dict[str, np.ndarray]:
    """Q, K and V as bit patterns, for a problem in the layout "bhnd"."""
    generator = np.random.default_rng(3)
    values = {name: generator.standard_normal(problem.shape(name)).astype(np.float32) for name in "QKV"}
    if kind == "large logits":  # exp overflows unless the running maximum is subtracted
        values["Q"] *= 30
        values["K"] *= 30
    elif kind == "all scores negative":  # below -104, where fp32's exp is 0: a maximum that starts at 0 gives 0 / 0
        values["Q"] = np.abs(values["Q"]) * 8
        values["K"] = -np.abs(values["K"]) * 8
    elif kind == "one-hot rows":  # each row of P is all but one zero; the hot key is in the last tile
        values["Q"][...] = 0
        values["Q"][..., 0] = 60
        values["K"][...] = 0
        values["K"][:, :, -3, 0] = 60
    elif kind == "constant rows":  # P is uniform: O is the mean of V
        values["K"][...] = 1
    elif kind == "rising maxima":  # every tile raises the maximum, so everything is rescaled every time
        values["Q"] = np.abs(values["Q"])
        values["K"] = np.abs(values["K"]) * np.linspace(0.1, 3, problem.Nkv, dtype=np.float32)[:, None]
    elif kind == "zero V":
        values["V"][...] = 0
    elif kind == "tiny V":  # fp16 has only subnormal numbers for such outputs
        values["V"] *= 1e-5
    else:
        raise ValueError(f"no such inputs: {kind}")
    return {name: to_bits(array, problem.dtype) for name, array in values.items()}
