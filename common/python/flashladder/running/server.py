"""Runs workers without starting Python anew for each: a server has imported all that they need, and forks.

To start Python and import NumPy takes a tenth of a second of a core, which is more than most simulated runs of a test's
size. On a GPU it is nothing beside the start of the CUDA runtime, and nobody needs this.
"""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

from flashladder.core.errors import FlashLadderError

# What a run may have of its own; pytest sets a variable anew for each test. All else, such as where libraries are
# looked for, a process has to have from its first instruction on: servers are started with it.
_OF_A_RUN = ("WARPSIM_", "FLASHLADDER_", "PYTEST_")


class Server:
    """A process that forks a worker for each request, one at a time."""

    def __init__(self, environment: dict[str, str]):
        self.environment = environment
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flashladder.running.worker", "--serve"],
            env=environment | {"OPENBLAS_NUM_THREADS": "1"},  # workers multiply nothing
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for this process, which then ends the server and what it has forked
        )

    def run(self, folder: Path, environment: dict[str, str], timeout: float | None) -> int:
        """The exit status of a worker with these variables besides the server's; behind so many seconds
        subprocess.TimeoutExpired. Whatever it raises, the server is of no more use."""
        request = {"folder": str(folder), "cwd": os.getcwd(), "environment": environment}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(f"the worker of {folder}", timeout)
        answer = self.process.stdout.readline()
        if not answer:
            status = self.process.wait()
            raise FlashLadderError(
                f"The process that starts simulated runs has ended (status {status}), maybe for want of memory: "
                "run this again."
            )
        return int(answer)

    def end(self, at_once: bool = False) -> None:
        """Without at_once it has no worker under way."""
        if at_once and self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


_idle: list[Server] = []  # of this process: one for each run that has been under way at a time
_lock = threading.Lock()


def _forget() -> None:
    """In a fork of this process: the servers are its parent's."""
    global _lock
    _idle.clear()
    _lock = threading.Lock()


def _end_all() -> None:
    while _idle:
        _idle.pop().end()


os.register_at_fork(after_in_child=_forget)
atexit.register(_end_all)


def run_worker(folder: Path, environment: dict[str, str], timeout: float | None = None) -> subprocess.CompletedProcess:
    """What subprocess.run() of `python -m flashladder.running.worker FOLDER` in this environment returns, or raises:
    its exit status and what it has printed."""
    own = {name: value for name, value in environment.items() if name.startswith(_OF_A_RUN)}
    common = {name: value for name, value in environment.items() if name not in own}
    with _lock:
        if _idle and (_idle[-1].environment != common or _idle[-1].process.poll() is not None):
            _end_all()
        server = _idle.pop() if _idle else Server(common)
    try:
        status = server.run(folder, own, timeout)
    except BaseException:
        server.end(at_once=True)
        raise
    with _lock:
        _idle.append(server)
    printed = ((folder / name).read_text(errors="replace") for name in ("stdout", "stderr"))
    return subprocess.CompletedProcess(["worker", str(folder)], status, *printed)
