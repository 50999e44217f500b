"""Timelines of the stages' warps: words of the source, pictures, Perfetto's file, and what a model must not break."""

import json
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest

from flashladder.commands import cli, timeline
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import simulator_library, stage_library
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.measuring import model_clocks
from flashladder.simulator import clocks, replay, steps, trace, warps

SMALL = Problem(B=1, Hq=2, Nq=256, d_head=128, dtype="bf16")
LONG = Problem(B=1, Hq=2, Nq=512, d_head=128, dtype="bf16")
STAGES = ("double_buffering", "masking", "tma", "wgmma", "warp_specialization")


@pytest.fixture(autouse=True, scope="module")
def built_stages():
    for file in (simulator_library(), *(stage_library(one.number) for one in stages.since("tensor_cores"))):
        assert file.exists(), f"{file} is not there, and this test runs kernels: run `make build` first"


@cache
def traced(number, problem=SMALL, blocks=1):
    return trace.of(number, problem, blocks)


@cache
def drawn(number, problem=SMALL):
    return warps.of(number, problem)


def source_line(number, line):
    return stages.get(number).kernel.read_text().splitlines()[line - 1]


@pytest.mark.parametrize("which", STAGES)
def test_spans_follow_one_another(which):
    one = drawn(which)
    assert {span.kind for span in one.spans} <= set(warps.KINDS) and one.end > 0
    ends = {}
    for span in one.spans:
        assert 0 <= span.start < span.end
        if span.kind not in warps.BACKGROUND:
            assert span.start >= ends.get(span.warp, 0) - 1e-6, span
            ends[span.warp] = span.end
    assert max(ends.values()) == pytest.approx(one.end)
    for place in range(len(one.warps)):
        assert sum(one.shares(place).values()) <= 1 + 1e-9
    for (unit, number_), bars in one.busy.items():
        assert all(before[1] <= after[0] for before, after in pairwise(bars)), unit
        assert one.busy_share(unit, number_) <= 1 + 1e-9


@pytest.mark.parametrize("which", STAGES)
def test_no_faster_than_the_tensor_cores(which):
    # 4 B H N N d operations for the rows of the blocks on the multiprocessor; its tensor cores do 4,096 in a clock.
    one, wgmma = drawn(which), stages.get(which) in stages.since("wgmma")
    rows = 128 * one.blocks
    floor = 4 * rows * SMALL.Nkv * SMALL.d_head / 4096
    busy = sum(end - start for (unit, scheduler), bars in one.busy.items() for start, end in bars
               if (unit, scheduler) == ("tensor", 0))  # fmt: skip
    assert one.end > busy >= floor * (0.999 if wgmma else 1.499), "mma.sync takes 6 clocks for what wgmma does in 4"
    assert busy == pytest.approx(floor * (1.0 if wgmma else 1.5))


def test_the_same_twice():
    first, second = warps.of("warp_specialization", SMALL), warps.of("warp_specialization", SMALL)
    assert first == second


def test_waits_are_named_in_words():
    """Those of a pipeline are called after the struct's field: of K_pipeline."""
    found = {span.words for span in drawn(16, LONG).spans if span.kind == "wait"}
    names = set()
    for words in found:
        if match := re.fullmatch(r"waits for mbarrier (\w)_(\w+)(\[[01]\])?, phase [01], kernel\.cu:(\d+)", words):
            names.add(f"{match[1]}_{match[2]}{match[3] or ''}")
            assert f"mbarrier_wait(&{match[2]}[" in source_line(16, int(match[4]))
    buffers = {f"{tile}_{state}[{k}]" for tile in "KV" for state in ("full", "empty") for k in range(2)}
    assert {"Q_full", "K_full[0]", "K_empty[0]"} <= names <= {"Q_full"} | buffers
    group = next(words for words in found if "groups of wgmma" in words)
    match = re.fullmatch(r"waits until none of its groups of wgmma is left, kernel\.cu:(\d+)", group)
    assert "wgmma_wait<0>" in source_line(16, int(match[1]))
    barrier = next(span.words for span in drawn(13).spans if span.label == "barrier 0")
    match = re.fullmatch(r"waits at barrier 0, its use \d+, kernel\.cu:(\d+)", barrier)
    assert "__syncthreads()" in source_line(13, int(match[1]))


