"""Each stage against the float64 reference: types, head dims, layouts, sizes around the tile's edges, streams.

Several calls share a process: that is what programs do, and a launch that is planned once for all of them shows.
"""

import itertools
import os
from dataclasses import replace

import numpy as np
import pytest
from adversarial import KINDS, NEGATIVE_SCALES, adversarial
from calls import NUMBERS, Call, gaps, mixed, packed, plain, shared, verified

from flashladder.core.abi import DTYPES
from flashladder.core.dtypes import from_bits, to_bits
from flashladder.core.problem import Problem
from flashladder.ladder.run import describe, run_problem
from flashladder.running.verify import POISON, check

HEAD_DIMS = (64, 128)
SEED = int(os.environ.get("FLASHLADDER_SEED", "20"))  # of test_random_inputs; another one for other inputs


def test_types_head_dims_and_masks(stage, tile):
    Br, Bc = tile
    kinds = itertools.product(DTYPES, HEAD_DIMS)
    calls = [Call(Problem(Hq=1, Nq=Br, Nkv=3 * Bc, d_head=d, dtype=dtype)) for dtype, d in kinds]
    if stage.data.get("masks"):
        ragged = {"Nq": Br + 1, "Nkv": Bc + 6, "Hq": 2, "Hkv": 1, "causal": True}
        calls += [replace(call, problem=replace(call.problem, **ragged)) for call in calls]
    verified(stage, *calls)


@pytest.mark.parametrize(
    "d_head, dtype, arrangement", [(64, "fp16", mixed), (128, "bf16", gaps)], ids=("64-fp16-mixed", "128-bf16-gaps")
)
def test_sizes_one_after_another(stage, tile, d_head, dtype, arrangement):
    """Two batches, 4 heads, 3 query blocks and 5 K/V tiles, all tensors with other strides; before and after that
    calls of other sizes: nothing may be left of the call before."""
    Br, Bc = tile
    kind = {"d_head": d_head, "dtype": dtype}
    verified(
        stage,
        Call(Problem(Hq=1, Nq=Br, Nkv=2 * Bc, **kind), seed=1),
        Call(Problem(B=2, Hq=4, Nq=3 * Br, Nkv=5 * Bc, **kind), arrangement, seed=2, poison=NUMBERS),
        Call(Problem(Hq=2, Nq=2 * Br, Nkv=Bc, layout="bnhd", **kind), seed=3),
    )


