"""Inputs that an online softmax gets wrong if it is careless."""

import numpy as np

from flashladder.core.dtypes import to_bits
from flashladder.core.problem import Problem

# With a maximum of scores that are not scaled yet, exp overflows at the second and not yet at the first.
NEGATIVE_SCALES = (-0.5, -8.0)
KINDS = (
    "large logits",
    "all scores negative",
    "half of the rows negative",
    "scores below -1,000",
    "one-hot rows",
    "constant rows",
    "rising maxima",
    "falling maxima",
    "steep slope",
    "lone maxima",
    "lone maxima in front",
    "huge and tiny logits",
    "zero V",
    "tiny V",
    "long sums",
    "one score for all but one",
)


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
    elif kind == "half of the rows negative":  # of each 16: the second of the two rows that a lane has
        values["Q"] = np.abs(values["Q"]) * 8
        values["Q"][:, :, np.arange(problem.Nq) % 16 >= 8] *= -1
        values["K"] = np.abs(values["K"]) * 8
    elif kind == "scores below -1,000":  # so does one that starts at -1,000; the rows are as other rows, but for that
        values["Q"][..., -1] = 64
        values["K"][..., -1] = -320
    elif kind == "one-hot rows":  # each row of P is all but one zero; the hot key is in the last tile
        values["Q"][...] = 0
        values["Q"][..., 0] = 60
        values["K"][...] = 0
        values["K"][:, :, -3, 0] = 60
    elif kind == "constant rows":  # P is uniform: O is the mean of V
        values["K"][...] = 1
    elif kind in ("rising maxima", "falling maxima"):  # every tile raises the maximum, so all is rescaled every time
        ends = (0.1, 3) if kind == "rising maxima" else (3, 0.1)  # falling: for those that begin with the last tile
        values["Q"] = np.abs(values["Q"])
        values["K"] = np.abs(values["K"]) * np.linspace(*ends, problem.Nkv, dtype=np.float32)[:, None]
    elif kind == "steep slope":  # 200 from the last key to the first: exp overflows if the last tile's maximum is kept
        values["Q"][..., 0] = 16
        values["K"][..., 0] = np.linspace(200, 0, problem.Nkv, dtype=np.float32) / (16 * problem.scale)
    elif kind == "huge and tiny logits":  # neighbouring rows: all of P on one key, and spread evenly
        values["Q"][:, :, 0::2] *= 100
        values["Q"][:, :, 1::2] *= 1e-4
    elif kind in ("lone maxima", "lone maxima in front"):
        # A hot key in the tile that comes last, or in the first one, for a few rows, of which no two share 32; the rest
        # keep 0.
        lone = [row for row in (3, 44, 81, 126) if row < problem.Nq]  # each in another 8 of their 32
        values["Q"][...] = values["K"][...] = 0
        values["Q"][:, :, lone, 0] = 8
        values["K"][:, :, -3 if kind == "lone maxima" else 3, 0] = 40
    elif kind == "zero V":
        values["V"][...] = 0
    elif kind == "tiny V":  # fp16 has only subnormal numbers for such outputs
        values["V"] *= 1e-5
    elif kind == "long sums":
        # 64 weights of 1 at each end of the row; those between are so small that 64 of them are lost in a sum of 64 or
        # more in 16 bits, and together they are not: 1.7 percent of a sum with bf16's numbers, 0.3 with fp16's.
        weight = {"bf16": 0.0030, "fp16": 0.00045}[problem.dtype]
        values["Q"][...] = 0
        values["Q"][..., 0] = 1 / problem.scale
        values["K"][..., 0] = np.log(weight)
        values["K"][:, :, :64, 0] = values["K"][:, :, -64:, 0] = 0
        values["V"] = 1 + np.abs(values["V"])
    elif kind == "one score for all but one":
        # One key is far ahead, and all others together weigh a third of it: their weights are off alike if exp is of a
        # rounded argument, and nothing averages that out. The argument differs from row to row by less than 1 / 32, as
        # no 16-bit number does. bf16's P is coarser than such an exp, so V leaves it room.
        distance = np.log(3 * (problem.Nkv - 1))
        values["Q"][...] = values["K"][...] = 0
        values["Q"][..., 0] = 8
        values["Q"][..., 1] = np.arange(problem.Nq) * 7 % 61 / 61
        values["K"][..., 0] = -distance / (8 * problem.scale)
        values["K"][..., 1] = -1 / (32 * problem.scale)
        values["K"][:, :, 1, :2] = 0
        values["V"][...] = -1 if problem.dtype == "fp16" else 0
        values["V"][:, :, 1] = 1
    else:
        raise ValueError(f"no such inputs: {kind}")
    return {name: to_bits(array, problem.dtype) for name, array in values.items()}
