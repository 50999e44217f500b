"""The decode stages: numbers, lengths, layouts, pages, refusals, launches, techniques and planted mistakes."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from chosen import tried
from shares import share

from flashladder.core.abi import STATUS
from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.device import choose, cudart
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import stage_library
from flashladder.ladder import launches, mistakes, stages, technique
from flashladder.running import decoding
from flashladder.running.job import OutputsResult, StageError, hazard_first

ONLY = os.environ.get("FLASHLADDER_STAGE")
CHOSEN = [one for one in stages.decode_stages() if not ONLY or one == stages.entry(ONLY)]
INVALID, UNSUPPORTED = 1, 2
EACH = pytest.mark.parametrize("one", CHOSEN, ids=lambda one: one.name)


@pytest.fixture(autouse=True)
def built(request):
    one = request.node.callspec.params.get("one") if hasattr(request.node, "callspec") else None
    if one:
        assert stage_library(one.number).exists(), f"stage {one.id} is not built: run `make stage-{one.id}`"


def with_pages_of(one, problem: DecodeProblem) -> DecodeProblem:
    """The problem, its pages as small as the stage takes them where they would be smaller."""
    return replace(problem, page_size=problem.page_size and max(problem.page_size, one.page_multiple))


def verify(one, problem: DecodeProblem, inputs: dict | None = None, **options) -> OutputsResult:
    """Runs the stage and compares O and the log-sum-exp with the reference. Behind every end lies a NaN."""
    problem = with_pages_of(one, problem)
    inputs = inputs or problem.random(3)
    result = one.run(problem, inputs, **options)
    comparison = decoding.check(problem, inputs, result.bits)
    assert comparison, f"stage {one.id}, {problem}: {comparison.message}"
    return result


# Unequal lengths, one of them 0 and one shorter than Nq, in pages; packed heads and several parts of a sequence.
PAGES = DecodeProblem(B=4, Hq=4, Hkv=2, Nq=2, Nkv=90, lengths=(90, 0, 1, 33), d_head=64, dtype="fp16", page_size=16)
PARTS = DecodeProblem(B=1, Hq=8, Hkv=1, Nkv=300, d_head=128, layout="bnhd")
EMPTY_PARTS = DecodeProblem(B=1, Hq=8, Hkv=1, Nkv=300, d_head=64, lengths=(3,))


@EACH
@pytest.mark.parametrize("problem", (PAGES, PARTS, EMPTY_PARTS), ids=("pages", "parts", "empty parts"))
def test_twice_over_one_workspace(one, problem):
    result = verify(one, problem, repeat=2)
    assert not result.changed, f"stage {one.id}, {problem}: other bits in the second run: {result.changed}"


@pytest.mark.long
@EACH
@pytest.mark.parametrize("d_head, dtype", tuple(itertools.product((64, 128), ("bf16", "fp16"))))
def test_lengths_around_tiles_and_parts(one, d_head, dtype):
    """One less and one more than a unit of 16 keys, than a block's 64 and than a part."""
    lengths = (0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257)
    for number, length in enumerate(lengths):
        heads = ((4, 1), (2, 2), (6, 2))[number % 3]
        layout = ("bhnd", "bnhd", "gaps")[number % 3]
        shape = {"Hq": heads[0], "Hkv": heads[1], "Nkv": 257, "lengths": (length,), "layout": layout}
        verify(one, DecodeProblem(**shape, d_head=d_head, dtype=dtype))


@pytest.mark.long
@EACH
@pytest.mark.parametrize("page_size", (0, 16, 32, 64))
@pytest.mark.parametrize("Nq, group", ((1, 16), (8, 1), (5, 3), (8, 16), (3, 4)))
def test_rows_groups_and_pages(one, page_size, Nq, group):
    shape = {"B": 3, "Hq": 2 * group, "Hkv": 2, "Nq": Nq, "Nkv": 150, "lengths": (150, 4, 97), "page_size": page_size}
    verify(one, DecodeProblem(**shape, d_head=64))


@pytest.mark.parametrize("one", [one for one in CHOSEN if one.slug == "paged_kv"], ids=lambda one: one.name)
def test_more_units_of_a_warp_than_lanes(one):
    """In pages of half a unit, the last of which is the table's last one. By its own choice the stage has two blocks
    here, whose warps have fewer units than lanes."""
    problem = DecodeProblem(Hq=1, Hkv=1, Nkv=8880, d_head=64, page_size=16)
    verify(one, problem, configuration="warps_8+blocks_1")


@pytest.mark.long
@EACH
def test_many_sequences_and_a_long_one(one):
    """More blocks than the device holds, and as many parts of a sequence as it can have."""
    lengths = tuple(np.random.default_rng(1).integers(0, 200, 24).tolist())
    verify(one, DecodeProblem(B=24, Hq=4, Hkv=2, Nkv=200, lengths=lengths, d_head=64, page_size=32))
    many = {"WARPSIM_MULTIPROCESSORS": "48"}
    result = verify(one, DecodeProblem(Hq=2, Hkv=1, Nkv=2400, d_head=64), device="sim", environment=many)
    assert result.description["splits"] > 8 or one.slug == "decode_naive"


