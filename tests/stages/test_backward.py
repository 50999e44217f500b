"""The stages that compute gradients: numbers, masks, layouts, refusals, launches, techniques and planted mistakes."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from chosen import tried
from shares import share

from flashladder.commands import other_parts
from flashladder.core.abi import STATUS
from flashladder.core.device import choose, cudart
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, stage_library
from flashladder.core.problem import Problem
from flashladder.ladder import diff, launches, mistakes, stages, technique
from flashladder.running import gradients
from flashladder.running.job import Result, StageError, hazard_first
from flashladder.running.verify import log_sum_exp

ONLY = os.environ.get("FLASHLADDER_STAGE")
CHOSEN = [one for one in stages.backward_stages() if not ONLY or one == stages.entry(ONLY)]
INVALID, UNSUPPORTED = 1, 2
EACH = pytest.mark.parametrize("one", CHOSEN, ids=lambda one: one.name)


@pytest.fixture(autouse=True)
def built(request):
    one = request.node.callspec.params.get("one") if hasattr(request.node, "callspec") else None
    if one:
        assert stage_library(one.number).exists(), f"stage {one.id} is not built: run `make stage-{one.id}`"


def verify(one, problem: Problem, inputs: dict | None = None, **options) -> Result:
    """Runs the stage on a workspace and compares all three gradients with the reference."""
    inputs = inputs or gradients.random_inputs(problem, 3)
    result = one.run(problem, inputs, **options)
    comparison = gradients.check(problem, inputs, result.outputs)
    assert comparison, f"stage {one.id}, {problem}: {comparison.message}"
    return result


# Ragged ends with the diagonal across tiles, a group of heads; rows that see no key; batches and whole tiles; more
# tiles of queries than buffers; many short heads.
GROUPS = Problem(Hq=2, Hkv=1, Nq=70, Nkv=133, d_head=64, dtype="fp16", causal=True, layout="gaps")
BLIND_ROWS = Problem(Hq=1, Nq=80, Nkv=30, d_head=128, causal=True)
WHOLE = Problem(B=2, Hq=2, Nq=64, Nkv=64, d_head=64, layout="bnhd")
TILES = Problem(Hq=1, Nq=330, Nkv=150, d_head=128)
HEADS = Problem(B=2, Hq=8, Nq=64, Nkv=64, d_head=128)


@EACH
@pytest.mark.parametrize("problem", (GROUPS, BLIND_ROWS, WHOLE, TILES, HEADS), ids=str)
def test_gradients_twice_over_one_workspace(one, problem):
    result = verify(one, problem, repeat=2)
    if result.description["deterministic"]:
        assert not result.changed, f"stage {one.id}, {problem}: other bits in the second run: {result.changed}"


@pytest.mark.long
@EACH
@pytest.mark.parametrize("d_head, dtype", list(itertools.product((64, 128), ("bf16", "fp16"))))
@pytest.mark.parametrize("causal", (False, True), ids=("full", "causal"))
def test_sizes_heads_and_layouts(one, d_head, dtype, causal):
    sizes = ((1, 1), (17, 64), (64, 17), (65, 127), (200, 129), (129, 200))
    for number, (Nq, Nkv) in enumerate(sizes):
        heads = ((1, 1), (4, 1), (6, 2))[number % 3]
        layout = ("bhnd", "bnhd", "gaps")[number % 3]
        shape = {"B": 1 + number % 2, "Hq": heads[0], "Hkv": heads[1], "Nq": Nq, "Nkv": Nkv}
        verify(one, Problem(**shape, d_head=d_head, dtype=dtype, causal=causal, layout=layout))


@pytest.mark.long
@EACH
def test_many_tiles_and_heads(one):
    verify(one, Problem(Hq=4, Hkv=2, Nq=130, Nkv=200, d_head=64, causal=True))


@EACH
def test_a_stream_of_its_own(one):
    """What goes to the default stream instead is late: nothing waits for it before the outputs are looked at."""
    verify(one, Problem(Hq=1, Nq=65, Nkv=20, d_head=64), own_stream=True, repeat=2)


@EACH
@pytest.mark.parametrize("schedule", ("1", "2", "3"))
def test_other_orders_of_execution(one, schedule):
    if choose(one.min_compute).kind == "gpu":
        pytest.skip("the simulator's schedules")
    problem = Problem(Hq=2, Hkv=1, Nq=40, Nkv=72, d_head=64, causal=True)
    result = verify(one, problem, device="sim", environment={"WARPSIM_SCHEDULE": schedule, "WARPSIM_HAZARDS": "strict"})
    assert not [hazard for launch in result.report["launches"] for hazard in launch["hazards"]]


ORDERED = [one for one in CHOSEN if one.slug in ("no_scratch_pass", "deterministic")]


@pytest.mark.parametrize("causal", (False, True), ids=("full", "causal"))
@pytest.mark.parametrize("one", ORDERED, ids=lambda one: one.name)
def test_bits_in_other_orders_of_execution(one, causal):
    """Each schedule and each number of multiprocessors has the blocks add to dQ in another order. Only the
    deterministic stage does not let it show; the other one shows that this test can fail."""
    problem = Problem(Hq=2, Nq=256, Nkv=640, d_head=64, dtype="fp16", causal=causal)
    inputs = gradients.random_inputs(problem, 5)
    results = []
    for multiprocessors, schedule in ((1, 1), (3, 1), (3, 2), (8, 1), (8, 2)):
        order = {"WARPSIM_MULTIPROCESSORS": str(multiprocessors), "WARPSIM_SCHEDULE": str(schedule)}
        results.append(verify(one, problem, inputs, device="sim", environment=order).outputs)
    found = {name: len({result[name].tobytes() for result in results}) for name in results[0]}
    assert found["dK"] == found["dV"] == 1, found
    assert (found["dQ"] == 1) == (one.slug == "deterministic"), found


@pytest.mark.long
@EACH
@pytest.mark.parametrize("scale", (-0.7, 3.0))
def test_scales(one, scale):
    if scale < 0 and one.describe(Problem())["positive_scale"]:
        with pytest.raises(StageError, match="needs a scale above 0"):
            verify(one, Problem(Hq=1, Nq=66, Nkv=70, d_head=64, dtype="fp16", scale=scale))
        return
    verify(one, Problem(Hq=1, Nq=66, Nkv=70, d_head=64, dtype="fp16", scale=scale))


@EACH
def test_very_low_scores(one):
    """A row's log-sum-exp is far below 0, so exp(0 - log_sum_exp) of a key that does not exist would be infinite."""
    problem = Problem(Hq=1, Nq=20, Nkv=40, d_head=64)
    inputs = gradients.random_inputs(problem, 7)
    values = {name: problem.values(inputs, name) for name in "QKV"}
    values["Q"] = np.abs(values["Q"]) + 3
    values["K"] = -np.abs(values["K"]) - 3
    inputs |= problem.rounded(values)
    inputs = gradients.completed(problem, inputs)
    assert log_sum_exp(problem, inputs)[0].max() < -90
    verify(one, problem, inputs)


