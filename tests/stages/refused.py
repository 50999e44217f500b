"""What stages refuse: a status and words, asked for by abi_call.py in one process for many wrong calls."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from flashladder.core.abi import STATUS
from flashladder.core.device import choose, cudart
from flashladder.core.paths import stage_library
from flashladder.core.problem import Problem
from flashladder.running.job import StageError, hazard_first

OK, INVALID, UNSUPPORTED, TOO_OLD, FAILED = range(5)  # of attention.h


def answers(stage, problem: Problem, patches: dict[str, dict], **more) -> dict[str, dict]:
    """What the stage answers to the problem with each of these patches, one after the other in one process."""
    job = {
        "kind": getattr(stage, "KIND", "forward"),
        "cudart": str(cudart(choose(stage.min_compute))),
        "stage": str(stage_library(stage.number)),
        "problem": asdict(problem),
        "patches": list(patches.values()),
    }
    command = [sys.executable, str(Path(__file__).with_name("abi_call.py"))]
    env = os.environ | {"WARPSIM_DEVICES": str(getattr(problem, "ranks", 1))}
    done = subprocess.run(command, input=json.dumps(job | more), capture_output=True, text=True, env=env)
    told = f"stage {stage.id} ended its process on one of {patches}"
    assert done.returncode == 0, hazard_first(told, done.stderr)
    return dict(zip(patches, json.loads(done.stdout.splitlines()[-1]), strict=True))


def check_refusal(stage, what: str, answer: dict, wanted: int, words: str) -> None:
    """The status is the wanted one, and its text has the words."""
    code, message = answer["code"], answer["message"]
    got = STATUS.get(code, f"status {code}")
    assert code == wanted, f"stage {stage.id}, {what}: expected the status '{STATUS[wanted]}', got '{got}': {message}"
    assert words in message, f"stage {stage.id}, {what}: the message should say '{words}'; it is: {message}"


def check_refusals(stage, problem: Problem, wrong: dict[str, tuple[dict, int, str]], **more) -> None:
    """Each wrong call, a patch, is refused with its status and words; the call as it is writes its outputs alone."""
    got = answers(stage, problem, {"as it is": {}} | {what: patch for what, (patch, *_) in wrong.items()}, **more)
    assert got["as it is"] == {"code": OK, "message": "no error", "touched": []}, got["as it is"]
    for what, (_, code, words) in wrong.items():
        check_refusal(stage, what, got[what], code, words)
    with pytest.raises(StageError, match="supports d_head 64 and 128; it is 80"):
        stage.describe(replace(problem, d_head=80))
