"""One submission to grade, in a process of its own: what the process is told, by files in a folder, and what it leaves.

python -m flashladder.classroom.task FOLDER
"""

import base64
import ctypes
import dataclasses
import hashlib
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from flashladder.building import build
from flashladder.classroom import assignment as assignments
from flashladder.classroom.assignment import Assignment
from flashladder.classroom.closure import closure
from flashladder.classroom.submissions import Submission
from flashladder.core.device import choose
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, write
from flashladder.ladder import stages

GRADER = "flashladder.classroom.grading"  # grade(assignment, kernel, scratch)
SECONDS = 1800.0  # for one submission: the grader's own budgets end sooner
STOPPING = 10.0  # seconds that a process has to end what it has started
STOPPED = 4  # the process's status where a signal ended it, and it has ended what it had started
REFUSED = 3  # the process's status where the grader cannot grade this at all, and says why
# Modules that the grader starts as programs: no import tells of them.
_PROGRAMS = ("flashladder.classroom.device_worker", "flashladder.running.worker")
_SOURCES = ("*.py", "*.cpp", "*.h", "*.cu", "*.cuh", "*.map", "*.cmake", "CMakeLists.txt")


class TaskFailed(Exception):
    """The process that graded ended without a result. That says nothing about the submission. again: a second attempt
    may end otherwise."""

    def __init__(self, words: str, again: bool = True):
        super().__init__(words)
        self.again = again


@dataclass(frozen=True)
class Task:
    name: str  # of the assignment
    source: str = field(repr=False)  # its file's text
    kernels: dict[str, bytes] = field(repr=False)
    key: str
    grader: str  # hash of the grader that is meant: a worker with another one refuses
    module: str
    isolated: str = "auto"  # a name of isolation.NAMES; points do not depend on it


def grader_hash(assignment: Assignment, module: str = GRADER) -> str:
    """sha256 of all that decides points besides the submission: the grader with what it imports, the simulator, the
    harness, the stages' solutions, exercises and expectations, nvcc, and where kernels run."""
    return _grader_hash(assignment.stages, module)