@pytest.mark.long
@EACH
def test_future_keys_change_nothing(one):
    """Causal: another last key leaves dQ of the rows that do not see it as it was, bit for bit where the stage is
    deterministic, and else within its bound."""
    problem = Problem(Hq=1, Nq=100, Nkv=100, d_head=64, causal=True)
    inputs = gradients.random_inputs(problem, 9)
    first = verify(one, problem, inputs)
    other = {name: array.copy() for name, array in inputs.items()}
    other["K"][:, :, -1], other["V"][:, :, -1] = 0x4000, 0x3F80
    other = gradients.completed(problem, {name: other[name] for name in ("Q", "K", "V", "dO")})
    second = verify(one, problem, other)
    if first.description["deterministic"]:
        assert np.array_equal(first.outputs["dQ"][:, :, :-1], second.outputs["dQ"][:, :, :-1])


# ---- refusals ----

SMALL = Problem(Hq=2, Nq=16, Nkv=16, d_head=64)
WRONG = {
    "null": ({"dO.data": 0}, INVALID, "dO is a null pointer"),
    "misaligned": ({"dQ.data": {"add": 8}}, INVALID, "dQ must be 16-byte aligned"),
    "odd stride": ({"dK.stride_row": {"add": 4}}, INVALID, "dK's row stride must be a non-negative multiple of 8"),
    "negative stride": ({"dV.stride_head": -8}, INVALID, "dV's head stride must be a non-negative multiple of 8"),
    "no log-sum-exp": ({"log_sum_exp": 0}, INVALID, "log_sum_exp is a null pointer; flash_forward()"),
    "odd log-sum-exp": ({"log_sum_exp": {"add": 2}}, INVALID, "log_sum_exp must be 4-byte aligned"),
    "no rows": ({"Nq": 0}, INVALID, "Nq must be positive; it is 0"),
    "heads": ({"Hq": 3, "Hkv": 2}, INVALID, "Hq must be a multiple of Hkv; they are 3 and 2"),
    "causal": ({"causal": 2}, INVALID, "causal must be 0 or 1; it is 2"),
    "scale": ({"scale": float("inf")}, INVALID, "scale must be finite; it is inf"),
    "e4m3": ({"dtype": 2}, UNSUPPORTED, "takes fp16 and bf16; dtype is 2 (e4m3)"),
    "head dim": ({"d_head": 96}, UNSUPPORTED, "supports d_head 64 and 128; it is 96"),
    "too long": ({"Nkv": 2**30 + 1}, UNSUPPORTED, "Nkv must be at most 2^30"),
    "small workspace": ({"workspace_bytes": 16}, INVALID, "(flash_describe_backward() tells); 16 given"),
    "odd workspace": ({"workspace": {"add": 4}}, INVALID, "workspace must be 16-byte aligned"),
    "configuration": ({"configuration": "fast"}, UNSUPPORTED, "configuration must be null"),
}


