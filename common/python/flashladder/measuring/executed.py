"""A changed stage's runs on a GPU, a few times or under a tool: those that judge it on the simulator, made as wide as
the GPU is (WithKernel.judged_jobs). Each stage's runs are one process, so that a tool starts once."""

import contextlib
import hashlib
import sys
import tempfile
from collections.abc import Iterator
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
from flashladder.running.job import Result, answer

Known = dict[tuple, str]  # what came of comparing numbers: the same ones of the same problem have the same verdict


class Kernels:
    """Of a stage's library."""

    def __init__(self, stage: WithKernel, library: Path, device: Device, folder: Path, known: Known):
        self.stage, self.device, self.folder, self.known = stage, device, folder, known
        self.jobs = stage.judged_jobs(library, device)
        self.inputs = [stage.random_inputs(job.problem, 1) for job in self.jobs]
        for at, (job, inputs) in enumerate(zip(self.jobs, self.inputs, strict=True)):
            (folder / f"{at}").mkdir()
            job.write(folder / f"{at}", inputs)

    def _folders(self, purpose: str, rounds: int) -> list[tuple[int, Path]]:
        """For each run the number of its problem and a folder of its own, with links to what the problem's has."""
        made = []
        for at in range(len(self.jobs)):
            for number in range(rounds):
                folder = self.folder / f"{purpose}-{at}-{number}"
                folder.mkdir()
                for file in (self.folder / f"{at}").iterdir():
                    (folder / file.name).symlink_to(file)
                made.append((at, folder))
        return made

    def plain(self, rounds: int, seconds: float) -> list[str]:
        """What came of each run, up to the first that did not end: "right", or "wrong", "error", "hang", "refused",
        with words behind a colon."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            runs = self._folders(f"{Path(name).name}/run", rounds)
            status, text = run_for(_worker(runs), seconds, for_python())
            outcomes = []
            for at, folder in runs:
                told = answer(folder)
                if told is None:
                    outcomes.append("hang: never ended" if status == 124 else f"error: status {status}: {text[-120:]}")
                    break
                if told["status"] != "ok":
                    outcomes.append(f"{told['status']}: {told['message']}")
                    break
                outputs = {one: np.load(folder / f"{one}.npy") for one in told["written"]}
                outcomes.append(self._compared(at, outputs, told["description"]))
        return outcomes

    def _compared(self, at: int, outputs: dict[str, np.ndarray], description: dict) -> str:
        """Sequence by sequence, up to the first that is wrong."""
        for number, (problem, inputs, own) in enumerate(self._sequences(at, outputs)):
            digest = hashlib.sha256(b"".join(one.tobytes() for one in own.values())).digest()
            key = self.stage.name, at, number, digest
            if key not in self.known:
                comparison = self.stage.compared(problem, inputs, Result(own, problem, self.device, description))
                self.known[key] = "right" if comparison else f"wrong: {comparison.message.splitlines()[0]}"
            if self.known[key] != "right":
                return self.known[key]
        return "right"

    def _sequences(self, at: int, outputs: dict[str, np.ndarray]) -> Iterator[tuple[Problem, dict, dict]]:
        """Of a batch each sequence as a problem of its own, with its inputs and outputs; a cache stays whole."""
        problem, inputs = self.jobs[at].problem, self.inputs[at]
        if isinstance(problem, DecodeProblem):
            yield problem, inputs, outputs
            return
        for b in range(problem.B):
            mine = ({name: array[b : b + 1] for name, array in some.items()} for some in (inputs, outputs))
            yield replace(problem, B=1), *mine

    def under(self, command: list[str], seconds: float) -> tuple[int, str]:
        """(status, output) of one run of each problem under a command."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            return run_for([*command, *_worker(self._folders(f"{Path(name).name}/run", 1))], seconds, for_python())


def _worker(runs: list[tuple[int, Path]]) -> list[str]:
    return [sys.executable, "-m", "flashladder.running.worker", *(str(folder) for _, folder in runs)]


class Program:
    """Of stage 00."""

    def __init__(self, executable: Path, device: Device):
        variants = {"variant": "async,streams,engines", "chunks": "4", "streams": "1,2", "batch": "4", "heads": "1"}
        self.command = [str(executable), *(word for key, value in variants.items() for word in (f"--{key}", value))]
        self.env = environment(device) | {"FLASHLADDER_STAGE_LIBRARIES": str(build_directory() / "lib")}

    def plain(self, rounds: int, seconds: float) -> list[str]:
        outcomes = []
        for _ in range(rounds):
            status, text = run_for(self.command, seconds, self.env)
            wrong = next((line.strip() for line in text.splitlines() if "WRONG" in line), "")
            known = {0: "right", WRONG_RESULT: f"wrong: {wrong}", 124: "hang: never ended"}
            outcomes.append(known.get(status, f"error: status {status}: {text.strip()[-120:]}"))
            if status not in (0, WRONG_RESULT):
                break
        return outcomes

    def under(self, command: list[str], seconds: float) -> tuple[int, str]:
        return run_for([*command, *self.command], seconds, self.env)


@contextlib.contextmanager
def executed(stage: Stage, product: Path, device: Device, known: Known | None = None) -> Iterator[Kernels | Program]:
    """known: what other runs of the stage, changed or not, have found out, and these will."""
    with tempfile.TemporaryDirectory(prefix="flashladder-planted-") as folder:
        if isinstance(stage, WithKernel):
            yield Kernels(stage, product, device, Path(folder), {} if known is None else known)
        else:
            yield Program(product, device)
