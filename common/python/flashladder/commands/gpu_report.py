"""make gpu-report: everything that needs a GPU: verification, sanitizer, benchmarks, Nsight Compute. make report: the
parts for those who have half an hour and no profiler.

Writes below $OUT (build/gpu-report where it is not set) summary.txt, records that `make check-report` takes in
(GPU.json and GPU-KIND.json), logs of the parts, GPU.html to read, and GPU-gpu-report.zip with all of them. A run that
was ended goes on with the first part that it has not done. Stages that the GPU cannot run are left out; why is said.

PARTS="verify bench" picks parts, of PARTS and ASKED_FOR below; each runs alone. STAGES="14-23" or "tma wgmma" picks
stages. Each part ends within nine minutes; what it had no time for is in the summary. Needs no network, and of Python
numpy and rich (torch for peers, pytest for the tests, matplotlib for pictures).
"""

import concurrent.futures
import json
import os
import re
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from flashladder.building import build
from flashladder.commands import report_page, results, tune, tune_shapes
from flashladder.core.console import say, table
from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.device import Device, choose, cudart, unfit
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import build_directory, stage_library
from flashladder.core.problem import Problem
from flashladder.core.signals import run_for
from flashladder.ladder import ablations, host_streams, stages
from flashladder.ladder.kernels import WithKernel, problems_for
from flashladder.ladder.stages import Stage
from flashladder.measuring import (
    ablation_times,
    backward_bench,
    bench,
    decode_bench,
    detections,
    gpu_memory,
    ncu,
    profiler,
    provenance,
    recorded,
    report_check,
    roofline,
    simulator_records,
    stream_times,
)
from flashladder.running.job import Job, Options, StageError, answer
from flashladder.tuning import decode_table, instances, shape_table
from warpsim import counters

PARTS = ("verify", "sanitize", "bench", "ablations", "ncu")
# Only where PARTS names them: "tune" takes as long as all others together; "faults" are kernels that hang or end a
# context by design. Without STAGES they are the simulator's own, with bits of the tensor cores' sums: what its tests
# are held to. With STAGES they are the stages' planted mistakes: which tool notices them (measuring/detections.py).
ASKED_FOR = ("tune", "faults")
DEMO_SECONDS, TEST_SECONDS = 60, 240  # of the part verify: for the demo, and for each of the two runs of tests
PART_SECONDS = 350  # after which a part begins nothing more
SMALL = Problem(B=1, Hq=2, Nq=256, d_head=128, dtype="bf16")
WHOLE_DEVICE = {"WARPSIM_MULTIPROCESSORS": "0"}  # as many as a GPU has, whatever a stage is simulated with otherwise
FREE_BYTES_NEEDED = 2 << 30  # for the build and what is written
UNFINISHED = "unfinished"  # the file with the lines of the parts that are done
AT_ONCE = 8  # runs that share the GPU, where nothing is timed


def output_directory() -> Path:
    folder = Path(os.environ.get("OUT") or build_directory() / "gpu-report")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def chosen(words: str) -> tuple[Stage, ...]:
    """Stages by number, by name, or from one to another: "14-23", "tma, shapes 00"; "": the forward ladder."""
    found: dict[str, Stage] = {}
    for word in words.replace(",", " ").split():
        first, dash, last = word.partition("-")
        ends = [stages.entry(one).number for one in (first, last if dash else first)]
        every = stages.all_parts()
        picked = [one for one in every if ends[0] <= one.number <= ends[1]]
        if not picked:
            raise FlashLadderError(f"STAGES: '{word}' is no stage and no range of stages.")
        found |= {one.name: one for one in picked}
    return tuple(sorted(found.values(), key=lambda one: one.number)) or stages.every_stage()


