"""Calls of a stage that one process makes one after the other, each verified."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from flashladder.core.device import choose, cudart
from flashladder.core.dtypes import OUTPUT, to_bits
from flashladder.core.paths import stage_library
from flashladder.core.problem import Problem
from flashladder.running.job import hazard_first
from flashladder.running.verify import POISON, compare, compare_log_sum_exp, log_sum_exp, reference

NUMBERS = 0x3C3C  # 1.06 in fp16, 0.011 in bf16: what is left of an O that is written only where it held NaN


def contiguous(layout: str, problem: Problem, name: str) -> dict:
    """The tensor alone in a buffer of its own, in one of the two layouts."""
    heads, rows = (problem.Hq, problem.Nq) if name in "QO" else (problem.Hkv, problem.Nkv)
    d = problem.d_head
    strides = [heads * rows * d, rows * d, d] if layout == "bhnd" else [heads * rows * d, d, heads * d]
    return {"buffer": name, "offset": 0, "strides": strides, "size": problem.B * heads * rows * d}


def plain(p: Problem) -> dict:
    """All tensors in the problem's layout."""
    return {name: contiguous(p.layout, p, name) for name in "QKVO"}


def mixed(p: Problem) -> dict:
    """Q and V as (B,N,H,d), K and O as (B,H,N,d)."""
    return {name: contiguous("bnhd" if name in "QV" else "bhnd", p, name) for name in "QKVO"}


def packed(p: Problem) -> dict:
    """Q, K and V as one projection leaves them, [B, N, 3, H, d]; O with its rows 16 bytes apart."""
    row, gap = 3 * p.Hq * p.d_head, p.Hq * p.d_head + 8
    views = {
        name: {
            "buffer": "QKV",
            "offset": i * p.Hq * p.d_head,
            "strides": [p.Nq * row, p.d_head, row],
            "size": p.B * p.Nq * row,
        }
        for i, name in enumerate("QKV")
    }
    return views | {
        "O": {"buffer": "O", "offset": 8, "strides": [p.Nq * gap, p.d_head, gap], "size": 8 + p.B * p.Nq * gap}
    }


def gaps(p: Problem) -> dict:
    """A gap behind every row, every head and every batch, of another size in each tensor."""
    views = {}
    for i, name in enumerate("QKVO"):
        piece = 16 // np.dtype(p.bits_type(name)).itemsize  # strides are multiples of 16 bytes
        row = p.d_head + piece * (i + 1)
        head = (p.Nq if name in "QO" else p.Nkv) * row + piece * (i + 3)
        batch = (p.Hq if name in "QO" else p.Hkv) * head + piece * (i + 5)
        views[name] = {"buffer": name, "offset": 0, "strides": [batch, head, row], "size": p.B * batch}
    return views


def shared(p: Problem) -> dict:
    """One K for all heads of a batch and one V for all batches: strides of 0. The heads of O in the innermost place."""
    q, d = p.Nq * p.d_head, p.d_head
    views = {name: contiguous("bhnd", p, name) for name in "QKV"}
    views["K"] |= {"strides": [p.Nkv * d, 0, d], "size": p.B * p.Nkv * d}
    views["V"] |= {"strides": [0, p.Nkv * d, d], "size": p.Hkv * p.Nkv * d}
    views["O"] = {"buffer": "O", "offset": 0, "strides": [d, p.B * d, p.Hq * p.B * d], "size": p.B * p.Hq * q}
    return views


@dataclass
class Call:
    problem: Problem
    arrangement: Callable[[Problem], dict] = plain
    inputs: dict[str, np.ndarray] | None = None  # (B, H, N, d) bit patterns; random where there are none
    seed: int = 0
    poison: int = POISON  # what O holds before the call
    own_stream: bool = False  # not the first call of its type and head dim in a process
    note: str = ""  # what is special about it
    rest: int | None = None  # what buffers of inputs hold beside their tensors' elements; None: random numbers
    log_sum_exp: bool = True  # of a stage that writes it: asked for, and verified
    configuration: str | None = None  # the short form of one of stage 12's instances; None: the stage chooses

    def __str__(self) -> str:
        arrangement = "" if self.arrangement is plain else f", tensors {self.arrangement.__name__}"
        stream = ", on a stream of its own" if self.own_stream else ""
        note = f" ({self.note})" if self.note else ""
        note += f", {self.configuration}" if self.configuration else ""
        return f"{self.problem}{arrangement}, O filled with {self.poison:#06x}{stream}{note}"


def as_bhnd(buffer: np.ndarray, view: dict, shape: tuple) -> np.ndarray:
    """The elements of a view as an array of axes (B, H, N, d) that shares the buffer's memory."""
    strides = [buffer.itemsize * stride for stride in view["strides"]] + [buffer.itemsize]
    return np.lib.stride_tricks.as_strided(buffer[view["offset"] :], shape, strides)


def shape_of(problem: Problem, name: str) -> tuple[int, int, int, int]:
    heads, rows = (problem.Hq, problem.Nq) if name in "QO" else (problem.Hkv, problem.Nkv)
    return problem.B, heads, rows, problem.d_head


