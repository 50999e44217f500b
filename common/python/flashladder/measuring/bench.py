"""Throughput on a GPU: stages and peers interleaved in one run, checked for correctness before a time counts."""

import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from flashladder.building import build
from flashladder.core.abi import StageLibrary, StageRefused
from flashladder.core.console import progress, say, table
from flashladder.core.device import Device, choose, cudart
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import stage_library
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.measuring import cudnn_fp8, gpu_memory, peers, provenance, recorded
from flashladder.running.cudart import L2_BYTES, MULTIPROCESSORS, CudaError, Cudart
from flashladder.running.verify import POISON, Comparison, compare, reference

LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
PEER_ERROR = 0.25  # relative: what is further off is another function of Q, K and V, or not finite


@dataclass(frozen=True)
class Settings:
    tokens: int = 16384  # B * N, the same for all lengths
    heads: int = 16
    lengths: tuple[int, ...] = LENGTHS
    head_dims: tuple[int, ...] = (64, 128)
    dtypes: tuple[str, ...] = ("bf16", "e4m3")  # e4m3 in one run with the first of the others
    causal: tuple[bool, ...] = (False, True)  # causal: of the stages that have it, and the peers beside them
    stages: tuple[int, ...] = ()  # none: all
    peers: bool = True
    seconds: float = 0.25  # of kernel time for each candidate and problem
    most_runs: int = 50
    fewest_runs: int = 5
    slowest_run: float = 4.0  # seconds; what takes longer is skipped, and the results say so
    deadline: float = 0.0  # seconds after which no further problem is begun; 0: none

    def problems(self) -> list[Problem]:
        return [
            problem_at(n, self.tokens, self.heads, d, dtype, causal)
            for dtype in self.dtypes
            for causal in self.causal
            for d in self.head_dims
            for n in self.lengths
        ]

    def runs(self) -> list[tuple[Problem, ...]]:
        """The problems, of which those of a tuple are timed in one run: e4m3 stands beside the first other type."""
        problems = self.problems()
        others = [dtype for dtype in self.dtypes if dtype != "e4m3"]
        if "e4m3" not in self.dtypes or not others:
            return [(problem,) for problem in problems]
        return [
            (problem, replace(problem, dtype="e4m3")) if problem.dtype == others[0] else (problem,)
            for problem in problems
            if problem.dtype != "e4m3"
        ]


