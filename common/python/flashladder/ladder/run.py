"""Runs a stage on arrays: run(2, Q, K, V). Each run gets a worker process with the runtime chosen for it."""

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from flashladder.core import dtypes
from flashladder.core.device import Device, choose, cudart
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, stage_library
from flashladder.core.problem import Problem
from flashladder.ladder import stages


class StageError(FlashLadderError):
    """The stage refused the problem or its launch failed; `code` is the FlashStatus of a refusal, else None."""

    def __init__(self, message: str, code: int | None = None, messages: str = "", report: dict | None = None):
        super().__init__(message)
        self.code = code
        self.messages = messages  # what the run printed, e.g. the simulator's hazards
        self.report = report


@dataclass
class Result:
    bits: np.ndarray | None  # O as uint16 patterns, in the problem's layout
    problem: Problem
    device: Device
    description: dict  # FlashDescription as a dict
    seconds: list[float] = field(default_factory=list)  # host time of each run: on a GPU no measure of a kernel
    report: dict | None = field(default=None, repr=False)  # the simulator's counters (WARPSIM_REPORT)
    messages: str = ""

    @property
    def O(self) -> np.ndarray:  # noqa: E743
        """The output as float16 or ml_dtypes.bfloat16 (float32 where ml_dtypes is not installed)."""
        return dtypes.to_native(self.bits, self.problem.dtype)


def run_problem(
    stage: stages.Stage | int | str,
    problem: Problem,
    inputs: dict[str, np.ndarray] | None = None,
    device: str | None = None,
    library: Path | None = None,
    environment: dict[str, str] | None = None,
    timeout: float | None = None,
    repeat: int = 1,
) -> Result:
    """Runs a stage on bit patterns (random ones where none are given).

    device: auto, gpu or sim, FLASHLADDER_DEVICE by default. library: another build of the stage, e.g. a patched
    one. environment: more variables for the worker, e.g. WARPSIM_SCHEDULE. repeat: runs in the same process.
    Q, K and V have the shapes problem.shape(). Raises StageError with the stage's or the simulator's own message.
    """
    stage = stage if isinstance(stage, stages.Stage) else stages.get(stage)
    inputs = problem.random() if inputs is None else inputs
    return _work(stage, problem, inputs, device, library, environment, timeout, repeat)


def describe(stage, problem: Problem | None = None, device: str | None = None) -> dict:
    """What the stage would do with the problem: tiles, threads, shared memory, registers where a GPU tells."""
    stage = stage if isinstance(stage, stages.Stage) else stages.get(stage)
    return _work(stage, problem or Problem(), None, device).description


def _work(stage, problem, inputs, device, library=None, environment=None, timeout=None, repeat=1) -> Result:
    where = choose(stage.min_compute, device)
    library = library or stage_library(stage.number)
    if not library.exists():
        raise FlashLadderError(f"{library} does not exist: run `make stage-{stage.id}`.")
    shared_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="flashladder-", dir=shared_memory) as name:
        folder = Path(name)
        for tensor, array in (inputs or {}).items():
            if array.shape != problem.shape(tensor):
                raise FlashLadderError(f"{tensor} has shape {array.shape}, the problem wants {problem.shape(tensor)}.")
            np.save(folder / f"{tensor}.npy", np.ascontiguousarray(array, dtype=np.uint16))
        job = {
            "cudart": str(cudart(where)),
            "stage": str(library),
            "problem": asdict(problem),
            "describe_only": inputs is None,
            "repeat": repeat,
        }
        (folder / "job.json").write_text(json.dumps(job))
        env = dict(os.environ) | (environment or {})
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "common/python"), *filter(None, [env.get("PYTHONPATH")])])
        if where.kind == "sim":
            env["WARPSIM_REPORT"] = str(folder / "report.json")
        command = [sys.executable, "-m", "flashladder.running.worker", str(folder)]
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True, errors="replace", timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise StageError(f"stage {stage.id} did not finish within {timeout:g} s") from error
        messages = (done.stdout + done.stderr).strip()
        report_file, result_file = folder / "report.json", folder / "result.json"
        report = json.loads(report_file.read_text()) if report_file.exists() else None
        if not result_file.exists():
            raise StageError(
                f"stage {stage.id} ended its process (status {done.returncode})\n{messages[-2000:]}",
                None,
                messages,
                report,
            )
        result = json.loads(result_file.read_text())
        if result["status"] != "ok":
            text = f"stage {stage.id}, {problem}: {result['message']}"
            raise StageError(hazard_first(text, messages), result.get("code"), messages, report)
        output = np.load(folder / "O.npy") if inputs is not None else None
        return Result(output, problem, where, result["description"], result.get("seconds", []), report, messages)


def hazard_first(error: str, messages: str) -> str:
    """What failed and what was printed meanwhile. A hazard makes the first line, of which alone a summary consists:
    its kind, where, and the words about it; then CUDA's error, which says of all of them "unspecified launch failure".
    """
    hazard = re.search(r"^warpsim: (.+)\n {4}(.+)\n?", messages, re.MULTILINE)
    if not hazard:
        return f"{error}\n{messages}".strip()
    others = (messages[: hazard.start()] + messages[hazard.end() :]).strip("\n")
    return "\n".join(filter(None, [f"{hazard[1]}: {hazard[2]}", others, error]))


def run(
    stage: int | str,
    Q,
    K,
    V,
    *,
    causal: bool = False,
    scale: float | None = None,
    layout: str = "bhnd",
    dtype: str | None = None,
    device: str | None = None,
) -> Result:
    """O = softmax(scale Q Kᵀ) V on a stage.

    Q: (B, Hq, Nq, d), K and V: (B, Hkv, Nkv, d) for layout "bhnd"; heads and rows swapped for "bnhd". NumPy
    arrays, or anything with DLPack or __cuda_array_interface__; float16 and bfloat16 as they are, others rounded
    to dtype ("bf16" where none is given). Result.O has Q's shape.
    """
    q, dtype = dtypes.as_bits(Q, dtype)
    k, _ = dtypes.as_bits(K, dtype)
    v, _ = dtypes.as_bits(V, dtype)
    for name, array in (("Q", q), ("K", k), ("V", v)):
        if array.ndim != 4:
            raise FlashLadderError(f"{name} has {array.ndim} dimensions; 4 are needed, in the order {layout}.")
    head, row = (1, 2) if layout == "bhnd" else (2, 1)
    problem = Problem(
        B=q.shape[0],
        Hq=q.shape[head],
        Nq=q.shape[row],
        d_head=q.shape[3],
        dtype=dtype,
        Hkv=k.shape[head],
        Nkv=k.shape[row],
        causal=causal,
        scale=scale or 0.0,
        layout=layout,
    )
    return run_problem(stage, problem, {"Q": q, "K": k, "V": v}, device)