def verified(stage, *calls: Call) -> list[np.ndarray]:
    """Makes the calls in one process, in their order, and verifies each: O against the float64 reference, so the rows'
    log-sum-exp where the stage writes it, and that nothing else was written. Returns the outputs as bit patterns
    (B, H, N, d). Calls of a type that the stage does not take are made in its own type, each once."""
    calls = in_own_type(stage, calls)
    with tempfile.TemporaryDirectory(prefix="flashladder-") as name:
        folder = Path(name)
        before = [_buffers(call) for call in calls]
        for number, buffers in enumerate(before):
            for buffer, array in buffers.items():
                np.save(folder / f"{number}.{buffer}.npy", array)
            for scales, array in _scales(calls[number]).items():
                np.save(folder / f"{number}.{scales}.npy", array)
        paths = {"cudart": str(cudart(choose(stage.min_compute))), "stage": str(stage_library(stage.number))}
        plans = [
            {
                "problem": asdict(call.problem),
                "views": call.arrangement(call.problem),
                "own_stream": call.own_stream,
                "log_sum_exp": call.log_sum_exp,
                "configuration": call.configuration,
            }
            for call in calls
        ]
        (folder / "job.json").write_text(json.dumps({**paths, "calls": plans}))
        script = Path(__file__).with_name("stage_calls.py")
        command = [sys.executable, str(script), str(folder)]
        # Strict: what ptxas would have to repair at a wgmma fails, too.
        env = dict(os.environ) | stage.simulated | {"WARPSIM_HAZARDS": "strict"}
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, hazard_first(
            f"stage {stage.id} ended its process (status {done.returncode})", done.stdout + done.stderr
        )
        if done.stdout.strip():
            answer = json.loads(done.stdout.strip().splitlines()[-1])
            which = f"call {answer['failed'] + 1} of {len(calls)} in one process, {calls[answer['failed']]}"
            raise AssertionError(hazard_first(f"stage {stage.id}, {which}: {answer['message']}", done.stderr))
        after = [{buffer: np.load(folder / f"{i}.{buffer}.npy") for buffer in before[i]} for i in range(len(calls))]
        sums = [folder / f"{i}.log_sum_exp.npy" for i in range(len(calls))]
        sums = [np.load(file) if file.exists() else None for file in sums]

    outputs = []
    for number, call in enumerate(calls):
        which = f"stage {stage.id}, call {number + 1} of {len(calls)} in one process, {call}"
        problem, views = call.problem, call.arrangement(call.problem)
        bhnd = Problem(**asdict(problem) | {"layout": "bhnd"})
        inputs = {
            name: as_bhnd(before[number][views[name]["buffer"]], views[name], shape_of(problem, name)) for name in "QKV"
        }
        inputs |= _scales(call)
        output = as_bhnd(after[number]["O"], views["O"], shape_of(problem, "O"))
        outputs.append(output.copy())
        comparison = compare(output, *reference(bhnd, inputs), problem.dtype)
        assert comparison, f"{which}: {comparison.message}"
        if sums[number] is not None:
            got = sums[number].reshape(problem.B, problem.Hq, problem.Nq)
            comparison = compare_log_sum_exp(got, *log_sum_exp(bhnd, inputs))
            assert comparison, f"{which}: {comparison.message}"
        output[...] = call.poison  # what is left is all that O's elements do not cover: nothing may be written there
        for name, buffer in before[number].items():
            wrong = int((after[number][name] != buffer).sum())
            assert not wrong, f"{which}: {wrong} elements of {name} that are not part of O were written"
    return outputs


def in_own_type(stage, calls: tuple[Call, ...]) -> list[Call]:
    found = []
    for call in calls:
        problem = stage.own(call.problem)
        if problem != call.problem:
            bhnd = replace(call.problem, layout="bhnd")
            values = call.inputs and {name: bhnd.values(call.inputs, name) for name in "QKV"}
            inputs = values and replace(problem, layout="bhnd").rounded(values)
            call = replace(call, problem=problem, inputs=inputs)
            if any(replace(call, inputs=None) == replace(other, inputs=None) for other in found):
                continue  # two types have become one
        found.append(call)
    return found


def _scales(call: Call) -> dict[str, np.ndarray]:
    """Of e4m3: those of the inputs given, else another one for each head; of the other types nothing."""
    generator = np.random.default_rng(call.seed + 1000)
    shapes = {name: array.shape for name, array in call.problem.scales({}).items()}
    drawn = {name: generator.uniform(0.5, 1.5, shape).astype(np.float32) for name, shape in shapes.items()}
    return {name: (call.inputs or {}).get(name, array) for name, array in drawn.items()}


def _buffers(call: Call) -> dict[str, np.ndarray]:
    """Each buffer before the call: random normal numbers, or the inputs given; O is poison."""
    generator = np.random.default_rng(call.seed)
    views = call.arrangement(call.problem)
    buffers = {}
    for view in views.values():
        if view["buffer"] not in buffers:
            dtype = OUTPUT[call.problem.dtype] if view["buffer"] == "O" else call.problem.dtype
            buffers[view["buffer"]] = to_bits(generator.standard_normal(view["size"], np.float32), dtype)
    if call.rest is not None:
        for name in "QKV":
            view, shape = views[name], shape_of(call.problem, name)
            kept = as_bhnd(buffers[view["buffer"]], view, shape).copy()
            buffers[view["buffer"]][...] = call.rest & np.iinfo(kept.dtype).max
            as_bhnd(buffers[view["buffer"]], view, shape)[...] = kept
    for name in "QKV" if call.inputs else ():
        as_bhnd(buffers[views[name]["buffer"]], views[name], shape_of(call.problem, name))[...] = call.inputs[name]
    buffers["O"][...] = call.poison
    return buffers
