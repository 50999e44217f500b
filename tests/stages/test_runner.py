"""The runner of each stage: its verdicts, its refusals and its exit status."""

import json
import os
import subprocess

import pytest

from flashladder.commands.stage import VERBS
from flashladder.core import device
from flashladder.core.dtypes import FROBENIUS_LIMIT
from flashladder.core.paths import build_directory, stage_runner
from flashladder.ladder import kernels
from flashladder.ladder.run import describe
from flashladder.running.job import hazard_first

RIGHT, WRONG, USAGE, UNSUPPORTED, CUDA_ERROR = range(5)


def run(stage, *arguments, where: str | None = None, **variables) -> subprocess.CompletedProcess:
    env = device.environment(device.choose(stage.min_compute, where)) | stage.simulated | variables
    own = [] if "bf16" in stage.dtypes or "--dtype" in arguments else ["--dtype", stage.dtypes[0]]
    command = [str(stage_runner(stage.number)), *own, *map(str, arguments)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)


@pytest.fixture
def small(tile) -> list:
    return ["--heads", 2, "--seq", tile[0], "--seq-kv", 2 * tile[1], "--dim", 64]


def expect(done: subprocess.CompletedProcess, status: int) -> None:
    """The exit status is `status`; else the message has the command and all that it said."""
    told = f"{' '.join(done.args)} ended with status {done.returncode}, expected {status}:"
    assert done.returncode == status, hazard_first(told, done.stdout + done.stderr)


def expect_words(words: str, text: str, what: str) -> None:
    assert words in text, f"{what} should say '{words}'; it is: {text}"


def test_help_names_every_option(stage):
    done = run(stage, "--help")
    expect(done, RIGHT)
    for option in (
        "batch",
        "heads-kv",
        "seq-kv",
        "dtype",
        "layout",
        "causal",
        "scale",
        "seed",
        "configuration",
        "bench",
        "once",
        "json",
    ):
        expect_words(f"--{option}", done.stdout, "--help")


@pytest.mark.parametrize("dtype, layout", (("bf16", "bhnd"), ("fp16", "bnhd")))
def test_right_result(stage, small, dtype, layout):
    dtype = dtype if dtype in stage.dtypes else stage.dtypes[0]
    done = run(stage, *small, "--batch", 2, "--dtype", dtype, "--layout", layout, "--json")
    expect(done, RIGHT)
    verdict = json.loads(done.stdout)
    assert verdict["title"] == stage.title, f"the runner of stage {stage.id} says that it is {verdict['title']}"
    assert verdict["passed"] is True, f"status 0, but passed is {verdict['passed']}"
    limit = FROBENIUS_LIMIT[dtype]
    assert 0 < verdict["frobenius"] < limit, f"a right result is within {limit}, and not exact: {verdict['frobenius']}"
    assert 0 < verdict["worst"] <= 1, f"a right result's worst element is within its bound: {verdict['worst']}"
    writes = describe(stage)["supports_log_sum_exp"]
    assert ("log_sum_exp_worst" in verdict) == bool(writes), (
        f"a verdict on the log-sum-exp where there is one: {verdict}"
    )
    assert 0 <= verdict.get("log_sum_exp_worst", 0) <= 1, f"a right result's log-sum-exp is within its bound: {verdict}"
    assert "tflops" not in verdict, f"nothing was timed, but there are TFLOP/s: {verdict['tflops']}"
    expect_words("right: relative Frobenius error", run(stage, *small).stdout, "the verdict")


@pytest.mark.long
def test_make_runs_a_stage_with_a_type_that_it_takes(stage, small, capfd):
    """Without --dtype: bf16, or what it takes in its place."""
    assert VERBS[type(stage)]["run"].do(stage, [str(word) for word in small]) == RIGHT
    assert f", {stage.measured_dtype} " in capfd.readouterr().out


def test_seed_chooses_the_inputs_of_each_stage(stage, small):
    seed_chooses(stage, small)


def test_seed_chooses_the_inputs(any_stage):
    launch = any_stage.data["launch"][-1]
    seed_chooses(
        any_stage, ["--heads", 2, "--seq", launch.get("Br", 16), "--seq-kv", 2 * launch.get("Bc", 16), "--dim", 64]
    )


def seed_chooses(stage, small: list) -> None:
    one, again, zero = (run(stage, *small, "--json", "--seed", seed).stdout for seed in (1, 1, 0))
    assert one == again, f"--seed 1 gave two results: {one} and {again}"
    assert json.loads(one)["frobenius"] != json.loads(zero)["frobenius"], f"--seed 0 and --seed 1 gave the same: {one}"


def test_description_is_that_of_the_library(stage):
    done = run(stage, "--describe", "--json", "--dim", 64)
    expect(done, RIGHT)
    told, known = json.loads(done.stdout), describe(stage)
    for key in ("title", "min_compute", "Br", "Bc", "threads", "shared_bytes", "grid", "workspace_bytes"):
        assert told[key] == known[key], f"{key}: the runner says {told[key]}, flash_describe() says {known[key]}"


