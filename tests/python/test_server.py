"""Workers that are forked: each a process of its own, with what it is given and nothing of another one's."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hostcc import HERE, compile_cpp

from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.running import server
from flashladder.running.job import Job, answer


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compile_cpp(HERE / "fake/probe.cpp", tmp_path_factory.mktemp("probe") / "libprobe.so", "-shared", "-fPIC")


@pytest.fixture
def probe(fake, library, tmp_path):
    """probe(said, timeout) -> (exit status, process, folder, what it was told, the worker's answer)."""

    numbers = itertools.count()

    def run(said=None, timeout=None, **variables):
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        Job(str(fake.cudart), str(library), Problem(), describe_only=True).write(folder)
        environment = for_python() | variables | ({"WARPSIM_PROBE": said} if said else {})
        done = server.run_worker(folder, environment, timeout)
        return done.returncode, *done.stdout.split("|"), answer(folder)

    return run


@pytest.fixture(autouse=True)
def no_servers():
    server._end_all()


def gone(process: int) -> bool:
    """True as soon as it has ended, also if nobody has asked yet how; it may take a moment."""
    status = Path(f"/proc/{process}/stat")
    for _ in range(100):
        if not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.1)
    return False


def idle() -> int:
    """The one server's process."""
    (one,) = server._idle
    return one.process.pid


def test_each_run_has_a_process_and_variables_of_its_own(probe, monkeypatch, tmp_path):
    status, first, folder, said, told = probe("one")
    assert (status, folder, said, told["status"]) == (0, os.getcwd(), "one", "ok")
    served = idle()
    monkeypatch.chdir(tmp_path)
    status, second, folder, said, _ = probe()
    assert (status, folder, said) == (0, str(tmp_path), "nothing"), "what the first was told is gone"
    assert first != second and idle() == served, "two workers, one server"
    assert gone(int(first)) and gone(int(second))


def test_a_worker_that_crashes_takes_nobody_with_it(probe):
    probe()
    served = idle()
    status, *_, told = probe("abort")
    assert status == -signal.SIGABRT and told is None
    assert probe("behind it")[0] == 0 and idle() == served


@pytest.mark.long
def test_a_worker_that_hangs_is_killed_in_time(probe, tmp_path):
    probe("one")  # so that the time is the worker's, and not the start of the server
    with pytest.raises(subprocess.TimeoutExpired):
        probe("hang", 3)
    assert not server._idle
    assert gone(int((tmp_path / "1" / "stdout").read_text().split("|")[0]))
    assert probe("behind it")[0] == 0


def test_a_server_that_has_gone_is_replaced(probe):
    probe()
    os.kill(idle(), signal.SIGKILL)
    server._idle[0].process.wait()
    assert probe("again")[0] == 0


def test_a_server_that_ends_under_a_worker_is_an_error(probe):
    probe()
    threading.Timer(1, os.kill, (idle(), signal.SIGKILL)).start()
    with pytest.raises(FlashLadderError, match="has ended"):
        probe("hang", 60)
    assert probe("behind it")[0] == 0


def test_another_environment_has_another_server(probe):
    probe()
    served = idle()
    assert probe(PYTEST_CURRENT_TEST="another one")[0] == 0 and idle() == served
    assert probe(LD_LIBRARY_PATH="/nowhere")[0] == 0 and idle() != served and gone(served)


def test_runs_side_by_side_have_a_server_each(probe):
    found = []
    threads = [threading.Thread(target=lambda: found.append(probe("together")[0])) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [0, 0, 0] and 1 <= len(server._idle) <= 3


def test_servers_end_with_whoever_started_them(tmp_path):
    program = """
import os, sys
from pathlib import Path
from flashladder.running import server
from flashladder.core.environment import for_python
server.run_worker(Path(sys.argv[1]), for_python())
print(server._idle[0].process.pid, flush=True)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), 9)
"""
    for how in ("ended", "killed"):
        done = subprocess.run([sys.executable, "-c", program, tmp_path, how], env=for_python(), capture_output=True)
        assert gone(int(done.stdout)), f"whoever started the server has {how}"


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this Python has no os.pidfd_open()")
def test_a_worker_ends_with_whoever_asked_for_it(fake, library, tmp_path):
    """Also if that process is killed and can do nothing more: a simulated run may take hours."""
    program = """
import os, sys, threading, time
from pathlib import Path
from flashladder.running import server
from flashladder.core.environment import for_python
folder = Path(sys.argv[1])
def end():
    while "|" not in (said := (folder / "stdout").read_text() if (folder / "stdout").exists() else ""):
        time.sleep(0.1)
    print(said.split("|")[0], flush=True)
    os.kill(os.getpid(), 9)
threading.Thread(target=end).start()
server.run_worker(folder, for_python() | {"WARPSIM_PROBE": "hang"})
"""
    Job(str(fake.cudart), str(library), Problem(), describe_only=True).write(tmp_path)
    # The server has the program's stderr: a pipe would be open as long as the server is there.
    with (tmp_path / "said").open("w") as said:
        done = subprocess.run(
            [sys.executable, "-c", program, tmp_path], env=for_python(), stdout=subprocess.PIPE, stderr=said
        )
    worker = int(done.stdout)
    ended = gone(worker)
    if not ended:
        os.kill(worker, signal.SIGKILL)
    assert ended, "who asked for the worker was killed, and the worker went on"
    assert done.returncode == -signal.SIGKILL and not (tmp_path / "said").read_text()