@cache
def _grader_hash(numbers: tuple[int, ...], module: str) -> str:
    digest = hashlib.sha256()
    for file in deciding_files(numbers, module):
        name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name
        digest.update(f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    digest.update(f"{build.info()['nvcc_version']} {choose().short}".encode())
    return digest.hexdigest()


def deciding_files(numbers: tuple[int, ...], module: str) -> list[Path]:
    """The files that decide points of these stages."""
    files = {*closure(module, "flashladder.classroom.assignment", *_PROGRAMS).values(), Path(__file__)}
    files.add(Path(importlib.util.find_spec(module).origin))  # where the grader is not of this package
    for folder in ("common/include", "common/host", "common/simulator", "common/cmake"):
        files |= {file for pattern in _SOURCES for file in (ROOT / folder).rglob(pattern)}
    for number in numbers:
        of_the_stage = stages.get(number).folder.rglob("*")
        files |= {file for file in of_the_stage if file.suffix in (".cu", ".h", ".toml")}
    return sorted(files)


def task_of(submission: Submission, assignment: Assignment, module: str = GRADER, isolated: str = "auto") -> Task:
    grader = grader_hash(assignment, module)
    key = hashlib.sha256(f"{submission.digest()} {assignment.name} {assignment.digest} {grader}".encode()).hexdigest()
    return Task(assignment.name, assignment.source, submission.kernels, key, grader, module, isolated)


class _Running:
    """The processes that grade now, so that they can be ended with the command that started them."""

    def __init__(self):
        self._lock = threading.Lock()
        self._processes: dict[subprocess.Popen, str] = {}  # and the key of what each grades
        self._stopped = False

    def start(self, command: list[str], key: str) -> subprocess.Popen:
        """In a session of its own: a signal from the terminal goes to the command alone, which ends this one."""
        pipe = subprocess.PIPE
        options = {"env": for_python(), "stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe}
        with self._lock:
            if self._stopped:
                raise TaskFailed("grading was stopped", again=False)
            process = subprocess.Popen(command, **options, text=True, errors="replace", start_new_session=True)
            self._processes[process] = key
            return process

    def ended(self, process: subprocess.Popen) -> None:
        with self._lock:
            self._processes.pop(process, None)

    def stop(self, keys: Collection[str] | None = None) -> None:
        """Ends what runs of these keys; without keys all, and what would be started later. Each process ends what it
        has started itself; one that does not within STOPPING seconds is killed, and what it has started with it
        (PR_SET_PDEATHSIG)."""
        with self._lock:
            self._stopped = self._stopped or keys is None
            processes = [one for one, key in self._processes.items() if keys is None or key in keys]
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + STOPPING
        for process in processes:
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            if process.poll() is None:
                process.kill()

    def resume(self) -> None:
        """For another run in the same process."""
        with self._lock:
            self._stopped = False


running = _Running()


def running_stop(keys: Collection[str]) -> None:
    """Ends what this process (a worker of Dask's) grades of these keys."""
    running.stop(keys)


def run(task: Task, seconds: float = SECONDS) -> dict:
    """Grades in a process of its own, whose memory and leftovers end with it. TaskFailed says how it ended else."""
    with tempfile.TemporaryDirectory(prefix="flashladder-grade-") as name:
        folder = Path(name)
        (folder / "assignment.toml").write_text(task.source)
        told = {name: getattr(task, name) for name in ("name", "key", "grader", "module", "isolated")}
        (folder / "task.json").write_text(json.dumps(told))
        for file, data in task.kernels.items():
            (folder / file).write_bytes(data)
        command = [sys.executable, "-m", "flashladder.classroom.task", name]
        process = running.start(command, task.key)
        try:
            _, said_at_last = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            process.terminate()
            raise TaskFailed(f"it did not end within {seconds:g} s") from error
        finally:
            _end(process)
            running.ended(process)
        file = folder / "result.json"
        if file.exists():
            return json.loads(file.read_text())
        if process.returncode == STOPPED:
            raise TaskFailed("grading was stopped", again=False)
        if process.returncode < 0:
            raise TaskFailed(f"its process was killed ({signal.Signals(-process.returncode).name})")
        said = said_at_last.strip().splitlines() or ["nothing was said"]
        if process.returncode == REFUSED:
            raise TaskFailed(" ".join(said)[:1000], again=False)
        raise TaskFailed(f"its process ended with status {process.returncode}: {said[-1][:300]}")


def _end(process: subprocess.Popen) -> None:
    """Where it has not ended by itself: first in words, then by force."""
    try:
        process.wait(STOPPING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdout, process.stderr):
        pipe.close()


def grade(folder: Path) -> dict:
    """What the process does: each stage's kernel is given to the grader."""
    told = json.loads((folder / "task.json").read_text())
    assignment = assignments.parse(told["name"], (folder / "assignment.toml").read_text())
    if grader_hash(assignment, told["module"]) != told["grader"]:
        raise FlashLadderError("this worker has another version of the grader, or runs kernels elsewhere: update it")
    grader = importlib.import_module(told["module"])
    grades, drawn = [], {}
    for number in assignment.stages:
        kernel = folder / assignments.file_name(number)
        part = assignment.of_stage(number)
        if not kernel.exists():
            grades.append(_not_handed_in(part, number))
            continue
        scratch = folder / f"scratch-{number:02d}"
        scratch.mkdir()
        grades.append(dataclasses.asdict(grader.grade(part, kernel, scratch, isolated=told["isolated"])))
        drawn |= {f"{number:02d}-{name}": data for name, data in _draw(scratch).items()}
    pictures = {name: base64.b64encode(data).decode() for name, data in drawn.items()}
    return {"version": 1, "key": told["key"], "grades": grades, "pictures": pictures}


def _draw(scratch: Path) -> dict[str, bytes]:
    if not any((scratch / name).exists() for name in ("wrong.npz", "accesses.json")):
        return {}
    from flashladder.classroom.pictures import draw  # Matplotlib takes longer to load than many a kernel to grade

    return draw(scratch)


def _not_handed_in(part: Assignment, number: int) -> dict:
    words = f"{assignments.file_name(number)} was not handed in"
    nothing = [{"name": item.name, "points": 0, "most": item.points, "checks": []} for item in part.items]
    empty = {"isolation": "", "budgets": {}, "hashes": {}, "first_wrong": "", "hazards": [], "technique": []}
    return {"stage": number, "refused": words, "exercises": nothing} | empty


def _end_with_parent() -> None:
    """Whoever started this process may be killed: nobody would wait for it then."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


class _Stop(BaseException):
    """A signal has come; on its way out whatever runs is ended, and folders are removed."""


def _stop(*_) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Stop


def main() -> int:
    _end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    folder = Path(sys.argv[1])
    try:
        result = grade(folder)
    except _Stop:
        return STOPPED
    except FlashLadderError as error:
        print(error, file=sys.stderr)
        return REFUSED
    write(folder / "result.json", json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
