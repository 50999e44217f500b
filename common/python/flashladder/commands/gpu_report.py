"""make gpu-report: everything that needs a GPU, in one go: tests, sanitizer, benchmarks, Nsight Compute.

Writes below $OUT (build/gpu-report where it is not set): test.txt, sanitize.txt, summary.txt, GPU.json and
GPU-KIND.json (which can be recorded in docs/results), the plots, and GPU-gpu-report.zip with all of them.
PARTS="test sanitize bench inputs outputs ncu ablations order roofline streams" picks parts; "tune", "profiler",
"sums", "faults", "beside", "clocks" and "power" are more, which have to be named. Needs no network, and of Python numpy
and rich (torch, matplotlib, pytest for their parts).
"""

import concurrent.futures
import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from flashladder.building import build
from flashladder.commands import results, tune
from flashladder.core.console import say, table
from flashladder.core.device import Device, choose, cudart
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory, stage_library
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.kernels import problems_for
from flashladder.ladder.run import run_problem
from flashladder.measuring import (
    ablation_times,
    bench,
    beside_products,
    hard_inputs,
    machine_code,
    ncu,
    outputs,
    power,
    profiler,
    provenance,
    query_tile_clocks,
    recorded,
    report_archive,
    roofline,
    simulator_records,
    stream_times,
)
from flashladder.running.job import Job, StageError, answer
from flashladder.simulator import counters
from flashladder.tuning import record as tuning

PARTS = ("test", "sanitize", "bench", "inputs", "outputs", "ncu", "ablations", "order", "roofline", "streams")
# Only where PARTS names them: "tune" takes as long as all others together; "profiler" is for docs/profiler.md;
# "sums" and "faults" are what the simulator's tests are held to, and faults hang or end a context by design; "beside"
# is about the GPU and no stage; "clocks" is of kernels with marks in them, which are slower; "power" is about why a
# kernel's figures differ from round to round.
ASKED_FOR = ("tune", "profiler", "sums", "faults", "beside", "clocks", "power")
TEST_SECONDS = 240  # for each of the two runs
BENCH_SECONDS = 350
SMALL = Problem(B=1, Hq=2, Nq=256, d_head=128, dtype="bf16")
WHOLE_DEVICE = {"WARPSIM_MULTIPROCESSORS": "0"}  # as many as a GPU has, whatever a stage is simulated with otherwise


def output_directory() -> Path:
    folder = Path(os.environ.get("OUT") or build_directory() / "gpu-report")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run_for(command: list[str], seconds: float, env: dict | None = None) -> tuple[int, str]:
    """(status, output) of a command; after `seconds` it and what it started are ended, with status 124."""
    with tempfile.TemporaryFile("w+") as output:
        running = subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        try:
            status = running.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            status = 124
        output.seek(0)
        return status, output.read()


def part_test(device: Device, folder: Path) -> list[str]:
    """The tests as `make test` runs them here, then the simulator's own programs on the GPU: do both agree?"""
    summary, log = [], []
    for choice, chosen in (("auto", []), ("gpu", ["tests/simulator"])):
        command = [sys.executable, "-m", "flashladder", "test", "--", "-p", "no:cacheprovider", *chosen]
        status, text = run_for(command, TEST_SECONDS, for_python() | {"FLASHLADDER_DEVICE": choice})
        log.append(f"==== FLASHLADDER_DEVICE={choice} {' '.join(chosen)}\n{text}")
        lines = text.strip().splitlines()
        last = f"stopped after {TEST_SECONDS} s" if status == 124 else lines[-1] if lines else "no output"
        summary.append(f"test ({choice}): status {status}: {last}")
        summary += [line[:200] for line in lines if line.startswith(("FAILED", "ERROR"))][:12]
    (folder / "test.txt").write_text("\n".join(log))
    return summary


