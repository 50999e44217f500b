"""A class is graded: each once, killed and resumed, over processes and over Dask's workers, with the same files."""

import csv
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from flashladder.classroom import assignment, batch, pool, submissions
from flashladder.classroom.task import grader_hash, task_of
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError

TEXTS = {"ada": "correct 1", "ben": "correct 0\nwrong", "cho": "correct 0.5\nsays <b>half</b>", "dan": "correct 1"}


@pytest.fixture
def handed_in(tmp_path):
    """handed_in(texts) -> a folder with a submission for each of these kernels."""

    def make(texts: dict[str, str], name: str = "submissions") -> Path:
        for student, text in texts.items():
            folder = tmp_path / name / student
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "05_swizzle.cu").write_text(text)
        return tmp_path / name

    return make


def files(out: Path) -> dict[str, bytes]:
    """All that people and programs read."""
    found = {str(file.relative_to(out)): file.read_bytes() for file in sorted(out.rglob("*")) if file.is_file()}
    return {name: data for name, data in found.items() if not name.startswith("results/")}


def points(out: Path) -> dict[str, str]:
    return {row["id"]: row["points"] for row in csv.DictReader((out / "class.csv").open())}


def test_a_class_gets_its_points_and_reports(small, fake_grader, handed_in, tmp_path):
    folder = handed_in(TEXTS)
    (folder / "eve").mkdir()
    summary = batch.grade_class(small, folder, tmp_path / "out", pool.local(2), fake_grader)
    assert points(tmp_path / "out") == {"ada": "100", "ben": "0", "cho": "50", "dan": "100", "eve": "0"}
    assert (summary.submissions, summary.graded, summary.known) == (5, 3, 0), "ada's and dan's are the same"
    assert summary.refused == ["eve: it holds no 05_swizzle.cu"]
    students = tmp_path / "out/students"
    assert {file.name for file in (students / "ben").iterdir()} == {
        "report.md", "report.html", "results.json", "05-errors.png"}  # fmt: skip
    assert json.loads((students / "cho/results.json").read_text())["score"] == 50
    assert (tmp_path / "out/histogram.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_the_same_class_gives_the_same_files(small, fake_grader, handed_in, tmp_path):
    folder = handed_in({name: TEXTS[name] for name in ("ben", "cho")})
    for out, jobs in (("one", 1), ("two", 3)):
        batch.grade_class(small, folder, tmp_path / out, pool.local(jobs), fake_grader)
    assert files(tmp_path / "one") == files(tmp_path / "two")


@pytest.mark.long
def test_what_was_graded_is_not_graded_again(small, fake_grader, handed_in, tmp_path):
    folder, out = handed_in({name: TEXTS[name] for name in ("ada", "cho")}), tmp_path / "out"
    batch.grade_class(small, folder, out, pool.local(2), fake_grader)
    before = files(out)
    again = batch.grade_class(small, folder, out, pool.local(2), fake_grader)
    assert (again.graded, again.known) == (0, 2) and files(out) == before
    handed_in({"ada": "correct 0.25", "fay": "correct 1"})
    changed = batch.grade_class(small, folder, out, pool.local(2), fake_grader)
    assert (changed.graded, changed.known) == (1, 2), "fay's is ada's former one"
    assert points(out)["ada"] == "25"
    result = next((out / "results").glob("*.json"))
    result.write_text(result.read_text()[:-20])
    assert batch.grade_class(small, folder, out, pool.local(2), fake_grader).graded == 1, (
        "a damaged result is no result"
    )


def test_another_assignment_or_grader_grades_anew(small, fake_grader, monkeypatch, handed_in):
    folder = handed_in({"ada": "correct 1"})
    submission = submissions.read_one(folder / "ada", "ada", ["05_swizzle.cu"])
    key = task_of(submission, small, fake_grader).key
    later = assignment.parse("small", small.source.replace("seeds = [2]", "seeds = [3]"))
    assert task_of(submission, later, fake_grader).key != key
    assert task_of(submission, small, "flashladder.classroom.exercise").key != key
    assert task_of(submission, small, fake_grader).key == key


def test_what_decides_points_is_in_the_graders_hash(small):
    """Each of these files changed is another grader. The files are not touched: what is hashed is asked for."""
    from flashladder.classroom import task

    hashed = {str(file.relative_to(task.ROOT)) for file in task.deciding_files((5,), "flashladder.classroom.exercise")}
    for name in ("common/simulator/instructions/mma/mma.cpp", "common/include/ptx.cuh", "common/host/launch.cpp",
                 "stages/05_swizzle/kernel.cu", "stages/05_swizzle/stage.toml", "stages/05_swizzle/exercises.toml",
                 "common/python/flashladder/classroom/exercise.py", "common/python/flashladder/classroom/assignment.py",
                 "common/python/flashladder/classroom/device_worker.py",
                 "common/python/flashladder/running/verify.py"):  # fmt: skip
        assert name in hashed, name
    assert not [name for name in hashed if "/plot/" in name or "/lessons/" in name], "pictures decide no points"


@pytest.mark.long
def test_a_process_that_dies_is_tried_again_and_told(small, fake_grader, handed_in, tmp_path):
    folder, out = handed_in({"ada": "correct 1\ndie 2"}), tmp_path / "out"
    summary = batch.grade_class(small, folder, out, pool.local(1), fake_grader)
    assert points(out) == {"ada": "100"}
    assert summary.retried == ["ada: its process was killed (SIGKILL)"] * 2


@pytest.mark.long
def test_what_cannot_be_graded_gets_no_points_and_is_tried_by_the_next_run(small, fake_grader, handed_in, tmp_path):
    folder, out = handed_in({"ada": "correct 1\ndie 4", "ben": "correct 1"}), tmp_path / "out"
    summary = batch.grade_class(small, folder, out, pool.local(2), fake_grader)
    assert summary.ungraded == ["ada: its process was killed (SIGKILL)"]
    assert points(out) == {"ada": "", "ben": "100"}, "no points are not 0 points"
    assert "NOT GRADED" in (out / "class.csv").read_text()
    assert "the grader's fault" in (out / "students/ada/report.md").read_text()
    summary = batch.grade_class(small, folder, out, pool.local(2), fake_grader)
    assert points(out) == {"ada": "100", "ben": "100"} and (summary.graded, summary.known) == (1, 1)


def test_few_submissions_are_in_memory_at_once(small, fake_grader, handed_in, tmp_path, monkeypatch):
    folder = handed_in({f"s{number:02d}": f"correct 1 // {number}" for number in range(12)})
    held, most, original = [], [], submissions.read_one

    def read(*arguments):
        held.append(1)
        most.append(len(held))
        return original(*arguments)

    def attempt(task):
        time.sleep(0.01)
        held.pop()
        nothing = {"name": small.items[0].name, "points": 0, "most": 100, "checks": []}
        grade = {"stage": 5, "refused": "", "exercises": [nothing], "first_wrong": "", "hazards": [], "technique": []}
        result = {"key": task.key, "grades": [grade | {"isolation": ""}], "pictures": {}}
        return pool.Outcome(task, result)

    monkeypatch.setattr(submissions, "read_one", read)
    monkeypatch.setattr(pool, "attempt", attempt)
    batch.grade_class(small, folder, tmp_path / "out", pool.local(2), fake_grader)
    assert len(most) == 12 and max(most) <= 4, most


def start(small, folder: Path, out: Path, module: str, jobs: int = 1) -> subprocess.Popen:
    """The same as grade_class() in a process that can be killed."""
    program = (
        "import sys; from pathlib import Path; from flashladder.classroom import assignment, batch, pool\n"
        "one = assignment.parse('small', Path(sys.argv[1]).read_text())\n"
        "batch.grade_class(one, Path(sys.argv[2]), Path(sys.argv[3]), pool.local(int(sys.argv[4])), sys.argv[5])"
    )
    file = out.with_suffix(".toml")
    file.write_text(small.source)
    return subprocess.Popen([sys.executable, "-c", program, file, folder, out, str(jobs), module], env=for_python())


@pytest.mark.long
def test_killed_and_resumed_it_loses_nothing(small, fake_grader, handed_in, tmp_path):
    texts = {f"s{number}": f"correct {number / 10}\nsleep 0.3" for number in range(4)}
    folder, out = handed_in(texts), tmp_path / "out"
    running = start(small, folder, out, fake_grader)
    deadline = time.monotonic() + 60
    while len(list((out / "results").glob("*.json"))) < 2:
        assert running.poll() is None and time.monotonic() < deadline, "nothing was graded"
        time.sleep(0.05)
    running.kill()
    running.wait()
    there = len(list((out / "results").glob("*.json")))
    summary = batch.grade_class(small, folder, out, pool.local(2), fake_grader)
    assert summary.known == there and summary.graded == 4 - there and 0 < there < 4
    assert points(out) == {f"s{number}": str(10 * number) for number in range(4)}


def test_a_worker_with_another_grader_refuses(small, fake_grader, handed_in, tmp_path):
    folder = handed_in({"ada": "correct 1"})
    submission = submissions.read_one(folder / "ada", "ada", ["05_swizzle.cu"])
    task = task_of(submission, small, fake_grader)
    other = type(task)(**{**vars(task), "grader": "0" * 64})
    outcome = pool.attempt(other)
    assert "another version of the grader" in outcome.failed and not outcome.retried, "it would say so again"


@pytest.mark.long
def test_dask_gives_the_same_files_though_a_worker_is_killed(small, fake_grader, handed_in, tmp_path):
    pytest.importorskip("cryptography", reason="cryptography is not installed (extra: classroom)")
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed (extra: classroom)")
    texts = {f"s{number}": f"correct {number / 10}\nsleep 0.3" for number in range(5)}
    folder = handed_in(texts)
    batch.grade_class(small, folder, tmp_path / "plain", pool.local(2), fake_grader)
    security = pool.security(pool.make_certificates(tmp_path / "certificates"))
    with (
        pool._local_cluster(2, security) as cluster,
        distributed.Client(cluster, set_as_default=False, security=security) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))

        def kill_while_it_works():
            while len(list((tmp_path / "dask/results").glob("*.json"))) < 2:
                time.sleep(0.02)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill_while_it_works, daemon=True)
        killer.start()
        summary = batch.grade_class(small, folder, tmp_path / "dask", pool.over(client), fake_grader)
        killer.join(10)
    assert not summary.ungraded and summary.graded == 5
    assert any("the worker that graded it was lost" in line for line in summary.retried), summary.retried
    assert files(tmp_path / "dask") == files(tmp_path / "plain")


