"""Stage 00 from Python: runs the variants of stages/00_host_streams, times them on a GPU, shows what overlaps."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from flashladder.building import build
from flashladder.core.console import say, table
from flashladder.core.device import Device, choose, environment
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory, results_directory
from flashladder.ladder import stages
from flashladder.measuring import bench, provenance, recorded
from flashladder.running import timeline
from flashladder.running.timeline import Timeline

VARIANTS = ("pageable", "pinned", "async", "streams", "engines", "pageable_async")
TARGETS = ["stage_00", "stage_03", "warpsim_cudart"]
WRONG_RESULT = 1  # the program's exit status


@dataclass
class Run:
    """One variant with its number of chunks and streams."""

    variant: str
    title: str
    memory: str  # "pinned" or "pageable"
    chunks: int
    streams: int
    passed: bool
    ms: dict | None  # "median", "p20" and "p80"; None on the simulator
    spans: list[dict] = field(repr=False, default_factory=list)


@dataclass
class Result:
    runs: list[Run]
    device: Device
    message: str  # what the program printed
    report: dict | None = field(repr=False, default=None)  # the simulator's

    @property
    def passed(self) -> bool:
        return all(run.passed for run in self.runs)

    def timeline(self, index: int = 0) -> Timeline:
        """Of one run: in ms from events on a GPU, in host calls on the simulator (then of the whole program)."""
        run = self.runs[index]
        title = f"{run.title}; {run.chunks} chunks"
        if run.spans:
            return timeline.from_events({"title": title, "spans": run.spans}, self.device.short)
        if len(self.runs) > 1:
            raise FlashLadderError("On the simulator a timeline is of the whole program: run one variant alone.")
        return timeline.from_report(self.report, title, _end_of_work(self.report), {"copy in": 3})


def _end_of_work(report: dict) -> int:
    """The last call before the program's own cudaDeviceSynchronize and clean-up."""
    calls = [call["call"] for call in report["host_calls"] if call["name"] == "cudaDeviceSynchronize"]
    return (calls[0] if calls else len(report["host_calls"])) - 1


def program() -> Path:
    return build_directory() / "bin" / "stage_00"


def run(
    variants: str | tuple[str, ...] = VARIANTS,
    chunks: int | tuple[int, ...] = 4,
    streams: int | tuple[int, ...] = 2,
    device: str | None = None,
    executable: Path | None = None,
    environ: dict[str, str] | None = None,
    **options,
) -> Result:
    """Runs variants of the program, for each number of chunks and streams. A wrong result is no error: see `passed`.

    device: "gpu", "sim" or None as in FLASHLADDER_DEVICE. executable: another build of the program. options: the
    program's others, e.g. batch=16, heads=4, seq=512, dim=128, dtype="bf16", stage=9, repeat=9.
    """
    where = choose(stages.program().min_compute, device)
    executable = executable or program()
    if not executable.exists():
        raise FlashLadderError(f"{executable} does not exist: run `make stage-00`.")

    def words(value) -> str:
        return ",".join(str(one) for one in value) if isinstance(value, (tuple, list)) else str(value)

    with tempfile.TemporaryDirectory(prefix="flashladder-streams-") as name:
        folder = Path(name)
        options |= {"variant": words(variants), "chunks": words(chunks), "streams": words(streams)}
        options["json"] = folder / "runs.json"
        command = [str(executable), *(word for key, value in options.items() for word in (f"--{key}", str(value)))]
        env = environment(where) | {"FLASHLADDER_STAGE_LIBRARIES": str(build_directory() / "lib"), **(environ or {})}
        if where.kind == "sim":
            env["WARPSIM_REPORT"] = str(folder / "report.json")
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
        if done.returncode not in (0, WRONG_RESULT):
            raise FlashLadderError(f"stage 00: {(done.stderr or done.stdout).strip()[-1500:]}")
        written = json.loads((folder / "runs.json").read_text())
        report = json.loads((folder / "report.json").read_text()) if (folder / "report.json").exists() else None
    return Result([Run(**one) for one in written["runs"]], where, done.stdout, report)


def explore(
    variants: str | tuple[str, ...], chunks: int | tuple[int, ...] = 4, streams: int | tuple[int, ...] = 2, **more
) -> Iterator[tuple[str, Result]]:
    """Runs variants on the simulator in orders that together try each pair of operations which nothing orders both
    ways: (WARPSIM_SCHEDULE, result) of the default order, in which everything is as late as possible, then of
    "last:K" for each stream K of the program, the default stream 0 among them, and for none. more: as for run()."""
    late = run(variants, chunks, streams, "sim", **more)
    yield "0", late
    most = max(call["stream"] or 0 for call in late.report["host_calls"])
    for stream in range(most + 2):
        schedule = f"last:{stream}"
        yield schedule, run(variants, chunks, streams, "sim", environ={"WARPSIM_SCHEDULE": schedule}, **more)


