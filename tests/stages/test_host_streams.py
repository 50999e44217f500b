"""Stage 00: every variant is right, overlaps where it should and only there."""

import json
import subprocess

import pytest

from flashladder import plot
from flashladder.core.device import choose, environment
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import host_streams
from flashladder.measuring import recorded, stream_times
from flashladder.running import timeline

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


SMALL = {"batch": 8, "seq": 64, "heads": 1}


@pytest.mark.parametrize("variant, sets", [("async", 1), ("streams", 3), ("engines", 1), ("engines", 3)])
def test_right_in_every_order(variant, sets):
    """Each pair of operations that nothing orders is tried both ways: a wait that is missing shows."""
    tried = []
    for schedule, result in host_streams.explore(variant, 8, sets, **SMALL):
        assert result.passed, (
            f"{variant} with {sets} set(s) of buffers is wrong where WARPSIM_SCHEDULE={schedule}: operations run in "
            f"another order that the program allows. Does each wait for all that it needs?\n{result.message}"
        )
        tried.append(schedule)
    streams = {"async": 1, "streams": sets, "engines": 3}[variant]
    wanted = ["0", *(f"last:{stream}" for stream in range(streams + 2))]
    assert tried == wanted, (
        f"{variant} has {streams} stream(s) and the default stream, so the orders should be {wanted}"
    )


@pytest.mark.parametrize("seed", range(1, 4))
def test_right_in_random_orders(seed):
    environ = {"WARPSIM_SCHEDULE": str(seed)}
    result = host_streams.run(("streams", "engines"), 8, (1, 3), "sim", environ=environ, **SMALL)
    assert result.passed, f"wrong where WARPSIM_SCHEDULE={seed}\n{result.message}"


def test_other_kernels_and_types():
    for options in ({"stage": 1, "dtype": "fp16"}, {"stage": 9, "dim": 128}):
        result = host_streams.run("streams", 2, 2, "sim", batch=2, heads=1, **options)
        assert result.passed, result.message


def test_blocking_copies_leave_nothing_in_flight():
    for variant in ("pageable", "pinned"):
        for one in operations(variant):
            if one["kind"] != "kernel":
                assert one["queued"] == one["completed"], (
                    f"{variant}: this copy was still in flight after its call: {one}"
                )


def test_asynchronous_copies_are_in_flight_while_the_host_goes_on():
    found = operations("streams", chunks=4, streams=2)
    assert len(found) == 4 * (TENSORS_IN + 2), "each chunk is Q, K and V in, a kernel, and O out"
    last_queued = max(one["queued"] for one in found)
    waited = [one for one in found if one["completed"] <= last_queued]
    assert not waited, f"the host waited for these before it had queued all chunks: {waited}"
    assert {one["stream"] for one in found} == {1, 2}, "the chunks lie in both streams"


def test_one_stream_leaves_the_host_free():
    found = operations("async")
    last_queued = max(one["queued"] for one in found)
    assert all(one["completed"] > last_queued for one in found), "the host waited before it had queued all chunks"
    assert {one["stream"] for one in found} == {1}, "`async` is one stream, and not the default one"


def test_each_variant_uses_its_kind_of_memory():
    for variant in host_streams.VARIANTS:
        wanted = "pageable" if variant.startswith("pageable") else "pinned"
        kinds = {one["host_memory"] for one in operations(variant) if one["kind"] != "kernel"}
        assert kinds == {wanted}, f"the copies of {variant} should be from and to {wanted} memory alone"


def test_each_stream_keeps_its_order():
    for stream in (1, 2):
        queued = [one["queued"] for one in operations("streams") if one["stream"] == stream]
        assert queued and queued == sorted(queued), f"stream {stream} is a queue: first in, first out"