def problem_at(length: int, tokens: int, heads: int, d_head: int, dtype: str, causal: bool = False) -> Problem:
    """The problem of a length: as many batches as make B * N = tokens, at least one."""
    return Problem(B=max(1, tokens // length), Hq=heads, Nq=length, d_head=d_head, dtype=dtype, causal=causal)


def figures(flops: float, times_ms: Sequence[float], sm_mhz: int | None) -> dict:
    """What a record has of the runs of one kernel."""
    p20, median, p80 = (float(value) for value in np.percentile(times_ms, [20, 50, 80]))
    return {
        "ms": {"median": round(median, 5), "p20": round(p20, 5), "p80": round(p80, 5)},
        "runs": len(times_ms),
        "tflops": float(f"{flops / median / 1e9:.4g}"),
        "sm_mhz": sm_mhz,
    }


@dataclass
class Candidate:
    """Something that is timed: a stage or a peer."""

    name: str
    kind: str  # "stage", "peer" or "ceiling"
    launch: object  # queues the work on the default stream
    output: object = None  # returns O as bit patterns after launch()
    flops: float = 0.0
    facts: dict = field(default_factory=dict)  # registers, shared memory, ... of a stage
    first_seconds: float = 0.0
    times_ms: list[float] = field(default_factory=list)
    comparison: Comparison | None = None

    def runs_wanted(self, settings: Settings) -> int:
        # The first run pays for loading the kernel, so this errs towards fewer runs of short kernels: hence the floor.
        fit = int(settings.seconds / max(self.first_seconds, 1e-6))
        return min(settings.most_runs, max(settings.fewest_runs, fit))


class Bench:
    SUFFIX = ""  # of the file's name, behind the GPU's
    shuffle = None  # of random.Random: has each round in another order

    def __init__(self, settings: Settings, device: Device):
        self.settings, self.device = settings, device
        self.torch = gpu_memory.torch_with_cuda()
        if self.torch:
            self.torch.empty(1, device="cuda")  # has PyTorch load its runtime first: the stages then share it
        self.cudart = Cudart(gpu_memory.loaded_cudart() or cudart(device))
        self.stages = self.wanted_stages()
        self.libraries = {stage.number: self.load(stage) for stage in self.stages}
        self.start, self.stop = self.cudart.event(), self.cudart.event()
        # Overwriting more than the L2 holds empties it; a long fill also lets the host queue the launch in time.
        _, total = self.cudart.memory()
        self.flush_bytes = max(2 * self.cudart.attribute(L2_BYTES), (1 << 30) if total > 32 << 30 else 1 << 28)
        self.flush_buffer = self.cudart.malloc(self.flush_bytes)
        self.measurements: list[dict] = []
        self.skipped: list[dict] = []
        self.too_slow: dict[tuple, float] = {}
        self.prepare = None  # called with a problem and PyTorch's tensors of it: other inputs than normal ones
        self.heat_of = None  # called with a candidate: those with the same answer are timed in turn, others apart

    def wanted_stages(self) -> list[stages.Stage]:
        wanted = self.settings.stages or tuple(stage.number for stage in stages.all_stages())
        return [stages.get(number) for number in wanted]

    def load(self, stage: stages.Stage) -> StageLibrary:
        return StageLibrary(stage_library(stage.number))

    def time_once(self, candidate: Candidate) -> float:
        """Milliseconds of one run with a cold L2, by CUDA events."""
        self.cudart.fill(self.flush_buffer, 0, self.flush_bytes)
        self.cudart.record(self.start)
        candidate.launch()
        self.cudart.record(self.stop)
        self.cudart.wait(self.stop)
        return self.cudart.elapsed_ms(self.start, self.stop)

    def measure(self, candidates: list[Candidate]) -> None:
        """Runs the candidates in turn, A B C A B C; slow ones sit some rounds out."""
        for candidate in candidates:
            for _ in range(2 if candidate.first_seconds < 0.1 else 0):
                candidate.launch()
            self.cudart.synchronize()
            candidate.first_seconds = min(candidate.first_seconds, self.time_once(candidate) / 1e3)
        wanted = [candidate.runs_wanted(self.settings) for candidate in candidates]
        rounds = max(wanted, default=0)
        pairs = list(zip(candidates, wanted, strict=True))
        for turn in range(rounds):
            if self.shuffle:
                self.shuffle(pairs)
            for candidate, runs in pairs:
                due = (turn + 1) * runs // rounds
                if len(candidate.times_ms) < due:
                    candidate.times_ms.append(self.time_once(candidate))

    def heats(self, candidates: list[Candidate]) -> list[list[Candidate]]:
        """Who is timed in turn with whom: all with all, or as heat_of says."""
        found = {}
        for candidate in candidates:
            found.setdefault(self.heat_of and self.heat_of(candidate), []).append(candidate)
        return list(found.values())

    def skip(self, name: str, problem: Problem, reason: str) -> None:
        self.skipped.append({"name": name, **asdict(problem), "reason": reason})

    def admit(self, candidate: Candidate, problem: Problem, memory, expected) -> bool:
        """Runs the candidate once and compares it with the reference: True if it may be timed."""
        memory.poison()
        started = time.perf_counter()
        try:
            candidate.launch()
            self.cudart.synchronize()
        except StageRefused as refusal:
            self.skip(candidate.name, problem, str(refusal))
            return False
        except RuntimeError as error:  # a peer that has no kernel for this problem
            self.skip(candidate.name, problem, str(error).splitlines()[0])
            return False
        candidate.first_seconds = time.perf_counter() - started
        candidate.comparison, unwritten = self.compared(candidate, problem, expected)
        unwritten = unwritten if candidate.kind == "stage" else 0
        if not candidate.comparison or unwritten:
            message = candidate.comparison.message if not candidate.comparison else f"{unwritten} elements unwritten"
            if candidate.kind == "stage":
                raise FlashLadderError(f"{candidate.name} is wrong for {problem}, so it is not timed: {message}")
            if not candidate.comparison.frobenius <= PEER_ERROR:
                self.skip(candidate.name, problem, f"it computes something else: {message}")
                return False
            # A peer rounds P elsewhere than the stages do, and cuDNN's FP8 rounds O to a byte: note it, time it.
            candidate.facts["note"] = f"beyond the stages' bound: {message}"
        return True

    def compared(self, candidate: Candidate, problem: Problem, expected) -> tuple[Comparison, int]:
        """What prepared() has picked of the output with the reference; and how many elements were not written."""
        rows, heads, *want = expected
        output = problem.to_bhnd(candidate.output())
        picked = np.stack([output[b, h][rows] for b, h in heads])
        return compare(picked, *want, problem.dtype), int((output == POISON).sum())

    def stages_for(self, problem: Problem) -> list[stages.Stage]:
        """All of them; of a causal problem those that say that they mask."""
        of_the_type = [one for one in self.stages if problem.dtype in one.dtypes]
        return [one for one in of_the_type if not problem.causal or self._masks(one, problem)]

    def _masks(self, stage: stages.Stage, problem: Problem) -> bool:
        try:
            description = self.libraries[stage.number].describe(replace(problem, causal=False).params({}))
        except StageRefused:
            return False  # told where it is asked for without a mask
        return bool(description.supports_causal)

    def stage_candidate(self, stage: stages.Stage, problem: Problem, memory) -> Candidate | None:
        library = self.libraries[stage.number]
        description = self.described(stage, problem, problem.params({}))
        if description is None:
            return None
        needed, state = description["workspace_bytes"], {"scratch": 0}

        def launch():
            # Scratch of gigabytes is taken when first needed; only one stage (01) asks for any.
            if needed and not state["scratch"]:
                state["scratch"] = memory.scratch(needed)
            library.launch(problem.params(memory.pointers(), state["scratch"], needed))

        facts = self.facts(stage, description)
        return Candidate(stage.name, "stage", launch, lambda: memory.bits("O"), problem.flops(), facts)

    def described(self, stage: stages.Stage, problem: Problem, params) -> dict | None:
        """What the stage says of the problem; None, and the reason among the skipped, where it cannot be timed."""
        try:
            description = self.libraries[stage.number].describe(params).as_dict()
        except StageRefused as refusal:
            self.skip(stage.name, problem, str(refusal))
            return None
        needed = description["workspace_bytes"]
        if self.torch:
            self.torch.cuda.empty_cache()
        free, _ = self.cudart.memory()
        if needed > free * 0.95:
            self.skip(
                stage.name, problem, f"needs {needed / 2**30:.0f} GiB of scratch, {free / 2**30:.0f} GiB are free"
            )
            return None
        key = (stage.number, problem.d_head, problem.dtype, problem.causal)
        expected = self.too_slow.get(key, 0.0) * 2  # at the same number of tokens twice the length takes twice as long
        if expected > self.settings.slowest_run:
            self.too_slow[key] = expected
            self.skip(stage.name, problem, f"about {expected:.0f} s a run")
            return None
        return description

    @staticmethod
    def facts(stage: stages.Stage, description: dict) -> dict:
        """What a record has of a stage besides its times."""
        names = ("threads", "shared_bytes", "registers", "spill_bytes", "resident_blocks", "Br", "Bc")
        return {name: description[name] for name in names} | {"kernel_sha256": stage.kernel_hash()}

    def peer_candidates(self, problem: Problem, memory) -> list[Candidate]:
        if not (self.torch and self.settings.peers):
            return []
        if problem.dtype == "e4m3":
            return self.fp8_peers(problem, memory)
        found = []
        for name in peers.BACKENDS:
            call, kept = peers.attention_call(name, problem, memory.tensors), {}

            def launch(call=call, kept=kept):
                kept["O"] = call()

            def output(kept=kept):
                result = kept["O"] if problem.layout == "bhnd" else kept["O"].transpose(1, 2)
                return gpu_memory.host_bits(result)

            found.append(Candidate(name, "peer", launch, output, problem.flops()))
        return found

    def fp8_peers(self, problem: Problem, memory) -> list[Candidate]:
        """cuDNN's, where its package is there and takes the problem; else the record says why not."""
        try:
            launch, output, facts = cudnn_fp8.attention(problem, memory.tensors)
        except cudnn_fp8.Unavailable as error:
            self.skip(cudnn_fp8.NAME, problem, str(error))
            return []
        return [Candidate(cudnn_fp8.NAME, "peer", launch, output, problem.flops(), facts)]

    def multiprocessors(self) -> int:
        return self.cudart.attribute(MULTIPROCESSORS)

    def prepared(self, problem: Problem):
        """Inputs in device memory, and what admit() compares with: rows, heads, the reference there and its bound."""
        memory = (
            gpu_memory.TorchMemory(problem, seed=problem.Nq)
            if self.torch
            else gpu_memory.PlainMemory(problem, problem.Nq, self.cudart)
        )
        if self.prepare:
            self.prepare(problem, memory.tensors)
        inputs = {name: memory.bits(name) for name in "QKV"}
        rows = np.unique(np.linspace(0, problem.Nq - 1, 97).astype(int))
        heads = [(0, 0), (problem.B - 1, problem.Hq - 1)]
        return memory, (rows, heads, *reference(problem, inputs, rows, heads))

    def bench_problem(self, *problems: Problem) -> None:
        """Times stages and peers of a problem, and of those that stand beside it, one run of each in turn. Nothing
        where no stage takes any of them; and none of a problem beside the first that no stage takes."""
        if not any(self.stages_for(problem) for problem in problems):
            return
        admitted, memories = [], []
        for problem in problems:
            timed = self.stages_for(problem)
            if not timed and problem is not problems[0]:
                continue
            memory, expected = self.prepared(problem)
            memories.append(memory)
            for candidate in [
                *(self.stage_candidate(stage, problem, memory) for stage in timed),
                *self.peer_candidates(problem, memory),
            ]:
                if candidate and self.admit(candidate, problem, memory, expected):
                    admitted.append((candidate, problem))
        for heat in self.heats([candidate for candidate, _ in admitted]):
            self.measure(heat)
        clocks = provenance.clocks()
        for candidate, problem in admitted:
            self.record(candidate, problem, clocks)
            if candidate.kind == "stage":
                key = (int(candidate.name[:2]), problem.d_head, problem.dtype, problem.causal)
                self.too_slow[key] = float(np.median(candidate.times_ms)) / 1e3
        for memory in memories:
            memory.release()

    def record(self, candidate: Candidate, problem: Problem | None, clocks: dict | None) -> None:
        row = {"name": candidate.name, "kind": candidate.kind}
        if problem:
            row |= asdict(problem)
        row |= figures(candidate.flops, candidate.times_ms, clocks and clocks["sm_mhz"])
        if candidate.comparison:
            row["relative_error"] = float(f"{candidate.comparison.frobenius:.3g}")
        self.measurements.append(row | candidate.facts)

    def bench_ceiling(self) -> None:
        if not (self.torch and self.settings.peers):
            return
        for dtype in self.settings.dtypes:
            if dtype == "e4m3" and not any(dtype in stage.dtypes for stage in self.stages):
                continue
            try:
                launch, flops = peers.matmul_call(dtype)
                candidate = Candidate(peers.CEILING, "ceiling", launch, flops=flops, facts={"dtype": dtype})
                self.measure([candidate])
            except Exception as error:
                if dtype != "e4m3" or isinstance(error, CudaError):
                    raise
                say(f"No ceiling of {dtype}, by this PyTorch on this GPU: {str(error).splitlines()[:1]}")
                continue
            self.record(candidate, None, provenance.clocks())

    def run(self) -> dict:
        began = time.monotonic()
        self.bench_ceiling()
        for problems in progress(self.settings.runs(), "bench"):
            if self.settings.deadline and time.monotonic() - began > self.settings.deadline:
                for problem in problems:
                    reason = f"the time set for this benchmark, {self.settings.deadline:.0f} s, is over"
                    self.skip("all", problem, reason)
                continue
            self.bench_problem(*problems)
        self.cudart.free(self.flush_buffer)
        record = provenance.collect(self.device) | {"runtime": self.cudart.version(), **peers.versions()}
        return {
            "version": 1,
            "provenance": record,
            "settings": asdict(self.settings),
            "measurements": self.measurements,
            "skipped": self.skipped,
        }


def check_build(device: Device) -> None:
    """Only optimised native code is timed."""
    info = build.info()
    if info["build_type"] not in ("Release", "RelWithDebInfo"):
        raise FlashLadderError(
            f"This is a {info['build_type']} build and its times mean nothing: build the release preset (`make build`)."
        )
    if str(device.gpu.compute) not in info["native"]:
        raise FlashLadderError(
            f"The build has native code for {info['native'] or 'no GPU'} and this one is {device.gpu.compute}: "
            "rebuild with `make clean build`."
        )


def run_bench(settings: Settings, device: Device | None = None, kind: type[Bench] = Bench) -> Path:
    """Times everything, prints the tables, and returns the JSON file below build/results."""
    device = device or choose()
    check_build(device)
    say(f"Benchmark on {device}")
    try:
        results = kind(settings, device).run()
    except CudaError as error:
        raise FlashLadderError(f"The benchmark stopped: {error}") from error
    file = recorded.write_live(results, slug(device.short) + kind.SUFFIX)
    print_tables(results)
    return file


def slug(name: str) -> str:
    """NVIDIA H200 -> H200; a file name of letters, digits and dashes."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name.replace("NVIDIA", "")).strip("-")


def print_tables(results: dict) -> None:
    """TFLOP/s by name and length, one table for each dtype, head dim and mask."""
    rows = [row for row in results["measurements"] if row["kind"] != "ceiling"]
    for dtype, d, causal in sorted({(row["dtype"], row["d_head"], row["causal"]) for row in rows}):
        chosen = [row for row in rows if (row["dtype"], row["d_head"], row["causal"]) == (dtype, d, causal)]
        lengths = sorted({row["Nq"] for row in chosen})
        names = list(dict.fromkeys(row["name"] for row in chosen))
        figures = {(row["name"], row["Nq"]): f"{row['tflops']:.1f}" for row in chosen}
        title = f"TFLOP/s, {dtype}, d = {d}{', causal' if causal else ''}: {results['provenance']['device']}"
        body = [[name, *(figures.get((name, n), "-") for n in lengths)] for name in names]
        table(title, ["", *(f"N={n}" for n in lengths)], body, right=range(1, len(lengths) + 1))
    for row in results["measurements"]:
        if row["kind"] == "ceiling":
            say(f"{row['name']}, {row['dtype']}, {peers.CEILING_SIZE}³: {row['tflops']:.0f} TFLOP/s")
    reasons = {(row["name"], row["reason"]): row for row in results["skipped"]}
    for (name, reason), row in reasons.items():
        say(f"not timed: {name} at N = {row['Nq']}, d = {row['d_head']}, {row['dtype']}: {reason}")
