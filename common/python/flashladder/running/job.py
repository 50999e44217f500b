"""One run of a stage's library in a worker process: what it is told, how it is started, what comes back."""

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from flashladder.core import abi, dtypes
from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.device import Device, cudart
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.core.ring_problem import RingProblem
from flashladder.running.server import run_worker


@dataclass(frozen=True)
class Kind:
    """What a kind of stage reads and writes: tensors, and arrays without gaps, with their types in NumPy."""

    problem: type[Problem]
    library: type[abi.Library]
    inputs: tuple[str, ...] = ("Q", "K", "V")
    outputs: tuple[str, ...] = ("O",)
    input_arrays: dict[str, type] = field(default_factory=dict)
    sums: tuple[str, ...] = ("log_sum_exp",)  # of the outputs besides: float32, one for each row of Q


_GRADIENTS = (("Q", "K", "V", "O", "dO"), ("dQ", "dK", "dV"), {"log_sum_exp": np.float32}, ())
KINDS = {
    # With scales of e4m3, and sums if the stage has them.
    "forward": Kind(Problem, abi.StageLibrary, input_arrays={f"{name}_scales": np.float32 for name in "QKV"}),
    "backward": Kind(Problem, abi.BackwardLibrary, *_GRADIENTS),
    "decode": Kind(DecodeProblem, abi.DecodeLibrary, input_arrays={"lengths": np.int32, "block_table": np.int32}),
    "ring": Kind(RingProblem, abi.RingLibrary),
}


@dataclass(frozen=True)
class Options:
    """How a library runs a problem."""

    kind: str = "forward"  # of KINDS: what it computes
    environment: dict[str, str] = field(default_factory=dict)  # more variables, e.g. WARPSIM_SCHEDULE
    timeout: float | None = None  # seconds
    repeat: int = 1  # runs in the same process
    configuration: str | None = None  # the short form of one of the library's instances; None: the library chooses
    own_stream: bool = False  # the runs go to a stream that the default stream does not join
    graph: bool = False  # with own_stream: the runs are launches of one CUDA graph, which captured the stage's call
    forward: str | None = None  # of a stage for several GPUs: the library that computes attention; None: it chooses
    timed: bool = False  # of a stage for several GPUs: the last run's work is timed by events
    sleeps: bool = False  # the process sleeps while the GPU works: where it may work for long beside many others
    under_tool: bool = False  # that looks at the run: nobody reads what it writes, and its memory is freed
    shown_bytes: int = 0  # of a kernel built with FLASH_SHOW (show.cuh): the buffer that it shows its insides in


ONCE = Options()


@dataclass(frozen=True)
class Job:
    """What a worker (flashladder.running.worker) is told, by files in a folder of its own."""

    cudart: str  # libcudart.so.13: the GPU's, or the simulator's
    library: str  # of a stage
    problem: Problem
    describe_only: bool = False
    options: Options = ONCE

    @property
    def kind(self) -> Kind:
        return KINDS[self.options.kind]

    def write(self, folder: Path, inputs: dict[str, np.ndarray] | None = None) -> list[str]:
        """Writes the job, and its input tensors as bit patterns of the shapes problem.shape(), with the arrays of its
        kind. Returns the worker's command, to be run in an environment of for_python()."""
        inputs = inputs or {}
        arrays = inputs | self.problem.scales(inputs)
        for name in self.kind.input_arrays.keys() & arrays.keys():
            np.save(folder / f"{name}.npy", np.ascontiguousarray(arrays[name], self.kind.input_arrays[name]))
        for tensor in (name for name in self.kind.inputs if name in inputs):
            array = inputs[tensor]
            if array.shape != self.problem.shape(tensor):
                wanted = self.problem.shape(tensor)
                raise FlashLadderError(f"{tensor} has shape {array.shape}, the problem wants {wanted}.")
            np.save(folder / f"{tensor}.npy", np.ascontiguousarray(array, dtype=self.problem.bits_type(tensor)))
        self.write_alone(folder)
        return [sys.executable, "-m", "flashladder.running.worker", str(folder)]

    def write_alone(self, folder: Path) -> None:
        """Beside inputs that are there already."""
        (folder / "job.json").write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> "Job":
        job = json.loads((folder / "job.json").read_text())
        options = Options(**job["options"])
        return cls(**job | {"problem": KINDS[options.kind].problem(**job["problem"]), "options": options})


