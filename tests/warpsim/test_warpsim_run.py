"""Programs that nvcc compiled, run by warpsim.run(), the pytest plugin and the script of the GitHub action."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from warpsim_places import EXAMPLES, ROOT

import warpsim

pytestmark = pytest.mark.long

ACTION = ROOT / ".github/actions/warpsim"
PAGE = ROOT / "docs/warpsim.md"
# What is at which lines of an example; of the pipeline the buffer is refilled, and read, too early.
FOUND = {"sum_of_squares": [("shared_race", 17)], "transpose": [], "pipeline": [("async_pending", n) for n in (24, 28)]}


def test_each_example_shows_its_mistake(examples):
    for name, mistakes in FOUND.items():
        report = warpsim.run(examples / name)
        assert [(one.kind, one.line) for one in report.hazards] == mistakes, report.stderr
        assert {Path(one.file).name for one in report.hazards} <= {f"{name}.cu"}
        warpsim.assert_clean(warpsim.run(examples / f"{name}_mended"))
    (launch,) = warpsim.run(examples / "sum_of_squares").launches
    read, write = (one["message"] for one in launch["hazards"])  # at one line, as the page says
    assert "that thread 16 (warp 0, lane 16) wrote" in read and "may still be reading" in write


def test_a_race_in_cub_that_does_no_harm(examples):
    made = subprocess.run(["make", "-C", examples, "runs"], capture_output=True, text=True)
    if "cub/device" in made.stderr:
        pytest.skip("CUB's headers are not there")
    assert made.returncode == 0, made.stderr
    report = warpsim.run(examples / "runs")
    assert {one.kind for one in report.hazards} == {"shared_race"} and report.returncode == 0
    assert report.stdout.startswith("333 runs: no error")


def test_counters_show_the_bank_conflicts(examples):
    (before,) = warpsim.run(examples / "transpose").counters.values()
    (after,) = warpsim.run(examples / "transpose_mended").counters.values()
    assert before["shared load wavefronts"] == 32 * after["shared load wavefronts"]
    assert after["shared load excess"] == 0 < before["shared load excess"]


def test_the_page_shows_what_is_said(examples):
    """Each example's section quotes the program's line and what warpsim prints, without the brackets behind it."""
    page = PAGE.read_text()
    for name in (name for name, mistakes in FOUND.items() if mistakes):
        done = subprocess.run(
            [sys.executable, "-m", "warpsim", examples / name], capture_output=True, text=True, cwd=examples
        )
        head, message, source = done.stderr.splitlines()[:3]
        assert head in page and source in page
        assert re.sub(r" \[[^\[\]]*\]$", "", message).strip() in " ".join(page.split())
    report = warpsim.run(examples / "transpose")
    (line,) = (one for one in report.lines if one.shared_excess)
    assert f"{line.where} | {line.shared_wavefronts:,} | {line.shared_ideal:,}" in page
    for name in FOUND:
        assert f"]({EXAMPLES.relative_to(PAGE.parent)}/{name}.cu)" in page


def test_what_cannot_run_says_why(tmp_path, examples):
    with pytest.raises(warpsim.WarpsimError, match="no such program"):
        warpsim.run(tmp_path / "missing")
    static = tmp_path / "static"
    command = ["nvcc", "-cudart", "static", "-arch=sm_80", "-o", static, EXAMPLES / "transpose.cu"]
    assert subprocess.run(command, capture_output=True).returncode == 0
    with pytest.raises(warpsim.WarpsimError, match="nvcc -cudart shared"):
        warpsim.run(static)
    with pytest.raises(TypeError, match="devise"):
        warpsim.run(examples / "transpose", devise="sm_80")


def test_settings_reach_the_simulator(examples):
    report = warpsim.run([examples / "transpose"], max_instructions=100)
    assert [one.kind for one in report.hazards] == ["budget"] and report.returncode != 0
    # A command that starts programs: each of them has a report.
    both = warpsim.run(["sh", "-c", "./transpose && ./pipeline_mended"], cwd=examples, device="sm_80", schedule=1)
    assert len(both.launches) == 2 and both.clean


TESTS = """
def test_race(warpsim_run):
    warpsim_run(["{folder}/sum_of_squares"])

def test_mended(warpsim_run):
    assert warpsim_run(["{folder}/sum_of_squares_mended"]).returncode == 0

def test_found(warpsim_run):
    assert {{one.kind for one in warpsim_run("{folder}/pipeline", clean=False).hazards}} == {{"async_pending"}}