def sanitize_one(stage: stages.Stage, problem: Problem, tool: str, device: Device) -> tuple[str, str]:
    """(verdict, output) of one run of a stage under compute-sanitizer."""
    with tempfile.TemporaryDirectory(prefix="flashladder-sanitize-") as name:
        folder = Path(name)
        job = Job(str(cudart(device)), str(stage_library(stage.number)), problem)
        worker = job.write(folder, problem.random())
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "99"]
        if tool == "racecheck":
            command += ["--racecheck-report", "all"]
        status, text = run_for([*command, *worker], 120, for_python())
        result = answer(folder) or {"status": "no result"}
    summary = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", text)
    clean = status == 0 and result["status"] == "ok" and summary and summary[1].startswith("0 ")
    if clean:
        return "clean", text
    found = summary[1] if summary else f"status {status}"
    return f"{found}; {result['status']} {result.get('message', '')}".strip(), text


def part_sanitize(device: Device, folder: Path) -> list[str]:
    if not shutil.which("compute-sanitizer"):
        return ["sanitize: compute-sanitizer is not on PATH"]
    jobs = [
        (stage, stage.own(problem), tool)
        for stage in stages.all_stages()
        for problem in (
            Problem(B=1, Hq=2, Nq=256, d_head=128, dtype="bf16"),
            Problem(B=1, Hq=2, Nq=256, d_head=64, dtype="fp16"),
            *problems_for(stage)[1:],  # masks and ragged ends, of the stages that have them
        )
        for tool in ("memcheck", "racecheck")
    ]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda job: sanitize_one(*job, device), jobs))
    log, summary = [], []
    for (stage, problem, tool), (verdict, text) in zip(jobs, done, strict=True):
        log.append(f"==== {stage.name}, {problem}, {tool}: {verdict}\n{text}")
        if verdict != "clean":
            summary.append(f"sanitize: {stage.name} {problem} {tool}: {verdict}")
    (folder / "sanitize.txt").write_text("\n".join(log))
    clean = sum(verdict == "clean" for verdict, _ in done)
    return [f"sanitize: {clean} of {len(jobs)} runs clean (memcheck and racecheck, all stages)", *summary]


def part_bench(device: Device, folder: Path) -> list[str]:
    settings = bench.Settings(
        head_dims=(128, 64), dtypes=("bf16", "e4m3", "fp16"), deadline=BENCH_SECONDS, seconds=0.2, slowest_run=5.0
    )
    file = bench.run_bench(settings, device)
    shutil.copy(file, folder / f"{bench.slug(device.short)}.json")
    measured = recorded.load(file)
    try:
        from flashladder import plot

        for what in itertools.product(("bf16", "e4m3"), (64, 128), (False, True)):
            dtype, d, causal = what
            if recorded.pick(measured, dtype=dtype, d_head=d, causal=causal):
                figure = plot.throughput([(measured, True)], *what)
                plot.save(figure, folder / recorded.picture(*what))
    except (ImportError, FlashLadderError) as error:
        return [f"bench: no plot: {error}"]
    return [f"bench: {len(measured['measurements'])} figures, {len(measured['skipped'])} skipped"]


def part_inputs(device: Device, folder: Path) -> list[str]:
    """Stages whose time depends on the numbers, on inputs that hurt them, and stage 19, whose time does not."""
    which = tuple(one.number for one in stages.all_stages() if one.number >= 19)
    record = hard_inputs.measure(device, which)
    (folder / f"{bench.slug(device.short)}-inputs.json").write_text(bench.to_text(record))
    return [f"inputs: {len(record['measurements'])} figures of {len(record['inputs'])} kinds of inputs"]


def part_outputs(device: Device, folder: Path) -> list[str]:
    """The simulator's outputs and the GPU's, element by element."""
    record = outputs.measure(device)
    (folder / f"{bench.slug(device.short)}-outputs.json").write_text(bench.to_text(record))
    summary = []
    for kind in record["inputs"]:
        rows = [row for row in record["outputs"] if row["inputs"] == kind]
        equal = sum(not row["O differ"] for row in rows)
        most = max(row["O ulps"] for row in rows)
        summary.append(f"outputs: {kind}: {equal} of {len(rows)} runs equal to the bit, others by {most} ulps at most")
    return summary


