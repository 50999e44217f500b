"""The stages' tests are tested: by a sample of their planted mistakes; `make mutants` judges by all of them.

Which ones changes with the stages and the tests; FLASHLADDER_MUTANTS_SEED=... in the environment draws a sample again.
"""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from flashladder.commands import mutants
from flashladder.core import device
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory
from flashladder.core.problem import Problem
from flashladder.ladder import mistakes, stages
from flashladder.ladder.mistakes import Mistake
from flashladder.ladder.run import run_problem
from flashladder.running.job import StageError

ALL = stages.every_stage()
SEED = mutants.seed()
SIZE = 4
SAMPLE = mutants.sample(SIZE, SEED)


@pytest.fixture
def built():
    if not (build_directory() / "compile_commands.json").exists():
        pytest.skip("nothing is built yet: run `make build`")


@pytest.mark.long
@pytest.mark.parametrize("mutant", SAMPLE, ids=lambda mutant: mutant.id)
def test_the_stages_tests_kill(mutant, built):
    print(f"FLASHLADDER_MUTANTS_SEED={SEED}")
    verdict = mutants.judge(mutant.stage, mutant.text())
    print(f"{verdict.by}: {verdict.message}")
    wrong = mutants.complaint(mutant, verdict)
    assert not wrong, wrong


@pytest.mark.long
def test_a_stage_as_it_is_lives(built):
    """Else a mutant's death would mean nothing. `make mutants` looks at every stage."""
    stage = SAMPLE[0].stage
    verdict = mutants.judge(stage, stage.source.read_text())
    assert not verdict.killed, f"{stage.name} as it is fails {verdict.by}: {verdict.message}"


@pytest.mark.parametrize("stage", [ALL[0], ALL[2]], ids=lambda stage: stage.name)  # a program and a kernel
def test_a_stage_finds_its_tests(stage):
    """pytest's status 5 (no tests) or 4 (an import failed) would be no verdict on a mutant."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", *stage.tests]
    env = os.environ | {"FLASHLADDER_STAGE": stage.id}
    env.pop("FLASHLADDER_DEALT", None)  # of these tests, where they are dealt out
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


def test_the_seed_draws_the_sample():
    again, other = mutants.sample(SIZE, SEED), mutants.sample(SIZE, SEED + "x")
    assert again == SAMPLE and other != SAMPLE
    assert len({mutant.stage.id for mutant in SAMPLE}) == min(SIZE, len(ALL)), "a stage is not in the sample"
    assert not [mutant.id for mutant in SAMPLE if mutant.lives], "a sample is of mutants that must die"


def test_a_seed_can_be_given(monkeypatch):
    monkeypatch.setenv("FLASHLADDER_MUTANTS_SEED", "mine")
    assert mutants.seed() == "mine"


def test_a_stage_or_one_mutant_is_chosen_by_number_or_name():
    assert mutants.chosen(["05"]) == mutants.chosen(["swizzle"]) == mistakes.mistakes(5)
    assert mutants.chosen(["swizzle-swizzle_on_write_only"]) == [mistakes.get(5, "swizzle_on_write_only")]
    with pytest.raises(FlashLadderError, match="no mutant '05-nothing': name a stage such as swizzle"):
        mutants.chosen(["05-nothing"])


def test_a_verdict_that_surprises_is_told():
    doomed = Mistake(stages.get(5), "example", (), "results", "An example.")
    allowed = replace(doomed, lives="equivalent: it runs once")
    dead, alive = mutants.Verdict(True, "test_x", "wrong", 1.0), mutants.Verdict(False, "9 tests passed", "", 1.0)
    assert not mutants.complaint(doomed, dead) and not mutants.complaint(allowed, alive)
    assert "05-example lives: An example. 9 tests passed all the same. Add a test" in mutants.complaint(doomed, alive)
    assert "05-example is killed now, by test_x: take `lives` out" in mutants.complaint(allowed, dead)


@pytest.mark.long
def test_a_hazard_leads_what_the_student_reads(built, tmp_path):
    """Kind, place and words come first; CUDA's error, the same for every hazard, comes last."""
    (mutant,) = mutants.chosen(["02-missing_barrier_after_load"])
    library = mutants.product(mutant.stage, mutant.text())
    with pytest.raises(StageError) as caught:
        run_problem(mutant.stage, Problem(Hq=1, Nq=64, Nkv=64, d_head=64), device="sim", library=library)
    first, *_, last = str(caught.value).splitlines()
    assert first.startswith("shared-memory race at kernel.cu:"), f"the first line is: {first}"
    assert "__syncthreads() is missing between kernel.cu:" in first
    assert last.startswith("stage 02, ") and "unspecified launch failure" in last, f"the last line is: {last}"

    mutants.copy_of_build(tmp_path, mutant.stage, library)
    command = [str(tmp_path / "bin/stage_02"), "--seq", "64", "--dim", "64", "--heads", "1"]
    env = device.environment(device.choose(75, "sim"))
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    lines = done.stderr.splitlines()
    assert lines[0].startswith("warpsim: shared-memory race at kernel.cu:"), done.stderr
    assert "the kernel failed, as the simulator says above: unspecified launch failure" in lines[-1], done.stderr


@pytest.mark.long
def test_a_failed_test_says_the_hazard_first(built):
    """In pytest's summary, too, which shows the first line alone."""
    (mutant,) = mutants.chosen(["02-missing_barrier_after_load"])
    verdict = mutants.judge(mutant.stage, mutant.text())
    assert verdict.message.startswith("AssertionError: shared-memory race at kernel.cu:"), verdict.message