def test_work_has_the_names_of_the_sources_phases_and_functions():
    labels = {kind: {span.label for span in drawn(16).spans if span.kind == kind} for kind in warps.KINDS}
    assert labels["wgmma"] == {"S = QKᵀ", "O += PV"}
    assert {"softmax", "store O"} <= labels["arithmetic"]
    assert "online softmax" in {span.label for span in drawn(13).spans}
    assert {"S = QKᵀ", "O += PV"} <= {span.label for span in drawn(13).spans if span.kind == "product"}


def test_a_stage_that_computes_gradients_has_a_timeline_of_its_longest_kernel():
    one = warps.of("dQ_one_tile_late", replace(SMALL, Nq=128))
    assert "backward_kernel" in one.kernel
    assert {span.label for span in one.spans if span.kind == "wgmma"} == {"S", "dP", "dV", "dK", "dQ"}
    # A block has one tile of 128 keys and sees two of 64 queries, each with five products.
    busy = sum(end - start for start, end in one.busy["tensor", 0])
    assert busy == pytest.approx(5 * 2 * (2 * 128 * 64 * 128 / 4096))
    with pytest.raises(FlashLadderError, match="only stages that compute attention"):
        warps.of("ring")


def test_a_line_is_a_part_of_the_innermost_function_that_says_what_is_done():
    kernel = stages.get("warp_specialization").kernel
    lines = kernel.read_text().splitlines()

    def phase(words: str) -> str:
        return warps.phase_of(str(kernel), next(at for at, line in enumerate(lines, 1) if words in line))

    assert phase("ptx::wgmma_ss<") == "S = QKᵀ" and phase("ptx::wgmma_rs<") == "O += PV"
    assert phase("ptx::mbarrier_arrive_expect_tx(") == "load tile"
    assert phase("ptx::mbarrier_wait(&full") == "pipeline", "whoever calls it says more"
    headers = {header.name: header for header in stages.get("overlap").own_headers()}
    softmax = headers["online_softmax.cuh"]
    at = next(at for at, line in enumerate(softmax.read_text().splitlines(), 1) if "ptx::exp2(" in line)
    assert warps.phase_of(str(softmax), at) == "softmax"
    assert warps.functions(softmax.with_name("ptx_hopper.cuh")) == ()


def test_bytes_are_those_of_the_tiles():
    found = [span.words for span in drawn(16).spans if span.kind == "bytes"]
    assert len(found) == 1 + 2 * SMALL.Nkv // 128
    assert all(words.startswith("32,768 bytes on their way to mbarrier ") for words in found)


def test_producer_runs_ahead_as_far_as_it_has_buffers():
    one = drawn(16, LONG)
    (producer,) = [place for place in one.of_scheduler(0) if one.warps[place].number == 8]
    waits = [span for span in one.spans if span.warp == producer and span.kind == "wait"]
    assert {span.label for span in waits if "_empty" in span.label} == {
        f"{name}_empty[{k}]" for name in "KV" for k in range(2)
    }
    first_empty = min(span.start for span in waits if "_empty" in span.label)
    asked = [span for span in one.spans if span.warp == producer and span.kind == "bytes" and span.start < first_empty]
    assert len(asked) == 1 + 2 * 2, "Q, and two tiles each of K and V, before it has to wait"


def test_two_blocks_share_what_one_has_alone():
    alone, both = (replay.replay(steps.programs(traced(13, SMALL, n), clocks.load()), clocks.load()) for n in (1, 2))
    assert 1.1 * alone.end < both.end < 2 * alone.end


def test_more_blocks_than_the_launch_has():
    assert len(traced(13, SMALL, 32).blocks) == 4


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda data: data.update(version=2), "no trace of version 1"),
        (lambda data: data.pop("launches"), "no trace of version 1"),
        (lambda data: data["launches"][0].pop("ops"), "damaged"),
        (lambda data: data["launches"][0]["traced"][0].update(cut=True), "take a smaller problem"),
        (lambda data: data["launches"][0]["traced"][0]["warps"][0].append(["sleep", 0]), "unknown kind, 'sleep'"),
        (lambda data: data["launches"][0]["traced"][0]["warps"][0].append(["run", 9]), "names nothing in it"),
        (lambda data: data["launches"][0]["traced"][0]["warps"][0].append(["wait", 5, 3, 0]), "not in it"),
        (lambda data: data["launches"][0]["traced"][0]["pieces"].append([0]), "damaged"),
    ],
)
def test_a_bad_trace_is_refused(change, words):
    block = {"block": [0, 0, 0], "cut": False, "pieces": [[5, 5, []]], "mbarriers": [], "warps": [[["run", 0]]]}
    launch = {"kernel": "k", "grid": [1, 1, 1], "block": [32, 1, 1], "files": ["k.cu"],
              "ops": [[5, "fp32", "add.f32", 0, 7, 0]], "traced": [block]}  # fmt: skip
    data = {"version": 1, "launches": [launch]}
    assert trace.read(data)[0].ops[5].line == 7
    change(data)
    with pytest.raises(FlashLadderError, match=words):
        trace.read(data)


