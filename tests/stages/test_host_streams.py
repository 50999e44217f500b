"""Stage 00: every variant is right, overlaps where it should and only there, and its mistakes are caught."""

import json
import subprocess

import pytest

from flashladder import breakit, host_streams, recorded, stages, timeline
from flashladder.device import choose, environment
from flashladder.errors import FlashLadderError

pytestmark = pytest.mark.skipif(not host_streams.program().exists(), reason="stage 00 is not built (`make stage-00`)")
TENSORS_IN = 3  # Q, K and V


def operations(variant, chunks=4, streams=2, **options):
    """The simulator's copies and kernels for one variant, verified, without those of the program's end."""
    result = host_streams.run(variant, chunks, streams, "sim", **options)
    assert result.passed, result.message
    kinds = {"memcpy_h2d", "kernel", "memcpy_d2h"}
    return [one for one in result.report["operations"] if one["kind"] in kinds]


@pytest.mark.parametrize("chunks, streams", [((1, 2, 8), (1, 3)), (4, 8)])
def test_every_variant_is_right(chunks, streams):
    """Odd numbers of streams, one chunk, more streams than chunks."""
    result = host_streams.run(chunks=chunks, streams=streams)
    assert result.passed, result.message
    assert {run.variant for run in result.runs} == set(host_streams.VARIANTS)


@pytest.mark.parametrize("seed", range(1, 6))
def test_right_in_any_order(seed):
    result = host_streams.run(
        ("streams", "engines"), 8, (1, 3), "sim", environ={"WARPSIM_SCHEDULE": str(seed)}, batch=8, seq=64, heads=1
    )
    assert result.passed, result.message


def test_other_kernels_and_types():
    for options in ({"stage": 1, "dtype": "fp16"}, {"stage": 9, "dim": 128}):
        result = host_streams.run("streams", 2, 2, "sim", batch=2, heads=1, **options)
        assert result.passed, result.message


def test_blocking_copies_leave_nothing_in_flight():
    for variant in ("pageable", "pinned"):
        for one in operations(variant):
            if one["kind"] != "kernel":
                assert one["queued"] == one["completed"], one


def test_asynchronous_copies_are_in_flight_while_the_host_goes_on():
    found = operations("streams", chunks=4, streams=2)
    assert len(found) == 4 * (TENSORS_IN + 2)
    last_queued = max(one["queued"] for one in found)
    assert all(one["completed"] > last_queued for one in found)
    assert {one["stream"] for one in found} == {1, 2}


def test_each_stream_keeps_its_order():
    for stream in (1, 2):
        queued = [one["queued"] for one in operations("streams") if one["stream"] == stream]
        assert queued == sorted(queued)


def test_pageable_memory_does_not_overlap():
    """The copy out completes in its own call, and with it everything before it: nothing of two chunks is in flight."""
    found = operations("pageable_async", chunks=4, streams=2)
    outs = [one for one in found if one["kind"] == "memcpy_d2h"]
    assert len(outs) == 4 and all(one["queued"] == one["completed"] for one in outs)
    for one in found:
        assert not any(out["queued"] for out in outs if one["queued"] < out["queued"] < one["completed"])


def test_engines_have_a_stream_each():
    by_stream = {}
    for one in operations("engines"):
        by_stream.setdefault(one["stream"], set()).add(one["kind"])
    assert sorted(map(sorted, by_stream.values())) == [["kernel"], ["memcpy_d2h"], ["memcpy_h2d"]]


def test_no_times_from_the_simulator():
    result = host_streams.run("streams", device="sim")
    assert result.runs[0].ms is None and not result.runs[0].spans and " ms" not in result.message


def run_program(*arguments):
    where = choose(stages.program().min_compute, "sim")
    return subprocess.run(
        [host_streams.program(), *arguments], env=environment(where), capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    "arguments, status, words",
    [
        (("--chunks", "3"), 2, "must divide the batch of 8"),
        (("--chunks", "0"), 2, "a positive whole number"),
        (("--streams", "two"), 2, "a positive whole number"),
        (("--variant", "fast"), 2, "none of that name"),
        (("--dtype", "int8"), 2, "bf16 or fp16"),
        (("--seq", "100"), 3, "Nq"),
        (("--stage", "77"), 3, "no kernel"),
        (("--bandwidth",), 3, "needs a GPU"),
        (("--json", "/nonexistent/x.json"), 3, "cannot write"),
        (("extra",), 2, "unexpected argument"),
    ],
)
def test_wrong_arguments_are_refused(arguments, status, words):
    done = run_program(*arguments)
    assert done.returncode == status and words in done.stderr, done.stderr


def test_help_lists_the_variants():
    done = run_program("--help")
    assert done.returncode == 0 and all(name in done.stdout for name in host_streams.VARIANTS)


def test_timeline_and_chrome_trace(tmp_path):
    line = host_streams.run("streams", 2, 2, "sim").timeline()
    assert line.unit == "host calls" and line.lanes() == ["host", "stream 1", "stream 2"]
    assert timeline.load(timeline.save(line, tmp_path / "line.json")) == line
    trace = json.loads(json.dumps(timeline.chrome_trace(line)))
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(complete) == len(line.spans) and all(event["dur"] > 0 for event in complete)
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"}
    assert names == set(line.lanes())


def test_a_timeline_of_several_runs_is_refused():
    with pytest.raises(FlashLadderError, match="one variant alone"):
        host_streams.run(("async", "streams"), device="sim").timeline()


def test_timeline_from_events():
    spans = [
        {"kind": "copy in", "chunk": 0, "stream": 1, "start_ms": 0.0, "end_ms": 1.5},
        {"kind": "compute", "chunk": 0, "stream": 1, "start_ms": 1.5, "end_ms": 2.0},
    ]
    line = timeline.from_events({"title": "two", "spans": spans}, "a GPU")
    assert line.unit == "ms" and [span.label for span in line.spans] == ["0", "0"]
    assert timeline.chrome_trace(line)["traceEvents"][-1]["dur"] == pytest.approx(500)  # microseconds
    assert host_streams.parts_of(spans) == {"copy in": 1.5, "compute": 0.5, "copy out": 0.0}


MISTAKES = breakit.breaks(0)


@pytest.mark.parametrize(
    "mistake", [pytest.param(m, id=m.name, marks=() if i < 1 else pytest.mark.long) for i, m in enumerate(MISTAKES)]
)
def test_mistakes_are_caught(mistake):
    verdict = breakit.run(mistake)
    assert verdict.caught, f"{mistake.mistake} Nothing noticed it."
    assert verdict.by == mistake.caught_by and mistake.message in verdict.message


def test_every_patch_is_described():
    patches = {file.stem for file in (stages.program().folder / "break").glob("*.patch")}
    assert patches == {mistake.name for mistake in MISTAKES} and len(patches) >= 3


def test_recorded_results_are_whole():
    for record in recorded.shipped(kind="host-streams"):
        assert len(record["bandwidth"]) == 6 and len(host_streams.summary_rows(record)) == len(record["cases"]) >= 3
        for case in record["cases"]:
            assert case["best"]["ms"]["median"] >= 0.9 * case["limit_ms"]
        for case in range(len(record["cases"])):
            one, *overlapped = host_streams.recorded_timelines(record, case)
            assert one.lanes() == ["stream 1"] and overlapped
            for line in overlapped:
                assert len(line.lanes()) > 1
                assert max(span.end for span in line.spans) < max(span.end for span in one.spans)
