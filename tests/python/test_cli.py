"""Commands and make targets: what they print, and what they say when something is wrong or missing."""

import errno
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hostcc import ROOT

from flashladder.building import build, toolchain
from flashladder.commands import cli, other_parts
from flashladder.commands import stage as stage_command
from flashladder.core import environment
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages

NUMBERS = [stage.id for stage in stages.all_stages()]
needs_stages = pytest.mark.skipif(len(NUMBERS) < 2, reason="fewer than two stages in this tree")


def test_make_alone_lists_the_commands(make):
    done = make()
    assert done.returncode == 0
    for command in ("make demo", "make test", "make fuzz", "make stage-02 diff", "make bench", "FLASHLADDER_DEVICE"):
        assert command in done.stdout


def test_make_lists_what_a_reader_writes_himself(make):
    printed = make().stdout
    for command in (
        "make next",
        "make puzzle-05",
        "make new STAGE=06",
        "make check STAGE=06",
        "make exercise-05 check",
    ):
        assert command in printed


@pytest.mark.parametrize("command", ("new", "check"))
def test_make_asks_for_the_stage_of_a_kernel(make, command):
    done = make(command)
    assert done.returncode != 0 and f"error: which stage? `make {command} STAGE=06`" in done.stderr


def test_make_new_and_puzzle_name_what_is_wrong(make):
    assert "There is no stage '77'" in make("new", "STAGE=77").stderr
    assert "'fly': make puzzle-05 can list, start" in make("puzzle-05", "fly").stderr


def test_make_unknown_command(make):
    done = make("tset")
    assert done.returncode != 0 and "no command 'tset'" in done.stderr


def test_make_unknown_stage(make):
    done = make("stage-77", "test")
    assert done.returncode != 0 and "There is no stage '77'" in done.stderr
    assert "passed" not in done.stdout  # no tests were run instead


def test_make_unknown_verb(make):
    done = make(f"stage-{NUMBERS[0]}", "fly")
    assert done.returncode != 0
    assert f"'fly': stage {NUMBERS[0]} can build, run, " in done.stderr


def test_a_stage_without_a_name_is_none(make):
    assert "There is no stage ''" in make("stage-").stderr


@pytest.mark.parametrize("words", (("diff",), ("profile",), ()), ids=("diff", "profile", "none"))
def test_arguments_that_no_verb_takes_are_refused(make, words):
    """A run that had them would say that it is right, of another problem."""
    number = NUMBERS[-1]
    done = make(f"stage-{number}", *words, "ARGS=--seq 512")
    assert done.returncode != 0
    assert f"'--seq 512': {words[0] if words else 'build'} of stage {number} takes no ARGS." in done.stderr
    assert (f"flashladder profile {number} --help" in done.stderr) == ("profile" in words)


@pytest.mark.parametrize("wrong", ("0", "-1", "1e3", "many", "2147483648"))
def test_a_size_is_a_number_above_0(wrong, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", NUMBERS[-1], "--seq", wrong])
    assert ended.value.code == 2
    assert f"--seq: {wrong}: expected a whole number from 1 to 2147483647" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_whole_is_not_there(tmp_path):
    """A page of it would else be taken for what the reader began."""
    page = tmp_path / "page.cu"
    command = [sys.executable, "-m", "flashladder", "new", "swizzle", "--kernel", str(page)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment.for_python(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)),
    )
    assert done.returncode == 1 and not page.exists()
    assert (
        done.stderr == "error: File too large. Raise the limit on the size of files (ulimit -f) and run this again.\n"
    )


@pytest.mark.parametrize(
    "error, words",
    [
        (
            OSError(errno.EROFS, os.strerror(errno.EROFS), "/media/cd/work"),
            "/media/cd/work: Read-only file system. Clone",
        ),
        (
            NotADirectoryError(errno.ENOTDIR, "Not a directory", "/etc/passwd/x"),
            "/etc/passwd/x: Not a directory. Name a",
        ),
        (MemoryError(), "too little memory"),
    ],
)
def test_what_the_machine_lacks_is_told_in_words(monkeypatch, capsys, error, words):
    def refuse(which):
        raise error

    monkeypatch.setattr("flashladder.ladder.diff.show", refuse)
    assert cli.main(["diff", NUMBERS[-1]]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "status, said, words",
    [
        (255, "nvcc error   : 'cicc' died due to signal 9 (Kill signal)", "signal 9. Most often memory runs out"),
        (-2, "", "signal 2. Please run this again"),
    ],
)
def test_a_compiler_that_was_ended_from_outside_judges_nothing(status, said, words):
    with pytest.raises(FlashLadderError, match=words):
        toolchain.refuse_ended(subprocess.CompletedProcess([], status, "", said))