# One bound by copies, one in which copies in and compute take about equally long, one bound by compute.
CASES = (
    {"title": "copies rule: stage 09, N = 512", "stage": 9, "batch": 64, "heads": 16, "seq": 512, "dim": 128},
    {"title": "balanced: stage 03, N = 512", "stage": 3, "batch": 64, "heads": 16, "seq": 512, "dim": 128},
    {"title": "compute rules: stage 09, N = 16384", "stage": 9, "batch": 16, "heads": 4, "seq": 16384, "dim": 128},
)
CHUNKS = (1, 2, 4, 8, 16, 32, 64)
STREAMS = (1, 2, 4, 8)


def parts_of(spans: list[dict]) -> dict[str, float]:
    """Milliseconds of each kind of work, added up over the chunks of a run in which nothing overlaps."""
    sums = {"copy in": 0.0, "compute": 0.0, "copy out": 0.0}
    for span in spans:
        sums[span["kind"]] += span["end_ms"] - span["start_ms"]
    return {kind: round(ms, 3) for kind, ms in sums.items()}


def measure_case(case: dict, repeat: int = 5) -> dict:
    options = {key: value for key, value in case.items() if key != "title"}
    chunks = tuple(count for count in CHUNKS if count <= case["batch"])
    serial = run(("pageable", "pinned"), 1, 1, "gpu", repeat=repeat, **options)
    swept = run("streams", chunks, STREAMS, "gpu", repeat=repeat, **options)
    others = run(("engines", "pageable_async"), chunks, 4, "gpu", repeat=repeat, **options)
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
        "cases": [measure_case(case) for case in CASES],
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
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(bench.to_text(record))
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


def show_order() -> int:
    """What took effect when, variant by variant, on the simulator; 1 if a result is wrong."""
    wrong = 0
    for variant in VARIANTS:
        result = run(variant, chunks=2, streams=2, device="sim")
        wrong += not result.passed
        rows = [
            [span.lane, span.kind, span.label, int(span.start), int(span.end) - 1]
            for span in result.timeline().spans
            if span.kind != "host"
        ]
        columns = ("stream", "work", "chunk", "from call", "to call")
        table(f"{result.runs[0].title} ({result.runs[0].memory} memory), 2 chunks", columns, rows, right=(2, 3, 4))
    say(
        "\nFrom the call that queued the work to the call in which it took effect: where that is one call, the host "
        "waited for it; the rest was in flight meanwhile.\nA staged copy was read by its call, and is on its way from "
        "the driver's own buffer."
    )
    return 1 if wrong else 0


def compile_program(source: Path, name: str) -> Path:
    """Another build of the program, with `source` in place of host_streams.cpp."""
    folder = build_directory() / "break" / f"00_{name}"
    folder.mkdir(parents=True, exist_ok=True)
    executable = folder / "stage_00"
    partial = folder / f".{os.getpid()}.stage_00"  # several processes may build the same
    host = ROOT / "common" / "host"
    own = stages.program().folder
    sources = [source, *(own / name for name in ("main.cpp", "options.cpp", "batch.cpp"))]
    sources += [host / "problem.cpp", host / "reference.cpp"]
    library, includes = build.info()["cudart_directory"], build.info()["cudart_includes"].split(";")
    command = [os.environ.get("CXX") or shutil.which("g++") or "c++", "-std=c++20", "-O1", "-o", str(partial)]
    command += [f"-I{folder}" for folder in (own, ROOT / "common" / "include", host, *includes)]
    command += [*map(str, sources), f"{library}/libcudart.so.13", f"-Wl,-rpath,{library},--enable-new-dtags"]
    command += ["-ldl", "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise FlashLadderError(f"{source} does not compile:\n{done.stderr[-3000:]}")
    os.replace(partial, executable)
    return executable


def command(verbs: list[str], rest: list[str]) -> int:
    """`make stage-00 ...`"""
    kernels = {"bench": ["stage_09"], "test": ["stage_01", "stage_09"]}  # beside that of stage 03
    build.build(sorted({*TARGETS, *(target for verb in verbs for target in kernels.get(verb, ()))}))
    stage, status = stages.program(), 0
    where = choose(stage.min_compute)
    for verb in verbs or ["build"]:
        if verb == "build":
            say(f"{stage.name}: built.")
        elif verb == "run":
            say(f"Device: {where}")
            status = subprocess.run([str(program()), *rest], env=environment(where)).returncode or status
        elif verb == "test":
            from flashladder.commands import testing

            status = testing.run(only=["tests/stages/test_host_streams.py"], extra=rest) or status
        elif verb == "bench" and where.kind == "gpu":
            say(f"\nWritten: {os.path.relpath(run_bench(where), ROOT)}")
        elif verb in ("bench", "profile"):
            say(f"Device: {choose(stage.min_compute, 'sim')}")
            if verb == "bench":
                say("A time on the simulator says nothing about a GPU; this is the order in which things happen.")
            status = show_order() or status
        elif verb == "break":
            from flashladder.ladder import breakit

            status = breakit.show(stage) or status
        else:
            print(f"{stage.name}: `{verb}` is for kernels; this stage is a program of the host.", file=sys.stderr)
            status = 1
    return status