def launch_of(*texts, costs=()):
    """A launch of one warp that executes these instructions, (class, text) each."""
    ops = {k: trace.Op(cls, text, "k.cu", k + 1, 0) for k, (cls, text) in enumerate(texts)}
    piece = trace.Piece(0, len(texts) - 1, tuple(costs))
    block = trace.Block((0, 0, 0), (piece,), (), ((trace.Event("run", 0),),))
    return trace.Launch("k", (1, 1, 1), (32, 1, 1), ops, (block,))


def test_instructions_become_stretches():
    many = [("fp32", "fma.rn.f32")] * 10
    mma = [("tensor", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")] * 8
    (warp,) = steps.programs(launch_of(*many, ("integer", "add.s32"), *mma, *many), clocks.load())
    assert [step.kind for step in warp.steps] == ["arithmetic", "product", "arithmetic"]
    assert warp.steps[1].units["tensor"] == 8 * clocks.load().mma_sync
    assert warp.steps[0].units["issue"] == 11


def test_ldmatrix_goes_with_the_products_that_it_feeds():
    """With mma.sync it is a part of them; where wgmma finds its tiles itself it is a load like another."""
    matrices = [("ldmatrix", "ldmatrix.sync.aligned.m8n8.x4.shared.b16")] * 8
    mma = [("tensor", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")] * 8
    fp32 = [("fp32", "fma.rn.f32")] * 10
    (warp,) = steps.programs(launch_of(*fp32, *matrices, *mma), clocks.load())
    assert [step.kind for step in warp.steps] == ["arithmetic", "product"]
    (warp,) = steps.programs(launch_of(*fp32, *matrices, *fp32), clocks.load())
    assert [step.kind for step in warp.steps] == ["arithmetic", "copy", "arithmetic"]


def test_loads_are_waited_for_and_reductions_are_not():
    cost = [(0, trace.Cost(0, 4, 0))]
    for cls, text, waits in (
        ("load_global", "ld.global.f32", 1),
        ("atomic", "atom.global.add.u32", 1),
        ("atomic", "red.global.add.u32", 0),
        ("store_global", "st.global.f32", 0),
    ):
        (warp,) = steps.programs(launch_of((cls, text), costs=cost), clocks.load())
        assert [step.bytes for step in warp.steps if isinstance(step, replay.Load)] == [4 * 32.0] * waits, text
    (warp,) = steps.programs(
        launch_of(("atomic", "atom.shared.add.u32"), costs=[(0, trace.Cost(1, 0, 0))]), clocks.load()
    )
    assert [type(step) for step in warp.steps] == [replay.Stretch]


def test_groups_of_copies_are_closed_and_waited_for_where_the_trace_has_them():
    ops = {0: trace.Op("async_copy", "cp.async.cg.shared.global", "k.cu", 1, 0),
           1: trace.Op("async_copy", "cp.async.commit_group", "k.cu", 2, 0),
           2: trace.Op("async_copy", "cp.async.wait_group", "k.cu", 3, 1)}  # fmt: skip
    piece = trace.Piece(0, 2, ((0, trace.Cost(4, 16, 0)),))
    block = trace.Block((0, 0, 0), (piece,), (), ((trace.Event("run", 0),),))
    (warp,) = steps.programs(trace.Launch("k", (1, 1, 1), (32, 1, 1), ops, (block,)), clocks.load())
    background = [step for step in warp.steps if not isinstance(step, replay.Stretch)]
    assert background == [
        replay.Async(16 * 32, place=steps.Place("k.cu", 1, ops[0].text)),
        replay.Commit("cp.async"),
        replay.WaitGroups("cp.async", 1, place=steps.Place("k.cu", 3, ops[2].text)),
    ]


@pytest.mark.parametrize(
    "text, share",
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 1),
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 0.5),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 1),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 1),
    ],
)
def test_tensor_instructions_by_their_shape(text, share):
    assert steps.products(text) == share * 16 * 8 * 16