@pytest.mark.parametrize("said", ["nvcc error   : 'cicc' died due to signal 11", 'kernel.cu(3): error: expected a ";"'])
def test_a_compiler_that_ended_by_itself_has_judged(said):
    assert toolchain.refuse_ended(subprocess.CompletedProcess([], 1, "", said)) is None


@pytest.mark.parametrize("wrong", ("0", "-2", "many"))
def test_a_number_of_jobs_is_above_0(monkeypatch, wrong):
    monkeypatch.setenv("FLASHLADDER_JOBS", wrong)
    with pytest.raises(FlashLadderError, match=f"FLASHLADDER_JOBS={wrong}: a whole number above 0"):
        build.jobs()


def test_two_builds_in_a_folder_come_one_after_the_other(monkeypatch, tmp_path):
    monkeypatch.setenv("FLASHLADDER_BUILD", str(tmp_path))
    with open(tmp_path / build.LOCK, "w") as other:
        with build._alone(), pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        told = []

        def ends_once_it_is_told(text):
            told.append(text)
            fcntl.flock(other, fcntl.LOCK_UN)

        monkeypatch.setattr(build, "say", ends_once_it_is_told)
        with build._alone():
            assert len(told) == 1 and "Another command is building here" in told[0]
            with pytest.raises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_make_lists_every_command():
    (targets,) = re.findall(r"^\.PHONY: help (.*\\\n.*)", (ROOT / "Makefile").read_text(), re.M)
    told = subprocess.run(["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True).stdout
    assert set(targets.replace("\\", "").split()) <= set(re.findall(r"(?:make|\|) ([\w-]+)", told))


def test_an_nvcc_that_is_named_and_not_there_is_told(monkeypatch):
    monkeypatch.setenv("CUDACXX", "/no/such/nvcc")
    with pytest.raises(FlashLadderError, match="CUDACXX=/no/such/nvcc: no such program"):
        toolchain.find_nvcc()


@pytest.mark.long
def test_a_build_goes_over_to_another_nvcc(monkeypatch, tmp_path, capsys):
    """To one that CUDACXX names, and to the one that is left where the build's own has gone. CMake itself stays with
    the first, which then fails."""
    usual, mine = build.info()["nvcc"], tmp_path / "bin/nvcc"
    mine.parent.mkdir()
    mine.write_text(f'#!/bin/sh\nexec "{usual}" "$@"\n')
    mine.chmod(0o755)
    monkeypatch.setenv("FLASHLADDER_BUILD", str(tmp_path / "build"))
    monkeypatch.setenv("CUDACXX", usual)
    build.configure(["-DCMAKE_BUILD_TYPE=Debug"])
    assert build.info()["nvcc"] == usual
    monkeypatch.setenv("CUDACXX", str(mine))
    build.configure()
    assert build.info()["nvcc"] == str(mine) and build.info()["build_type"] == "Debug"
    assert f"Configured anew: {mine} in place of {usual}." in capsys.readouterr().out
    build.configure()
    monkeypatch.delenv("CUDACXX")
    build.configure()
    assert capsys.readouterr().out == "", "it serves"
    mine.write_text("#!/bin/sh\necho Cuda compilation tools, release 12.4, V12.4.131\n")
    monkeypatch.setenv("CUDACXX", str(mine))
    build.configure()
    assert f"CUDACXX={mine} is no nvcc of CUDA 13 or newer: {usual} is taken." in capsys.readouterr().out
    monkeypatch.delenv("CUDACXX")
    (tmp_path / "build/build-info.json").write_text(json.dumps(build.info() | {"nvcc": str(mine)}))
    mine.unlink()
    build.configure()
    assert build.info()["nvcc"] == str(toolchain.require_nvcc()) != str(mine)


def test_a_type_that_a_stage_does_not_take_is_refused(capsys):
    """It would run another one and say that it is verified."""
    for command in ("run", "profile", "timeline"):
        assert cli.main([command, "online_softmax", "--dtype", "e4m3"]) == 1
        assert "--dtype e4m3: stage 02 takes fp16 and bf16." in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["tune", "--lengths", "1024,0"])
    assert "'1024,0' is no list of numbers" in capsys.readouterr().err


def test_settings_of_bench_that_mean_nothing_are_refused(capsys):
    """Also where nothing is timed: a typing error would only be seen on the machine with the GPU."""
    for option, value in (("--heads", "0"), ("--tokens", "-1"), ("--seconds", "0"), ("--seconds", "nan")):
        with pytest.raises(SystemExit):
            cli.main(["bench", option, value])
        assert f"argument {option}: {value}: expected a " in capsys.readouterr().err
    for option, value in (("--dtypes", "bf16,fp8"), ("--masks", "causal,none")):
        with pytest.raises(FlashLadderError, match=f"{option} {value.split(',')[1]}: choose of "):
            cli.settings_of(cli.make_parser().parse_args(["bench", option, value]))


def test_all_stages_are_listed(capsys):
    assert cli.main(["stages"]) == 0
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines() if re.match(r"\d\d ", line)]
    assert rows == [stage.id for stage in stages.all_parts()]