def test_pageable_memory_does_not_overlap():
    """The copy out completes in its own call, and with it everything before it: nothing of two chunks is in flight."""
    found = operations("pageable_async", chunks=4, streams=2)
    outs = [one for one in found if one["kind"] == "memcpy_d2h"]
    assert len(outs) == 4
    late = [one for one in outs if one["queued"] != one["completed"]]
    assert not late, f"a copy to pageable memory was still in flight after its call: {late}"
    for one in found:
        over = [out for out in outs if one["queued"] < out["queued"] < one["completed"]]
        assert not over, f"{one} was in flight while another chunk's copy out was waited for"


def test_engines_have_a_stream_each():
    by_stream = {}
    for one in operations("engines"):
        by_stream.setdefault(one["stream"], set()).add(one["kind"])
    kinds = sorted(map(sorted, by_stream.values()))
    assert kinds == [["kernel"], ["memcpy_d2h"], ["memcpy_h2d"]], (
        "one stream for copies in, one for kernels, one for out"
    )


def test_work_of_several_streams_is_in_flight_at_once():
    assert host_streams.streams_in_flight(host_streams.program()) == {"streams": 2, "engines": 3}


def test_engines_never_stop_the_host():
    found = operations("engines")
    last_queued = max(one["queued"] for one in found)
    assert all(one["completed"] > last_queued for one in found), "the host waited before it had queued all chunks"


def test_no_times_from_the_simulator():
    result = host_streams.run("streams", device="sim")
    run = result.runs[0]
    assert run.ms is None and not run.spans and " ms" not in result.message, "the simulator's time says nothing"


