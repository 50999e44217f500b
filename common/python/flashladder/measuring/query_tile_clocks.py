"""What a change of query tile takes, in clocks, on a GPU: kernels with marks (marks.cuh) that say when each warpgroup
comes to which place. The marks are edits, stages/NN_name/clocks.toml."""

import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import ClassVar

import numpy as np

from flashladder.core.abi import StageLibrary
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.ladder.change import Change, tables
from flashladder.ladder.kernels import compile_kernel
from flashladder.measuring import bench, provenance

MARKS = Path(__file__).with_name("marks.cuh")
WARPGROUPS, MOST = 4, 1024  # as in marks.cuh: marks[block][warpgroup][number] = place, clock
LENGTH = 1024
# What lies between the place before and each of these. Where there are no turns, or P comes in parts, some are missing.
OTHER_TILES = "the other tiles"
PLACES = {
    1: OTHER_TILES,
    2: "next query tile taken",
    3: "turn",
    4: "K",
    5: "S issued, V",
    6: "PV issued, S there",
    7: "mask, PV over",
    8: "maximum",
    9: "exponentials",
    10: "O stored",
}
FIRST, LAST = 1, 10


@dataclass(frozen=True)
class Marked(Change):
    """A stage's kernel with marks."""

    FILE: ClassVar[str] = "clocks.toml"


def marked() -> list[Marked]:
    """Those that there are, in the ladder's order."""
    every = ((stage, tables(stage, Marked.FILE, ())) for stage in stages.all_stages())
    return [Marked(stage, name, **entry) for stage, found in every for name, entry in found.items()]


def library(one: Marked, compute: int | None = None) -> Path:
    """The kernel with marks, bf16 of both head dims: PTX, and with a compute capability (90 for 9.0) native code."""
    native = one.stage.min_compute.native(compute) if compute else ""
    options = ["-gencode", f"arch=compute_{native},code=sm_{native}"] if native else []
    version = hashlib.sha256(MARKS.read_bytes()).hexdigest()[:16]  # compile_kernel() knows the options, not this file
    included = ["-include", str(MARKS), f"-DMARKS_{version}"]
    return compile_kernel(one.source(), one.stage, *included, *options, only="BF16")


def between(marks: np.ndarray) -> list[dict]:
    """marks: uint32 [blocks][WARPGROUPS][MOST][2], place and clock, 0 behind the last. For each warpgroup that changes
    its query tile: mean clocks by PLACES' words, over all changes of all blocks but their first and last, and how many
    those are."""
    found = []
    for warpgroup in range(WARPGROUPS):
        clocks: dict[int, list[int]] = {}
        changes = 0
        for block in marks[:, warpgroup]:
            places = block[block[:, 0] > 0]
            ends = np.flatnonzero(places[:, 0] == LAST)
            for first, last in zip(ends[:-2], ends[1:-1], strict=True):  # from one "stored" to the next
                changes += 1
                for k in range(first + 1, last + 1):
                    took = (int(places[k, 1]) - int(places[k - 1, 1])) % (1 << 32)  # the clock's low half
                    clocks.setdefault(int(places[k, 0]), []).append(took)
        if changes:
            words = {PLACES[place]: round(fmean(took), 1) for place, took in sorted(clocks.items())}
            found.append({"warpgroup": warpgroup, "changes": changes, "clocks": words})
    return found


def of_a_change(clocks: dict[str, float]) -> dict[str, float]:
    """Of a row's clocks those that are of the change itself: without the tiles between two changes."""
    return {words: took for words, took in clocks.items() if words != OTHER_TILES}


def measure(device: Device) -> dict:
    """A record: the kernels that have marks, bf16, N = LENGTH, both head dims and masks, verified with their marks."""
    if device.kind != "gpu" or device.gpu.compute != 90:
        raise FlashLadderError(f"The kernels with marks are Hopper's, of compute capability 9.0; this is {device}.")
    kernels = {one.stage.number: (one, StageLibrary(library(one, device.gpu.compute))) for one in marked()}
    settings = bench.Settings(dtypes=("bf16",), stages=tuple(kernels), lengths=(LENGTH,), peers=False)
    timing = bench.Bench(settings, device)
    size = timing.multiprocessors() * 2 * WARPGROUPS * MOST * 8  # at most two blocks each
    workspace, rows = timing.cudart.malloc(size), []
    for problem in settings.problems():
        memory, expected = timing.prepared(problem)
        for one, marks_library in kernels.values():
            plain = timing.stage_candidate(one.stage, problem, memory)

            params = problem.params(memory.pointers(), workspace, size)
            launch, output = partial(marks_library.forward, params), partial(memory.bits, "O")
            with_marks = bench.Candidate(f"{one.stage.id} marks", "stage", launch, output)
            for candidate in (plain, with_marks):
                if not timing.admit(candidate, problem, memory, expected):
                    raise FlashLadderError(f"{candidate.name}: refused for {problem}")
            timing.measure([plain, with_marks])
            marks = np.zeros((size // (WARPGROUPS * MOST * 8), WARPGROUPS, MOST, 2), np.uint32)
            timing.cudart.upload(workspace, marks)
            launch()
            timing.cudart.synchronize()
            timing.cudart.download(marks, workspace)
            configuration = marks_library.describe(problem.params({})).as_dict()["configuration"]
            for row in between(marks):
                rows.append(
                    {"name": one.stage.name, "configuration": configuration, "dtype": problem.dtype,
                     "d_head": problem.d_head, "causal": problem.causal, "Nq": problem.Nq,
                     "ms": round(float(np.median(plain.times_ms)), 5),
                     "ms_with_marks": round(float(np.median(with_marks.times_ms)), 5),
                     "kernel_sha256": one.stage.kernel_hash(), **row}
                )  # fmt: skip
        memory.release()
    timing.cudart.free(workspace)
    return {"version": 1, "provenance": provenance.collect(device), "rows": rows}
