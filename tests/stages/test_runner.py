"""The runner of each stage: its verdicts, its refusals and its exit status."""

import json
import os
import subprocess

import pytest

from flashladder import breakit, device
from flashladder.paths import build_directory, stage_runner
from flashladder.run import describe

RIGHT, WRONG, USAGE, UNSUPPORTED, CUDA_ERROR = range(5)


def run(stage, *arguments, where: str | None = None, **variables) -> subprocess.CompletedProcess:
    env = device.environment(device.choose(stage.min_compute, where)) | variables
    command = [str(stage_runner(stage.number)), *map(str, arguments)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)


@pytest.fixture
def small(tile) -> list:
    return ["--heads", 2, "--seq", tile[0], "--seq-kv", 2 * tile[1], "--dim", 64]


def test_help_names_every_option(stage):
    done = run(stage, "--help")
    assert done.returncode == RIGHT
    for option in (
        "batch",
        "heads-kv",
        "seq-kv",
        "dtype",
        "layout",
        "causal",
        "scale",
        "seed",
        "bench",
        "once",
        "json",
    ):
        assert f"--{option}" in done.stdout


@pytest.mark.parametrize("dtype, layout", (("bf16", "bhnd"), ("fp16", "bnhd")))
def test_right_result(stage, small, dtype, layout):
    done = run(stage, *small, "--batch", 2, "--dtype", dtype, "--layout", layout, "--json")
    assert done.returncode == RIGHT, done.stderr
    verdict = json.loads(done.stdout)
    assert verdict["stage"] == stage.number
    assert verdict["passed"] is True
    assert 0 < verdict["frobenius"] < 4e-3
    assert 0 < verdict["worst"] <= 1
    assert "tflops" not in verdict
    assert "right: relative Frobenius error" in run(stage, *small).stdout


def test_seed_chooses_the_inputs(stage, small):
    one, again, zero = (run(stage, *small, "--json", "--seed", seed).stdout for seed in (1, 1, 0))
    assert one == again
    assert json.loads(one)["frobenius"] != json.loads(zero)["frobenius"]


def test_description_is_that_of_the_library(stage):
    done = run(stage, "--describe", "--json", "--dim", 64)
    assert done.returncode == RIGHT, done.stderr
    told, known = json.loads(done.stdout), describe(stage)
    for key in ("stage", "title", "min_compute", "Br", "Bc", "threads", "shared_bytes", "grid", "workspace_bytes"):
        assert told[key] == known[key], key


def test_once_is_one_launch(stage, small, tmp_path):
    report = tmp_path / "report.json"
    done = run(stage, *small, "--once", where="sim", WARPSIM_REPORT=str(report))
    assert done.returncode == RIGHT, done.stderr
    assert len(json.loads(report.read_text())["launches"]) == len(stage.data["launch"])


USAGE_ERRORS = [
    (["--foo"], "unrecognized option '--foo'"),
    (["--seq"], "option '--seq' requires an argument"),
    (["--seq", "12x"], "--seq 12x: expected a positive whole number"),
    (["--batch", "0"], "--batch 0: expected a positive whole number"),
    (["--heads", "99999999999999999999"], "expected a positive whole number"),
    (["--seed", "-1"], "--seed -1: expected a whole number"),
    (["--dtype", "fp8"], "--dtype fp8: expected fp16 or bf16"),
    (["--layout", "hbnd"], "--layout hbnd: expected bhnd or bnhd"),
    (["--scale", "big"], "--scale big: expected a number other than 0"),
    (["--scale", "inf"], "scale must be finite; it is inf"),
    (["--heads", "3", "--heads-kv", "2"], "Hq must be a multiple of Hkv; they are 3 and 2"),
    (["--once", "--bench"], "give one of them"),
    (["more"], "unexpected argument 'more'"),
]


def test_wrong_usage(stage):
    for arguments, words in USAGE_ERRORS:
        done = run(stage, *arguments)
        assert done.returncode == USAGE, (arguments, done)
        assert words in done.stderr
        assert done.stdout == ""


def test_unsupported(stage):
    done = run(stage, "--dim", 96)
    assert done.returncode == UNSUPPORTED
    assert f"stage {stage.id} supports d_head 64 and 128; it is 96" in done.stderr


def test_no_time_from_the_simulator(stage, small):
    done = run(stage, *small, "--bench", where="sim")
    assert done.returncode == UNSUPPORTED
    assert "--bench needs a GPU" in done.stderr
    assert "TFLOP" not in done.stdout


def test_failed_launch(stage, small):
    done = run(stage, *small, where="sim", WARPSIM_MAX_INSTRUCTIONS="100")
    assert done.returncode == CUDA_ERROR
    assert "CUDA error: the kernel" in done.stderr


DOES_NOTHING = """
#include "launch.h"

extern "C" FlashStatus flash_forward(const FlashParams *, cudaStream_t) {
    return FLASH_OK;
}

extern "C" FlashStatus flash_describe(const FlashParams *, FlashDescription *description) {
    *description = {};
    return FLASH_OK;
}
"""


def test_a_stage_that_writes_nothing_is_wrong(any_stage):
    folder = build_directory() / "break" / "does_nothing"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.cu").write_text(DOES_NOTHING)
    library = breakit.compile_kernel(folder / "kernel.cu")
    link = folder / f"libstage_{any_stage.id}.so"
    link.unlink(missing_ok=True)
    link.symlink_to(library)
    search = os.pathsep.join([str(folder), str(device.cudart(device.choose(any_stage.min_compute)).parent)])
    arguments = ["--seq", 16, "--dim", 64]

    done = run(any_stage, *arguments, LD_LIBRARY_PATH=search)
    assert done.returncode == WRONG, done
    assert "WRONG" in done.stdout
    assert "2048 of 2048 elements beyond their bound; first O[0, 0, 0, 0] = nan" in done.stdout.replace("-nan", "nan")
    assert "2048 elements were never written" in done.stdout

    done = run(any_stage, *arguments, "--json", LD_LIBRARY_PATH=search)
    assert done.returncode == WRONG
    verdict = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert (verdict["passed"], verdict["frobenius"], verdict["worst"]) == (False, None, None)
