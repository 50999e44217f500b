"""The stages that compute gradients: numbers, masks, layouts, refusals, launches and techniques."""

import itertools

import numpy as np
import pytest
from chosen import of_chosen
from queued import check_launches, each, in_order, only_simulated, verified
from refused import INVALID, UNSUPPORTED, check_refusals

from flashladder.commands import other_parts
from flashladder.core.paths import ROOT
from flashladder.core.problem import Problem
from flashladder.ladder import launches, stages, technique
from flashladder.running import gradients
from flashladder.running.job import StageError
from flashladder.running.verify import log_sum_exp

CHOSEN = of_chosen(stages.backward_stages())
EACH = each(CHOSEN)

# Ragged ends with the diagonal across tiles, a group of heads; rows that see no key; batches and whole tiles; more
# tiles of queries than buffers; many short heads; a mask over more keys than any choice by length is made for.
GROUPS = Problem(Hq=2, Hkv=1, Nq=70, Nkv=133, d_head=64, dtype="fp16", causal=True, layout="gaps")
BLIND_ROWS = Problem(Hq=1, Nq=80, Nkv=30, d_head=128, causal=True)
WHOLE = Problem(B=2, Hq=2, Nq=64, Nkv=64, d_head=64, layout="bnhd")
TILES = Problem(Hq=1, Nq=330, Nkv=150, d_head=128)
HEADS = Problem(B=2, Hq=8, Nq=64, Nkv=64, d_head=128)
MANY_KEYS = Problem(Hq=1, Nq=70, Nkv=1100, d_head=64, causal=True)


def twice(one, problem: Problem) -> None:
    result = verified(one, problem, repeat=2)
    if result.description["deterministic"]:
        assert not result.changed, f"stage {one.id}, {problem}: other bits in the second run: {result.changed}"


@EACH
@pytest.mark.parametrize("problem", (GROUPS, TILES), ids=str)
def test_gradients_twice_over_one_workspace(one, problem):
    twice(one, problem)


@EACH
@pytest.mark.parametrize("problem", (BLIND_ROWS, WHOLE, HEADS, MANY_KEYS), ids=str)
def test_gradients_of_other_shapes(one, problem):
    twice(one, problem)


@pytest.mark.long
@EACH
@pytest.mark.parametrize("d_head, dtype", list(itertools.product((64, 128), ("bf16", "fp16"))))
@pytest.mark.parametrize("causal", (False, True), ids=("full", "causal"))
def test_sizes_heads_and_layouts(one, d_head, dtype, causal):
    sizes = ((1, 1), (17, 64), (65, 127), (200, 129))
    for number, (Nq, Nkv) in enumerate(sizes):
        heads = ((1, 1), (4, 1), (6, 2))[number % 3]
        layout = ("bhnd", "bnhd", "gaps")[number % 3]
        shape = {"B": 1 + number % 2, "Hq": heads[0], "Hkv": heads[1], "Nq": Nq, "Nkv": Nkv}
        verified(one, Problem(**shape, d_head=d_head, dtype=dtype, causal=causal, layout=layout))


@pytest.mark.long
@EACH
def test_many_tiles_and_heads(one):
    verified(one, Problem(Hq=4, Hkv=2, Nq=130, Nkv=200, d_head=64, causal=True))


@EACH
def test_a_stream_of_its_own(one):
    """What goes to the default stream instead is late: nothing waits for it before the outputs are looked at."""
    verified(one, Problem(Hq=1, Nq=65, Nkv=20, d_head=64), own_stream=True, repeat=2)


@EACH
@pytest.mark.parametrize("schedule", ("1", "2", "3"))
def test_other_orders_of_execution(one, schedule):
    in_order(one, schedule, verified, Problem(Hq=2, Hkv=1, Nq=40, Nkv=72, d_head=64, causal=True))


ORDERED = [one for one in CHOSEN if one.slug in ("no_scratch_pass", "deterministic")]


