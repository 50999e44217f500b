"""The stages for several GPUs: numbers, order among streams and devices, who copies and computes what, and
refusals. Each run rewrites the inputs and poisons the outputs on the ranks' own streams before each call
(running/ring.py), so that a rank which comes too early, or is released too early, shows."""

import itertools
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from chosen import of_chosen
from queued import each, in_order, only_simulated, verified
from refused import FAILED, INVALID, UNSUPPORTED, check_refusals

import flashladder
from flashladder.commands import other_parts
from flashladder.core.device import choose, cudart
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import stage_library
from flashladder.core.ring_problem import RingProblem
from flashladder.ladder import stages
from flashladder.ladder.kernels import compile_kernel
from flashladder.ladder.ring import FORWARD, QUICK_FORWARD, library_of
from flashladder.running.job import Result, StageError, hazard_first

CHOSEN = of_chosen(stages.ring_stages())
EACH = each(CHOSEN)


def verify(one, problem: RingProblem, forward: str = QUICK_FORWARD, **options) -> Result:
    """Twice, on streams of its own, with that library where another computes attention."""
    if one.by_another_stage:
        options |= {"forward": str(library_of(forward))}
    return verified(one, one.fitted(problem), **{"own_stream": True, "repeat": 2} | options)


# ---- numbers ----

SMALL = {"Hq": 2, "Hkv": 1, "Nq": 130, "d_head": 64}


@EACH
@pytest.mark.parametrize("causal", (False, True), ids=("full", "causal"))
@pytest.mark.parametrize("ranks", (2, 3, *(pytest.param(more, marks=pytest.mark.long) for more in (4, 8))))
def test_numbers_of_ranks(one, ranks, causal):
    verify(one, RingProblem(**SMALL, causal=causal, ranks=ranks))


@EACH
def test_one_rank_is_the_whole(one):
    verify(one, RingProblem(**SMALL, causal=True, ranks=1))


@pytest.mark.long
@each([one for one in CHOSEN if "piece_rows" not in one.data])
@pytest.mark.parametrize("length", (16, 17, 127, 129, 200, 255))
@pytest.mark.parametrize("ranks", (2, 3, 4))
def test_lengths_that_no_number_of_pieces_divides(one, length, ranks):
    for causal in (False, True):
        verify(one, RingProblem(Hq=2, Hkv=2, Nq=length, d_head=64, causal=causal, ranks=ranks))


@pytest.mark.long
@EACH
@pytest.mark.parametrize("d_head, dtype", tuple(itertools.product((64, 128), ("bf16", "fp16"))))
@pytest.mark.parametrize("layout", ("bhnd", "bnhd", "gaps"))
def test_types_layouts_and_groups(one, d_head, dtype, layout):
    shape = {"B": 2, "Hq": 4, "Hkv": 2, "Nq": 150, "d_head": d_head, "dtype": dtype, "layout": layout}
    for causal in (False, True):
        verify(one, RingProblem(**shape, causal=causal, ranks=2))


@EACH
@pytest.mark.parametrize("ranks", (2, pytest.param(3, marks=pytest.mark.long)))
def test_scores_that_need_their_maximum(one, ranks):
    verify(one, RingProblem(Hq=2, Nq=100, d_head=64, causal=True, scale=10.0, ranks=ranks))


@EACH
@pytest.mark.parametrize("causal", (pytest.param(False, marks=pytest.mark.long), True), ids=("full", "causal"))
def test_with_the_library_that_it_chooses_itself(one, causal):
    verify(one, RingProblem(Hq=2, Hkv=1, Nq=300, d_head=128, causal=causal, ranks=2), FORWARD)