def test_without_dask_the_scheduler_option_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(FlashLadderError, match=r"pip install 'flashladder\[classroom\]'"), pool.connect("local"):
        pass


def test_an_unknown_scheduler_is_refused():
    pytest.importorskip("distributed", reason="dask.distributed is not installed (extra: classroom)")
    with pytest.raises(FlashLadderError, match="choose local, slurm, pbs, or an address"), pool.connect("cloud"):
        pass


def test_no_scheduler_is_spoken_to_without_the_classs_certificates(tmp_path):
    """An open port of Dask's runs whatever anybody sends."""
    pytest.importorskip("cryptography", reason="cryptography is not installed (extra: classroom)")
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed (extra: classroom)")
    with pytest.raises(FlashLadderError, match="tls:// is the only way"), pool.connect("tcp://head:8786"):
        pass
    for scheduler in ("tls://head:8786", "slurm"):
        with pytest.raises(FlashLadderError, match="needs --certificates"), pool.connect(scheduler):
            pass
        with pytest.raises(FlashLadderError, match="does not exist"), pool.connect(scheduler, None, tmp_path):
            pass
    folder = pool.make_certificates(tmp_path / "of my class")
    key = shlex.split(pool.options_of_dask(folder))[-1]
    assert key == str(folder / "class.key"), "a path with spaces is one word of the command that is printed"
    assert {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()} == {
        "class.pem": 0o600, "class.key": 0o600}  # fmt: skip
    with pytest.raises(FlashLadderError, match="the class has its certificates"):
        pool.make_certificates(folder)
    (folder / "class.key").chmod(0o644)
    with pytest.raises(FlashLadderError, match="can be read by others"):
        pool.security(folder)
    (folder / "class.key").chmod(0o600)
    assert pool.security(folder).require_encryption and distributed.Security


