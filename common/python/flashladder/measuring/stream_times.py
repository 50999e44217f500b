"""Stage 00 on a GPU: bandwidths and times by chunks and streams, measured and recorded."""

import json
import subprocess
from pathlib import Path

from flashladder.core.console import table
from flashladder.core.device import Device, environment, unfit
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import results_directory
from flashladder.ladder import stages
from flashladder.ladder.host_streams import Run, program, run
from flashladder.measuring import bench, provenance, recorded
from flashladder.running import timeline
from flashladder.running.timeline import Timeline

# One bound by copies, one in which copies in and compute take about equally long, one bound by compute.
CASES = (
    {"title": "copies rule: stage 09, N = 512", "stage": 9, "batch": 64, "heads": 16, "seq": 512, "dim": 128},
    {"title": "balanced: stage 03, N = 512", "stage": 3, "batch": 64, "heads": 16, "seq": 512, "dim": 128},
    {"title": "compute rules: stage 09, N = 16384", "stage": 9, "batch": 16, "heads": 4, "seq": 16384, "dim": 128},
)
CHUNKS = (1, 2, 4, 8, 16, 32, 64)
STREAMS = (1, 2, 4, 8)
REPEAT = 5


def parts_of(spans: list[dict]) -> dict[str, float]:
    """Milliseconds of each kind of work, added up over the chunks of a run in which nothing overlaps."""
    sums = {"copy in": 0.0, "compute": 0.0, "copy out": 0.0}
    for span in spans:
        sums[span["kind"]] += span["end_ms"] - span["start_ms"]
    return {kind: round(ms, 3) for kind, ms in sums.items()}


def measure_case(case: dict) -> dict:
    options = {key: value for key, value in case.items() if key != "title"}
    chunks = tuple(count for count in CHUNKS if count <= case["batch"])
    serial = run(("pageable", "pinned"), 1, 1, "gpu", repeat=REPEAT, **options)
    swept = run("streams", chunks, STREAMS, "gpu", repeat=REPEAT, **options)
    others = run(("engines", "pageable_async"), chunks, 4, "gpu", repeat=REPEAT, **options)
    for result in (serial, swept, others):
        if not result.passed:
            raise FlashLadderError(f"stage 00, {case['title']}: wrong results\n{result.message}")
    one_by_one = run("async", 8, 1, "gpu", repeat=1, **options)  # nothing overlaps: what each part takes
    parts = parts_of(one_by_one.runs[0].spans)
    best = min(swept.runs, key=lambda one: one.ms["median"])
    shown = run(("async", "streams", "engines"), 8, 4, "gpu", repeat=1, **options)

    def row(one: Run) -> dict:
        return {"chunks": one.chunks, "streams": one.streams, "ms": one.ms}

    return {
        **case,
        "parts_ms": parts,
        "limit_ms": max(parts.values()),
        "serial_ms": {one.variant: one.ms["median"] for one in serial.runs},
        "best": row(best),
        "sweep": [row(one) for one in swept.runs],
        "engines": [row(one) for one in others.runs if one.variant == "engines"],
        "pageable_async": [row(one) for one in others.runs if one.variant == "pageable_async"],
        "timelines": [{"title": f"{one.title}; {one.chunks} chunks", "spans": one.spans} for one in shown.runs],
    }


def cases_for(device: Device) -> list[dict]:
    """Those whose stage the GPU runs."""
    return [case for case in CASES if not unfit(device.gpu, stages.entry(case["stage"]).min_compute)]


def measure(device: Device) -> dict:
    """The record GPU-host-streams.json: bandwidths, and for each case times by chunks and streams."""
    env = environment(device)
    done = subprocess.run([str(program()), "--bandwidth"], env=env, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise FlashLadderError(f"stage 00: {done.stderr.strip()}")
    return {
        "version": 1,
        "provenance": provenance.collect(device),
        "bandwidth": json.loads(done.stdout),
        "cases": [measure_case(case) for case in cases_for(device)],
    }


def recorded_timelines(record: dict, case: int = 1) -> list[Timeline]:
    """Of a record's case, in ms: one stream, several, and a stream for each engine."""
    return [
        timeline.from_events(one, f"recorded: {recorded.label(record)}") for one in record["cases"][case]["timelines"]
    ]


def run_bench(device: Device) -> Path:
    """Measures on a GPU, prints the tables and returns the JSON file below build/results."""
    bench.check_build(device)
    record = measure(device)
    file = results_directory() / f"{bench.slug(device.short)}-host-streams.json"
    recorded.write(record, file)
    rows = [[one["memory"], one["direction"], f"{one['gb_s']:.1f}"] for one in record["bandwidth"]]
    table(f"Copies on {device}", ("memory", "direction", "GB/s"), rows, right=(2,))
    table("Batches", SUMMARY_COLUMNS, summary_rows(record), right=range(1, len(SUMMARY_COLUMNS)))
    return file


SUMMARY_COLUMNS = ("", "copy in", "compute", "copy out", "serial, pageable", "serial, pinned", "best of streams",
                   "chunks × streams", "streams, pageable", "limit")  # fmt: skip


def summary_rows(record: dict) -> list[list[str]]:
    """A line for each case, milliseconds."""
    rows = []
    for case in record["cases"]:
        parts, best = case["parts_ms"], case["best"]
        pageable = min(one["ms"]["median"] for one in case["pageable_async"])
        figures = [*parts.values(), case["serial_ms"]["pageable"], case["serial_ms"]["pinned"], best["ms"]["median"]]
        rows.append([case["title"], *(f"{ms:.1f}" for ms in figures), f"{best['chunks']} × {best['streams']}",
                     f"{pageable:.1f}", f"{case['limit_ms']:.1f}"])  # fmt: skip
    return rows