def test_wgmma_by_its_columns():
    model = clocks.load()
    assert steps.wgmma_clocks("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", model) == 64
    assert steps.wgmma_clocks("wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3", model) == 128


def test_an_unknown_tensor_instruction_is_refused():
    with pytest.raises(FlashLadderError, match="does not know the tensor instruction mma.magic"):
        steps.programs(launch_of(("tensor", "mma.magic")), clocks.load())


@pytest.mark.parametrize("which", STAGES)
def test_perfetto(which, tmp_path):
    data = json.loads(timeline.write(drawn(which), tmp_path / "sub" / "trace.json").read_text())
    assert "model" in data["otherData"]["note"] and data["otherData"]["title"] == drawn(which).title
    spans, names = [], {}
    for event in data["traceEvents"]:
        if event["ph"] == "M":
            names[event["pid"], event.get("tid")] = event["args"]["name"]
        else:
            assert event["ph"] == "X" and event["dur"] > 0 and event["ts"] >= 0
            assert isinstance(event["pid"], int) and isinstance(event["tid"], int) and event["name"] and event["cat"]
            spans.append(event)
    by_thread = {}
    for event in sorted(spans, key=lambda one: one["ts"]):
        place = event["pid"], event["tid"]
        assert place in names and (event["pid"], None) in names
        assert event["ts"] >= by_thread.get(place, 0) - 1e-6, "events of a thread must not overlap"
        by_thread[place] = event["ts"] + event["dur"]
    own = [event for event in spans if "args" in event]
    assert len(own) == len(drawn(which).spans) and all(event["args"]["what"] for event in own)
    assert {"tensor 0", "warp 0, scheduler 0"} <= set(names.values())


@pytest.mark.parametrize("which", STAGES)
def test_picture(which, tmp_path):
    plot = pytest.importorskip("flashladder.plot")
    one = drawn(which)
    figure = plot.warps(one, 0.2 * one.end, 0.6 * one.end)
    ticks = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    wanted = [one.warps[place].name(one.blocks) for place in one.of_scheduler(0)]
    assert ticks[: len(wanted)] == wanted and "tensor core busy" in ticks
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "softmax" in texts and "S = QKᵀ" in texts
    assert "A model, not a measurement" in figure.get_supxlabel()
    files = [plot.save(plot.warps(one, 0.2 * one.end, 0.9 * one.end), tmp_path / f"{k}.png") for k in range(2)]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_picture_refuses_what_is_not_there():
    plot = pytest.importorskip("flashladder.plot")
    one = drawn(16)
    for start, end in ((-1, 0), (one.end, 0), (500, 400)):
        with pytest.raises(FlashLadderError, match="no clocks from"):
            plot.warps(one, start, end)
    with pytest.raises(FlashLadderError, match="no warp of scheduler 7"):
        plot.warps(one, scheduler=7)