def answers(one) -> dict[str, dict]:
    """What the stage answers as it is, and to each wrong call, all in one process."""
    patches = {"as it is": {}} | {what: patch for what, (patch, *_) in WRONG.items()}
    job = {
        "cudart": str(cudart(choose(one.min_compute))),
        "stage": str(stage_library(one.number)),
        "problem": asdict(SMALL),
        "patches": list(patches.values()),
    }
    script = Path(__file__).with_name("backward_call.py")
    done = subprocess.run([sys.executable, str(script)], input=json.dumps(job), capture_output=True, text=True)
    assert done.returncode == 0, hazard_first(f"stage {one.id} ended its process", done.stderr)
    return dict(zip(patches, json.loads(done.stdout.splitlines()[-1]), strict=True))


@EACH
def test_what_is_wrong_is_refused_and_nothing_else_written(one):
    got = answers(one)
    assert got["as it is"] == {"code": 0, "message": "no error", "touched": []}, got["as it is"]
    described = one.describe()
    for what, (_, code, words) in WRONG.items():
        if "workspace" in what and not described["workspace_bytes"]:
            continue
        if what == "configuration" and described["configuration"]:
            continue
        said = f"stage {one.id}, {what}: expected '{STATUS[code]}' with '{words}': {got[what]}"
        assert got[what]["code"] == code and words in got[what]["message"], said


# ---- launches and techniques ----


