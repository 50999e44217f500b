"""The rule by which communication hides on several GPUs, and the model of who copies and computes when."""

from dataclasses import replace

import pytest

from flashladder.core.errors import FlashLadderError
from flashladder.core.ring_problem import RingProblem
from flashladder.measuring import ring_model

PROBLEM = RingProblem(Hq=16, Hkv=16, Nq=16384, d_head=128, ranks=4)


def lane(timeline, name):
    return [span for span in timeline.spans if span.lane == name]


def end(timeline):
    return max(span.end for span in timeline.spans)


def test_the_rule_in_round_numbers():
    """N Hq / Hkv > 1,900 (P - 1), causal twice that, at 700 TFLOP/s and 370 GB/s."""
    for ranks in (2, 4, 8):
        assert ring_model.least_length(ranks, 16, 16) == pytest.approx(1900 * (ranks - 1), rel=0.01)
        assert ring_model.least_length(ranks, 32, 8) == pytest.approx(1900 * (ranks - 1) / 4, rel=0.01)
        assert ring_model.least_length(ranks, 16, 16, causal=True) == pytest.approx(3800 * (ranks - 1), rel=0.01)
    assert ring_model.least_length(1, 16, 16) == 0


@pytest.mark.parametrize("causal", (False, True), ids=("full", "causal"))
@pytest.mark.parametrize("ranks, Hkv", ((2, 16), (4, 16), (8, 4)))
def test_the_rule_is_what_the_ranks_copy_and_compute(ranks, Hkv, causal):
    """Of the rank that copies most, just above and just below the length."""
    least = ring_model.least_length(ranks, 16, Hkv, causal)
    for factor, hidden in ((1.1, True), (0.9, False)):
        rows = round(factor * least / ranks / 2) * 2
        problem = replace(PROBLEM, ranks=ranks, Hkv=Hkv, Nq=rows * ranks, Nkv=rows * ranks, causal=causal)
        steps = ring_model.steps("zigzag", problem, 0)
        copies = sum(ring_model.MEASURED.pull_ms(problem, step.keys) for step in steps)
        attention = sum(ring_model.MEASURED.attention_ms(problem, step.scores) for step in steps)
        assert (copies < attention) == hidden


@pytest.mark.parametrize("slug", ring_model.SLUGS)
@pytest.mark.parametrize("causal", (False, True), ids=("full", "causal"))
def test_all_scores_are_in_the_steps(slug, causal):
    problem = replace(PROBLEM, causal=causal)
    scores = sum(step.scores for rank in range(4) for step in ring_model.steps(slug, problem, rank))
    assert scores == pytest.approx(problem.Nq**2 * (0.5 if causal else 1), rel=1e-3)