@pytest.mark.long
@EACH
@pytest.mark.parametrize("scale", (-0.7, 3.0))
def test_scales(one, scale):
    verify(one, DecodeProblem(Hq=4, Hkv=2, Nq=2, Nkv=140, d_head=64, scale=scale, dtype="fp16"))


@pytest.mark.long
@EACH
def test_large_and_very_low_scores(one):
    for sign in (1, -1):
        problem = DecodeProblem(Hq=2, Hkv=1, Nkv=200, d_head=64)
        inputs = problem.random(5)
        inputs["Q"] = np.full_like(inputs["Q"], 0x4080)  # 4 in bf16
        inputs["K"] = np.full_like(inputs["K"], 0x4180 if sign > 0 else 0xC180)  # 16 or -16
        verify(one, problem, inputs)


@EACH
@pytest.mark.parametrize("schedule", ("1", pytest.param("2", marks=pytest.mark.long), "3"))
def test_other_orders_of_execution(one, schedule):
    if choose(one.min_compute).kind == "gpu":
        pytest.skip("the simulator's schedules")
    problem = DecodeProblem(B=2, Hq=4, Hkv=1, Nkv=140, lengths=(140, 71), d_head=64)
    environment = {"WARPSIM_SCHEDULE": schedule, "WARPSIM_HAZARDS": "strict"}
    result = verify(one, problem, device="sim", environment=environment, repeat=2)
    assert not [hazard for launch in result.report["launches"] for hazard in launch["hazards"]]


@EACH
def test_a_stream_of_its_own(one):
    """What goes to the default stream instead is late: nothing waits for it before the outputs are looked at."""
    verify(one, DecodeProblem(Hq=2, Hkv=1, Nkv=65, d_head=64), own_stream=True, repeat=2)


@EACH
def test_captured_in_a_graph(one):
    """The graph holds two calls one right after the other; it is launched twice over one workspace."""
    result = verify(one, DecodeProblem(Hq=2, Hkv=1, Nkv=140, d_head=64), own_stream=True, graph=True, repeat=2)
    assert not result.changed


# ---- refusals ----

SMALL = DecodeProblem(Hq=4, Hkv=2, Nq=2, Nkv=200, d_head=64)
IN_PAGES = DecodeProblem(Hq=4, Hkv=2, Nq=2, Nkv=200, d_head=64, page_size=32)
WRONG = {
    "null": ({"K.data": 0}, INVALID, "K is a null pointer"),
    "misaligned": ({"O.data": {"add": 8}}, INVALID, "O must be 16-byte aligned"),
    "odd stride": ({"V.stride_row": {"add": 4}}, INVALID, "V's row stride must be a non-negative multiple of 8"),
    "no lengths": ({"lengths": 0}, INVALID, "lengths is a null pointer"),
    "odd lengths": ({"lengths": {"add": 2}}, INVALID, "lengths must be 4-byte aligned"),
    "odd log-sum-exp": ({"log_sum_exp": {"add": 2}}, INVALID, "log_sum_exp must be 4-byte aligned"),
    "no cache": ({"Nmax": 0}, INVALID, "Nmax must be positive; it is 0"),
    "heads": ({"Hq": 3, "Hkv": 2}, INVALID, "Hq must be a multiple of Hkv; they are 3 and 2"),
    "group": ({"Hq": 34, "Hkv": 2}, UNSUPPORTED, "Hq / Hkv to be at most 16; they are 34 and 2"),
    "rows": ({"Nq": 9}, UNSUPPORTED, "Nq to be at most 8; it is 9"),
    "scale": ({"scale": float("nan")}, INVALID, "scale must be finite; it is nan"),
    "e4m3": ({"dtype": 2}, UNSUPPORTED, "takes fp16 and bf16; dtype is 2 (e4m3)"),
    "head dim": ({"d_head": 96}, UNSUPPORTED, "supports d_head 64 and 128; it is 96"),
    "pages without a table": ({"page_size": 16}, INVALID, "are 0 where block_table is null; they are 0, 16 and 0"),
    "small workspace": ({"workspace_bytes": 16}, INVALID, "(flash_describe_decode() tells); 16 given"),
    "odd workspace": ({"workspace": {"add": 4}}, INVALID, "workspace must be 16-byte aligned"),
    "configuration": ({"configuration": "fast"}, UNSUPPORTED, "configuration must be null"),
}
WRONG_PAGES = {
    "odd table": ({"block_table": {"add": 2}}, INVALID, "block_table must be 4-byte aligned"),
    "no pages": ({"pages": 0}, INVALID, "pages must be positive; it is 0"),
    "too few pages": ({"max_pages": 6}, INVALID, "max_pages * page_size must be at least Nmax; they are 6, 32 and 200"),
    "page size": ({"page_size": 40}, UNSUPPORTED, "page_size to be a multiple of"),
}


