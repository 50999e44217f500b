"""What a failed run says first: of a hazard its kind, place and words; without one CUDA's error."""

import re
import time

import pytest

from flashladder.core import console, environment
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.running import job
from flashladder.running.job import hazard_first

ERROR = "stage 02, bf16 B=1 H=1 N=64 d=64: cudaDeviceSynchronize: unspecified launch failure (cudaError 719)"
RACE = """warpsim: shared-memory race at kernel.cu:89
    read at kernel.cu:89 of what thread 1 wrote at kernel.cu:25: a __syncthreads() is missing
    89 | q[r] = to_float2(Q_rows + k);
warpsim: flash_kernel<<<(1, 1, 1), (256, 1, 1), 58368>>> failed with cudaErrorLaunchFailure"""


def test_a_hazard_comes_first_and_once():
    said = hazard_first(ERROR, f"something printed before\n{RACE}")
    assert said.splitlines() == [
        "shared-memory race at kernel.cu:89: "
        "read at kernel.cu:89 of what thread 1 wrote at kernel.cu:25: a __syncthreads() is missing",
        "something printed before",
        "    89 | q[r] = to_float2(Q_rows + k);",
        "warpsim: flash_kernel<<<(1, 1, 1), (256, 1, 1), 58368>>> failed with cudaErrorLaunchFailure",
        ERROR,
    ], f"not in the order hazard, others, CUDA's error:\n{said}"


def test_without_a_hazard_the_error_comes_first():
    assert hazard_first(ERROR, "printed") == f"{ERROR}\nprinted"
    assert hazard_first(ERROR, "") == ERROR


def test_what_a_program_is_started_with_keeps_what_the_user_has_set(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/mine")
    assert environment.for_python()["PYTHONPATH"].split(":") == [str(environment.PACKAGE), "/mine"]
    assert environment.prepended({"LIBRARY_PATH": ""}, LIBRARY_PATH="/x") == {"LIBRARY_PATH": "/x"}


def test_a_worker_reads_the_job_that_was_written(tmp_path):
    problem = Problem(Nq=8, d_head=64, layout="bnhd", causal=True)
    written = job.Job(
        "libcudart.so.13", "libstage_05.so", problem, options=job.Options(repeat=3, configuration="as it is")
    )
    command = written.write(tmp_path, problem.random())
    assert command[-1] == str(tmp_path) and {file.stem for file in tmp_path.glob("*.npy")} == {"Q", "K", "V"}
    assert job.Job.read(tmp_path) == written
    with pytest.raises(FlashLadderError, match="K has shape"):
        written.write(tmp_path, {"K": problem.random()["K"][:, :1]})
    assert job.answer(tmp_path) is None


def test_a_table_in_a_file_keeps_its_cells_as_they_are(capsys):
    long = "x" * 300
    console.table("[bold] title", ("name", "[n]"), [("[red]one", 1), (long, 1234567), (None, ":smile:")], right=(1,))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["", "[bold] title"], "the title, as it is, behind an empty line"
    head, _, one, whole, none = lines[2:]
    assert head.split() == ["name", "[n]"] and one.split() == ["[red]one", "1"], "no cell is markup"
    assert whole.split() == [long, "1234567"], "no line is folded where there is no terminal"
    assert none.split() == [":smile:"] and all(len(line) == len(whole) for line in (head, one, none)), "right-aligned"


@pytest.mark.parametrize("width", (200, 70, 40))
def test_a_table_on_a_narrow_terminal_folds_no_word(capsys, monkeypatch, width):
    """A heading stands in several lines, and a text that has no room beside its row stands below it."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(console.sys.stdout, "isatty", lambda: True, raising=False)
    words = "one kernel with every technique as a flag, chosen by shape"
    rows = [("12_autotune", "verified", 1234567, words), ("13_masking", "WRONG", 7, "")]
    console.table("title", ("stage", "result", "bank conflicts", "what"), rows, right=(2,))
    lines = re.sub(r"\033\[[0-9;]*m", "", capsys.readouterr().out).splitlines()[2:]
    assert all(len(line) <= width for line in lines)
    assert " ".join(word for line in lines for word in line.split() if word in words.split()) == words
    assert any(line.split()[:3] == ["12_autotune", "verified", "1234567"] for line in lines)
    assert any(line.split() == ["13_masking", "WRONG", "7"] for line in lines)
    assert ("bank conflicts" in "".join(lines)) == (width == 200)


def test_a_missing_package_is_named_with_the_command_that_installs_it(flashladder, tmp_path):
    (tmp_path / "rich.py").write_text("raise ModuleNotFoundError('no rich', name='rich')")
    done = flashladder("stages", PYTHONPATH=f"{environment.PACKAGE}:{tmp_path}")
    assert done.returncode == 1 and done.stderr.startswith("error: ") and "-m pip install rich" in done.stderr


def test_a_long_simulated_run_says_what_its_time_depends_on(capfd):
    said = ""
    with console.simulating(0):
        for _ in range(100):
            said += capfd.readouterr().err
            if said.endswith("\n"):
                break
            time.sleep(0.05)
    assert "on the simulator the time grows" in said
    with console.simulating(3600):
        pass
    assert not capfd.readouterr().err