class Report:
    """Of which stages, on which GPU, and where it is written."""

    # Of the part faults: mistakes of stages that STAGES names, and which.
    planted: detections.Choice | None = None

    def __init__(self, device: Device, folder: Path, asked: tuple[Stage, ...]):
        limits = [unfit(device.gpu, one.min_compute) for one in asked]
        which = tuple(one for one, limit in zip(asked, limits, strict=True) if not limit)
        self.device, self.folder, self.which = device, folder, which
        self.whole = asked == stages.every_stage()
        self.left_out: dict[str, list[str]] = {}  # by the reason: names of stages
        self.wrong = False  # whether a stage, the demo or a test was: then the part is none that is done
        for one, limit in zip(asked, limits, strict=True):
            if limit:
                self.left_out.setdefault(limit, []).append(one.name)
        self.has_streams = any(isinstance(one, host_streams.HostStreams) for one in which)
        self.kernels = [one for one in which if isinstance(one, stages.Kernel)]
        self.backward = [one for one in which if isinstance(one, stages.Backward)]
        self.decode = [one for one in which if isinstance(one, stages.Decode)]
        self.numbers = tuple(one.number for one in self.kernels)

    def file(self, kind: str = "") -> Path:
        return self.folder / f"{bench.slug(self.device.short)}{kind and f'-{kind}'}.json"

    def build(self, parts: tuple[str, ...]) -> None:
        """What the parts need: all there is for the tests, the simulator where its counts stand beside a GPU's."""
        if "verify" in parts and self.whole:
            return build.build()
        if self.planted and parts == ("faults",):  # the stages as they are are compiled as their mistakes are
            with_more = [
                one for one in self.which if not isinstance(one, (stages.Kernel, stages.Backward, stages.Decode))
            ]
            more = {target for one in with_more for target in one.targets} - {"warpsim_cudart"}
            return build.build(sorted(more | {f"stage_{stages.entry(detections.PROBE).id}"}))
        targets = {f"stage_{one.id}" for one in self.which}
        if self.has_streams:
            targets |= {f"stage_{case['stage']:02d}" for case in stream_times.cases_for(self.device)}
        if self.backward and "bench" in parts:
            targets.add(f"stage_{stages.entry(backward_bench.FORWARD).id}")
        if self.decode and {"bench", "tune"} & set(parts):
            targets.add("read_cache")
        if {"ncu", "faults"} & set(parts):
            targets.add("warpsim_cudart")
        if self.planted and "faults" in parts:
            targets |= {target for one in self.which for target in one.targets}
        return build.build(sorted(targets))


# ---- verify ----


def to_verify(stage: WithKernel) -> list[Problem]:
    """Both head dims and types, whole tiles and, of a stage that masks, ragged ends, masks and groups of heads."""
    plain = [stage.own(Problem(B=2, Hq=2, Nq=512, d_head=d, dtype=dtype)) for d in (64, 128) for dtype in stage.dtypes]
    if not stage.data.get("masks"):
        return plain
    shapes = [(63, 200), (129, 127), (1000, 1000), (2048, 2048)]
    masked = [
        stage.own(Problem(B=1, Hq=4, Hkv=2, Nq=Nq, Nkv=Nkv, d_head=d, dtype=stage.dtypes[-1], causal=causal))
        for Nq, Nkv in shapes
        for d in (64, 128)
        for causal in (False, True)
    ]
    return [*plain, *masked]


def decode_problems(stage: stages.Decode) -> list[DecodeProblem]:
    """Both head dims and types: equal lengths of few and of many heads, one tile of rows of Q and two; unequal ones, 0
    and 1 among them, in one piece and in pages."""
    lengths = (700, 0, 1, 33, 64, 127, 650, 256)
    pages = [size for size in (0, 16, 64, 128) if size % stage.page_multiple == 0]
    return [
        DecodeProblem(**shape, d_head=d, dtype=dtype)
        for d, dtype in ((64, "fp16"), (128, "bf16"))
        for shape in (
            *({"B": B, "Hq": 32, "Hkv": 8, "Nkv": 1000} for B in (1, 8, 24, 40)),
            {"B": 3, "Hq": 16, "Hkv": 1, "Nkv": 5000},
            *(
                {"B": 8, "Hq": 8, "Hkv": 2, "Nq": 2, "Nkv": 700, "lengths": lengths, "page_size": size}
                for size in pages
            ),
            {"B": 4, "Hq": 4, "Hkv": 2, "Nkv": 9000, "lengths": (9000, 8001, 5, 8990), "page_size": pages[-1]},
        )
    ]


