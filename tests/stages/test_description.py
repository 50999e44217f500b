"""stage.toml's launch data is what the launcher does, and the kernel's file keeps to its size."""

import re

import pytest

from flashladder import stages
from flashladder.problem import Problem
from flashladder.run import describe, run_problem

PROBLEMS = [Problem(B=2, Hq=3, Nq=256, Nkv=384, d_head=128), Problem(Hq=1, Nq=128, Nkv=64, d_head=64)]


def evaluate(expression: str, problem: Problem, launch: dict) -> int:
    """An expression of stage.toml: whole numbers, + - * /, parentheses, and the names of the problem and the tile."""
    names = {name: getattr(problem, name) for name in ("B", "Hq", "Hkv", "Nq", "Nkv", "d_head")}
    names |= {name: launch[name] for name in ("Br", "Bc") if name in launch}
    assert re.fullmatch(r"[\w\s+*/()-]+", expression), expression
    return eval(expression.replace("/", "//"), {"__builtins__": {}}, names)  # noqa: S307


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_launch_data(stage, problem):
    launch = stage.data["launch"][-1]
    told = describe(stage, problem)
    assert told["stage"] == stage.number
    assert told["title"] == stage.title
    assert told["min_compute"] == stage.min_compute
    assert told["threads"] == launch["threads"]
    assert (told["Br"], told["Bc"]) == (launch.get("Br", 0), launch.get("Bc", 0))
    assert told["shared_bytes"] == evaluate(launch["shared_bytes"], problem, launch)
    assert told["grid"] == [evaluate(expression, problem, launch) for expression in launch["grid"]]
    workspace = stage.data.get("workspace", {}).get("bytes", "0")
    assert told["workspace_bytes"] == evaluate(workspace, problem, launch)


def test_launches_as_the_simulator_sees_them(stage, tile):
    problem = Problem(B=2, Hq=1, Nq=2 * tile[0], Nkv=tile[1], d_head=64)
    launches = run_problem(stage, problem, device="sim").report["launches"]
    wanted = stage.data["launch"]
    assert len(launches) == len(wanted)
    for seen, launch in zip(launches, wanted, strict=True):
        assert launch["kernel"] in seen["kernel"]
        assert seen["block"] == [launch["threads"], 1, 1]
        assert seen["grid"] == [evaluate(expression, problem, launch) for expression in launch["grid"]]
        assert seen["shared_bytes"] == evaluate(launch["shared_bytes"], problem, launch)


def test_one_file_of_readable_length(stage):
    text = stage.kernel.read_text()
    assert len(text.splitlines()) <= 350
    included = re.findall(r'#include ["<]([^">]+)[">]', text)
    assert set(included) <= {"launch.h", "numbers.cuh", "ptx.cuh"}, "only the CUDA Toolkit and common/include"


def test_changes_one_thing(stage):
    from flashladder import diff

    before = stages.previous_of(stage)
    if not before or stage.number in (2, 4):
        pytest.skip("this stage rewrites the kernel")
    assert max(diff.changed_lines(before, stage)) <= 60


def test_uses_at_most_99_kb(stage):
    assert describe(stage, Problem(Nq=256, d_head=128))["shared_bytes"] <= 99 * 1024
