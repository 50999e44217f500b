"""Runs a stage on tensors with any offsets and strides, in a process of its own: python strided_call.py FOLDER.

FOLDER/job.json: cudart, stage (paths), problem, and for each of Q, K, V and O a view: the buffer that it lies in, its
offset there and its three strides, all in elements. FOLDER/BUFFER.npy are the buffers (uint16); they are written back
as they are after the run, the output and all that lies around it.
"""

import json
import sys
from pathlib import Path

import numpy as np

from flashladder.abi import FlashTensor, StageLibrary
from flashladder.cudart import Cudart
from flashladder.problem import Problem


def main() -> None:
    folder = Path(sys.argv[1])
    job = json.loads((folder / "job.json").read_text())
    cudart = Cudart(job["cudart"])
    stage = StageLibrary(job["stage"])
    problem = Problem(**job["problem"])

    buffers = {name: np.load(folder / f"{name}.npy") for name in {view["buffer"] for view in job["views"].values()}}
    pointers = {name: cudart.malloc(buffer.nbytes) for name, buffer in buffers.items()}
    for name, buffer in buffers.items():
        cudart.upload(pointers[name], buffer)
    scratch_bytes = stage.describe(problem.params({})).workspace_bytes
    scratch = cudart.malloc(scratch_bytes) if scratch_bytes else 0
    params = problem.params({}, scratch, scratch_bytes)
    for tensor, view in job["views"].items():
        setattr(params, tensor, FlashTensor(pointers[view["buffer"]] + 2 * view["offset"], *view["strides"]))
    stage.forward(params)
    cudart.synchronize()
    for name, buffer in buffers.items():
        cudart.download(buffer, pointers[name])
        np.save(folder / f"{name}.npy", buffer)


main()