def run_program(*arguments):
    where = choose(host_streams.stage().min_compute, "sim")
    return subprocess.run(
        [host_streams.program(), *arguments], env=environment(where), capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    "arguments, status, words",
    [
        (("--chunks", "3"), 2, "must divide the batch of 8"),
        (("--chunks", "0"), 2, "--chunks 0: expected a whole number from 1 to 2147483647, or several"),
        (("--chunks", "2,"), 2, "--chunks 2,: expected a whole number"),
        (("--streams", "two"), 2, "--streams two: expected a whole number"),
        (("--streams", "2,-1"), 2, "--streams 2,-1: expected a whole number"),
        (("--streams", "1,2147483648"), 2, "--streams 1,2147483648: expected a whole number"),
        (("--repeat", "5x"), 2, "--repeat 5x: expected a whole number from 1 to 2147483647"),
        (("--repeat",), 2, "option --repeat wants a value, R"),
        (("--json", ""), 2, "--json '': expected something that is not empty"),
        (("--b", "8"), 2, "option --b may mean --batch, --bandwidth"),
        (("--fast",), 2, "unknown option --fast"),
        (("--variant", "fast"), 2, "--variant fast: expected one or several of pageable, pinned, async"),
        (("--dtype", "int8"), 2, "--dtype int8: expected bf16 or fp16"),
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


def test_bars_carry_the_number_of_their_chunk():
    """Chunk c lies in stream c mod 2: the second stream's first bar is chunk 1."""
    for variant, chunk_of in (("streams", {"stream 1": "02", "stream 2": "13"}), ("engines", None)):
        spans = [span for span in host_streams.run(variant, 4, 2, "sim").timeline().spans if span.kind != "host"]
        for kind, times in (("copy in", TENSORS_IN), ("compute", 1), ("copy out", 1)):
            labels = [span.label for span in spans if span.kind == kind]
            assert labels == sorted("0123" * times), f"{variant}: the chunks of the bars of {kind}, in the calls' order"
        for lane, wanted in (chunk_of or {}).items():
            labels = {span.label for span in spans if span.lane == lane}
            assert labels == set(wanted), f"the chunks of {lane}"


def test_a_call_that_reads_pageable_memory_is_not_drawn_in_flight():
    """The call returns when the driver has read the memory; what is in flight then is the driver's own copy."""
    spans = host_streams.run("pageable_async", 2, 2, "sim").timeline().spans
    copies = [span for span in spans if span.kind == "copy in"]
    staged = [span for span in spans if span.kind == "staged copy in"]
    assert len(copies) == len(staged) == 2 * TENSORS_IN
    for copy, rest in zip(copies, sorted(staged, key=lambda span: span.start), strict=True):
        assert copy.end == copy.start + 1, f"{copy} reaches beyond its call, which waits until the memory is read"
        assert (rest.lane, rest.label, rest.start) == (copy.lane, copy.label, copy.end)
    pinned = host_streams.run("streams", 2, 2, "sim").timeline().spans
    assert not any(span.kind == "staged copy in" for span in pinned), "pinned memory needs no buffer of the driver's"


def test_pictures_show_the_number_of_every_chunk():
    """Also in narrow bars, and what goes on in another bar stays in its row."""
    lines = [host_streams.run("pageable_async", 2, 2, "sim").timeline()]
    for line in [*lines, *stream_times.recorded_timelines(the_record())]:
        axes = plot.timeline(line).axes[0]
        shown = sorted(text.get_text() for text in axes.texts if text.get_text().isdigit())
        assert shown == sorted(span.label for span in line.spans if span.kind != "host"), line.title
    rows = {}
    for text in plot.timeline(lines[0]).axes[0].texts:
        if text.get_text().isdigit():
            rows.setdefault(text.get_position()[1], []).append(text.get_text())
    assert sorted(map(len, rows.values())) == [1] * 4 + [2] * 2 * TENSORS_IN, (
        "a copy in and its staged part share a row"
    )


def test_timeline_and_chrome_trace():
    line = host_streams.run("streams", 2, 2, "sim").timeline()
    assert line.unit == "host calls" and line.lanes() == ["host", "stream 1", "stream 2"]
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
    assert stream_times.parts_of(spans) == {"copy in": 1.5, "compute": 0.5, "copy out": 0.0}


def the_record():
    records = recorded.shipped(kind="host-streams")
    assert records, "docs/results holds no *-host-streams.json: `make stage-00 bench` on a GPU writes one"
    return records[0]


def test_recorded_results_are_whole():
    for record in [the_record(), *recorded.shipped(kind="host-streams")[1:]]:
        where = recorded.label(record)
        assert len(record["bandwidth"]) == 6, f"{where}: bandwidth of two kinds of memory, in, out and both at once"
        assert len(stream_times.summary_rows(record)) == len(record["cases"]) >= 3, f"{where}: three batches"
        for number, case in enumerate(record["cases"]):
            name = f"{where}, {case['title']}"
            best, limit = case["best"]["ms"]["median"], case["limit_ms"]
            assert best >= 0.9 * limit, f"{name}: {best} ms is faster than the slowest part alone, {limit} ms"
            one, *overlapped = stream_times.recorded_timelines(record, number)
            assert one.lanes() == ["stream 1"] and overlapped, f"{name}: one stream first, then those that overlap"
            for line in overlapped:
                assert len(line.lanes()) > 1, f"{name}: {line.title} should be several streams"
                first, last = (max(span.end for span in found.spans) for found in (line, one))
                assert first < last, f"{name}: {line.title} took {first} ms, one stream {last} ms"


def test_sentences_say_what_is_recorded():
    """Those of the card and of the notebook that have no figure of their own (figures.toml has the others)."""
    for case in the_record()["cases"]:
        name, parts = case["title"], case["parts_ms"].values()
        took = {(row["chunks"], row["streams"]): row["ms"]["median"] for row in case["sweep"]}
        limit, total = max(parts), sum(parts)
        predicted = limit + (total - limit) / 8
        assert abs(took[8, 4] / predicted - 1) < 0.05, f"{name}: the formula is right within a few percent"
        assert took[8, 1] > took[1, 1], f"{name}: one stream gains nothing from more chunks"
        assert case["best"]["chunks"] == 16, f"{name}: the best has 16 chunks"
        two_are_enough = took[8, 2] / took[8, 4] < 1.01
        assert two_are_enough != name.startswith("balanced"), f"{name}: only the balanced batch gains from four streams"
        pageable = next(row["ms"]["median"] for row in case["pageable_async"] if row["chunks"] == 8)
        assert pageable > case["serial_ms"]["pageable"] * 0.95, f"{name}: streams of pageable memory gain nothing"