def test_once_is_one_launch(stage, small, tmp_path):
    report = tmp_path / "report.json"
    expect(run(stage, *small, "--once", where="sim", WARPSIM_REPORT=str(report)), RIGHT)
    got, wanted = len(json.loads(report.read_text())["launches"]), len(stage.data["launch"])
    assert got == wanted, f"--once launched {got} kernels; the stage has {wanted}"


# The options are read by code that all runners share: `make test` asks one stage's runner, `make test-long` each.
USAGE_ERRORS = [
    (["--foo"], "unknown option --foo"),
    (["-x"], "unknown option -x"),
    (["--seq"], "option --seq wants a value, N"),
    (["--se", "3"], "option --se may mean --seq, --seq-kv, --seed"),
    (["--json=yes"], "option --json takes no value: --json=yes"),
    (["--seq", "12x"], "--seq 12x: expected a whole number from 1 to 2147483647"),
    (["--seq", ""], "--seq '': expected a whole number from 1 to 2147483647"),
    (["--batch", "0"], "--batch 0: expected a whole number from 1 to 2147483647"),
    (["--bat", "-3"], "--batch -3: expected a whole number from 1 to 2147483647"),
    (["--heads", "2147483648"], "--heads 2147483648: expected a whole number from 1 to 2147483647"),
    (["--seed", "-1"], "--seed -1: expected a whole number from 0 to 18446744073709551615"),
    (["--dtype", "fp8"], "--dtype fp8: expected bf16, fp16 or e4m3"),
    (["--layout", "hbnd"], "--layout hbnd: expected bhnd or bnhd"),
    (["--scale", "big"], "--scale big: expected a finite number other than 0"),
    (["--scale", "1e99"], "--scale 1e99: expected a finite number other than 0"),
    (["--scale", "inf"], "--scale inf: expected a finite number other than 0"),
    (["--heads", "3", "--heads-kv", "2"], "Hq must be a multiple of Hkv; they are 3 and 2"),
    (["--once", "--bench"], "give one of them"),
    (["more"], "unexpected argument 'more'"),
]


def test_wrong_usage(any_stage):
    wrong_usage(any_stage)


@pytest.mark.long
def test_wrong_usage_of_each_stage(stage):
    wrong_usage(stage)


def wrong_usage(stage) -> None:
    for arguments, words in USAGE_ERRORS:
        done = run(stage, *arguments)
        expect(done, USAGE)
        expect_words(words, done.stderr, f"the error of {' '.join(arguments)}")
        assert done.stdout == "", f"{' '.join(arguments)}: errors go to stderr, but stdout has: {done.stdout}"


def test_unsupported(stage):
    done = run(stage, "--dim", 96)
    expect(done, UNSUPPORTED)
    expect_words(f"stage '{stage.title}' supports d_head 64 and 128; it is 96", done.stderr, "the refusal")


def test_no_time_from_the_simulator(stage, small):
    done = run(stage, *small, "--bench", where="sim")
    expect(done, UNSUPPORTED)
    expect_words("--bench needs a GPU", done.stderr, "the refusal")
    assert "TFLOP" not in done.stdout, f"the simulator's time went into a throughput: {done.stdout}"


def test_failed_launch(stage, small):
    done = run(stage, *small, where="sim", WARPSIM_MAX_INSTRUCTIONS="100")
    expect(done, CUDA_ERROR)
    expect_words("CUDA error: the kernel", done.stderr, "the error")


DOES_NOTHING = """
#include "launch.h"

extern "C" FlashStatus flash_forward(const FlashParams *, cudaStream_t) {
    return FLASH_OK;
}

extern "C" FlashStatus flash_describe(const FlashParams *, FlashDescription *description) {
    *description = {.title = "Nothing"};
    return FLASH_OK;
}
"""


@pytest.mark.long
def test_a_stage_that_writes_nothing_is_wrong(any_stage):
    folder = build_directory() / "break" / "does_nothing"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.cu").write_text(DOES_NOTHING)
    library = kernels.compile_kernel(folder / "kernel.cu", any_stage)
    link = folder / f"libstage_{any_stage.id}.so"
    link.unlink(missing_ok=True)
    link.symlink_to(library)
    search = os.pathsep.join([str(folder), str(device.cudart(device.choose(any_stage.min_compute)).parent)])
    arguments = ["--seq", 16, "--dim", 64]

    done = run(any_stage, *arguments, LD_LIBRARY_PATH=search)
    expect(done, WRONG)
    words = done.stdout.replace("-nan", "nan")
    expect_words("WRONG", words, "the verdict")
    expect_words("2048 of 2048 elements beyond their bound; first O[0, 0, 0, 0] = nan", words, "the verdict")
    expect_words("2048 elements were never written", words, "the verdict")

    done = run(any_stage, *arguments, "--json", LD_LIBRARY_PATH=search)
    expect(done, WRONG)
    verdict = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    got = verdict["passed"], verdict["frobenius"], verdict["worst"]
    assert got == (False, None, None), f"expected passed = false and no errors, since all are NaN: {done.stdout}"
