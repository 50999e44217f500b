"""A changed stage's runs on a GPU, a few times or under a tool: those that judge it on the simulator, made as wide as
the GPU is (WithKernel.judged_jobs). Each stage's runs are one process, so that a tool starts once. Inputs and what is
right are made once for all changes of a stage (Problems)."""

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.device import Device, environment
from flashladder.core.environment import for_python
from flashladder.core.paths import build_directory
from flashladder.core.problem import Problem
from flashladder.core.signals import run_for
from flashladder.ladder.host_streams import WRONG_RESULT
from flashladder.ladder.kernels import WithKernel
from flashladder.ladder.stage import Stage
from flashladder.measuring import sanitizer
from flashladder.running.job import Result, answer

DIFFERENT = 7  # sequences of a wide problem
ROOM = 8 << 30  # bytes that shared memory has free where files for many runs at once go there


def roomy() -> str | None:
    """A folder in memory for inputs and outputs; None, which is the disk's, where there is little of it."""
    memory = Path("/dev/shm")
    return str(memory) if memory.exists() and shutil.disk_usage(memory).free > ROOM else None


class Problems:
    """A stage's problems, with their inputs in files and with what is right, which is computed where it is first asked
    for. Threads share them. A wide problem has a few different sequences, and what is right is soon computed. Each few
    come in an order of their own: whoever takes a sequence some others further on is wrong somewhere."""

    def __init__(self, stage: WithKernel, device: Device, folder: Path):
        self.stage, self.device, self.folder = stage, device, folder
        self.jobs = stage.judged_jobs(Path(), device)
        self.which = [_which(job.problem) for job in self.jobs]
        self.inputs = [_inputs(stage, job.problem, which) for job, which in zip(self.jobs, self.which, strict=True)]
        for at, (job, inputs) in enumerate(zip(self.jobs, self.inputs, strict=True)):
            (folder / f"{at}").mkdir(parents=True)
            job.write(folder / f"{at}", inputs)
        self.under_tool = stage.judged_jobs(Path(), device, wide=False)
        for at, job in enumerate(self.under_tool):
            (folder / f"{at}-under-tool").mkdir()
            job.write(folder / f"{at}-under-tool", stage.random_inputs(job.problem, 1))
        self._wanted: dict[tuple[int, int], object] = {}
        # What came of comparing numbers: the same ones of the same problem have the same verdict.
        self._known: dict[tuple, str] = {}
        self._computing = [threading.Lock() for _ in self.jobs]
        self.took: list[float] = []  # seconds for what is right of each sequence

    def compared(self, at: int, outputs: dict[str, np.ndarray], description: dict) -> str:
        """Of a run of a problem: "right", or "wrong" with words; sequence by sequence, up to the first that is."""
        for number, (problem, inputs, own) in enumerate(self._sequences(at, outputs)):
            same = self.which[at][number]
            key = at, same, hashlib.sha256(b"".join(one.tobytes() for one in own.values())).digest()
            with self._computing[at]:
                if key not in self._known:
                    result = Result(own, problem, self.device, description)
                    self._known[key] = self._verdict(at, same, problem, inputs, result)
            if self._known[key] != "right":
                return self._known[key]
        return "right"

    def _verdict(self, at: int, number: int, problem: Problem, inputs: dict[str, np.ndarray], result: Result) -> str:
        began, known = time.monotonic(), (at, number) in self._wanted
        if not known:
            self._wanted[at, number] = self.stage.wanted(problem, inputs)
        comparison = self.stage.compared_with(problem, self._wanted[at, number], result)
        if not known:
            self.took.append(time.monotonic() - began)
        return "right" if comparison else f"wrong: {comparison.message.splitlines()[0]}"

    def _sequences(self, at: int, outputs: dict[str, np.ndarray]) -> Iterator[tuple[Problem, dict, dict]]:
        """Of a batch each sequence as a problem of its own, with its inputs and outputs; a cache stays whole."""
        problem, inputs = self.jobs[at].problem, self.inputs[at]
        if isinstance(problem, DecodeProblem):
            yield problem, inputs, outputs
            return
        for b in range(problem.B):
            mine = ({name: array[b : b + 1] for name, array in some.items()} for some in (inputs, outputs))
            yield replace(problem, B=1), *mine


def repeats(problem: Problem) -> bool:
    """Whether its sequences are not all different; of a cache they are."""
    return not isinstance(problem, DecodeProblem) and problem.B > DIFFERENT