def test_copies_hide_where_the_rule_says_so():
    """Then nothing of the ring's time is communication; gathering adds all of it to the attention."""
    ideal = ring_model.MEASURED.attention_ms(PROBLEM, PROBLEM.Nq**2 // 4)
    copies = ring_model.MEASURED.pull_ms(PROBLEM, PROBLEM.Nq * 3 // 4)
    least = ring_model.least_length(PROBLEM.ranks, PROBLEM.Hq, PROBLEM.Hkv)
    assert PROBLEM.Nq > least
    assert end(ring_model.modelled("ring", PROBLEM)) == pytest.approx(ideal)
    assert end(ring_model.modelled("gather", PROBLEM)) == pytest.approx(ideal + copies)
    short = replace(PROBLEM, Nq=4096, Nkv=4096)
    assert short.Nq < least
    assert end(ring_model.modelled("ring", short)) > 1.2 * ring_model.MEASURED.attention_ms(short, short.Nq**2 // 4)


def test_zigzag_ends_together_and_slices_do_not():
    problem = replace(PROBLEM, causal=True, Nq=65536, Nkv=65536)
    ends = {
        slug: [lane(ring_model.modelled(slug, problem), f"GPU {rank} kernel")[-1].end for rank in range(4)]
        for slug in ("ring", "zigzag")
    }
    assert max(ends["zigzag"]) == pytest.approx(min(ends["zigzag"]), rel=1e-3)
    assert max(ends["ring"]) > 6 * min(ends["ring"])
    assert max(ends["ring"]) == pytest.approx(7 / 4 * max(ends["zigzag"]), rel=1e-3)


@pytest.mark.parametrize("causal", (False, True), ids=("full", "causal"))
def test_one_launch_waits_for_what_comes_too_late(causal):
    """With keys that are there its blocks share the work evenly. With a link, the first group of heads must have come
    when the blocks look for it: all heads in one group come later than that."""
    problem = replace(PROBLEM, Nq=65536, Nkv=65536, causal=causal)
    even = ring_model.Rates(multiprocessors=128)  # a divisor of the number of query tiles
    ideal = ring_model.MEASURED.attention_ms(problem, problem.Nq**2 // (8 if causal else 4))

    def ends(gb_s, groups=0):
        return [ring_model.one_launch(problem, rank, replace(even, gb_s=gb_s), groups)[-1].end for rank in range(4)]

    for end_of_rank in ends(1e9):
        assert end_of_rank == pytest.approx(ideal, rel=0.05 if causal else 1e-3)
    assert ring_model.groups(problem) == 4
    assert max(ends(370)) < 1.01 * max(ends(1e9)) < max(ends(370, 1))
    for rank in range(4):
        *_, last, kernel = ring_model.one_launch(problem, rank, ring_model.Rates(gb_s=20))
        assert kernel.end > last.end


def test_one_launch_begins_with_its_own_keys():
    """So nothing waits before a query tile's own keys are done; each group comes of one rank after the other."""
    timeline = ring_model.modelled("one_launch", replace(PROBLEM, Nq=32768, Nkv=32768))
    copies = lane(timeline, "GPU 1 copies")
    assert [one.label for one in copies] == ["0", "3", "2"] * 2
    assert copies[0].end < ring_model.MEASURED.tile_ms(PROBLEM, 32768 // 4) < copies[1].end
    assert [(one.label, one.start) for one in lane(timeline, "GPU 1 kernel")] == [("all", 0.0)]


def test_no_two_copies_or_kernels_of_a_gpu_at_a_time():
    for slug in ring_model.SLUGS:
        timeline = ring_model.modelled(slug, replace(PROBLEM, causal=True))
        for name in timeline.lanes():
            spans = lane(timeline, name)
            assert all(one.end <= other.start + 1e-9 for one, other in zip(spans, spans[1:], strict=False))


def test_recorded_spans_have_the_models_lanes():
    spans = [
        {"rank": 1, "work": "pull", "source": 0, "start_ms": 0.0, "end_ms": 1.0},
        {"rank": 1, "work": "attention", "source": -1, "start_ms": 1.0, "end_ms": 3.0},
        {"rank": 1, "work": "merge", "source": -1, "start_ms": 3.0, "end_ms": 3.5},
    ]
    timeline = ring_model.recorded(spans, "gather", "a GPU")
    assert [(span.lane, span.kind, span.label) for span in timeline.spans] == [
        ("GPU 1 copies", "copy in", "0"), ("GPU 1 kernel", "compute", "all"), ("GPU 1 kernel", "compute", "merge"),
    ]  # fmt: skip


def test_a_stage_without_a_model():
    with pytest.raises(FlashLadderError, match="choose gather, ring, zigzag or one_launch"):
        ring_model.steps("gathering", PROBLEM, 0)


def test_what_copies_launches_and_the_merge_cost():
    """Zigzag, four ranks, a mask: five launches (two of the own keys) and a merge after attention that hides all
    copies; one rank's pull has two copies."""
    problem, costs = replace(PROBLEM, causal=True), ring_model.COSTS
    ideal = costs.attention_ms(problem, problem.Nq**2 // 8)
    merge = costs.merge_ms(problem, 4)
    assert merge == pytest.approx(2 * 5 * 16 * 4096 * 128 / 2300e6)
    assert end(ring_model.modelled("zigzag", problem, costs)) == pytest.approx(ideal + 5 * 0.020 + merge, rel=1e-3)
    bytes_alone = replace(costs, copy_us=0.0)
    assert costs.pull_ms(problem, 4096) == pytest.approx(bytes_alone.pull_ms(problem, 4096) + 0.022)
    assert costs.pull_ms(problem, 4096, 0.5) == pytest.approx(bytes_alone.pull_ms(problem, 2048) + 0.022)
    assert [span.label for span in lane(ring_model.modelled("zigzag", problem, costs), "GPU 3 kernel")][-1] == "merge"
    assert "merge" not in {span.label for span in ring_model.modelled("zigzag", problem).spans}


def test_heads_first_waits_for_one_head():
    """Whose keys are P times fewer bytes than a slice of all heads, for as many ranks as there are heads of K and V."""
    problem = replace(PROBLEM, causal=True)
    first, *_, kernel = ring_model.heads_first(problem, 0)
    assert first.end == pytest.approx(4 * 16384 * 3 / 4 * 128 / 370e6) and kernel.start == first.end
    ideal = ring_model.MEASURED.attention_ms(problem, problem.Nq**2 // 8)
    assert kernel.end == pytest.approx(first.end + ideal)
    assert ring_model.of_ideal("heads_first", problem, ring_model.MEASURED) == pytest.approx(ideal / kernel.end)
    for ranks in (4, 8):
        problem = replace(problem, ranks=ranks)
        assert ring_model.of_ideal("heads_first", problem) > 1.08 * ring_model.of_ideal("zigzag", problem)
    *_, meeting = ring_model.heads_first(problem, 0, replace(ring_model.MEASURED, meeting_us=24))
    *_, kernel = ring_model.heads_first(problem, 0)
    assert meeting.end == pytest.approx(kernel.end + 0.048) and meeting.start == pytest.approx(kernel.start + 0.024)
    slow = ring_model.Rates(gb_s=20)
    *_, last, kernel = ring_model.heads_first(problem, 0, slow)
    assert kernel.end > last.end
