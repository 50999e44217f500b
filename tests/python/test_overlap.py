"""What is computed while wgmma are under way, counted in traces that can be counted on paper."""

import json

from flashladder.ladder import overlap, technique

OPS = [  # number, class, text, file, line, groups
    [0, "special_function", "ex2.approx.ftz.f32", 0, 1, 0],
    [1, "tensor", "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", 0, 2, 0],
    [2, "control", "wgmma.commit_group.sync.aligned", 0, 3, 0],
    [3, "control", "wgmma.wait_group.sync.aligned", 0, 4, 1],
    [4, "control", "wgmma.wait_group.sync.aligned", 0, 5, 0],
    [5, "control", "setmaxnreg.inc.sync.aligned.u32", 0, 6, 0],
]
PIECES = [[0, 0, []], [2, 2, []], [3, 3, []], [4, 4, []]]
EXP, COMMIT, WAIT_1, WAIT_0 = (["run", piece] for piece in range(4))
WGMMA, REGISTERS = ["warpgroup", 1], ["warpgroup", 5]


def counted(*warps: list) -> int:
    return overlap.special_during_wgmma({"ops": OPS, "traced": [{"pieces": PIECES, "warps": list(warps)}]})


def test_what_a_wait_covers_is_not_under_way():
    assert counted([EXP, WGMMA, COMMIT, EXP, EXP, WAIT_0, EXP]) == 2
    assert counted([WGMMA, COMMIT, WAIT_0, EXP]) == 0


def test_a_wait_may_leave_the_newest_group():
    two = [WGMMA, COMMIT, WGMMA, COMMIT]
    assert counted([*two, WAIT_1, EXP, WAIT_0, EXP]) == 1
    assert counted([*two, WAIT_0, EXP]) == 0


def test_what_is_not_committed_is_under_way_and_an_empty_group_is_not():
    assert counted([WGMMA, EXP]) == 1
    assert counted([COMMIT, EXP]) == 0 and counted([REGISTERS, EXP]) == 0


def test_each_warp_counts_by_itself():
    assert counted([WGMMA, COMMIT, EXP], [EXP, EXP]) == 1


def test_a_report_without_a_trace_says_nothing_of_it(tmp_path):
    """And one with a trace has the sum over its launches."""
    (one,) = technique.chosen("overlap", ["softmax_under_pv"])
    (run,) = technique.runs("overlap", ["softmax_under_pv"])
    assert one.traced and run.traced and not technique.runs("wgmma")[0].traced
    report = {"launches": []}
    launch = {"ops": OPS, "traced": [{"pieces": PIECES, "warps": [[WGMMA, COMMIT, EXP]]}]}
    (tmp_path / "trace.json").write_text(json.dumps({"version": 1, "launches": [launch, launch]}))
    overlap.complete(report, tmp_path)
    assert report["overlap"] == {"special_during_wgmma": 2, "barrier_waits": 0}


def test_arriving_at_a_barrier_is_no_wait():
    warps = [[["sync", 0, 1, 0], EXP], [["arrive", 0, 1, 0], ["sync", 0, 2, 0]]]
    assert overlap.barrier_waits({"traced": [{"warps": warps}]}) == 2