def test_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cli.build, "build", lambda targets: None)
    picture, events = tmp_path / "warps.png", tmp_path / "warps.json"
    assert cli.main(["timeline", "16", "--seq", "256", "--out", str(picture), "--perfetto", str(events)]) == 0
    said = capsys.readouterr().out
    assert "A MODEL, not a measurement" in said and "warp 8" in said and "TFLOP" not in said
    assert picture.exists() and json.loads(events.read_text())["traceEvents"]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["16", "--seq", "256", "--out", "picture.txt"], "a picture is a .png or an .svg"),
        (["16", "--seq", "256", "--blocks", "33"], "1 to 32 blocks, not of 33"),
        (["16", "--seq", "256", "--from", "1e9"], "no clocks from"),
        (["99"], "99"),
        (["0"], "use `make stage-00 run`"),
    ],
)
def test_bad_words_are_refused(arguments, words, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(cli.build, "build", lambda targets: None)
    monkeypatch.setattr(timeline, "results_directory", lambda: tmp_path)
    assert cli.main(["timeline", *arguments]) == 1
    assert words in capsys.readouterr().err


FARTHEST = 0.10  # what docs/timeline.md says of the stages for Hopper, in whole percent


@pytest.mark.long
@pytest.mark.parametrize("d_head", (128, 64))
def test_model_is_near_what_was_measured(d_head):
    """As near as the documents say, and nobody has changed the model without looking at it."""
    found = model_clocks.all_steps(d_head)
    hopper = model_clocks.for_hopper(found)
    assert {step.stage.number for step in found} >= set(range(4, 14))
    assert {step.stage.number for step in hopper} == set(range(14, 25))
    far = {step.stage.name: round(step.error, 3) for step in hopper if round(abs(step.error), 2) > FARTHEST}
    assert not far, f"d = {d_head}"
    assert all(abs(step.error) < 0.3 and step.model > 0.99 * step.floor for step in found)


@pytest.mark.parametrize("name", ("warp_specialization", "optimistic_max"))
def test_a_stage_whose_units_beside_products_decide_is_near_what_was_measured(name):
    assert abs(model_clocks.step_of(stages.get(name), 64).error) < FARTHEST


def test_what_instructions_take_beside_products_is_what_was_measured():
    found = model_clocks.rows()
    assert len(found) == 13 and len({row.instruction for row in found}) == 7
    for row in found:
        assert row.model == pytest.approx(row.recorded, rel=0.03), row
    alone = {row.instruction: row.model["clocks"] for row in found if not row.products and row.instruction}
    beside = {row.instruction: row.model["clocks"] for row in found if row.products and row.instruction}
    assert all(beside[name] > 1.2 * alone[name] for name in alone)


def row_of(length: int, B: int, ms: float, **more) -> dict:
    fields = {"B": B, "Hq": 16, "Nq": length, "Nkv": length, "Br": 128, "Bc": 64, "resident_blocks": 2}
    return fields | {"ms": {"median": ms}} | more


def test_measured_clocks_come_from_two_lengths():
    rows = {1024: row_of(1024, 16, 0.5), 8192: row_of(8192, 2, 3.0)}
    # 2,048 blocks in 8 waves of 264, of 16 and of 128 tiles of keys.
    khz = {1024: 1.8e6, 8192: 1.6e6}
    assert model_clocks.measured(rows, khz) == pytest.approx((3.0 * 1.6e6 - 0.5 * 1.8e6) / 8 / (128 - 16))
    # With query tiles of 192 rows the waves differ, 12 and 11.
    tall = {length: row | {"Br": 192, "resident_blocks": 1} for length, row in rows.items()}
    turns = 11 * 128 - 12 * 16  # 16 x 16 x 6 = 1,536 and 2 x 16 x 43 = 1,376 query tiles for 132 multiprocessors
    assert model_clocks.measured(tall, khz) == pytest.approx((3.0 * 1.6e6 - 0.5 * 1.8e6) / turns)


def test_the_peers_are_the_watch():
    fields = {"kind": "peer", "dtype": "bf16", "d_head": 64, "causal": False, "Nq": 8192}
    known = {"measurements": [
        {"name": "a", "ms": {"median": 2.0}, "mhz": {"median": 1700}} | fields,
        {"name": "b", "ms": {"median": 1.0}, "mhz": {"median": 1600}} | fields,
        {"name": "gone", "ms": {"median": 1.0}, "mhz": {"median": 100}} | fields,
    ]}  # fmt: skip
    round_ = {
        "measurements": [{"name": "a", "ms": {"median": 1.7}} | fields, {"name": "b", "ms": {"median": 1.0}} | fields]
    }
    assert model_clocks.clock_khz(round_, known, 64, 8192) == pytest.approx((2.0e6 + 1.6e6) / 2)
    with pytest.raises(FlashLadderError, match="no peer with known clocks"):
        model_clocks.clock_khz(round_, known, 128, 8192)


def test_moves_and_second_maxima_are_no_instructions():
    maxima, moves = [("integer", "max.s32")] * 6, [("move", "mov.b32")] * 9
    ops = {k: trace.Op(cls, text, "k.cu", 7, 0) for k, (cls, text) in enumerate([*maxima, *moves, ("fp32", "max.f32")])}
    piece = trace.Piece(0, len(ops) - 1, ())
    block = trace.Block((0, 0, 0), (piece,), (), ((trace.Event("run", 0),),))
    (warp,) = steps.programs(trace.Launch("k", (1, 1, 1), (32, 1, 1), ops, (block,)), clocks.load())
    (stretch,) = warp.steps
    assert stretch.units == {"issue": 4, "alu": 4 * clocks.load().alu} and stretch.fp32 == 0