"""


def run_tests(folder: Path, *options) -> tuple[str, set[str]]:
    """What pytest says of the tests in a folder, and the kinds in the SARIF file that the plugin writes."""
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", folder, folder, "-p", "no:cacheprovider"]
    command += ["--warpsim-sarif", folder / "out.sarif", *options]
    names = {"warpsim", "warpsim.pytest_plugin"}
    if not any(one.name in names for one in _entry_points()):
        command += ["-p", "warpsim.pytest_plugin"]  # from the repository, where nothing is installed by that name
    done = subprocess.run(command, capture_output=True, text=True)
    assert re.search(r"1 failed, 2 passed", done.stdout), done.stdout + done.stderr
    results = json.loads((folder / "out.sarif").read_text())["runs"][0]["results"]
    return done.stdout, {one["ruleId"] for one in results}


def test_the_plugin_fails_a_test_with_a_hazard(examples, tmp_path):
    (tmp_path / "test_programs.py").write_text(TESTS.format(folder=examples))
    said, kinds = run_tests(tmp_path, "--warpsim-schedules", "0,1")
    assert "sum_of_squares.cu:17: shared_race: read at" in said
    assert "def assert_clean" not in said and "def run_in_all_orders" not in said, "only the test's own lines"
    assert kinds == {"shared_race", "async_pending"}


def test_the_plugin_gathers_what_workers_of_xdist_have_found(examples, tmp_path):
    pytest.importorskip("xdist")
    (tmp_path / "test_programs.py").write_text(TESTS.format(folder=examples))
    assert run_tests(tmp_path, "-n", "2", "-p", "xdist")[1] == {"shared_race", "async_pending"}


def _entry_points():
    from importlib.metadata import entry_points

    return entry_points(group="pytest11")


@pytest.fixture
def commands(tmp_path) -> Path:
    """A folder with `warpsim` and `warpsim-report`, as pip makes them."""
    for name, module in (("warpsim", "warpsim"), ("warpsim-report", "warpsim.report_command")):
        script = tmp_path / "bin" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        script.chmod(0o755)
    return tmp_path / "bin"


def act(commands: Path, examples: Path, command: str, schedules: str = "0") -> tuple[subprocess.CompletedProcess, Path]:
    """Runs the action's script with the environment that action.yml and GitHub give it."""
    folder = commands.parent
    env = os.environ | {
        "WARPSIM_BIN": str(commands),
        "COMMAND": command,
        "DEVICE": "sm_90",
        "SCHEDULES": schedules,
        "SARIF": str(folder / "warpsim.sarif"),
        "RUNNER_TEMP": str(folder),
        "GITHUB_WORKSPACE": str(examples),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    return subprocess.run([ACTION / "run.sh"], cwd=examples, env=env, capture_output=True, text=True), folder


def test_the_action_annotates_and_fails(commands, examples):
    done, folder = act(commands, examples, "./sum_of_squares; ./transpose", schedules="0 1")
    assert done.returncode == 1
    (line,) = (one for one in done.stdout.splitlines() if one.startswith("::error"))
    assert line.startswith("::error file=sum_of_squares.cu,line=17,title=warpsim%3A shared_race::")
    results = json.loads((folder / "warpsim.sarif").read_text())["runs"][0]["results"]
    assert [one["ruleId"] for one in results] == ["shared_race"]
    summary = (folder / "summary.md").read_text()
    assert "1 place with a hazard" in summary and "| `transpose(int, float const*, float*)` | 2 |" in summary


def test_the_action_passes_what_is_clean_and_no_silence(commands, examples):
    done, _ = act(commands, examples, "./sum_of_squares_mended && ./transpose && ./pipeline_mended")
    assert done.returncode == 0 and "::error" not in done.stdout, done.stderr
    assert act(commands, examples, "true")[0].returncode == 1  # nothing ran
    assert act(commands, examples, "./transpose && exit 7")[0].returncode == 7


def test_the_action_hands_its_inputs_to_the_script():
    action = (ACTION / "action.yml").read_text()
    script = (ACTION / "run.sh").read_text()
    inputs = set(re.findall(r"^  (\w+):$", action.split("inputs:")[1].split("runs:")[0], re.M))
    handed = set(re.findall(r"(\w+): \$\{\{ inputs\.(\w+) \}\}", action))
    assert {name for _, name in handed} == inputs
    assert all(re.search(rf"\$\{{?{variable}\b", script + action) for variable, _ in handed)
