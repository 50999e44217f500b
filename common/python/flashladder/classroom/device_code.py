"""A kernel of unknown origin: compiled for the device alone, and launched by a process of ours.

Of its host code nothing is ever built: nvcc stops at PTX, and the launches come from stage.toml (ladder/launches.py).
Compiler and launching process run isolated (classroom/isolation.py).
"""

import hashlib
import json
import os
import re
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np

from flashladder.classroom import device_worker, isolation
from flashladder.classroom.isolation import Box, Level, Limits
from flashladder.core.device import Device, cudart
from flashladder.core.environment import PACKAGE
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, headers
from flashladder.core.problem import Problem
from flashladder.ladder import overlap
from flashladder.ladder.kernels import Kernel, WithKernel, stage_flags
from flashladder.ladder.launches import configurations, launches, workspace_bytes

HEAD_DIMS = (64, 128)
WHOLE = 3 << 10  # rows: whole tiles of any height
MANY = 1 << 30  # multiprocessors: more than any device has
MOST_PTX = 32 << 20  # bytes; the stages' have half a megabyte
MOST_RESULT = 64 << 20  # bytes of each file that the launching process leaves
# What counts is the processor's time: on a machine that has much else to do an honest kernel ends by no limit. All
# instances of shapes take 13 s of it.
COMPILING = Limits(240, 30, memory_bytes=4 << 30, file_bytes=64 << 20, output_bytes=256 << 10)
RUNNING = Limits(80, 20, memory_bytes=4 << 30, file_bytes=MOST_RESULT, output_bytes=1 << 20)
# The driver compiles the PTX first, and reserves more addresses than there is memory.
ON_A_GPU = Limits(120, memory_bytes=None, file_bytes=MOST_RESULT, output_bytes=1 << 20)
TURNS = 20  # of a submission and its rival on a GPU
_UNWRITTEN = np.uint16(0xFFFF)  # an element of O as it is before the launch
DEVICE_MEMORY = 1 << 29  # bytes: WARPSIM_MAX_MEMORY


@dataclass(frozen=True)
class Sandbox:
    """How and where everything of unknown origin runs."""

    level: Level
    device: Device
    threads: int = 1  # of the simulator
    scratch: Path | None = None  # folders are made in it; a temporary place where there is none
    compiling: Limits | None = None  # None: COMPILING

    def folder(self, purpose: str) -> tempfile.TemporaryDirectory:
        # Another user reaches a folder of its own in a place that is everybody's, and none in scratch.
        place = self.scratch if self.level.moves else None
        return tempfile.TemporaryDirectory(prefix=f"{purpose}-", dir=place, ignore_cleanup_errors=True)


@dataclass(frozen=True)
class Built:
    """PTX with all instances of a stage's kernels, or why there is none."""

    ptx: bytes = field(repr=False)
    words: str  # "" or what is wrong
    lines: tuple[int, ...] = ()  # of kernel.cu, that the compiler objects to
    spent: bool = False  # the compiler's time was not enough

    @property
    def ok(self) -> bool:
        return not self.words

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.ptx).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """What came of one run: outputs as they lie in memory (bit patterns, float32), or a failure in words."""

    failure: str  # "", "hazard", "budget" or "error"
    words: str = ""
    output: np.ndarray | None = field(default=None, repr=False)
    log_sum_exp: np.ndarray | None = field(default=None, repr=False)
    report: dict | None = field(default=None, repr=False)  # the simulator's
    speed: float | None = None  # of a GPU's throughput: the submission's over the solution's in the same run

    @property
    def launches(self) -> list[dict]:
        return (self.report or {}).get("launches", [])

    @property
    def hazards(self) -> list[dict]:
        return [hazard for launch in self.launches for hazard in launch["hazards"]]

    @property
    def instructions(self) -> int:
        """Warp instructions of PTX; 0 where no launch came to its end."""
        return sum(launch["instructions"]["total"] for launch in self.launches)


def instances(stage: Kernel) -> list[tuple[str, str]]:
    """Every instance of the stage's kernels: (as C++ declares it, name and parameters; as PTX names it)."""
    found = {}
    for dtype in stage.dtypes:
        for d_head, causal in product(HEAD_DIMS, (False, True) if stage.data.get("masks") else (False,)):
            problem = Problem(Nq=WHOLE, d_head=d_head, dtype=dtype, causal=causal)
            for configuration in configurations(stage, problem):
                for launch in launches(stage, problem, configuration=configuration):
                    declared = f"{launch.instance(dtype, d_head)}({launch.parameters})"
                    found[declared] = launch.symbol(dtype, d_head)
    return list(found.items())