def part_verify(report: Report) -> list[str]:
    """Each stage against the float64 reference, on the GPU; of all stages the demo and the tests, too, as `make test`
    runs them, and the simulator's own programs on the GPU: do both agree?"""
    jobs = [(stage, problem) for stage in (*report.kernels, *report.backward) for problem in to_verify(stage)]
    jobs += [(stage, problem) for stage in report.decode for problem in decode_problems(stage)]

    def verdict(stage: WithKernel, problem: Problem) -> str:
        inputs, repeat = stage.random_inputs(problem, 3), 1 if isinstance(stage, stages.Kernel) else 3
        try:
            comparison = stage.compared(problem, inputs, stage.run(problem, inputs, "gpu", repeat=repeat))
        except (FlashLadderError, StageError) as error:
            return f"failed: {str(error)[:300]}"
        return "right" if comparison else f"WRONG: {comparison.message}"

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda job: verdict(*job), jobs))
    log = [f"{stage.name}, {problem}: {said}" for (stage, problem), said in zip(jobs, found, strict=True)]
    wrong = [line for line, said in zip(log, found, strict=True) if said != "right"]
    summary = [f"verify: {len(jobs) - len(wrong)} of {len(jobs)} runs right", *(f"verify: {line}" for line in wrong)]
    report.wrong = bool(wrong)
    if report.whole:
        said, text = run_tests(report)
        summary, log = [*run_demo(report), *summary, *said], [*log, text]
    (report.folder / "verify.txt").write_text("\n".join(log) + "\n")
    return summary


def run_demo(report: Report) -> list[str]:
    """What `make demo` says on this machine, the stages that the GPU cannot run on the simulator."""
    command = [sys.executable, "-m", "flashladder", "demo"]
    status, text = run_for(command, DEMO_SECONDS, for_python() | {"FLASHLADDER_DEVICE": "auto"})
    (report.folder / "demo.txt").write_text(text)
    report.wrong |= status not in (0, 124)
    said = {0: "every stage right", 124: f"stopped after {DEMO_SECONDS} s"}
    return [f"demo: {said.get(status, f'status {status}, see demo.txt')}"]


def run_tests(report: Report) -> tuple[list[str], str]:
    """(lines for the summary, all that pytest said)"""
    summary, log = [], []
    for choice, picked in (("auto", []), ("gpu", ["tests/simulator"])):
        command = [sys.executable, "-m", "flashladder", "test", "--", "-p", "no:cacheprovider", *picked]
        status, text = run_for(command, TEST_SECONDS, for_python() | {"FLASHLADDER_DEVICE": choice})
        log.append(f"==== FLASHLADDER_DEVICE={choice} {' '.join(picked)}\n{text}")
        report.wrong |= status not in (0, 124)
        lines = text.strip().splitlines()
        last = f"stopped after {TEST_SECONDS} s" if status == 124 else lines[-1] if lines else "no output"
        summary.append(f"test ({choice}): status {status}: {last}")
        summary += [line[:200] for line in lines if line.startswith(("FAILED", "ERROR"))][:12]
    return summary, "\n".join(log)


# ---- sanitize ----


def sanitize_one(stage: WithKernel, problem: Problem, tool: str, device: Device) -> tuple[str, str]:
    """(verdict, output) of one run of a stage under compute-sanitizer."""
    with tempfile.TemporaryDirectory(prefix="flashladder-sanitize-") as name:
        folder = Path(name)
        job = Job(str(cudart(device)), str(stage_library(stage.number)), problem, options=Options(kind=stage.KIND))
        worker = job.write(folder, stage.random_inputs(problem))
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


def part_sanitize(report: Report) -> list[str]:
    if not shutil.which("compute-sanitizer"):
        return ["sanitize: compute-sanitizer is not on PATH"]
    jobs = [
        (stage, stage.own(problem), tool)
        for stage in (*report.kernels, *report.backward)
        for problem in (
            Problem(B=1, Hq=2, Nq=256, d_head=128, dtype="bf16"),
            Problem(B=1, Hq=2, Nq=256, d_head=64, dtype="fp16"),
            *problems_for(stage)[1:],  # masks and ragged ends, of the stages that have them
        )
        for tool in ("memcheck", "racecheck")
    ]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda job: sanitize_one(*job, report.device), jobs))
    log, summary = [], []
    for (stage, problem, tool), (verdict, text) in zip(jobs, done, strict=True):
        log.append(f"==== {stage.name}, {problem}, {tool}: {verdict}\n{text}")
        if verdict != "clean":
            summary.append(f"sanitize: {stage.name} {problem} {tool}: {verdict}")
    (report.folder / "sanitize.txt").write_text("\n".join(log))
    clean = sum(verdict == "clean" for verdict, _ in done)
    return [f"sanitize: {clean} of {len(jobs)} runs clean (memcheck and racecheck)", *summary]