def part_ncu(device: Device, folder: Path) -> list[str]:
    """Nsight Compute's counters beside warpsim's for the same small problem."""
    if not ncu.available():
        return ["ncu: not on PATH"]
    entries, notes = [], []
    for stage in stages.all_stages():
        try:
            measured = ncu.measure(stage, stage.own(SMALL), device)
            simulated = counters.totals(
                run_problem(stage, stage.own(SMALL), device="sim", environment=WHOLE_DEVICE).report
            )
        except (FlashLadderError, StageError) as error:
            notes.append(f"ncu: {stage.name}: {str(error)[:300]}")
            continue
        entries.append(
            {"stage": stage.name, "kernel_sha256": stage.kernel_hash(), "ncu": measured, "warpsim": simulated}
        )
    record = {
        "version": 1,
        "provenance": provenance.collect(device),
        "problem": str(SMALL),
        "metrics": ncu.metrics(),
        "counters": entries,
    }
    (folder / f"{bench.slug(device.short)}-counters.json").write_text(bench.to_text(record))
    rows = [(entry["stage"], *row) for entry in entries for row in results.compare_counters(entry)]
    marked = [(*row, "" if row[2] == row[3] else "differs") for row in rows]
    table(f"warpsim and Nsight Compute, {SMALL}", ("stage", "counter", "warpsim", "ncu", ""), marked, right=(2, 3))
    equal = sum(row[2] == row[3] for row in rows)
    return [f"ncu: {equal} of {len(rows)} counters equal", *notes]


def part_ablations(device: Device, folder: Path) -> list[str]:
    file = ablation_times.run(device)
    shutil.copy(file, folder / f"{bench.slug(device.short)}-ablations.json")
    return [f"ablations: {len(recorded.load(file)['measurements'])} figures"]


def part_order(device: Device, folder: Path) -> list[str]:
    """Where the compiler put loads and matrix products, for the stages that are about it."""
    with open(folder / "order.txt", "w") as file, contextlib.redirect_stdout(file):
        for number in (7, 8, 9):
            machine_code.show(stages.get(number))
            say()
    return ["order: order.txt"]


def part_roofline(device: Device, folder: Path) -> list[str]:
    results_file = folder / f"{bench.slug(device.short)}.json"
    known = recorded.load(results_file) if results_file.exists() else recorded.first()
    if not known:
        raise FlashLadderError("roofline: run the part bench, too.")
    record = roofline.measure(device, known)
    (folder / f"{bench.slug(device.short)}-roofline.json").write_text(bench.to_text(record))
    return [f"roofline: {len(record['rows'])} stages, copy {record['bandwidth_gb_s']:.0f} GB/s"]


def part_streams(device: Device, folder: Path) -> list[str]:
    shutil.copy(stream_times.run_bench(device), folder / f"{bench.slug(device.short)}-host-streams.json")
    return ["streams: bandwidths and three batches"]


def part_tune(device: Device, folder: Path) -> list[str]:
    """Stage 12's configurations; what is measured lies in FLASHLADDER_TUNING_STORE, so that a second call goes on."""
    made = folder / tuning.file_name(device)
    status = tune.run(tune.Options(out=made), device)
    record = recorded.load(made)
    failed = [row["configuration"] for row in record["configurations"] if "failed" in row]
    summary = [f"tune: {len(record['configurations'])} configurations, {len(failed)} failed, status {status}"]
    return summary + [f"tune: failed: {one}" for one in failed]


def part_profiler(device: Device, folder: Path) -> list[str]:
    """What docs/profiler.md reads: sections, counters, stall reasons and samples of a few kernels."""
    record, notes = profiler.collect(device, folder / "profiler")
    (folder / f"{bench.slug(device.short)}-profiler.json").write_text(bench.to_text(record))
    missing = [f"profiler: ncu has no figure here: {name}" for name, metric in record["metrics"].items() if not metric]
    return [f"profiler: {len(record['kernels'])} kernels of {len(profiler.KERNELS)}", *notes, *missing]