@pytest.mark.parametrize("d_head", HEAD_DIMS)
def test_strides(stage, tile, d_head):
    """Q, K and V packed side by side, heads and batches that share their K and V, O in another order than Q."""
    Br, Bc = tile
    length = max(Br, Bc)
    verified(
        stage,
        Call(Problem(B=2, Hq=2, Nq=length, Nkv=length, d_head=d_head), packed, seed=11),
        Call(Problem(B=2, Hq=3, Nq=Br, Nkv=2 * Bc, d_head=d_head, dtype="fp16"), shared, seed=12),
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_long_rows(stage, tile, dtype):
    """1,024 keys; and weights that a row_sum in 16 bits would lose."""
    problem = Problem(Hq=1, Nq=tile[0], Nkv=1024, d_head=64, dtype=dtype)
    verified(stage, Call(problem, seed=4), Call(problem, inputs=adversarial("long sums", problem), note="long sums"))


@pytest.mark.parametrize("card", ("rtx3090", "rtx4090"))
def test_on_a_consumer_card(stage, tile, card, monkeypatch):
    """99 KB of shared memory a block, fewer threads a multiprocessor, and code for compute capability 8.0 or older."""
    if stage.min_compute > 89:
        pytest.skip("this stage needs a newer GPU")
    monkeypatch.setenv("FLASHLADDER_DEVICE", "sim")
    monkeypatch.setenv("WARPSIM_DEVICE", card)
    kinds = zip(DTYPES, HEAD_DIMS, strict=True)
    verified(stage, *(Call(Problem(Hq=2, Nq=tile[0], Nkv=2 * tile[1], d_head=d, dtype=dtype)) for dtype, d in kinds))


@pytest.mark.long
@pytest.mark.parametrize("rows", (1, 2, 3))
def test_tile_counts(stage, tile, rows):
    Br, Bc = tile
    counts = (1, 2, 5, 6)
    verified(stage, *(Call(Problem(Hq=1, Nq=rows * Br, Nkv=n * Bc, d_head=64), seed=rows * 10 + n) for n in counts))


@pytest.mark.long
@pytest.mark.parametrize("dtype, d_head", list(itertools.product(DTYPES, HEAD_DIMS)), ids=str)
def test_all_instances_and_arrangements(stage, tile, dtype, d_head):
    """As small as two of everything are; test_sizes_one_after_another has more heads and tiles."""
    Br, Bc = tile
    verified(
        stage,
        *(
            Call(Problem(B=2, Hq=2, Nq=2 * Br, Nkv=3 * Bc, d_head=d_head, dtype=dtype), arrangement, seed=7)
            for arrangement in (plain, mixed, gaps, shared)
        ),
    )


def test_random_inputs(stage, tile):
    """Inputs that FLASHLADDER_SEED chooses: run it with another number to try others."""
    print(f"FLASHLADDER_SEED={SEED}")
    Br, Bc = tile
    calls = [Call(Problem(Hq=1, Nq=Br, Nkv=2 * Bc, d_head=d), seed=SEED, note=f"seed {SEED}") for d in HEAD_DIMS]
    verified(stage, *calls)


def test_adversarial_inputs(stage, tile):
    Br, Bc = tile
    calls = []
    for kind, dtype in itertools.product(KINDS, DTYPES):
        problem = Problem(Hq=1, Nq=Br, Nkv=max(2 * Bc, 128), d_head=64, dtype=dtype)
        calls.append(Call(problem, inputs=adversarial(kind, problem), note=kind))
    verified(stage, *calls)


def test_scales(stage, tile):
    """Negative ones, too, where the stage allows them: then the largest score is that of the smallest product."""
    Br, Bc = tile
    lowest = (0.01,) if describe(stage)["positive_scale"] else NEGATIVE_SCALES
    kinds = itertools.product((*lowest, 2.0), DTYPES)
    verified(stage, *(Call(Problem(Hq=1, Nq=Br, Nkv=2 * Bc, d_head=64, dtype=t, scale=scale)) for scale, t in kinds))


def test_rows_do_not_know_their_neighbours(stage, tile):
    """One row of each eight gets scores whose maximum grows far from tile to tile: all others keep every bit."""
    Br, Bc = tile
    problem = stage.own(Problem(Hq=1, Nq=Br, Nkv=4 * Bc, d_head=64, scale=2.0))
    before = problem.random(5)
    others = np.arange(Br) % 8 != 3
    rows = from_bits(before["Q"], problem.dtype)
    rows[:, :, ~others] *= 64
    after = before | {"Q": to_bits(rows, problem.dtype)}
    first, second = verified(stage, Call(problem, inputs=before), Call(problem, inputs=after))
    wrong = int((first[:, :, others] != second[:, :, others]).sum())
    assert not wrong, f"stage {stage.id}: {wrong} elements of O changed in rows whose own Q has not changed"
    assert (first[:, :, ~others] != second[:, :, ~others]).any(), "no row has changed, so the test says nothing"


def test_infinite_scores_stay_in_their_rows(stage, tile):
    """Two rows of one head, 8 apart so that a lane may hold both, have an infinite score in the tile that comes first.
    They become NaN; all other rows keep every bit, those of the query tile before in the same block among them."""
    if stage.dtypes == ("e4m3",):
        pytest.skip("no product of e4m3's numbers is infinite")
    Br, Bc = tile
    problem = Problem(Hq=2, Nq=3 * Br, Nkv=2 * Bc, d_head=128)
    values = {name: from_bits(bits, "bf16").astype(np.float32) for name, bits in problem.random(6).items()}
    values["Q"][..., 0] = 0
    values["K"][..., 0] = 0
    values["K"][:, :, [2, -Bc + 2], 0] = 1e20  # in the tile that comes first, whichever that is
    before = problem.rounded(values)
    infinite = np.zeros((1, 2, problem.Nq), bool)
    infinite[0, 1, Br + 5] = infinite[0, 1, Br + 13] = True
    values["Q"][infinite, 0] = 1e20
    first, second = (
        run_problem(stage, problem, inputs, "sim", environment=stage.simulated)
        for inputs in (before, problem.rounded(values))
    )
    comparison = check(problem, before, first.bits, first.log_sum_exp)
    assert comparison, f"stage {stage.id}, {problem}: {comparison.message}"
    first, second = first.bits, second.bits
    wrong = int((first[~infinite] != second[~infinite]).sum())
    assert not wrong, f"stage {stage.id}: {wrong} elements of O changed in rows without an infinite score"
    assert np.isnan(from_bits(second[infinite], "bf16")).all(), "no score was infinite, so the test says nothing"


def test_what_O_held_before_does_not_matter(stage, tile):
    """The same inputs give the same bits, whether O is full of NaN or of numbers."""
    Br, Bc = tile
    problem = Problem(Hq=1, Nq=Br, Nkv=2 * Bc, d_head=64)
    first, second = verified(stage, Call(problem, poison=POISON), Call(problem, poison=NUMBERS))
    wrong = int((first != second).sum())
    assert not wrong, f"stage {stage.id}, {problem}: {wrong} elements of O differ between two runs on the same inputs"


def test_runs_on_the_stream_that_it_is_given(stage, tile):
    """The second call has a stream of its own, and only that is waited for while the default stream is held up."""
    Br, Bc = tile
    problem = Problem(Hq=1, Nq=Br, Nkv=2 * Bc, d_head=64)
    verified(stage, Call(problem), Call(problem, seed=1, own_stream=True))


def test_another_interleaving_changes_nothing(stage, tile):
    """The simulator runs the warps in another order; a GPU chooses its own."""
    Br, Bc = tile
    problem = stage.own(Problem(Hq=2, Nq=Br, Nkv=3 * Bc, d_head=64))
    usual, shuffled = (
        run_problem(stage, problem, device="sim", environment={"WARPSIM_SCHEDULE": seed}) for seed in ("0", "12345")
    )
    wrong = int((usual.bits != shuffled.bits).sum())
    assert not wrong, f"stage {stage.id}, {problem}: {wrong} elements of O depend on the order of the warps"
    for result in (usual, shuffled):
        launches = result.report["launches"]
        wanted = len(stage.data["launch"])
        assert len(launches) == wanted, f"stage {stage.id}: the simulator saw {len(launches)} launches, not {wanted}"
        for launch in launches:
            assert not launch["hazards"], f"stage {stage.id}: {launch['hazards']}"
            assert not launch["notes"], f"stage {stage.id}: ptxas has to repair {launch['notes']}"


def test_seeds_give_other_inputs():
    """What test_random_inputs counts on."""
    problem = Problem(Hq=1, Nq=16, d_head=64)
    assert not np.array_equal(problem.random(SEED)["Q"], problem.random(SEED + 1)["Q"]), "two seeds, the same inputs"
