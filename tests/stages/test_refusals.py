"""What a stage does not support it refuses, with a message that names the limit and the value given; and it writes
nothing but O."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from flashladder.abi import STATUS
from flashladder.device import choose, cudart
from flashladder.paths import stage_library
from flashladder.problem import Problem
from flashladder.run import StageError, describe, run_problem

INVALID, UNSUPPORTED, TOO_OLD = 1, 2, 3


def call(stage, problem: Problem, patch: dict) -> dict:
    job = {
        "cudart": str(cudart(choose(stage.min_compute))),
        "stage": str(stage_library(stage.number)),
        "problem": asdict(problem),
        "patch": patch,
    }
    script = Path(__file__).with_name("abi_call.py")
    done = subprocess.run([sys.executable, str(script)], input=json.dumps(job), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def small(tile) -> Problem:
    return Problem(Hq=2, Nq=tile[0], Nkv=tile[1], d_head=64)


def test_only_the_output_is_written(stage, small):
    assert call(stage, small, {}) == {"code": 0, "touched": []}


WRONG = {
    "null pointer": ({"Q.data": 0}, "Q is a null pointer"),
    "misaligned": ({"K.data": {"add": 8}}, "K must be 16-byte aligned"),
    "odd stride": ({"V.stride_row": {"add": 4}}, "V's row stride must be a non-negative multiple of 8"),
    "negative stride": ({"O.stride_head": -64}, "O's head stride must be a non-negative multiple of 8"),
    "no batches": ({"B": 0}, "B must be positive; it is 0"),
    "dtype": ({"dtype": 7}, "dtype must be 0 (fp16) or 1 (bf16); it is 7"),
    "causal": ({"causal": 3}, "causal must be 0 or 1; it is 3"),
    "heads": ({"Hq": 3}, "Hq must be a multiple of Hkv; they are 3 and 2"),
    "scale": ({"scale": float("inf")}, "scale must be finite; it is inf"),
}


@pytest.mark.parametrize("patch, words", WRONG.values(), ids=WRONG)
def test_wrong_arguments(stage, small, patch, words):
    answer = call(stage, small, patch)
    assert answer["code"] == INVALID, answer
    assert words in answer["message"]


def refusal(stage, problem) -> str:
    with pytest.raises(StageError) as caught:
        run_problem(stage, problem)
    assert caught.value.code == UNSUPPORTED, STATUS[caught.value.code or 0]
    return str(caught.value)


def test_more_scores_than_size_t_counts(stage, small):
    answer = call(stage, small, {"B": 4, "Nq": 2**30, "Nkv": 2**30})
    assert answer["code"] == UNSUPPORTED, answer
    assert "B * Hq * Nq * Nkv must be at most 2^60; it is 9.22e+18" in answer["message"]


def test_head_dim(stage, tile):
    assert "supports d_head 64 and 128; it is 96" in refusal(stage, Problem(Nq=tile[0], Nkv=tile[1], d_head=96))


def test_lengths(stage, tile):
    Br, Bc = tile
    if "Br" not in stage.data["launch"][-1]:
        pytest.skip("this stage has no tile: it takes any length")
    assert f"needs Nq to be a multiple of {Br}; it is {Br + 8}" in refusal(stage, Problem(Nq=Br + 8, Nkv=Bc))
    assert f"needs Nkv to be a multiple of {Bc}; it is {Bc - 1}" in refusal(stage, Problem(Nq=Br, Nkv=Bc - 1))


def test_causal_and_grouped_heads(stage, tile):
    Br, Bc = tile
    limits = describe(stage)
    if not limits["supports_causal"]:
        assert "no causal masking" in refusal(stage, Problem(Nq=Br, Nkv=Bc, causal=True))
    if not limits["supports_gqa"]:
        assert "Hq is 4 and Hkv is 2" in refusal(stage, Problem(Nq=Br, Nkv=Bc, Hq=4, Hkv=2))
    assert limits["supports_causal"] in (0, 1)


def test_workspace(stage, small):
    if "workspace" not in stage.data:
        pytest.skip("this stage needs no workspace")
    answer = call(stage, small, {"workspace_bytes": 16})
    assert answer["code"] == INVALID
    assert "needs a workspace of" in answer["message"]
    assert "16 given" in answer["message"]


def test_old_device(stage, small):
    """A simulated device below the stage's minimum: 7.5 for the stages that need 8.0."""
    if stage.min_compute <= 75:
        pytest.skip("this stage runs on every simulated device")
    with pytest.raises(StageError) as caught:
        run_problem(stage, small, device="sim", environment={"WARPSIM_DEVICE": "sm_75"})
    assert caught.value.code == TOO_OLD
    assert "needs compute capability 8.0 or newer; this device has 7.5" in str(caught.value)
