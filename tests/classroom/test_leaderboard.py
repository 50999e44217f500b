"""A stage as a task of KernelBot: the file has that service's form, and what it names compiles and judges."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest

from flashladder.classroom import leaderboard
from flashladder.classroom.exercise import exercises, starter
from flashladder.core.device import Device, environment
from flashladder.core.environment import prepended
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import build_directory, simulator_library
from flashladder.ladder import stages

yaml = pytest.importorskip("yaml", reason="reads task.yml: pip install pyyaml")
CASE = {
    "type": "object",
    "minProperties": 1,
    "propertyNames": {"pattern": "^[a-zA-Z]+$"},
    "additionalProperties": {"type": ["integer", "string"]},
}
NAME = {"type": "string", "pattern": r"^[\w.]+$"}
# What libkernelbot/task.py reads: no other keys, and these values.
SCHEMA = {
    "type": "object",
    "required": ["files", "lang", "description", "config", "tests", "benchmarks"],
    "additionalProperties": False,
    "properties": {
        "files": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "source"],
                "additionalProperties": False,
                "properties": {"name": NAME, "source": {"type": "string"}},
            },
        },
        "lang": {"const": "cu"},
        "description": {"type": "string", "minLength": 1},
        "config": {
            "type": "object",
            "required": ["sources"],
            "additionalProperties": False,
            "properties": {
                "sources": {"type": "array", "minItems": 1, "items": NAME},
                "include_dirs": {"type": "array", "items": {"type": "string"}},
                "defines": {"type": "object"},
                "compile_flags": {"type": "array", "items": {"type": "string", "pattern": "^-"}},
            },
        },
        "templates": {"type": "object", "propertyNames": {"enum": ["CUDA", "Python", "Triton", "HIP", "CuteDSL"]}},
        "tests": {"type": "array", "minItems": 1, "items": CASE},
        "benchmarks": {"type": "array", "minItems": 1, "items": CASE},
        "ranking_by": {"enum": ["last", "mean", "geom"]},
        **{name: {"type": "integer", "minimum": 1} for name in leaderboard.TIMEOUTS},
    },
}


@pytest.mark.parametrize("which", ("naive", "swizzle", "masking", "warp_specialization"))
def test_the_task_has_the_form_of_the_service(tmp_path, which):
    task = yaml.safe_load(leaderboard.write(which, tmp_path / which).read_text())
    jsonschema.validate(task, SCHEMA)
    sources = {one["name"]: one["source"] for one in task["files"]}
    assert set(task["config"]["sources"]) <= set(sources)
    assert sources[leaderboard.SUBMISSION] == "@SUBMISSION@"
    files = {name for name in sources.values() if name != "@SUBMISSION@"}
    assert files | {leaderboard.TEMPLATE, "task.yml"} == {file.name for file in (tmp_path / which).iterdir()}
    template = (tmp_path / which / task["templates"]["CUDA"]).read_text()
    marked = re.findall(r">>> write: (\w+)", template)
    titles = {one.name: one.title for one in exercises(which)}
    assert marked and all(f". {titles[name]}.\n" in task["description"] for name in marked)


def test_what_is_no_task_is_refused(tmp_path):
    for which in ("autotune", "backward_naive"):
        with pytest.raises(FlashLadderError, match="is no task|takes only stages that compute attention"):
            leaderboard.write(which, tmp_path / which)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").touch()
    with pytest.raises(FlashLadderError, match="not empty"):
        leaderboard.write("swizzle", tmp_path / "full")


def compiled(folder: Path, submission: str) -> Path:
    """As the service does it, but for the simulator: the shared runtime, and PTX."""
    task = yaml.safe_load((folder / "task.yml").read_text())
    (folder / leaderboard.SUBMISSION).write_text(submission)
    command = ["nvcc", *task["config"]["compile_flags"], *task["config"]["sources"], "-cudart", "shared"]
    command += ["-gencode", "arch=compute_80,code=compute_80", "-o", "eval.out"]
    env = prepended(LIBRARY_PATH=build_directory() / "cudart-links")
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "eval.out"


def judged(program: Path, cases: str, mode: str = "test") -> tuple[int, dict[str, str]]:
    file, out = program.with_name("cases.txt"), program.with_name("out.txt")
    file.write_text(cases)
    with out.open("w") as stream:
        env = environment(Device("sim", None)) | {"POPCORN_FD": str(stream.fileno())}
        done = subprocess.run([program, mode, file], env=env, pass_fds=[stream.fileno()], capture_output=True)
    said = dict(re.findall(r"^([\w.-]+): (.*)$", out.read_text(), re.M))
    return done.returncode, said


@pytest.mark.long
def test_the_program_judges_as_the_service_expects(tmp_path):
    if not shutil.which("nvcc") or not simulator_library().exists():
        pytest.skip("compiles a submission and runs it on the simulator: nvcc must be on PATH, and `make build` done")
    leaderboard.write("tensor_cores", tmp_path / "task")
    task = yaml.safe_load((tmp_path / "task/task.yml").read_text())
    cases = "".join("; ".join(f"{name}: {value}" for name, value in one.items()) + "\n" for one in task["tests"])
    kernel = stages.get("tensor_cores").source.read_text()
    program = compiled(tmp_path / "task", kernel)
    status, said = judged(program, cases)
    assert (status, said["check"], said["test-count"]) == (0, "pass", str(len(task["tests"]))), said
    assert all(said[f"test.{number}.status"] == "pass" for number in range(len(task["tests"])))
    status, said = judged(program, cases, "leaderboard")
    assert status == 112 and "times need a GPU" in said["benchmark.0.error"]
    assert judged(program, "rows = 5\n")[0] == 113
    assert subprocess.run([program], env={k: v for k, v in os.environ.items() if k != "POPCORN_FD"}).returncode == 111
    status, said = judged(compiled(tmp_path / "task", starter("tensor_cores")), cases)
    assert (status, said["check"]) == (112, "fail") and said["test.0.error"]