@pytest.mark.skipif(not CHOSEN, reason="no such stage here")
def test_from_one_array_and_back():
    """As a user calls it: float32 arrays, rows before heads."""
    one, rng = CHOSEN[-1], np.random.default_rng(5)
    rows = 15 if one.by_another_stage else one.data["piece_rows"]  # of each of 6 pieces
    problem = RingProblem(B=1, Hq=2, Hkv=1, Nq=6 * rows, d_head=64, causal=True, ranks=3, layout="bnhd")
    Q, K, V = (rng.standard_normal(problem.shape(name), np.float32) for name in "QKV")
    options = {"forward": str(library_of(QUICK_FORWARD))} if one.by_another_stage else {}
    result = flashladder.run_ring(one.slug, Q, K, V, ranks=3, causal=True, layout="bnhd", **options)
    assert result.O.shape == Q.shape and result.problem == problem
    assert one.compared(problem, problem.rounded({"Q": Q, "K": K, "V": V}), result)
    with pytest.raises(FlashLadderError, match="Stage 02 is for one GPU"):
        flashladder.run_ring("online_softmax", Q, K, V)
    with pytest.raises(FlashLadderError, match="ranks must be at least 1; it is 0"):
        flashladder.run_ring(one.slug, Q, K, V, ranks=0, layout="bnhd")


# ---- order ----


@EACH
@pytest.mark.parametrize("schedule", ("1", pytest.param("2", marks=pytest.mark.long), "3"))
@pytest.mark.parametrize("causal", (False, True), ids=("full", "causal"))
def test_other_orders_of_execution(one, schedule, causal):
    in_order(one, schedule, verify, RingProblem(**SMALL, causal=causal, ranks=4))


@pytest.mark.long
@EACH
def test_each_stream_last(one):
    """With one stream as late as possible and the others as early: any two pieces of work that nothing orders have come
    in both orders."""
    only_simulated(one, "the simulator's schedules")
    problem = RingProblem(**SMALL, causal=True, ranks=3)
    for stream in range(2 * problem.ranks + problem.ranks + 1):
        verify(one, problem, device="sim", environment={"WARPSIM_SCHEDULE": f"last:{stream}"})


@EACH
def test_default_streams(one):
    """Each device's own, which the stage's copies must not depend on."""
    verify(one, RingProblem(**SMALL, causal=True, ranks=3), own_stream=False)


@EACH
def test_timed_by_events(one):
    """The caller is told of each piece of work: every rank attends, and no rank copies from itself but to gather."""
    result = verify(one, RingProblem(**SMALL, causal=True, ranks=3), timed=True)
    of_rank = {rank: [span for span in result.spans if span["rank"] == rank] for rank in range(3)}
    for rank, spans in of_rank.items():
        assert any(span["work"] == "attention" for span in spans)
        assert all(0 <= span["start_ms"] <= span["end_ms"] for span in spans)
        copied = {span["source"] for span in spans if span["work"] == "pull"}
        described = result.description["ranks"][rank]
        assert bool(copied - {rank, -1}) == bool(described["pulled_bytes"]) or -1 in copied


@EACH
@pytest.mark.parametrize("devices, own_stream", ((1, True), (2, False), pytest.param(3, True, marks=pytest.mark.long)))
def test_ranks_share_devices(one, devices, own_stream):
    only_simulated(one, "the number of devices is the host's")
    problem = RingProblem(**SMALL, causal=True, ranks=4)
    options = {"device": "sim", "own_stream": own_stream, "environment": {"WARPSIM_DEVICES": str(devices)}}
    if one.by_another_stage:
        verify(one, problem, **options)
    else:
        with pytest.raises(FlashLadderError, match="needs a GPU for each rank, because its kernels wait for copies"):
            verify(one, problem, **options)


# ---- who does what ----


@EACH
@pytest.mark.parametrize("causal", (False, True), ids=("full", "causal"))
def test_each_row_has_a_rank_and_each_score_is_computed_once(one, causal):
    for ranks, length in ((1, 50), (3, 100), (4, 128), (8, 257)):
        problem = one.fitted(RingProblem(Hq=2, Nq=length, d_head=64, causal=causal, ranks=ranks))
        length = problem.Nq
        described = one.describe(problem)["ranks"]
        rows = sorted(itertools.chain(*(range(first, first + n) for own in described for first, n in own["pieces"])))
        assert rows == list(range(length)), problem
        wanted = length * (length + 1) // 2 if causal else length * length
        assert sum(own["scores"] for own in described) == wanted, problem


