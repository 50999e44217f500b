"""Stage 00, a program of the host: runs its variants, in all orders that count, and tells what overlapped."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from flashladder.building import build
from flashladder.core.console import say, table
from flashladder.core.device import Device, choose, environment
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, STAGES, build_directory, whole
from flashladder.ladder.stage import Stage, Verdict, read
from flashladder.running import timeline
from flashladder.running.timeline import Timeline

VARIANTS = ("pageable", "pinned", "async", "streams", "engines", "pageable_async")
WRONG_RESULT = 1  # the program's exit status
JUDGED, SMALL = (("async", "streams", "engines"), 4, (1, 2)), {"batch": 4, "heads": 1}  # runs that judge a mistake
GOES_ON = {"WARPSIM_HAZARDS": "warn"}  # where the simulator names operations that nothing orders


class HostStreams(Stage):
    @property
    def source(self) -> Path:
        return self.folder / "host_streams.cpp"

    @property
    def targets(self) -> list[str]:
        """The program, the kernel that it runs unless told otherwise, and the simulator."""
        return ["stage_00", "stage_03", "warpsim_cudart"]

    @property
    def product(self) -> Path:
        return Path("bin/stage_00")

    @property
    def libraries(self) -> list[str]:
        """The kernels of the other stages."""
        return ["lib/*.so"]

    @property
    def tests(self) -> list[str]:
        return ["tests/stages/test_host_streams.py"]

    def compiled(self, source: Path) -> Path:
        return compile_program(source, source.parent.name)

    def judge(self, source: Path) -> Verdict:
        """In every order in which a variant may go wrong: is a result wrong in one of them?"""
        for schedule, result in explore(*JUDGED, executable=self.compiled(source), **SMALL):
            wrong = [line.strip() for line in result.message.splitlines() if "WRONG" in line]
            if wrong:
                order = [f"in the order of WARPSIM_SCHEDULE={schedule}"] if schedule != "0" else []
                return Verdict(True, "verification", "\n".join([*wrong, *order]))
        return Verdict(False, "", "")

    def first_hazard(self, source: Path) -> dict | None:
        """What the simulator names of the same runs, and judge() leaves aside."""
        result = run(*JUDGED, "sim", executable=self.compiled(source), environ=GOES_ON, **SMALL)
        return next((hazard for launch in result.report["launches"] for hazard in launch["hazards"]), None)


@cache
def stage() -> HostStreams:
    """Stage 00."""
    (file,) = STAGES.glob("00_*/stage.toml")
    return read(file.parent, HostStreams)


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
    return build_directory() / stage().product


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
    where = choose(stage().min_compute, device)
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
    "last:K" for each stream K of the program, the default stream 0 among them, and for none. more: as for run(). The
    results are to tell (GOES_ON)."""
    late = run(variants, chunks, streams, "sim", environ=GOES_ON, **more)
    yield "0", late
    last = max(call["stream"] or 0 for call in late.report["host_calls"])
    for stream in range(last + 2):
        schedule = f"last:{stream}"
        environ = GOES_ON | {"WARPSIM_SCHEDULE": schedule}
        yield schedule, run(variants, chunks, streams, "sim", environ=environ, **more)


def streams_in_flight(executable: Path) -> dict[str, int]:
    """By variant that is to overlap, in how many streams there is work at one time, at most: on the simulator, from the
    call that queued it to the call in which it took effect."""
    found = {}
    for variant, streams in (("streams", 2), ("engines", 3)):
        result = run(variant, 4, streams, "sim", executable=executable, batch=4, heads=1)
        spans = [span for span in result.timeline().spans if span.lane != "host"]
        found[variant] = max(len({one.lane for one in spans if one.start <= span.start < one.end}) for span in spans)
    return found


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
    executable = build_directory() / "break" / name / "stage_00"
    host = ROOT / "common" / "host"
    own = stage().folder
    sources = [source, *(own / name for name in ("main.cpp", "options.cpp", "batch.cpp"))]
    sources += [host / "problem.cpp", host / "reference.cpp"]
    library, includes = build.info()["cudart_directory"], build.info()["cudart_includes"].split(";")
    command = [os.environ.get("CXX") or shutil.which("g++") or "c++", "-std=c++20", "-O1"]
    command += [f"-I{folder}" for folder in (own, ROOT / "common" / "include", host, *includes)]
    command += [*map(str, sources), f"{library}/libcudart.so.13", f"-Wl,-rpath,{library},--enable-new-dtags"]
    command += ["-ldl", "-pthread"]
    with whole(executable) as partial:
        done = subprocess.run([*command, "-o", str(partial)], capture_output=True, text=True)
        if done.returncode:
            raise FlashLadderError(f"{source} does not compile:\n{done.stderr[-3000:]}")
    return executable