def test_a_seed_below_0_is_refused_in_words(capsys):
    for call in (
        lambda: cli.main(["run", "05", "--seed", "-1"]),
        lambda: other_parts.run_gradients(stages.entry("backward_naive"), ["--seed", "-1"]),
    ):
        with pytest.raises(SystemExit):
            call()
        assert "argument --seed: -1: expected a whole number from 0 to" in capsys.readouterr().err


def test_lengths_of_a_decode_problem(capsys):
    stage = stages.entry("decode_naive")
    with pytest.raises(SystemExit):
        other_parts.run_decode(stage, ["--lengths", "abc"])
    assert "'abc' is no list of lengths" in capsys.readouterr().err
    with pytest.raises(FlashLadderError, match="lengths 3,700: for each sequence .2. one is wanted, from 0 to 600"):
        other_parts.run_decode(stage, ["--batch", "2", "--lengths", "3,700"])


def test_a_reader_that_has_seen_enough_is_no_error():
    command = [sys.executable, "-m", "flashladder", "stages"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, env=environment.for_python()) as started:
        started.stdout.close()
        assert started.stderr.read() == "" and started.wait() == 128 + signal.SIGPIPE


def test_what_is_timed_together_is_of_one_kind():
    decode = stages.entry("lean")
    assert other_parts.others_of(decode, ["52", "short_ends"]) == [stages.entry(52), stages.entry(53)]
    with pytest.raises(FlashLadderError, match="Stage 02 is none of those that can be timed beside stage 54"):
        other_parts.others_of(decode, ["02"])


def test_make_autograder_asks_for_both(make):
    for words in ((), ("ASSIGNMENT=swizzle",)):
        done = make("autograder", *words)
        assert done.returncode != 0 and "Name both: `make autograder ASSIGNMENT=swizzle FOR=" in done.stderr


def test_names_with_blanks_reach_a_command_whole(make, tmp_path):
    nothing = tmp_path / "no such folder"
    done = make("grade", "ASSIGNMENT=swizzle", f"SUBMISSIONS={nothing}")
    assert done.returncode != 0 and f"{nothing} is no folder" in done.stderr
    done = make("grade", "ASSIGNMENT=swizzle", f"SUBMISSIONS={nothing}", "ARGS=--jobs 0")
    assert done.returncode and "argument --jobs: 0: expected a whole number from 1" in done.stderr
    done = make("grade", "ASSIGNMENT=swizzle", "SUBMISSIONS=~/no such class", HOME=str(tmp_path))
    assert f"{tmp_path}/no such class is no folder" in done.stderr
    assert "a b.zip does not exist" in make("check-report", f"FILE={tmp_path}/a b.zip").stderr


@needs_stages
def test_a_stages_tests_have_what_they_compare_it_with():
    """Of a build in which nothing else is there: the stage, its runner and the stage before, of which its technique is
    not expected; 12 as whose flags it computes what those stages do."""
    for stage in stages.all_stages():
        targets, before = stage_command.verbs_of(stage)["test"].needs(stage), stages.previous_of(stage)
        assert set(stage.targets) <= set(targets) and (not before or f"stage_{before.id}" in targets)
    assert {"stage_04", "stage_07", "stage_11"} <= set(
        stage_command.verbs_of(stages.get(12))["test"].needs(stages.get(12))
    )


@needs_stages
def test_make_stage_diff(make):
    done = make("stage-02", "diff")
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("--- 01_naive/kernel.cu") < done.stdout.index("+++ 02_online_softmax/kernel.cu")
    assert "lines changed" in done.stdout


