"""Runs a stage on tensors whose batches, heads or rows lie billions of elements apart: python far_strides.py FOLDER.

Only the rows themselves are ever touched; what lies between them is address space and no memory, on the simulator.
FOLDER/job.json: cudart, stage (paths), problem, strides (of batch, head and row, in elements, by tensor). Q, K and V
are FOLDER/NAME.npy of the shapes (B, H, N, d), of e4m3 with their scales; leaves O.npy, or prints {"message": ...}
where the call fails.
"""

import json
import sys
from pathlib import Path

import numpy as np

from flashladder.core.abi import FlashTensor, StageLibrary, StageRefused
from flashladder.core.dtypes import OUTPUT, bits_type
from flashladder.core.problem import Problem
from flashladder.running.cudart import CudaError, Cudart


def span(strides: list[int], shape: tuple[int, ...]) -> int:
    """Elements from the first to the last one."""
    return sum(stride * (size - 1) for stride, size in zip(strides, shape[:3], strict=True)) + shape[3]


def offsets(strides: list[int], shape: tuple[int, ...]):
    for place in np.ndindex(*shape[:3]):
        yield place, sum(stride * index for stride, index in zip(strides, place, strict=True))


def execute(folder: Path, job: dict) -> None:
    cudart, stage, problem = Cudart(job["cudart"]), StageLibrary(job["stage"]), Problem(**job["problem"])
    need = stage.describe(problem.params({})).workspace_bytes
    scratch = cudart.malloc(need) if need else 0
    params = problem.params({}, scratch, need)
    heads = {"Q": problem.Hq, "O": problem.Hq, "K": problem.Hkv, "V": problem.Hkv}
    rows = {"Q": problem.Nq, "O": problem.Nq, "K": problem.Nkv, "V": problem.Nkv}
    pointers, shapes = {}, {}
    for name in "QKVO":
        shapes[name] = (problem.B, heads[name], rows[name], problem.d_head)
        strides, kind = job["strides"][name], bits_type(OUTPUT[problem.dtype] if name == "O" else problem.dtype)
        size = np.dtype(kind).itemsize
        pointers[name] = cudart.malloc(size * span(strides, shapes[name]))
        setattr(params, name, FlashTensor(pointers[name], *strides))
        if name != "O":
            values = np.load(folder / f"{name}.npy")
            for place, offset in offsets(strides, shapes[name]):
                cudart.upload(pointers[name] + size * offset, np.ascontiguousarray(values[place]))
    for name in problem.scales({}):
        scales = np.load(folder / f"{name}.npy")
        pointer = cudart.malloc(scales.nbytes)
        cudart.upload(pointer, scales)
        setattr(params, name, pointer)
    stage.launch(params)
    cudart.synchronize()
    O = np.empty(shapes["O"], np.uint16)  # noqa: E741
    row = np.empty(problem.d_head, np.uint16)
    for place, offset in offsets(job["strides"]["O"], shapes["O"]):
        cudart.download(row, pointers["O"] + 2 * offset)
        O[place] = row
    np.save(folder / "O.npy", O)


def main() -> None:
    folder = Path(sys.argv[1])
    try:
        execute(folder, json.loads((folder / "job.json").read_text()))
    except (StageRefused, CudaError) as error:
        print(json.dumps({"message": str(error)}))


main()