@EACH
def test_work_is_the_same_for_all_ranks_where_there_is_no_mask(one):
    described = one.describe(RingProblem(Hq=2, Nq=1024, d_head=64, ranks=4))["ranks"]
    assert {own["scores"] for own in described} == {1024 * 256}


@each([one for one in CHOSEN if one.slug in ("zigzag", "one_launch")])
def test_zigzag_balances_a_causal_mask(one):
    """And pulls no piece that no row needs: rank r the early pieces before it, and both of the ranks after it."""
    N, P = 1024, 4
    described = one.describe(RingProblem(Hq=2, Hkv=1, Nq=N, d_head=64, causal=True, ranks=P))["ranks"]
    assert {own["scores"] for own in described} == {N * (N + 1) // 2 // P}
    piece = 4 * 64 * N // (2 * P)  # bytes of K and V
    assert [own["pulled_bytes"] for own in described] == [piece * (r + 2 * (P - 1 - r)) for r in range(P)]


@each([one for one in CHOSEN if one.slug in ("gather", "ring")])
def test_slices_under_a_causal_mask_are_no_even_work(one):
    described = one.describe(RingProblem(Hq=2, Nq=1024, d_head=64, causal=True, ranks=2))["ranks"]
    first, last = (own["scores"] for own in described)
    assert 2.9 < last / first < 3.0


# ---- refusals ----

PROBLEM = RingProblem(Hq=4, Hkv=2, Nq=64, d_head=64, causal=True, ranks=2)
WRONG = {
    "no ranks": ({"ranks": 0}, INVALID, "ranks must be positive; it is 0"),
    "many ranks": ({"ranks": 65}, UNSUPPORTED, "ranks must be at most 64; it is 65"),
    "no rows": ({"N": 0}, INVALID, "N must be positive; it is 0"),
    "too short": ({"N": 1}, UNSUPPORTED, "N must be at least that; it is 1"),
    "heads": ({"Hq": 3}, INVALID, "Hq must be a multiple of Hkv; they are 3 and 2"),
    "head dim": ({"d_head": 96}, UNSUPPORTED, "supports d_head 64 and 128; it is 96"),
    "e4m3": ({"dtype": 2}, UNSUPPORTED, "takes fp16 and bf16; dtype is 2 (e4m3)"),
    "scale": ({"scale": float("nan")}, INVALID, "scale must be finite; it is nan"),
    "null": ({"rank.K.data": 0}, INVALID, "rank 1: K is a null pointer"),
    "misaligned": ({"rank.O.data": {"add": 8}}, INVALID, "rank 1: O must be 16-byte aligned"),
    "odd stride": ({"rank.Q.stride_row": {"add": 4}}, INVALID, "Q's row stride must be a non-negative multiple of 8"),
    "gaps": ({"rank.V.stride_row": {"add": 8}}, UNSUPPORTED, "V must lie without gaps, with strides"),
    "odd log-sum-exp": ({"rank.log_sum_exp": {"add": 2}}, INVALID, "log_sum_exp must be 4-byte aligned"),
    "small workspace": ({"rank.workspace_bytes": 16}, INVALID, "(flash_describe_ring() tells); 16 given"),
    "one stream": ({"rank.copy_stream": 0}, INVALID, "stream and copy_stream must be two streams"),
    "no device": ({"rank.device": 99}, FAILED, "rank 1: device: "),
}


@EACH
def test_what_is_wrong_is_refused(one):
    own = str(stage_library(one.number))
    libraries = {
        "no library": ({"forward": "/no/such/library.so"}, INVALID, "no library that computes attention"),
        "another library": ({"forward": own}, INVALID, "is no stage that computes attention"),
    }
    of_its_own = {
        "a library": ({"forward": own}, UNSUPPORTED, "has a kernel of its own; forward must be null"),
        "half a tile": ({"N": 576}, UNSUPPORTED, "N must be a multiple of 2 * ranks * 128; it is 576"),
        "one device": ({"rank.device": 0}, UNSUPPORTED, "ranks 0 and 1 both have device 0"),
        "groups": ({"configuration": "groups_5"}, UNSUPPORTED, "groups_1 to groups_4; configuration is 'groups_5'"),
    }
    wrong = WRONG | (libraries if one.by_another_stage else of_its_own)
    forward = str(library_of(QUICK_FORWARD)) if one.by_another_stage else None
    check_refusals(one, one.fitted(PROBLEM), wrong, forward=forward)


def test_one_sequence_has_as_many_keys_as_queries():
    with pytest.raises(FlashLadderError, match="one sequence has as many keys as queries; Nq is 3 and Nkv 4"):
        RingProblem(Nq=3, Nkv=4)


# ---- flags ----

ONE_LAUNCH = each([one for one in CHOSEN if one.slug == "one_launch"])


@ONE_LAUNCH
@pytest.mark.parametrize("groups", (2, pytest.param(3, marks=pytest.mark.long)))
def test_groups_of_heads_of_several_batches(one, groups):
    problem = RingProblem(B=2, Hq=4, Hkv=2, Nq=512, d_head=64, causal=True, ranks=2)
    verify(one, problem, configuration=f"groups_{groups}")


@pytest.mark.long
@ONE_LAUNCH
@pytest.mark.parametrize("d_head, causal", ((64, False), (128, False), (128, True)))
def test_fp16_at_both_head_dims(one, d_head, causal):
    verify(one, RingProblem(Hq=2, Hkv=2, Nq=512, d_head=d_head, dtype="fp16", causal=causal, ranks=2))


@ONE_LAUNCH
@pytest.mark.parametrize("schedule", ("0", "1", "last:4"))
def test_problems_that_alternate_over_one_workspace(one, schedule):
    """No flag of one problem passes for one of the other, though nothing is cleared in between."""
    only_simulated(one, "the simulator's schedules")
    problems = [
        RingProblem(Hq=2, Hkv=1, Nq=512, d_head=64, causal=True, ranks=2),
        RingProblem(Hq=2, Hkv=2, Nq=1024, d_head=64, causal=False, ranks=2),
    ]
    job = {"cudart": str(cudart(choose(one.min_compute, "sim"))), "stage": str(stage_library(one.number))}
    job |= {"problems": [asdict(problem) for problem in problems], "rounds": 2}
    script = Path(__file__).with_name("ring_alternation.py")
    env = os.environ | {"WARPSIM_DEVICES": "2", "WARPSIM_SCHEDULE": schedule, "WARPSIM_MULTIPROCESSORS": "3"}
    done = subprocess.run([sys.executable, str(script)], input=json.dumps(job), capture_output=True, text=True, env=env)
    assert done.returncode == 0, hazard_first(f"stage {one.id} ended its process", done.stderr)
    assert json.loads(done.stdout.splitlines()[-1]) == [""] * 4


# ---- heads first ----


def heads_first(one, problem: RingProblem, **options) -> Result:
    options = {"library": one.way_library("heads_first"), "own_stream": True, "repeat": 2} | options
    return verified(one, problem, **options)


@ONE_LAUNCH
@pytest.mark.parametrize("causal", (False, True), ids=("full", "causal"))
@pytest.mark.parametrize("ranks", (2, 4, 8))
def test_heads_first(one, ranks, causal):
    heads_first(one, RingProblem(Hq=2 * ranks, Hkv=ranks, Nq=128 * ranks, d_head=64, causal=causal, ranks=ranks))


@pytest.mark.long
@ONE_LAUNCH
@pytest.mark.parametrize("d_head, dtype, layout", ((128, "bf16", "bnhd"), (64, "fp16", "gaps"), (128, "fp16", "bhnd")))
def test_heads_first_of_batches_and_groups(one, d_head, dtype, layout):
    shape = {"B": 2, "Hq": 12, "Hkv": 4, "Nq": 512, "d_head": d_head, "dtype": dtype, "layout": layout}
    for causal in (False, True):
        heads_first(one, RingProblem(**shape, causal=causal, ranks=2))


@ONE_LAUNCH
@pytest.mark.parametrize("schedule", ("1", pytest.param("2", marks=pytest.mark.long), "3"))
def test_heads_first_in_other_orders(one, schedule):
    problem = RingProblem(Hq=4, Hkv=4, Nq=512, d_head=64, causal=True, ranks=2)
    in_order(one, schedule, heads_first, problem)


@ONE_LAUNCH
def test_each_score_of_heads_first_is_computed_once(one):
    problem = RingProblem(Hq=8, Hkv=8, Nq=512, d_head=64, causal=True, ranks=4)
    ranks = heads_first(one, problem).description["ranks"]
    assert [own["pieces"] for own in ranks] == [[[128 * rank, 128]] for rank in range(4)]
    assert sum(own["scores"] for own in ranks) == 512 * 513 // 2
    # Of each of two heads three quarters of Q, K and V come from others, and of O go to others.
    assert {own["pulled_bytes"] for own in ranks} == {4 * 2 * 384 * 64 * 2}


@ONE_LAUNCH
@pytest.mark.parametrize("ranks, Hkv, length", ((3, 4, 384), (4, 2, 512), (2, 2, 320)))
def test_heads_first_needs_whole_heads_and_tiles(one, ranks, Hkv, length):
    problem = RingProblem(Hq=4, Hkv=Hkv, Nq=length, d_head=64, ranks=ranks)
    with pytest.raises(StageError, match="needs whole heads of K and V for each of at most 8 ranks, rows that"):
        one.run(problem, device="sim", library=one.way_library("heads_first"))


WITHOUT = {
    "the wait for a head": "wait_for_head(owners, brought, query_tile.batch * params.Hkv + query_tile.kv_head);\n",
    "the wait for inputs": "wait_for_others(me, ready);",
    "the wait for other ranks": "wait_for_others(me, done);",
    "the clearing of counts": "atomicExch(brought.pieces + head, 0);",
    "the fence": "        __threadfence();  // all blocks see this lane's part before they see the count\n",
}


@pytest.mark.long
@ONE_LAUNCH
@pytest.mark.parametrize("missing", WITHOUT)
def test_the_simulator_finds_what_heads_first_must_not_lack(one, missing, tmp_path):
    only_simulated(one, "on a GPU each of these is right nearly always")
    text, line = (one.folder / "heads_first.cu").read_text(), WITHOUT[missing]
    assert text.count(line) == 1
    kernel = tmp_path / "heads_first.cu"
    kernel.write_text(text.replace(line, ";" if line.endswith(";") else ""))
    problem = RingProblem(Hq=4, Hkv=4, Nq=512, d_head=64, causal=True, ranks=2)
    with pytest.raises(StageError, match="race"):
        heads_first(one, problem, library=compile_kernel(kernel, one, only="BF16"), device="sim")


@EACH
def test_the_run_command(one, capsys):
    length = one.fitted(RingProblem(Nq=130, ranks=2)).Nq
    words = f"--ranks 2 --seq {length} --heads 1 --heads-kv 1 --no-causal --dtype fp16"
    assert other_parts.run_ring(one, words.split()) == 0
    said = capsys.readouterr().out
    assert f"fp16 B=1 H=1 N={length} d=64 P=2\n" in said and "right, relative error" in said
    assert other_parts.run_ring(one, [*words.split(), "--seed", "3"]) == 0 and capsys.readouterr().out != said