def _instances_source(wanted: list[tuple[str, str]]) -> str:
    """What is compiled: the kernel's text, and the instances that its launcher would ask for."""
    declared = [f"template __global__ void {name};" for name, _ in wanted if "<" in name]
    return "\n".join(['#include "kernel.cu"', *declared, ""])


def _flags(stage: WithKernel) -> tuple[list[str], list[Path]]:
    """nvcc and the options that the stage's own build compiles with, for PTX alone; and the folders of headers."""
    first, *words = stage_flags(stage)
    kept = [word for word in words if word.startswith(("-I", "-D", "-O", "-std=", "-lineinfo"))]
    arch = re.search(r"arch=(compute_\w+)", " ".join(words))[1]
    folders = [Path(word[2:]) for word in words if word.startswith("-I")]
    return [os.path.realpath(first), f"-arch={arch}", "-ptx", *kept], folders


def compile_kernel(
    stage: WithKernel, source: str, sandbox: Sandbox, wanted: Sequence[tuple[str, str]] | None = None
) -> Built:
    """Compiles a kernel.cu to PTX, isolated. What the compiler says is in words; nothing of the source is executed.
    wanted: the instances that are needed, as of instances(); None: all."""
    command, folders = _flags(stage)
    limits = sandbox.compiling or COMPILING
    if wanted and all("<__nv_bfloat16, 128" in name for name, _ in wanted):
        command.append("-DFLASH_ONLY_BF16_128")  # else the launcher asks for the others, too
    wanted = wanted or instances(stage)
    toolkit = Path(command[0]).parent.parent
    with sandbox.folder("compile") as name:
        folder = Path(name)
        (folder / "kernel.cu").write_text(source, errors="replace")
        (folder / "instances.cu").write_text(_instances_source(wanted))
        for header in headers(stage.folder):  # the table of a kernel with several instances
            shutil.copyfile(header, folder / header.name)
        box = Box(folder, (toolkit, ROOT / "common/include", *folders))
        done = isolation.run(sandbox.level, [*command, "-o", "kernel.ptx", "instances.cu"], box, limits)
        if done.ended in ("time", "processor") or _DIED_OF_TIME.search(done.output):
            return Built(b"", f"the compiler was not ready {_in_time(done.ended, limits)}, and was ended", spent=True)
        said = done.output.replace(f"{sandbox.level.folder(box)}/", "")
        if done.ended == "output":
            said = f"the compiler had too much to say, and was ended\n{said}"
        lines = tuple(dict.fromkeys(int(line) for line in re.findall(r"^kernel\.cu[(:](\d+)\S* ?error", said, re.M)))
        try:
            ptx = isolation.take(folder / "kernel.ptx", MOST_PTX)
        except FlashLadderError as error:
            too_large = "more than" in str(error)
            words = f"the kernel is too large: {error}" if too_large else _compiler_words(said, done.status)
            return Built(b"", words, lines)
        if done.status or done.ended:
            return Built(b"", _compiler_words(said, done.status), lines)
    text = ptx.decode(errors="replace")
    missing = [name.partition("(")[0] for name, symbol in wanted if not re.search(rf"\.entry\s+{symbol}\s*\(", text)]
    if missing:
        return Built(
            b"", f"after compiling, the kernel {missing[0]} is not there: is its name or its template changed?"
        )
    return Built(ptx, "")


# nvcc's words where a part of the compiler was ended by the limit of its processor time.
_DIED_OF_TIME = re.compile(r"died due to signal (?:24|9)\b")


def _in_time(ended: str, limits: Limits) -> str:
    if ended == "time":
        return f"within {limits.seconds:g} s"
    return f"within {limits.processor_seconds:g} s of processor time"


def _compiler_words(said: str, status: int) -> str:
    """The errors first: warnings and the compiler's own notes help nobody."""
    kept = "\n".join(said.strip().splitlines()[:40])[:3000]
    return kept or f"the compiler ended with status {status} and no words: it may have run out of memory"


def budget(problem: Problem) -> int:
    """Warp instructions that one launch may execute: about ten times what stage 01 needs."""
    products = 2 * problem.B * problem.Hq * problem.Nq * problem.Nkv * problem.d_head
    return 2_000_000 + 2 * products