# ---- times ----


def part_bench(report: Report) -> list[str]:
    """The stages beside the peers; of all stages the copies and streams of stage 00, too."""
    types = {dtype for one in (*report.kernels, *report.backward) for dtype in one.dtypes}
    settings = bench.Settings(
        head_dims=(128, 64),
        dtypes=tuple(one for one in bench.Settings.dtypes if one in types),
        stages=report.numbers,
        deadline=PART_SECONDS,
        seconds=0.2,
        slowest_run=5.0,
    )
    summary = []

    def take(made: Path, kind: str, of: str = "") -> None:
        shutil.copy(made, report.file(kind))
        record = recorded.load(report.file(kind))
        summary.append(f"bench: {len(record['measurements'])} figures{of}, {len(record['skipped'])} skipped")

    if report.numbers:
        take(bench.run_bench(settings, report.device), "")
    if report.backward:
        those = replace(settings, stages=tuple(one.number for one in report.backward))
        take(backward_bench.run(those, report.device), "backward", " of gradients")
    if report.decode:
        those = decode_bench.Settings(stages=tuple(one.number for one in report.decode), head_dims=(128, 64))
        take(decode_bench.run_bench(those, report.device), "decode", " of decode")
    if report.has_streams:
        shutil.copy(stream_times.run_bench(report.device), report.file("host-streams"))
        summary.append("bench: bandwidths and batches of stage 00")
    if not gpu_memory.torch_with_cuda():
        summary.append("bench: no peers, for this Python has no PyTorch that sees the GPU")
    return summary


def tune_decode(report: Report) -> list[str]:
    """The decode stage that chooses how many blocks share the work and how many warps each has, with other numbers."""
    tuned = next((one for one in report.decode if one.slug in decode_table.TABLES), None)
    if not tuned:
        return []
    settings = decode_bench.Settings(
        stages=(tuned.number,), head_dims=(64, 128), tries=True, peers=False, rounds=3, series_ms=10.0
    )
    if tuned.slug == "paged_kv":
        settings = replace(settings, shapes=())  # its table is for other caches alone
    record = decode_bench.run_bench(settings, report.device)
    shutil.copy(record, report.file("decode-shares"))
    measured = recorded.load(record)
    lines = [*decode_bench.fastest(measured), *decode_table.lines_from(measured)]
    (report.folder / "decode-shares.txt").write_text("\n".join(lines) + "\n")
    return [f"tune: {line}" for line in lines]


def part_ablations(report: Report) -> list[str]:
    """Kernels with one idea changed at a time; and the stages whose time depends on the numbers (with the last one
    whose time does not) on inputs that hurt."""
    having = {one.stage.number for one in ablations.ablations()}
    numbers = tuple(number for number in report.numbers if number in having)
    summary = []
    if numbers:
        shutil.copy(ablation_times.run(report.device, numbers, PART_SECONDS), report.file("ablations"))
        summary.append(f"ablations: {len(recorded.load(report.file('ablations'))['measurements'])} figures")
    hurt = tuple(one for one in ablation_times.stages_that_hurt() if one in report.numbers)
    if hurt:
        record = recorded.inside("inputs", ablation_times.measure(report.device, hurt))
        recorded.write(record, report.file("ablations"))
        summary.append(f"ablations: {len(record['inputs']['measurements'])} figures of inputs that hurt")
    return summary or ["ablations: none of these stages has any"]


def part_tune(report: Report) -> list[str]:
    """The configurations of autotune and of shapes; what is measured lies in FLASHLADDER_TUNING_STORE, so that a second
    call goes on. Of a decode stage how many blocks share the work."""
    made, summary = report.file("tuning"), tune_decode(report)
    if stages.get(instances.STAGE).number in report.numbers:
        status = tune.run(tune.Options(out=made), report.device)
        configurations = recorded.load(made)["configurations"]
        failed = [row["configuration"] for row in configurations if "failed" in row]
        summary += [f"tune: {len(configurations)} configurations, {len(failed)} failed, status {status}"]
        summary += [f"tune: failed: {one}" for one in failed]
    if stages.get(shape_table.STAGE).number in report.numbers:
        status = tune_shapes.run(tune_shapes.Options(out=made), report.device)
        configurations = recorded.load(made)["shapes"]["configurations"]
        summary.append(f"tune: {len(configurations)} configurations of shapes, status {status}")
    return summary or ["tune: none of these stages is tuned"]


