"""What a command does when it is told to end: it ends what it has started first. And a command that gets only so many
seconds."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from flashladder.core.paths import ROOT

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def kill_group(process: subprocess.Popen) -> None:
    """Ends a process that leads a session of its own, and what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run_for(
    command: list[str], seconds: float, env: dict | None = None, enough: Callable[[str], bool] | None = None
) -> tuple[int, str]:
    """(status, output) of a command; after `seconds` it and what it started are ended, with status 124.

    enough: of what it has printed so far, asked once a second: where it says so, the command is ended likewise."""
    ends = time.monotonic() + seconds
    with tempfile.TemporaryFile() as output:
        running = subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )

        def text() -> str:  # the command writes where this file's offset is, so it must stay
            return os.pread(output.fileno(), os.fstat(output.fileno()).st_size, 0).decode(errors="replace")

        try:
            status = None
            while status is None:
                left = ends - time.monotonic()
                try:
                    status = running.wait(timeout=min(left, 1) if enough else left)
                except subprocess.TimeoutExpired:
                    if time.monotonic() >= ends or enough and enough(text()):
                        status = 124
        finally:  # also where this command is interrupted
            if running.poll() is None:
                kill_group(running)
                running.wait()
        return status, text()


class Stopped(BaseException):
    """One of ENDING has come. No Exception: on its way out nothing takes it for a failure that can be borne."""

    def __init__(self, number: int):
        super().__init__(number)
        self.signal = signal.Signals(number)

    @property
    def status(self) -> int:
        """What a command ends with that a signal has ended, as shells tell of it."""
        return 128 + self.signal


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Within it the first of these signals raises Stopped in the main thread, and more of them wait for the end of
    it: who has begun to end what he has started is not to be kept from it."""

    def stop(number: int, _) -> None:
        for one in ENDING:
            signal.signal(one, signal.SIG_IGN)
        raise Stopped(number)

    before = {one: signal.signal(one, stop) for one in ENDING}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