@needs_stages
def test_make_reads_utf8_where_the_terminal_does_not(make):
    """As in a language whose encoding is not UTF-8; kernels have letters that ASCII has not."""
    done = make("stage-02", "diff", LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr


def test_make_missing_interpreter(make):
    done = make("demo", python="no-such-python")
    assert done.returncode != 0 and "PYTHON=no-such-python: no such program" in done.stderr


def test_bad_device(flashladder):
    done = flashladder("device", FLASHLADDER_DEVICE="tpu")
    assert done.returncode == 1
    assert "FLASHLADDER_DEVICE=tpu: choose one of auto, gpu, sim" in done.stderr
    assert "Traceback" not in done.stderr


def test_gpu_asked_for_where_there_is_none(flashladder, tmp_path):
    done = flashladder("device", FLASHLADDER_DEVICE="gpu", PATH=str(tmp_path))
    assert done.returncode == 1 and "no NVIDIA GPU" in done.stderr and "FLASHLADDER_DEVICE=sim" in done.stderr


def test_simulator_is_named_as_the_device(flashladder):
    done = flashladder("device", FLASHLADDER_DEVICE="sim")
    assert done.returncode == 0 and "simulator" in done.stdout


def test_gpu_report_unknown_part(flashladder):
    done = flashladder("gpu-report", "--parts", "fly")
    assert done.returncode == 1 and "PARTS: 'fly' is none of verify, sanitize, bench, " in done.stderr


def test_sim_of_a_missing_program(flashladder):
    done = flashladder("sim", "--", "./no-such-program")
    assert done.returncode == 1
    assert "no such program" in done.stderr or "run `make build`" in done.stderr


def test_missing_build_is_told(flashladder, tmp_path):
    first = NUMBERS[0] if NUMBERS else "01"
    done = flashladder("run", first, FLASHLADDER_BUILD=str(tmp_path / "nothing"), FLASHLADDER_DEVICE="sim")
    assert done.returncode == 1
    assert "does not exist: run `make" in done.stderr or "no stage" in done.stderr


def test_no_host_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(FlashLadderError, match="sudo apt install g\\+\\+"):
        toolchain.require_host_compiler()


def test_old_host_compiler(monkeypatch, tmp_path):
    old = tmp_path / "old-g++"
    old.write_text("#!/bin/sh\necho 'unrecognized option -std=c++20' >&2; exit 1\n")
    old.chmod(0o755)
    monkeypatch.setenv("CXX", str(old))
    with pytest.raises(FlashLadderError, match="does not compile C\\+\\+20"):
        toolchain.require_host_compiler()


def test_no_nvcc(monkeypatch, tmp_path):
    monkeypatch.setattr(toolchain, "_nvcc_candidates", lambda: [tmp_path / "nvcc"])
    with pytest.raises(FlashLadderError, match="cuda-toolkit"):
        toolchain.require_nvcc()


def test_old_nvcc_is_passed_over(monkeypatch, tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    for program, release in ((old, "12.4"), (new, "13.0")):
        program.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V1'\n")
        program.chmod(0o755)
    monkeypatch.setattr(toolchain, "_nvcc_candidates", lambda: [old, new])
    assert toolchain.find_nvcc() == new


def test_failed_build_shows_the_compilers_message(monkeypatch, tmp_path):
    monkeypatch.setenv("FLASHLADDER_BUILD", str(tmp_path))
    with pytest.raises(FlashLadderError, match="(?s)kernel.cu\\(3\\): error.*"):
        build._fail("The build", "[1/2] Building\nFAILED: x.o\nkernel.cu(3): error: expected a ;\nninja: stopped")
    with pytest.raises(FlashLadderError, match="disk is full"):
        build._fail("The build", "write error: No space left on device")


class TestBootstrap:
    """The set-up, run as make runs it, in a copy so that this clone's .venv is left alone."""

    @pytest.fixture
    def bootstrap(self, tmp_path):
        package = tmp_path / "common/python/flashladder"
        shutil.copytree(ROOT / "common/python/flashladder", package, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", tmp_path)

        def run(**environment: str):
            command = [sys.executable, "-I", "-B", str(package / "building/bootstrap.py"), str(tmp_path / "venv")]
            env = os.environ | environment
            return subprocess.run(command, capture_output=True, text=True, env=env)

        return run

    @pytest.mark.long
    def test_unreachable_index(self, bootstrap):
        done = bootstrap(PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="0", PIP_NO_CACHE_DIR="1",
                         PIP_FIND_LINKS="", PIP_EXTRA_INDEX_URL="")  # fmt: skip
        assert done.returncode == 1
        assert "package index cannot be reached" in done.stderr and "make PYTHON=python3" in done.stderr

    def test_no_compiler(self, bootstrap, tmp_path):
        done = bootstrap(PATH=str(tmp_path), CXX="")
        assert done.returncode == 1 and "No C++ compiler found" in done.stderr

    def test_no_venv_module(self, bootstrap, tmp_path):
        broken = tmp_path / "common/python/flashladder/building/bootstrap.py"
        broken.write_text(broken.read_text().replace('"-m", "venv"', '"-m", "no_such_venv"'))
        done = bootstrap()
        assert done.returncode == 1 and "python3-venv" in done.stderr

    def test_a_folder_that_cannot_be_written(self, bootstrap, tmp_path):
        said = "Error: [Errno 30] Read-only file system: 'venv/include'"
        file = tmp_path / "common/python/flashladder/building/bootstrap.py"
        file.write_text(file.read_text().replace('"-m", "venv"', f'"-c", """raise SystemExit({said!r})"""'))
        done = bootstrap()
        assert done.returncode == 1 and "cannot be written" in done.stderr and "python3-venv" not in done.stderr


@needs_stages
def test_registry_is_in_order_and_linked():
    ladder = stages.all_stages()
    assert [stage.number for stage in ladder] == sorted({stage.number for stage in ladder})
    for stage in ladder[1:]:
        before = stages.previous_of(stage)
        assert before is not None and before.number < stage.number


@needs_stages
def test_the_core_path_is_about_ten_hours_of_the_main_line():
    core = stages.core_path()
    assert 13 <= len(core) <= 17 and 500 <= sum(minutes for _, minutes in core) <= 700
    assert core[0][0].slug == "naive" and core[-1][0] == stages.main_line()[-1]
    assert [stage.number for stage, _ in core] == sorted(stage.number for stage, _ in core)
    assert {stage for stage, _ in core} < set(stages.main_line()) < set(stages.every_stage())
    assert all(15 <= stage.minutes <= 60 for stage in stages.every_stage())


@needs_stages
def test_nothing_on_the_main_line_changes_a_branch():
    for stage in stages.main_line():
        before = stages.previous_of(stage)
        assert before is None or not before.is_branch, f"{stage.slug} changes {before.slug}, a branch"


@pytest.mark.parametrize(
    "line, words", [('line = "side"', "main or branch"), ('line = "branch"\ncore = true', "no stop")]
)
def test_a_line_or_a_core_that_makes_no_sense_is_refused(tmp_path, line, words):
    folder = tmp_path / "01_x"
    folder.mkdir()
    (folder / "stage.toml").write_text(f'title = "X"\ntechnique = "x"\nmin_compute = 75\n{line}\n')
    (folder / "kernel.cu").write_text("")
    with pytest.raises(FlashLadderError, match=words):
        stages.all_stages(tmp_path)


@pytest.mark.parametrize("text", ["stage.toml", "99", "", "2x"])
def test_no_such_stage(text):
    with pytest.raises(FlashLadderError, match="There is no stage"):
        stages.get(text)


@pytest.mark.parametrize("body, message", [("number = 1", "not a valid"), ("= 3", "not a valid")])
def test_bad_stage_toml(tmp_path, body, message):
    folder = tmp_path / "01_x"
    folder.mkdir()
    (folder / "stage.toml").write_text(body)
    (folder / "kernel.cu").write_text("")
    with pytest.raises(FlashLadderError, match=message):
        stages.all_stages(tmp_path)


def test_ncu_csv():
    from flashladder.measuring import ncu

    wavefronts = ncu.METRICS["shared load wavefronts"]
    text = f'"ID","Kernel Name","{wavefronts}","gpu__time_duration.sum"\n"","","",""\n"0","flash(P)","1,234","5.5"\n'
    assert ncu.parse(text, ncu.METRICS) == [{"kernel": "flash(P)", "shared load wavefronts": 1234, "nanoseconds": 5.5}]


def test_package_needs_no_file_outside():
    """No absolute path of the machine that it was written on."""
    for file in Path(ROOT / "common/python").rglob("*.py"):
        assert "/home/" not in file.read_text()


def test_an_interpreter_without_the_packages_is_told(tmp_path):
    """As in `make PYTHON=python3 notebooks` with a bare Python."""
    command = [sys.executable, "-S", "-m", "flashladder", "notebooks"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "common/python")}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert re.search(r"has no (rich|numpy)\. .* pip install \1$", done.stderr), done.stderr