@pytest.mark.long
def test_a_stranger_is_not_answered(tmp_path):
    """Neither in plain words nor with a certificate of his own."""
    pytest.importorskip("cryptography", reason="cryptography is not installed (extra: classroom)")
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed (extra: classroom)")
    own = pool.security(pool.make_certificates(tmp_path / "own"))
    strange = pool.security(pool.make_certificates(tmp_path / "strange"))
    with pool._local_cluster(1, own) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        assert all(worker.worker_address.startswith("tls://") for worker in cluster.workers.values())
        with distributed.Client(cluster, set_as_default=False, security=own) as client:
            assert client.submit(sum, (1, 2)).result(30) == 3
        for said, security in ((address, strange), (address.replace("tls://", "tcp://"), None)):
            with pytest.raises(OSError):
                distributed.Client(said, set_as_default=False, security=security, timeout="3s")


@pytest.mark.parametrize("kind, submits", [("slurm", "#SBATCH"), ("pbs", "#PBS")])
def test_a_job_script_is_made_of_dasks_configuration(kind, submits, tmp_path):
    pytest.importorskip("cryptography", reason="cryptography is not installed (extra: classroom)")
    dask = pytest.importorskip("dask", reason="dask is not installed (extra: classroom)")
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed (extra: classroom)")
    settings = {"cores": 2, "memory": "4GB", "walltime": "00:30:00", "queue": "teaching", "interface": "lo"}
    with dask.config.set({f"jobqueue.{kind}.{name}": value for name, value in settings.items()}):
        security = pool.security(pool.make_certificates(tmp_path / "certificates"))
        with pool.cluster(kind, security=security) as cluster:
            script = cluster.job_script()
            assert cluster.scheduler_address.startswith("tls://")
    assert f"--tls-ca-file {tmp_path}/certificates/class.pem" in script and "--tls-key" in script
    assert submits in script and "teaching" in script and "distributed.cli.dask_worker" in script
    assert sys.executable in script, "the workers need this very interpreter, which has the package"


def test_a_cluster_without_configuration_says_where_it_belongs():
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed (extra: classroom)")
    with pytest.raises(FlashLadderError, match="jobqueue.yaml"):
        pool.cluster("slurm")


def test_the_graders_hash_is_the_same_twice(small, fake_grader):
    assert grader_hash(small, fake_grader) == grader_hash(small, fake_grader)
