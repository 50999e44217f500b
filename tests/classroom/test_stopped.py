"""`make grade` ended by a signal ends its workers and what they started, and leaves no folder of theirs behind."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from graded import assignment_text

from flashladder.classroom import exercise
from flashladder.core.environment import for_python
from flashladder.core.paths import ROOT

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A grader that starts a program by the isolation, as the real one does, and waits for it.
GRADER = """
import sys
from pathlib import Path
from flashladder.classroom import isolation

def grade(assignment, kernel, scratch, isolated):
    level = isolation.choose(isolated)
    folder = scratch / "run"
    folder.mkdir()
    script = "echo > started; setsid sleep 987 & exec sleep 986"
    isolation.run(level, ["/bin/sh", "-c", script], isolation.Box(folder), isolation.Limits(seconds=100))
    raise SystemExit("it came to an end")
"""
PROGRAM = """
import sys
from pathlib import Path
from flashladder.classroom import batch, pool
from flashladder.commands import classroom
original = batch.grade_class
batch.grade_class = lambda *words, **more: original(*words, module="waiting_grader", **more)
classroom.build.build = lambda *_: None
told = classroom.Grading(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], 2)
sys.exit(classroom.grade(told))
"""


def commands() -> list[str]:
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout.splitlines()


def wait_for(what, seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.1)
    return False


@pytest.fixture
def grading(level, tmp_path):
    """grading(scheduler) -> a command that grades two submissions, both of which are running."""
    (tmp_path / "waiting_grader.py").write_text(GRADER)
    name = exercise.exercises(5)[0].name
    (tmp_path / "small.toml").write_text(assignment_text(f'stage = 5\nname = "{name}"\npoints = 100'))
    for student in ("ada", "ben", "cho"):
        (tmp_path / "handed-in" / student).mkdir(parents=True)
        (tmp_path / "handed-in" / student / "05_swizzle.cu").write_text(f"// {student}")
    (tmp_path / "temporary").mkdir()
    started = []

    def start(scheduler: str = "") -> subprocess.Popen:
        env = for_python() | {"TMPDIR": str(tmp_path / "temporary"), "FLASHLADDER_JOBS": "2"}
        env["PYTHONPATH"] += os.pathsep + str(tmp_path)
        places = [tmp_path / "small.toml", tmp_path / "handed-in", tmp_path / "out"]
        command = [sys.executable, "-c", PROGRAM, *map(str, places), scheduler]
        running = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True)
        started.append(running)
        assert wait_for(lambda: sum(line == "sleep 986" for line in commands()) == 2), "nothing was started"
        return running

    yield start
    for one in started:
        if one.poll() is None:
            one.kill()
        one.wait()


def ends(running: subprocess.Popen, number: int, tmp_path: Path) -> None:
    family = psutil.Process(running.pid).children(recursive=True)
    assert len(family) >= 4, "workers, and what they run"
    running.send_signal(number)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 128 + number and f"Stopped by {signal.Signals(number).name}" in said, said
    assert "Traceback" not in said, said
    assert wait_for(lambda: not any(one.is_running() for one in family), 20), [one.cmdline() for one in family]
    assert not [line for line in commands() if line in ("sleep 986", "sleep 987")]
    assert not list((tmp_path / "temporary").glob("flashladder-*")), "folders of the workers"


@pytest.mark.parametrize(
    "number",
    [SIGNALS[0], *(pytest.param(one, marks=pytest.mark.long) for one in SIGNALS[1:])],
    ids=lambda number: number.name,
)
def test_a_signal_ends_the_workers_and_what_they_started(grading, number, tmp_path):
    ends(grading(), number, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_impatience_changes_nothing(grading, number, tmp_path):
    """Many signals, as of somebody who keeps the keys down."""
    running = grading()
    for _ in range(5):
        running.send_signal(number)
    ends_anyway = wait_for(lambda: running.poll() is not None, 60)
    assert ends_anyway and running.returncode == 128 + number
    assert wait_for(lambda: not [line for line in commands() if line in ("sleep 986", "sleep 987")], 20)


@pytest.mark.long
def test_a_signal_ends_what_the_workers_of_dask_have_begun(grading, tmp_path):
    pytest.importorskip("cryptography", reason="cryptography is not installed (extra: classroom)")
    pytest.importorskip("distributed", reason="dask.distributed is not installed (extra: classroom)")
    running = grading("local")
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 128 + signal.SIGTERM, said
    assert wait_for(lambda: not [line for line in commands() if line in ("sleep 986", "sleep 987")], 20)


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_make_hands_on_what_the_terminal_sends(grading, tmp_path):
    """The recipe of `make grade` is one command: the group that a terminal signals is make and that command."""
    recipe = (ROOT / "Makefile").read_text().split("\ngrade:")[1].split("\n\n")[0]
    commands_of_it = [line for line in recipe.splitlines() if "$(flashladder)" in line]
    assert len(commands_of_it) == 1 and not set(";&|") & set(commands_of_it[0])