def answers(one, problem: DecodeProblem, wrong: dict) -> dict[str, dict]:
    """What the stage answers as it is, and to each wrong call, all in one process."""
    patches = {"as it is": {}} | {what: patch for what, (patch, *_) in wrong.items()}
    job = {
        "cudart": str(cudart(choose(one.min_compute))),
        "stage": str(stage_library(one.number)),
        "problem": asdict(problem),
        "patches": list(patches.values()),
    }
    script = Path(__file__).with_name("decode_call.py")
    done = subprocess.run([sys.executable, str(script)], input=json.dumps(job), capture_output=True, text=True)
    assert done.returncode == 0, hazard_first(f"stage {one.id} ended its process", done.stderr)
    return dict(zip(patches, json.loads(done.stdout.splitlines()[-1]), strict=True))


@EACH
@pytest.mark.parametrize(
    "problem, wrong",
    (
        pytest.param(SMALL, WRONG, id="one piece"),
        pytest.param(IN_PAGES, WRONG_PAGES, id="pages", marks=pytest.mark.long),
    ),
)
def test_what_is_wrong_is_refused_and_nothing_else_written(one, problem, wrong):
    got = answers(one, problem, wrong)
    assert got["as it is"] == {"code": 0, "message": "no error", "touched": []}, got["as it is"]
    described = one.describe(problem)
    for what, (_, code, words) in wrong.items():
        if (
            ("workspace" in what and not described["workspace_bytes"])
            or (what == "page size" and 40 % described["page_multiple"] == 0)
            or (what == "no lengths" and described["optional_lengths"])
        ):
            continue
        said = f"stage {one.id}, {what}: expected '{STATUS[code]}' with '{words}': {got[what]}"
        assert got[what]["code"] == code and words in got[what]["message"], said


# ---- launches and techniques ----


@EACH
@pytest.mark.parametrize("problem", (PAGES, PARTS), ids=("pages", "parts"))
def test_launch_data(one, problem):
    problem = with_pages_of(one, problem)
    if choose(one.min_compute).kind == "gpu":
        pytest.skip("the grid is that of another device")
    configuration = one.configuration(problem)
    described = one.describe(problem, configuration=configuration)
    planned = launches.launches(one, problem)[one.main_launch]
    wanted = {
        "title": one.title,
        "min_compute": one.min_compute,
        "threads": planned.threads,
        "shared_bytes": planned.shared_bytes,
        "grid": list(planned.grid),
        "Bc": one.launch.get("Bc", 0),
        "workspace_bytes": launches.workspace_bytes(one, problem),
        "zeroed_bytes": launches.workspace_bytes(one, problem, "zeroed_bytes"),
        "splits": launches.splits(one, problem),
        "page_multiple": one.page_multiple,
        "supports_log_sum_exp": 1,
        "supports_gqa": 1,
    }
    assert {name: described[name] for name in wanted} == wanted
    queued = one.run(problem, device="sim", configuration=configuration).report["launches"]
    kernels = [(launch["grid"], launch["block"][0]) for launch in queued]
    assert kernels == [(list(plan.grid), plan.threads) for plan in launches.launches(one, problem)]


@EACH
@pytest.mark.parametrize("d_head, dtype", ((128, "bf16"), pytest.param(64, "fp16", marks=pytest.mark.long)))
def test_the_technique_is_used(one, d_head, dtype):
    found = technique.judge(one, d_head=d_head, dtype=dtype)
    assert not found, f"stage {one.id} is right, but {'; '.join(found)}"


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


# ---- problems, and what is for forward stages alone ----


def test_a_problem_in_pages_is_the_one_in_one_piece():
    """The same numbers, whatever pages they lie in; NaNs elsewhere, and page numbers that are no page's."""
    problem, inputs = IN_PAGES, IN_PAGES.random(1)
    for name in "KV":
        rows = problem.cache_rows(inputs, name, 0)
        assert rows.shape == (2, 200, 64) and not (rows == 0xFFFF).any()
        assert (inputs[name] == 0xFFFF).sum() == inputs[name].size - rows.size
    assert len(set(inputs["block_table"][0])) == problem.max_pages == problem.pages - 1
    with pytest.raises(FlashLadderError, match="1 numbers from 0 to 256 are wanted"):
        DecodeProblem(lengths=(3, 4))


@pytest.mark.skipif(not CHOSEN, reason="no such stage here")
def test_a_forward_command_says_why_it_is_not_for_this_stage():
    with pytest.raises(FlashLadderError, match="is of decode, and this is for stages that compute attention"):
        stages.get(CHOSEN[0].number)
    assert not set(CHOSEN) & set(stages.every_stage())


@pytest.mark.skipif(not CHOSEN, reason="no such stage here")
def test_a_refusal_is_an_error_with_the_stages_words():
    with pytest.raises(StageError, match="supports d_head 64 and 128; it is 80"):
        CHOSEN[0].describe(DecodeProblem(d_head=80))


@pytest.mark.parametrize("one", [one for one in CHOSEN if one.slug == "paged_kv"], ids=lambda one: one.name)
def test_an_empty_sequence_before_another_unit_of_its_warp(one):
    """Nothing is loaded for it: that would arrive where the warp waits for its next unit."""
    problem = DecodeProblem(B=2, Hq=1, Hkv=1, Nkv=300, lengths=(0, 300), d_head=64)
    verify(one, problem, configuration="warps_8+blocks_1")