# ---- Nsight Compute ----


def part_ncu(report: Report) -> list[str]:
    """Counters beside warpsim's for the same small problem, bytes of memory traffic, and what docs/profiler.md reads
    of a few kernels."""
    if not ncu.available():
        return ["ncu: not on PATH"]
    ends = time.monotonic() + PART_SECONDS
    entries, summary = [], []
    for stage in report.kernels:
        try:
            entries.append(counted(stage, report.device))
        except (FlashLadderError, StageError) as error:
            summary.append(f"ncu: {stage.name}: {str(error)[:300]}")
    record = {
        "version": 1,
        "provenance": provenance.collect(report.device),
        "problem": str(SMALL),
        "metrics": ncu.metrics(),
        "counters": entries,
    }
    rows = [(entry["stage"], *row) for entry in entries for row in results.compare_counters(entry)]
    marked = [(*row, "" if row[2] == row[3] else "differs") for row in rows]
    table(f"warpsim and Nsight Compute, {SMALL}", ("stage", "counter", "warpsim", "ncu", ""), marked, right=(2, 3))
    equal = sum(row[2] == row[3] for row in rows)
    summary.append(f"ncu: {equal} of {len(rows)} counters equal")
    profiled, notes = profiler.collect(report.device, build_directory() / "profiler", report.numbers, ends)
    if profiled:
        record["profiler"] = profiled
        summary.append(f"ncu: {len(profiled['kernels'])} kernels profiled")
        missing = [name for name, metric in profiled["metrics"].items() if not metric]
        summary += [f"ncu: no figure here: {', '.join(missing)}"] * bool(missing)
    known = report.file().exists()
    throughput = recorded.load(report.file()) if known else recorded.first(gpu=report.device.short)
    traffic = roofline.measure(report.device, throughput, report.kernels, ends)
    if traffic["rows"]:
        record["roofline"] = traffic
        summary.append(f"ncu: traffic of {len(traffic['rows'])} stages, copy {traffic['bandwidth_gb_s']:.0f} GB/s")
    recorded.write(record, report.file("counters"))
    return [*summary, *notes]


def counted(stage: stages.Kernel, device: Device) -> dict:
    measured = ncu.measure(stage, stage.own(SMALL), device)
    simulated = stage.run(stage.own(SMALL), device="sim", environment=WHOLE_DEVICE).report
    counts = counters.totals(simulated)
    return {"stage": stage.name, "kernel_sha256": stage.kernel_hash(), "ncu": measured, "warpsim": counts}


# ---- what the simulator is held to ----