@pytest.mark.parametrize("causal", (False, True), ids=("full", "causal"))
@each(ORDERED)
def test_bits_in_other_orders_of_execution(one, causal):
    """Each schedule and each number of multiprocessors has the blocks add to dQ in another order. Only the
    deterministic stage does not let it show; the other one shows that this test can fail."""
    problem = Problem(Hq=2, Nq=256, Nkv=640, d_head=64, dtype="fp16", causal=causal)
    inputs = gradients.random_inputs(problem, 5)
    results = []
    for multiprocessors, schedule in ((1, 1), (3, 1), (3, 2), (8, 1), (8, 2)):
        order = {"WARPSIM_MULTIPROCESSORS": str(multiprocessors), "WARPSIM_SCHEDULE": str(schedule)}
        results.append(verified(one, problem, inputs, device="sim", environment=order).outputs)
    found = {name: len({result[name].tobytes() for result in results}) for name in results[0]}
    assert found["dK"] == found["dV"] == 1, found
    assert (found["dQ"] == 1) == (one.slug == "deterministic"), found


# Without a mask the last units are cut: one unit into three ranges, into two with sums over a group of heads, whole
# units before, and at d_head 64.
CUTS = (
    Problem(Hq=1, Nq=720, Nkv=70, d_head=128),
    Problem(Hq=4, Hkv=2, Nq=330, Nkv=100, d_head=128, dtype="fp16", layout="gaps"),
    Problem(Hq=7, Nq=330, Nkv=100, d_head=128, layout="bnhd"),
    Problem(B=2, Hq=2, Nq=1000, Nkv=40, d_head=64, dtype="fp16"),
)
CUTTING = [one for one in CHOSEN if one.slug == "no_scratch_pass"]


@pytest.mark.parametrize("problem", CUTS, ids=str)
@each(CUTTING)
def test_cut_units_twice_over_one_workspace(one, problem):
    """Each piece adds to dQ; dK and dV of a unit are one sum, in one order, so that they have the same bits."""
    only_simulated(one, "another device has other ranges")
    assert launches.own_names(one, problem)["splits"] == one.describe(problem)["grid"][0] == 3
    result = verified(one, problem, repeat=2, own_stream=True)
    assert not {"dK", "dV"} & set(result.changed)


@pytest.mark.parametrize("schedule", ("1", "2", "3"))
@each(CUTTING)
def test_cut_units_in_other_orders_of_execution(one, schedule):
    in_order(one, schedule, verified, Problem(Hq=4, Hkv=2, Nq=330, Nkv=100, d_head=128))


# The first batch's statistics come from a kernel of their own, the other one's from warps of the main kernel: of groups
# of heads, with a mask, and of tiles that end past the last row, where a lane has a whole row.
PREPARED = (
    Problem(B=2, Hq=4, Hkv=2, Nq=150, Nkv=1010, d_head=128, dtype="fp16", layout="gaps"),
    Problem(B=2, Hq=2, Hkv=1, Nq=70, Nkv=1900, d_head=128, causal=True, layout="bnhd"),
    Problem(B=2, Hq=2, Nq=300, Nkv=1010, d_head=64),
)


@pytest.mark.parametrize("problem", PREPARED, ids=str)
@each(CUTTING)
def test_statistics_by_the_main_kernel_twice_over_one_workspace(one, problem):
    only_simulated(one, "another device computes others of them before")
    verified(one, problem, repeat=2, own_stream=True)


@each(CUTTING)
def test_whose_statistics_are_computed_before(one):
    """Those of half of the heads, so of one batch of two."""
    only_simulated(one, "another device computes others of them before")
    whole, masked, wide = (launches.launches(one, problem)[0].grid[2] for problem in PREPARED)
    assert (whole, masked, wide) == (1, 1, 1) and {problem.B for problem in PREPARED} == {2}
    check_launches(one, PREPARED[2], Br=128, Bc=128)


@each(CUTTING)
def test_what_is_cut(one):
    """Where it saves each of three blocks four tiles. The launch and the workspace are as stage.toml says."""
    only_simulated(one, "another device has other ranges")
    for Nq, Nkv, causal, ranges in ((720, 70, False, 3), (200, 70, False, 0), (720, 70, True, 0), (720, 300, False, 0)):
        problem = Problem(Hq=1, Nq=Nq, Nkv=Nkv, d_head=128, causal=causal)
        assert launches.own_names(one, problem)["splits"] == ranges, problem
        assert one.describe(problem)["workspace_bytes"] == launches.workspace_bytes(one, problem)
    check_launches(one, CUTS[0], Br=64, Bc=128, supports_causal=1, supports_gqa=1)