@EACH
@pytest.mark.parametrize("problem", (Problem(Hq=4, Hkv=2, Nq=33, Nkv=70, d_head=128), WHOLE), ids=("groups", "whole"))
def test_launch_data(one, problem):
    if choose(one.min_compute).kind == "gpu" and "multiprocessors" in str(one.launch["grid"]):
        pytest.skip("the grid is that of another device")
    described = one.describe(problem)
    planned = launches.launches(one, problem)[one.main_launch]
    tile = launches.for_problem(one.launch, problem)
    wanted = {
        "title": one.title,
        "min_compute": one.min_compute,
        "threads": planned.threads,
        "shared_bytes": planned.shared_bytes,
        "grid": list(planned.grid),
        "Br": tile.get("Br", 0),
        "Bc": tile.get("Bc", 0),
        "workspace_bytes": launches.workspace_bytes(one, problem),
        "supports_causal": int(one.data.get("masks", False)),
        "supports_gqa": int(one.data.get("masks", False)),
    }
    assert {name: described[name] for name in wanted} == wanted
    queued = one.run(problem, device="sim").report["launches"]
    kernels = [(launch["grid"], launch["block"][0]) for launch in queued]
    assert kernels == [(list(plan.grid), plan.threads) for plan in launches.launches(one, problem)]


@EACH
@pytest.mark.parametrize("d_head, dtype", ((128, "bf16"), pytest.param(64, "fp16", marks=pytest.mark.long)))
def test_the_technique_is_used(one, d_head, dtype):
    found = technique.judge(one, d_head=d_head, dtype=dtype)
    assert not found, f"stage {one.id} is right, but {'; '.join(found)}"


@EACH
def test_changes_one_thing(one):
    """More changed lines than one technique takes are explained, as those of other stages (test_description.py)."""
    before = stages.previous_of(one)
    changed, most = max(diff.changed_lines(before, one)) if before else 0, 80 if one.min_compute >= 90 else 60
    why = one.data.get("larger_step", "")
    assert (changed > most) == bool(why), f"{changed} changed lines, and {most} are one technique; larger_step: {why!r}"


# ---- planted mistakes ----

PLANTED = [
    pytest.param(mistake, id=mistake.id, marks=pytest.mark.long)
    for one in CHOSEN
    for mistake in mistakes.of_lesson(one)
]


@pytest.mark.parametrize("mistake", share(PLANTED, tried(4)))
def test_mistake_is_caught(mistake):
    verdict = mistakes.run(mistake)
    told = f"{mistake.id} ({mistake.mistake})"
    assert verdict.caught, f"{told} went unnoticed: {verdict.message}"
    assert verdict.by == mistake.caught_by and mistake.message in verdict.message, (
        f"{told} was caught by {verdict.by} and not as mistakes.toml says: {verdict.message}"
    )


@pytest.mark.long
@EACH
def test_the_kernel_itself_passes(one, tmp_path):
    verdict = one.judge(Path(shutil.copy(one.kernel, tmp_path)))  # beside it lies what is built from it
    assert not verdict.caught, f"{one.name} as it is, is wrong at {verdict.problem}: {verdict.message}"


# ---- the command line, and what is for forward stages alone ----


@pytest.mark.skipif(not CHOSEN, reason="no such stage here")
def test_a_forward_command_says_why_it_is_not_for_this_stage():
    with pytest.raises(FlashLadderError, match="computes gradients, and this is for stages that compute attention"):
        stages.get(CHOSEN[0].number)
    assert not set(CHOSEN) & set(stages.every_stage())


@EACH
def test_the_run_command(one, capsys):
    words = (
        "--batch 2 --heads 2 --heads-kv 1 --seq 9 --seq-kv 18 --dim 64 --dtype fp16 --layout bnhd --causal --repeat 2"
    )
    assert other_parts.run_gradients(one, words.split()) == 0
    said = capsys.readouterr().out
    assert f"{one.title}, fp16 B=2 Hq=2 Hkv=1 Nq=9 Nkv=18 d=64 causal bnhd: right" in said and "  dV: relative" in said


@pytest.mark.skipif(not CHOSEN, reason="no such stage here")
def test_a_refusal_is_an_error_with_the_stages_words():
    with pytest.raises(StageError, match="supports d_head 64 and 128; it is 80"):
        CHOSEN[0].describe(Problem(d_head=80))


@EACH
def test_what_is_included_is_for_kernels(one):
    text = (ROOT / "stages" / one.name / "kernel.cu").read_text()
    assert "cstdlib" not in text and len(text.splitlines()) <= 450