def part_faults(report: Report) -> list[str]:
    """What the GPU makes of the faulty kernels for Hopper, which the simulator names with their lines; and bits of the
    tensor cores' sums on hard operands, which the simulator's tests replay (GPU-sums.json in tests/simulator/recorded).
    Where STAGES names stages, their planted mistakes instead."""
    if report.planted:
        return detections.measure(report.device, report.which, report.planted, report.file("faults"))
    record = simulator_records.faults(report.device)
    recorded.write(record, report.file("faults"))
    summary = []
    for twin, words in (("gpu", "faulty"), ("gpu mended", "mended")):
        counts = simulator_records.outcomes(record, twin)
        summary.append(f"faults: {words}: " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    summary += [f"faults: the GPU stopped answering {record['stopped']}"] * bool(record["stopped"])
    sums = simulator_records.sums(report.device)
    recorded.write(sums, report.file("sums"))
    failed = [f"faults: sums failed: {name}: {why[:200]}" for name, why in sums["failed"].items()]
    return [*summary, f"faults: {len(sums['sums'])} cases of sums, {len(failed)} failed", *failed[:12]]


_FUNCTIONS = {
    "verify": part_verify,
    "sanitize": part_sanitize,
    "bench": part_bench,
    "ablations": part_ablations,
    "ncu": part_ncu,
    "tune": part_tune,
    "faults": part_faults,
}


def the_gpu() -> Device:
    found = choose(choice="auto")
    if found.kind != "gpu":
        raise FlashLadderError(
            f"A report is of a GPU, and there is none to use: {found.reason}. nvidia-smi must list it; a container "
            "is given it by `docker run --gpus all`. `make demo` needs no GPU, and docs/results has recorded runs."
        )
    return found


def check_room(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < FREE_BYTES_NEEDED:
        raise FlashLadderError(
            f"{folder} has {free / 2**30:.1f} GiB free, and build and report need {FREE_BYTES_NEEDED >> 30}: make "
            "room, or name a folder on a larger disk: FLASHLADDER_BUILD=/large/build (OUT=/large/report for the report)"
        )


class Progress:
    """The lines of the parts that are done, in a file, so that an interrupted run goes on. They count for this GPU,
    these stages and kernels alone."""

    def __init__(self, report: Report, origin: dict):
        self.file = report.folder / UNFINISHED
        same = ("device", "driver", "toolkit", "commit", "kernels")
        self.of = {key: origin.get(key) for key in same} | {"stages": [one.name for one in report.which]}
        known = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.done: dict[str, list[str]] = known["done"] if known.get("of") == self.of else {}

    def keep(self, part: str, lines: list[str]) -> None:
        self.done[part] = lines
        self.file.write_text(json.dumps({"of": self.of, "done": self.done}))


def run_part(part: str, report: Report) -> tuple[list[str], bool]:
    """(lines of the summary, whether it came to its end and found nothing wrong)"""
    began = time.monotonic()
    try:
        report.wrong = False
        lines = _FUNCTIONS[part](report)
        good = not report.wrong
    except (FlashLadderError, OSError, RuntimeError) as error:  # RuntimeError: PyTorch's, without memory
        lines, good = [f"{part}: {error}"], False
    say("\n".join(lines))
    return [*lines, f"({part}: {time.monotonic() - began:.0f} s)"], good


def run(
    parts: tuple[str, ...] = (),
    most: int = 0,
    mistakes: tuple[str, ...] = (),
    beside: int = 1,
    seconds: float = detections.SECONDS,
) -> int:
    """most, mistakes, beside, seconds: of detections.Choice."""
    parts = parts or tuple(os.environ.get("PARTS", "").replace(",", " ").split()) or PARTS
    unknown = [part for part in parts if part not in PARTS + ASKED_FOR]
    if unknown:
        raise FlashLadderError(f"PARTS: '{unknown[0]}' is none of {', '.join(PARTS + ASKED_FOR)}.")
    asked = chosen(os.environ.get("STAGES", ""))
    report = Report(the_gpu(), output_directory(), asked)
    if os.environ.get("STAGES"):
        report.planted = detections.Choice(most, mistakes, beside, seconds)
    check_room(report.folder)
    began = time.monotonic()
    report.build(parts)
    built = f"build: {time.monotonic() - began:.0f} s, native code for {build.info()['native']}"
    origin = provenance.collect(report.device)
    summary = [f"{report.device}, {origin['date']}"]
    summary += [] if report.whole else [f"stages: {', '.join(one.name for one in asked)}"]
    summary += [f"left out: {recorded.in_short(names)}: {limit}" for limit, names in report.left_out.items()]
    summary.append(built)
    progress, failed = Progress(report, origin), []
    try:
        for part in parts:
            if part in progress.done:
                say(f"{part}: done by the run before")
            else:
                lines, good = run_part(part, report)
                progress.keep(part, lines) if good else failed.append(part)
            summary += progress.done.get(part) or lines
            (report.folder / "summary.txt").write_text("\n".join(summary) + "\n")  # also of a run that is ended
    except KeyboardInterrupt:
        say(f"\nInterrupted. The same command goes on; done: {', '.join(progress.done) or 'nothing yet'}.")
        raise
    say("\n==== summary\n" + "\n".join(summary))
    page = report_page.write(report.file(), summary)
    file = report_check.pack(report.folder, bench.slug(report.device.short))
    say(f"\nTo read: {page}\nAll of it in one file, to be sent: {file}")
    say(f"What is wrong with it, if anything: make check-report FILE={file}")
    if failed:
        say(f"Failed: {', '.join(failed)}. The same command tries them again, and nothing else.")
        return 1
    progress.file.unlink(missing_ok=True)
    return 0