IN_SECTIONS = [one for one in CHOSEN if one.slug in ("waits_apart", "clusters", "deterministic")]


@pytest.mark.long
@each(IN_SECTIONS)
def test_more_heads_than_a_section_has(one):
    """Two of these heads are a section, because more of them have over 24 MB; the third one is a section of its own.
    Most rows see no key, so that all this is little work."""
    verified(one, Problem(Hq=3, Nq=18000, Nkv=300, d_head=128, causal=True))


@pytest.mark.long
@EACH
@pytest.mark.parametrize("scale", (-0.7, 3.0))
def test_scales(one, scale):
    if scale < 0 and one.describe(Problem())["positive_scale"]:
        with pytest.raises(StageError, match="needs a scale above 0"):
            verified(one, Problem(Hq=1, Nq=66, Nkv=70, d_head=64, dtype="fp16", scale=scale))
        return
    verified(one, Problem(Hq=1, Nq=66, Nkv=70, d_head=64, dtype="fp16", scale=scale))


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
    verified(one, problem, inputs)


@pytest.mark.long
@EACH
def test_future_keys_change_nothing(one):
    """Causal: another last key leaves dQ of the rows that do not see it as it was, bit for bit where the stage is
    deterministic, and else within its bound."""
    problem = Problem(Hq=1, Nq=100, Nkv=100, d_head=64, causal=True)
    inputs = gradients.random_inputs(problem, 9)
    first = verified(one, problem, inputs)
    other = {name: array.copy() for name, array in inputs.items()}
    other["K"][:, :, -1], other["V"][:, :, -1] = 0x4000, 0x3F80
    other = gradients.completed(problem, {name: other[name] for name in ("Q", "K", "V", "dO")})
    second = verified(one, problem, other)
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


@EACH
def test_what_is_wrong_is_refused_and_nothing_else_written(one):
    described = one.describe(SMALL)
    idle = {"small workspace", "odd workspace"} if not described["workspace_bytes"] else set()
    idle |= {"configuration"} if described["configuration"] else set()
    check_refusals(one, SMALL, {what: case for what, case in WRONG.items() if what not in idle})


# ---- launches and techniques ----


@EACH
@pytest.mark.parametrize("problem", (Problem(Hq=4, Hkv=2, Nq=33, Nkv=70, d_head=128), WHOLE), ids=("groups", "whole"))
def test_launch_data(one, problem):
    if "multiprocessors" in str(one.launch["grid"]):
        only_simulated(one, "the grid is that of another device")
    tile, masks = launches.for_problem(one.launch, problem), int(one.data.get("masks", False))
    of_tile = {"Br": tile.get("Br", 0), "Bc": tile.get("Bc", 0)}
    check_launches(one, problem, **of_tile, supports_causal=masks, supports_gqa=masks)


@EACH
@pytest.mark.parametrize("d_head, dtype", ((128, "bf16"), pytest.param(64, "fp16", marks=pytest.mark.long)))
def test_the_technique_is_used(one, d_head, dtype):
    found = technique.judge(one, d_head=d_head, dtype=dtype)
    assert not found, f"stage {one.id} is right, but {'; '.join(found)}"


@EACH
def test_the_run_command(one, capsys):
    words = (
        "--batch 2 --heads 2 --heads-kv 1 --seq 9 --seq-kv 18 --dim 64 --dtype fp16 --layout bnhd --causal --repeat 2"
    )
    assert other_parts.run_gradients(one, words.split()) == 0
    said = capsys.readouterr().out
    assert f"{one.title}, fp16 B=2 Hq=2 Hkv=1 Nq=9 Nkv=18 d=64 causal bnhd: right" in said and "  dV: relative" in said
    assert other_parts.run_gradients(one, [*words.split(), "--seed", "3"]) == 0 and capsys.readouterr().out != said


@EACH
def test_what_is_included_is_for_kernels(one):
    text = (ROOT / "stages" / one.name / "kernel.cu").read_text()
    assert "cstdlib" not in text and len(text.splitlines()) <= 450