def part_sums(device: Device, folder: Path) -> list[str]:
    """Bits of the tensor cores' sums on hard operands, which the simulator's tests replay."""
    record = simulator_records.sums(device)
    (folder / f"{bench.slug(device.short)}-sums.json").write_text(bench.to_text(record))
    failed = [f"sums: failed: {name}: {why[:200]}" for name, why in record["failed"].items()]
    return [f"sums: {len(record['sums'])} cases, {len(failed)} failed", *failed[:12]]


def part_faults(device: Device, folder: Path) -> list[str]:
    """What the GPU makes of the faulty kernels for Hopper, which the simulator names with their lines."""
    record = simulator_records.faults(device)
    (folder / f"{bench.slug(device.short)}-faults.json").write_text(bench.to_text(record))
    summary = []
    for twin, words in (("gpu", "faulty"), ("gpu mended", "mended")):
        counts = simulator_records.outcomes(record, twin)
        summary.append(f"faults: {words}: " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return summary + [f"faults: the GPU stopped answering {record['stopped']}"] * bool(record["stopped"])


def part_beside(device: Device, folder: Path) -> list[str]:
    """Clocks of instructions while the tensor cores multiply."""
    record = beside_products.measure(device)
    (folder / f"{bench.slug(device.short)}-beside-products.json").write_text(bench.to_text(record))
    return [f"beside: {len(record['rows'])} figures"]


def part_clocks(device: Device, folder: Path) -> list[str]:
    """Clocks of a change of query tile, from kernels with marks."""
    record = query_tile_clocks.measure(device)
    (folder / f"{bench.slug(device.short)}-query-tile-clocks.json").write_text(bench.to_text(record))
    return [f"clocks: {len(record['rows'])} warpgroups"]


def part_power(device: Device, folder: Path) -> list[str]:
    """Each kernel's clock, in turn with the others and alone."""
    record = power.measure(device)
    (folder / f"{bench.slug(device.short)}-power.json").write_text(bench.to_text(record))
    return [f"power: {len(record['measurements'])} figures"]


def run(parts: tuple[str, ...] = ()) -> int:
    parts = parts or tuple(os.environ.get("PARTS", "").replace(",", " ").split()) or PARTS
    unknown = [part for part in parts if part not in PARTS + ASKED_FOR]
    if unknown:
        raise FlashLadderError(f"PARTS: '{unknown[0]}' is none of {', '.join(PARTS + ASKED_FOR)}.")
    device = choose(choice="gpu")
    folder = output_directory()
    summary = [f"{device}, {provenance.collect(device)['date']}"]
    functions = {"test": part_test, "sanitize": part_sanitize, "bench": part_bench, "ncu": part_ncu}
    functions |= {"inputs": part_inputs, "outputs": part_outputs}
    functions |= {"ablations": part_ablations, "order": part_order}
    functions |= {"roofline": part_roofline, "streams": part_streams, "tune": part_tune, "profiler": part_profiler}
    functions |= {"sums": part_sums, "faults": part_faults, "beside": part_beside, "clocks": part_clocks}
    functions |= {"power": part_power}
    began = time.monotonic()
    build.build()
    summary.append(f"build: {time.monotonic() - began:.0f} s, native code for {build.info()['native']}")
    failed = False
    for part in parts:
        began = time.monotonic()
        try:
            lines = functions[part](device, folder)
        except FlashLadderError as error:
            lines, failed = [f"{part}: {error}"], True
        say("\n".join(lines))
        summary += [*lines, f"({part}: {time.monotonic() - began:.0f} s)"]
    text = "\n".join(summary)
    (folder / "summary.txt").write_text(text + "\n")
    say(f"\n==== summary\n{text}")
    file = report_archive.pack(folder, bench.slug(device.short))
    say(f"\nAll of it in one file, to be sent: {file}")
    say(f"What is wrong with it, if anything: make check-report FILE={file}")
    return 1 if failed else 0