@dataclass(frozen=True)
class Options:
    """How a kernel is launched."""

    configuration: str | None = None  # of the instance that runs, where the stage has several; None: stage.toml's
    order: int = 0  # WARPSIM_SCHEDULE, another order of warps and blocks
    accesses: int = 0  # WARPSIM_ACCESSES, for pictures of banks
    rival: Built | None = None  # on a GPU, what it is timed against, in turns
    traced: bool = False  # the report has what a trace shows (ladder/overlap.py)


def run(
    stage: Kernel, built: Built, problem: Problem, inputs: dict[str, np.ndarray], sandbox: Sandbox, **options
) -> Outcome:
    """Launches a built kernel for the problem in a process of its own, isolated; inputs: bit patterns, options: fields
    of Options."""
    how = Options(**options)
    where = cudart(sandbox.device).resolve()
    simulated = sandbox.device.kind == "sim"
    with sandbox.folder("run") as name:
        folder = Path(name)
        job = _job(stage, problem, where, how.configuration)
        job |= {"guarded": not simulated, "repeat": TURNS if how.rival else 0}
        (folder / "job.json").write_text(json.dumps(job))
        if how.rival:
            (folder / "solution.ptx").write_bytes(how.rival.ptx)
        for tensor in "QKV":
            memory = np.full(problem.bytes(tensor), device_worker.POISON, np.uint8)
            problem.view(tensor, memory)[...] = inputs[tensor]
            (folder / tensor).write_bytes(memory.tobytes())
        for tensor, scales in problem.scales(inputs).items():
            (folder / tensor).write_bytes(scales.tobytes())
        (folder / "kernel.ptx").write_bytes(built.ptx)
        readable = (*isolation.python_paths(sandbox.level.python[0]), PACKAGE, where.parent)
        devices = () if simulated else tuple(one for one in Path("/dev").glob("nvidia*") if not one.is_dir())
        readable += () if simulated else (Path("/sys"),)  # where the driver looks for its GPU
        box = Box(folder, readable, devices, processes=not simulated)
        limits = RUNNING if simulated else ON_A_GPU
        environment = {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        if simulated:
            environment |= {
                "WARPSIM_REPORT": "report.json",
                "WARPSIM_HAZARDS": "warn",  # the result is of interest, too
                "WARPSIM_THREADS": str(sandbox.threads),
                "WARPSIM_SCHEDULE": str(how.order),
                "WARPSIM_MAX_INSTRUCTIONS": str(budget(problem)),
                "WARPSIM_TIMEOUT_S": f"{limits.seconds - 5:.0f}",
                "WARPSIM_MAX_MEMORY": str(DEVICE_MEMORY),
            }
            environment |= stage.simulated
            environment |= {"WARPSIM_ACCESSES": str(how.accesses)} if how.accesses else {}
            environment |= overlap.variables(Path()) if how.traced else {}
        command = [*sandbox.level.python, "-m", device_worker.__name__]
        done = isolation.run(sandbox.level, command, box, limits, environment)
        return _outcome(folder, problem, done, limits)


def _job(stage: Kernel, problem: Problem, where: Path, configuration: str | None) -> dict:
    """What flashladder.classroom.device_worker is told."""
    sizes = {name: problem.bytes(name) for name in "QKVO"}
    scales = problem.scales({})
    sizes |= {name: array.nbytes for name, array in scales.items()}
    if stage.data.get("log_sum_exp"):
        sizes["log_sum_exp"] = 4 * problem.B * problem.Hq * problem.Nq
    if workspace_bytes(stage, problem):
        sizes["workspace"] = workspace_bytes(stage, problem)
    planned = [
        {
            "symbol": launch.symbol(problem.dtype, problem.d_head),
            "grid": launch.grid,
            "threads": launch.threads,
            "shared_bytes": launch.shared_bytes,
            "boxes": launch.boxes,
            "resident": launch.resident,
        }
        # The process knows how many multiprocessors there are.
        for launch in launches(stage, problem, MANY, configuration)
    ]
    return {
        "cudart": str(where),
        "params": bytes(problem.params({})).hex(),
        "bytes": sizes,
        "inputs": ["Q", "K", "V", *scales],
        "launches": planned,
    }


def _outcome(folder: Path, problem: Problem, done: isolation.Done, limits: Limits) -> Outcome:
    """What the process left, none of which is believed before it is looked at."""
    try:
        return _left(folder, problem, done, limits)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        return Outcome("error", f"what the kernel's process left cannot be read: {error!r}")


def _left(folder: Path, problem: Problem, done: isolation.Done, limits: Limits) -> Outcome:
    if done.ended:
        what = {
            "time": f"ran longer than {limits.seconds:g} s",
            "processor": f"took more than {limits.processor_seconds or 0:g} s of processor time",
            "output": f"printed more than {limits.output_bytes} bytes",
        }
        return Outcome("budget", f"the kernel {what[done.ended]}, and was ended")
    report = _json(folder / "report.json")
    trace = _json(folder / overlap.FILE) if report else None
    if trace is not None:
        report["overlap"] = overlap.of_trace(trace)
    hazards = _hazards(report) if report else []
    result = _json(folder / "result.json")
    if result is None:
        said = _steady(done.output.strip()[-500:])
        return Outcome(
            "budget", f"the kernel's process ended before its time (status {done.status}): {said}", report=report
        )
    if result["status"] != "ok":
        words = _hazard_words(done.output) or f"{result['message']}\n{_steady(done.output.strip()[-1000:])}".strip()
        spent = any(hazard["kind"] == "budget" for hazard in hazards)
        return Outcome("budget" if spent else "hazard" if hazards else "error", words, report=report)
    if result["changed_inputs"]:
        return Outcome("error", f"the kernel wrote to its input {result['changed_inputs'][0]}", report=report)
    if result["touched_guards"]:
        return Outcome("hazard", f"the kernel wrote outside of {result['touched_guards'][0]}", report=report)
    memory = _array(folder / "O", np.uint8, (problem.bytes("O"),))
    if memory is None:
        return Outcome("error", "the kernel's process left no output", report=report)
    output = problem.view("O", memory).copy()
    between = memory.copy()
    problem.view("O", between)[...] = _UNWRITTEN
    if (between != device_worker.POISON).any():
        return Outcome("error", "the kernel wrote between the rows of O, where no element of it lies", report=report)
    sums = _array(folder / "log_sum_exp", np.float32, (problem.B, problem.Hq, problem.Nq))
    if "seconds" in result and not result["same"]:
        return Outcome("error", "the kernel's output differs from run to run of the same problem")
    return Outcome("", "", output, sums, report, _speed(result))


def _steady(words: str) -> str:
    """Without what differs from run to run: addresses of this machine, and how long something took."""
    return re.sub(r"\b\d+(?:\.\d+)? ?(?:ms|s)\b", "some time", re.sub(r"0x[0-9a-f]{6,}", "an address", words))


def _speed(result: dict) -> float | None:
    """The solution's median time over the submission's, where both were timed."""
    if "seconds" not in result:
        return None
    submission, solution = (statistics.median(result["seconds"][name]) for name in ("submission", "solution"))
    return solution / submission


def _hazards(report: dict) -> list[dict]:
    """All hazards of a report, in which what is read of it later is there and of its type. Raises otherwise. Notes are
    among them: what ptxas would repair is a mistake, too (WARPSIM_HAZARDS=strict, and yet the run goes on)."""
    found = []
    for launch in report["launches"]:
        launch["hazards"] += launch.pop("notes", [])
        launch["instructions"]["total"] += 0
        for hazard in launch["hazards"]:
            hazard["line"] += 0
            for name in ("kind", "file", "message"):
                hazard[name] = _steady(str(hazard[name] or ""))
            calls = hazard.get("inlined", [])
            hazard["inlined"] = [{"file": str(call["file"]), "line": call["line"] + 0} for call in calls]
            found.append(hazard)
    return found


def _hazard_words(messages: str) -> str:
    """The first hazard as the simulator says it: kind and place, then what happened."""
    hazard = re.search(r"^warpsim: (.+)\n {4}(.+)\n?", messages, re.MULTILINE)
    return _steady(f"{hazard[1]}: {hazard[2]}") if hazard else ""


def _json(file: Path) -> dict | None:
    try:
        return json.loads(isolation.take(file, MOST_RESULT))
    except (FlashLadderError, ValueError):
        return None


def _array(file: Path, dtype, shape: tuple[int, ...]) -> np.ndarray | None:
    """The array that a file's bytes are, if they are as many as that."""
    try:
        content = isolation.take(file, MOST_RESULT)
    except FlashLadderError:
        return None
    wanted = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(content, dtype).reshape(shape) if len(content) == wanted else None