def answer(folder: Path) -> dict | None:
    """What the worker left: "status" and, by that, "message" or "description"; None where it ended before."""
    file = folder / "result.json"
    return json.loads(file.read_text()) if file.exists() else None


class StageError(FlashLadderError):
    """The stage refused the problem or its launch failed; `code` is the FlashStatus of a refusal, else None."""

    def __init__(self, message: str, code: int | None = None, messages: str = "", report: dict | None = None):
        super().__init__(message)
        self.code = code
        self.messages = messages  # what the run printed, e.g. the simulator's hazards
        self.report = report


@dataclass
class Result:
    """What a run wrote. outputs: those of the kind by name, tensors as uint16 patterns in the problem's layout (bf16
    where the inputs are e4m3), sums as float32 (B, Hq, Nq); none of a description."""

    outputs: dict[str, np.ndarray] = field(repr=False)
    problem: Problem
    device: Device
    description: dict  # the kind's description as a dict
    seconds: list[float] = field(default_factory=list)  # host time of each run: on a GPU no measure of a kernel
    report: dict | None = field(default=None, repr=False)  # the simulator's counters (WARPSIM_REPORT)
    messages: str = ""
    changed: tuple[str, ...] = ()  # of several runs: the outputs whose bits were not the same in each
    spans: list[dict] = field(default_factory=list)  # of a timed run on several GPUs: running.ring.Marks.spans()
    shown: np.ndarray | None = field(default=None, repr=False)  # the words that it showed (classroom/shown.py)

    @property
    def bits(self) -> np.ndarray | None:
        """O's patterns."""
        return self.outputs.get("O")

    @property
    def log_sum_exp(self) -> np.ndarray | None:
        """None: the stage has none."""
        return self.outputs.get("log_sum_exp")

    @property
    def O(self) -> np.ndarray:  # noqa: E743
        """The output as float16 or ml_dtypes.bfloat16 (float32 where ml_dtypes is not installed)."""
        return dtypes.to_native(self.bits, dtypes.OUTPUT[self.problem.dtype])


def run_library(
    name: str,
    library: Path,
    problem: Problem,
    inputs: dict[str, np.ndarray] | None,
    where: Device,
    options: Options = ONCE,
) -> Result:
    """Runs a stage's library on bit patterns, and arrays, by name; without inputs it only describes what it would do.

    name: what messages call it. Raises StageError with the stage's or the simulator's own message.
    """
    job = Job(str(cudart(where)), str(library), problem, inputs is None, options)
    shared_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="flashladder-", dir=shared_memory) as scratch:
        folder = Path(scratch)
        command = job.write(folder, inputs)
        env = for_python(dict(os.environ) | options.environment)
        if where.kind == "sim":
            env["WARPSIM_REPORT"] = str(folder / "report.json")
        try:
            if where.kind == "sim":
                done = run_worker(folder, env, options.timeout)
            else:
                done = subprocess.run(
                    command, env=env, capture_output=True, text=True, errors="replace", timeout=options.timeout
                )
        except subprocess.TimeoutExpired as error:
            raise StageError(f"{name} did not finish within {options.timeout:g} s") from error
        messages = (done.stdout + done.stderr).strip()
        report_file, told = folder / "report.json", answer(folder)
        report = json.loads(report_file.read_text()) if report_file.exists() else None
        if told is None:
            said = f"{name} ended its process (status {done.returncode})\n{messages[-2000:]}"
            raise StageError(said, None, messages, report)
        if told["status"] != "ok":
            text = f"{name}, {problem}: {told['message']}"
            raise StageError(hazard_first(text, messages), told.get("code"), messages, report)
        written = {one: np.load(folder / f"{one}.npy") for one in told.get("written", ())}
        shown = written.pop("shown", None)
    return Result(
        written, problem, where, told["description"], told.get("seconds", []), report, messages,
        tuple(told.get("changed", ())), told.get("spans", []), shown,
    )  # fmt: skip


def hazard_first(error: str, messages: str) -> str:
    """What failed and what was printed meanwhile. A hazard makes the first line, of which alone a summary consists:
    its kind, where, and the words about it; then CUDA's error, which says of all of them "unspecified launch failure".
    """
    hazard = re.search(r"^warpsim: (.+)\n {4}(.+)\n?", messages, re.MULTILINE)
    if not hazard:
        return f"{error}\n{messages}".strip()
    others = (messages[: hazard.start()] + messages[hazard.end() :]).strip("\n")
    return "\n".join(filter(None, [f"{hazard[1]}: {hazard[2]}", others, error]))