def _which(problem: Problem) -> list[int]:
    """Of each sequence which of the different ones it is."""
    if not repeats(problem):
        return list(range(problem.B))
    orders = np.random.default_rng(1)
    return [int(one) for _ in range(-(-problem.B // DIFFERENT)) for one in orders.permutation(DIFFERENT)][: problem.B]


def _inputs(stage: WithKernel, problem: Problem, which: list[int]) -> dict[str, np.ndarray]:
    if not repeats(problem):
        return stage.random_inputs(problem, 1)
    few = stage.random_inputs(replace(problem, B=DIFFERENT), 1)
    return {name: array[which] for name, array in few.items()}


class Kernels:
    """Of a stage's library."""

    def __init__(self, problems: Problems, library: Path, folder: Path, env: dict[str, str]):
        self.problems, self.library, self.folder = problems, library, folder
        self.env = for_python({**os.environ, "OPENBLAS_NUM_THREADS": "1", **env})  # a worker multiplies no matrices

    def _folders(self, place: Path, rounds: int, under_tool: bool) -> list[tuple[int, Path]]:
        """For each run the number of its problem and a folder of its own, with links to the problem's inputs."""
        made = []
        for at, job in enumerate(self.problems.under_tool if under_tool else self.problems.jobs):
            options = replace(job.options, under_tool=under_tool, sleeps=self.problems.device.kind == "gpu")
            told = replace(job, library=str(self.library), options=options)
            inputs = self.problems.folder / (f"{at}-under-tool" if under_tool else f"{at}")
            for number in range(rounds):
                folder = place / f"{at}-{number}"
                folder.mkdir()
                for file in inputs.glob("*.npy"):
                    (folder / file.name).symlink_to(file)
                told.write_alone(folder)
                made.append((at, folder))
        return made

    def plain(self, rounds: int, seconds: float, quiet: float) -> list[str]:
        """What came of each run, up to the first that did not end: "right", or "wrong", "error", "hang", "refused",
        with words behind a colon. It hangs where for `quiet` seconds no run has ended."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            runs = self._folders(Path(name), rounds, False)
            status, text = run_for(_worker(runs), seconds, self.env, _is_quiet(runs, quiet))
            outcomes, known = [], {}
            for at, folder in runs:
                told = answer(folder)
                if told is None:
                    outcomes.append("hang: never ended" if status == 124 else f"error: status {status}: {text[-120:]}")
                    break
                if told["status"] != "ok":
                    outcomes.append(f"{told['status']}: {told['message']}")
                    break
                files = tuple((folder / f"{one}.npy").resolve() for one in told["written"])
                if (at, files) not in known:  # runs with the same outputs have the same files
                    outputs = {
                        one: np.load(file, mmap_mode="r") for one, file in zip(told["written"], files, strict=True)
                    }
                    known[at, files] = self.problems.compared(at, outputs, told["description"])
                outcomes.append(known[at, files])
        return outcomes

    def under(self, command: list[str], seconds: float, quiet: float) -> tuple[int, str]:
        """(status, output) of one run of each problem under a command."""
        return together([self], command, seconds, quiet)[:2]


def _worker(runs: list[tuple[int, Path]]) -> list[str]:
    return [sys.executable, "-m", "flashladder.running.worker", *(str(folder) for _, folder in runs)]


def _is_quiet(runs: list[tuple[int, Path]], seconds: float) -> Callable[[str], bool]:
    """For run_for: whether for so many seconds none of the runs has come to its end."""
    ended, since = 0, time.monotonic()

    def asked(_: str) -> bool:
        nonlocal ended, since
        now = sum((folder / "result.json").exists() for _, folder in runs)
        if now > ended:
            ended, since = now, time.monotonic()
        return time.monotonic() > since + seconds

    return asked


def together(some: list[Kernels], command: list[str], seconds: float, quiet: float) -> tuple[int, str, list[bool]]:
    """(status, output, of which of them all runs came to their end) of one run of each problem of several libraries,
    one after the other in one process under a command."""
    with contextlib.ExitStack() as stack:
        places = [Path(stack.enter_context(tempfile.TemporaryDirectory(dir=one.folder))) for one in some]
        runs = [one._folders(place, 1, True) for one, place in zip(some, places, strict=True)]
        env = some[0].env | some[0].problems.stage.fewer
        is_quiet, has_said_enough = _is_quiet(sum(runs, []), quiet), sanitizer.enough()
        status, text = run_for(
            [*command, *_worker(sum(runs, []))], seconds, env, lambda text: is_quiet(text) or has_said_enough(text)
        )
        answers = [[answer(folder) for _, folder in own] for own in runs]
        return status, text, [all(told and told["status"] == "ok" for told in own) for own in answers]


class Program:
    """Of stage 00."""

    def __init__(self, executable: Path, device: Device, env: dict[str, str]):
        variants = {"variant": "async,streams,engines", "chunks": "4", "streams": "1,2", "batch": "4", "heads": "1"}
        self.command = [str(executable), *(word for key, value in variants.items() for word in (f"--{key}", value))]
        self.env = environment(device) | {"FLASHLADDER_STAGE_LIBRARIES": str(build_directory() / "lib")} | env

    def plain(self, rounds: int, seconds: float, quiet: float) -> list[str]:
        outcomes = []
        for _ in range(rounds):
            status, text = run_for(self.command, min(seconds, quiet), self.env)
            wrong = next((line.strip() for line in text.splitlines() if "WRONG" in line), "")
            known = {0: "right", WRONG_RESULT: f"wrong: {wrong}", 124: "hang: never ended"}
            outcomes.append(known.get(status, f"error: status {status}: {text.strip()[-120:]}"))
            if status not in (0, WRONG_RESULT):
                break
        return outcomes

    def under(self, command: list[str], seconds: float, quiet: float) -> tuple[int, str]:
        """It is slower than a library's small problems, and has three times as long."""
        return run_for([*command, *self.command], min(seconds, 3 * quiet), self.env, sanitizer.enough())


@contextlib.contextmanager
def executed(
    stage: Stage, product: Path, device: Device, problems: Problems | None = None, gpu: str = ""
) -> Iterator[Kernels | Program]:
    """problems: the stage's, where it has several changes. gpu: as CUDA_VISIBLE_DEVICES calls it; "": any."""
    env = {"CUDA_VISIBLE_DEVICES": gpu} if gpu else {}
    with tempfile.TemporaryDirectory(prefix="flashladder-planted-", dir=roomy()) as name:
        if isinstance(stage, WithKernel):
            folder = Path(name) / "runs"
            folder.mkdir()
            yield Kernels(problems or Problems(stage, device, Path(name) / "problems"), product, folder, env)
        else:
            yield Program(product, device, env)
