"""Throughput on a GPU: stages and peers interleaved in one run, checked for correctness before a time counts."""

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from flashladder.building import build
from flashladder.core.abi import StageRefused
from flashladder.core.console import progress, say, table
from flashladder.core.device import Device, choose, cudart
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import stage_library
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.kernels import WithKernel
from flashladder.measuring import cudnn_peers, gpu_memory, peers, provenance, recorded
from flashladder.running.cudart import L2_BYTES, MULTIPROCESSORS, CudaError, Cudart
from flashladder.running.job import KINDS
from flashladder.running.verify import POISON, Comparison, compare, reference

LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
MOST_FILLS = 16  # of memory before a run
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


def spread(times: Sequence[float], digits: int) -> dict[str, float]:
    """What a record has of several times."""
    p20, median, p80 = (round(float(value), digits) for value in np.percentile(times, [20, 50, 80]))
    return {"median": median, "p20": p20, "p80": p80}


def figures(flops: float, times_ms: Sequence[float], sm_mhz: int | None) -> dict:
    """What a record has of the runs of one kernel."""
    return {
        "ms": spread(times_ms, 5),
        "runs": len(times_ms),
        "tflops": float(f"{flops / float(np.median(times_ms)) / 1e9:.4g}"),
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
    fills: int = 1  # of memory before a run, which the host has to queue the launch in

    def runs_wanted(self, settings: Settings) -> int:
        # The first run pays for loading the kernel, so this errs towards fewer runs of short kernels: hence the floor.
        fit = int(settings.seconds / max(self.first_seconds, 1e-6))
        return min(settings.most_runs, max(settings.fewest_runs, fit))


class Benchmark:
    """What the benchmarks of attention, gradients and decode share: the runtime, the stages' libraries, two events, and
    what was measured and what skipped. Whoever is timed is compared with the reference before."""

    TITLE = "Benchmark"
    SUFFIX = ""  # of the file's name, behind the GPU's

    def __init__(self, settings, device: Device):
        self.settings, self.device = settings, device
        self.torch = gpu_memory.torch_with_cuda()
        if self.torch:
            self.torch.empty(1, device="cuda")  # has PyTorch load its runtime first: the stages then share it
        self.cudart = Cudart(gpu_memory.loaded_cudart() or cudart(device))
        self.stages = self.wanted_stages()
        self.libraries = {one.number: KINDS[one.KIND].library(stage_library(one.number)) for one in self.stages}
        self.start, self.stop = self.cudart.event(), self.cudart.event()
        self.measurements: list[dict] = []
        self.skipped: list[dict] = []

    def wanted_stages(self) -> list[WithKernel]:
        raise NotImplementedError

    def run(self) -> dict:
        raise NotImplementedError

    @staticmethod
    def fields_of(problem: Problem) -> dict:
        """What a row says of its problem."""
        return asdict(problem)

    def multiprocessors(self) -> int:
        return self.cudart.attribute(MULTIPROCESSORS)

    def elapsed_ms(self, work: Callable[[], None]) -> float:
        """Milliseconds of what the work queues on the default stream, by CUDA events."""
        self.cudart.record(self.start)
        work()
        self.cudart.record(self.stop)
        self.cudart.wait(self.stop)
        return self.cudart.elapsed_ms(self.start, self.stop)

    def skip(self, name: str, problem: Problem, reason: str) -> None:
        self.skipped.append({"name": name, **self.fields_of(problem), "reason": reason})

    def accepts(self, candidate, problem: Problem, unwritten: int = 0) -> bool:
        """By its comparison, and the elements that it has not written: True if it may be timed."""
        found = candidate.comparison
        message = f"{unwritten} elements unwritten" if found else found.message
        if found and not unwritten:
            return True
        if candidate.kind == "stage":
            raise FlashLadderError(f"{candidate.name} is wrong for {problem}, so it is not timed: {message}")
        if not found.frobenius <= PEER_ERROR:
            self.skip(candidate.name, problem, f"it computes something else: {message}")
            return False
        # A peer rounds P elsewhere than the stages do, and cuDNN's FP8 rounds O to a byte: note it, time it.
        candidate.facts["note"] = f"beyond the stages' bound: {message}"
        return True

    @staticmethod
    def print_tables(results: dict) -> None:
        print_tables(results)

    def results(self, kernels: Sequence[WithKernel] = (), **settings) -> dict:
        """The record. kernels: whose hashes it has, all of attention where none are given. settings: more of them."""
        record = provenance.collect(self.device, kernels) | {"runtime": self.cudart.version(), **peers.versions()}
        return {
            "version": 1,
            "provenance": record,
            "settings": asdict(self.settings) | settings,
            "measurements": self.measurements,
            "skipped": self.skipped,
        }


class Bench(Benchmark):
    shuffle = None  # of random.Random: has each round in another order

    def __init__(self, settings: Settings, device: Device):
        super().__init__(settings, device)
        # Overwriting more than the L2 holds empties it; fills() as long as the host's work let it queue the launch.
        _, total = self.cudart.memory()
        self.flush_bytes = max(2 * self.cudart.attribute(L2_BYTES), (1 << 30) if total > 32 << 30 else 1 << 28)
        self.flush_buffer = self.cudart.malloc(self.flush_bytes)
        self.too_slow: dict[tuple, float] = {}
        self.prepare = None  # called with a problem and PyTorch's tensors of it: other inputs than normal ones
        self.heat_of = None  # called with a candidate: those with the same answer are timed in turn, others apart

    def wanted_stages(self) -> list[WithKernel]:
        wanted = self.settings.stages or tuple(stage.number for stage in stages.all_stages())
        return [stages.get(number) for number in wanted]

    def time_once(self, candidate: Candidate) -> float:
        """Milliseconds of one run with a cold L2."""
        self.fill(candidate.fills)
        return self.elapsed_ms(candidate.launch)

    def fill(self, times: int) -> None:
        for _ in range(times):
            self.cudart.fill(self.flush_buffer, 0, self.flush_bytes)

    @cached_property
    def fill_ms(self) -> float:
        self.fill(1)
        return max(self.elapsed_ms(lambda: self.fill(1)), 1e-3)

    def fills(self, candidate: Candidate) -> int:
        """So many that they last twice as long as the host needs for a call: a package's Python may take longer than a
        kernel of short sequences, and would be timed in its place."""
        self.cudart.synchronize()
        began = time.perf_counter()
        candidate.launch()  # which does not wait for the GPU
        host_ms = 1e3 * (time.perf_counter() - began)
        return min(MOST_FILLS, max(1, math.ceil(2 * host_ms / self.fill_ms)))

    def measure(self, candidates: list[Candidate]) -> None:
        """Runs the candidates in turn, A B C A B C; slow ones sit some rounds out."""
        for candidate in candidates:
            if candidate.first_seconds < 0.1:
                candidate.launch()
                candidate.fills = self.fills(candidate)
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
        return self.accepts(candidate, problem, unwritten if candidate.kind == "stage" else 0)

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

    def stage_candidate(self, stage: WithKernel, problem: Problem, memory) -> Candidate | None:
        library = self.libraries[stage.number]
        description = self.described(stage, problem)
        if description is None:
            return None
        needed, zeroed = description["workspace_bytes"], description.get("zeroed_workspace", False)

        def launch():
            scratch = memory.scratch(stage.name, needed, zeroed)
            library.launch(problem.params(memory.pointers(), scratch, needed, kind=library.PARAMS))

        facts = self.facts(stage, description)
        return Candidate(stage.name, "stage", launch, lambda: self.written(memory), self.flops(problem), facts)

    def written(self, memory) -> np.ndarray | dict[str, np.ndarray]:
        """What compared() takes of a stage's outputs."""
        return memory.bits("O")

    def flops(self, problem: Problem) -> float:
        return problem.flops()

    def described(self, stage: WithKernel, problem: Problem) -> dict | None:
        """What the stage says of the problem; None, and the reason among the skipped, where it cannot be timed."""
        library = self.libraries[stage.number]
        try:
            description = library.describe(problem.params({}, kind=library.PARAMS)).as_dict()
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
        found = self.cudnn_of_e4m3(problem, memory) if problem.dtype == "e4m3" else []
        for name in self.peer_names(problem.dtype):
            try:
                call, kept = self.peer_call(name, problem, memory.tensors), {}
            except RuntimeError as error:  # a peer that has no kernel for this problem
                self.skip(name, problem, str(error).splitlines()[0])
                continue

            def launch(call=call, kept=kept):
                kept["outputs"] = call()

            def output(kept=kept):
                return self.of_peer(problem, kept["outputs"])

            found.append(Candidate(name, "peer", launch, output, self.flops(problem)))
        return found

    def peer_names(self, dtype: str) -> tuple[str, ...]:
        return peers.names(dtype)

    def peer_call(self, name: str, problem: Problem, tensors: dict) -> Callable:
        return peers.attention_call(name, problem, tensors)

    def of_peer(self, problem: Problem, output) -> np.ndarray | dict[str, np.ndarray]:
        """What compared() takes of a peer's outputs."""
        return gpu_memory.host_bits(output if problem.layout == "bhnd" else output.transpose(1, 2))

    def cudnn_of_e4m3(self, problem: Problem, memory) -> list[Candidate]:
        """cuDNN, where its package is there and takes the problem; else the record says why not."""
        try:
            launch, output, facts = cudnn_peers.attention(problem, memory.tensors)
        except cudnn_peers.Unavailable as error:
            self.skip(cudnn_peers.NAME, problem, str(error))
            return []
        return [Candidate(cudnn_peers.NAME, "peer", launch, output, problem.flops(), facts)]

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
        return self.results()


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


def run_bench(settings, device: Device | None = None, kind: type[Benchmark] = Bench) -> Path:
    """Times everything, prints the tables, and returns the JSON file below build/results."""
    device = device or choose()
    check_build(device)
    say(f"{kind.TITLE} on {device}")
    try:
        timing = kind(settings, device)
        results = timing.run()
    except CudaError as error:
        raise FlashLadderError(f"The benchmark stopped: {error}") from error
    file = recorded.write_live(results, slug(device.short) + timing.SUFFIX)
    timing.print_tables(results)
    return file


def slug(name: str) -> str:
    """NVIDIA H200 -> H200; a file name of letters, digits and dashes."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name.replace("NVIDIA", "")).strip("-")


def tables(results: dict) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """TFLOP/s by name and length, one table for each dtype, head dim and mask: its title, columns and rows."""
    rows = [row for row in results["measurements"] if row["kind"] != "ceiling"]
    for dtype, d, causal in sorted({(row["dtype"], row["d_head"], row["causal"]) for row in rows}):
        chosen = [row for row in rows if (row["dtype"], row["d_head"], row["causal"]) == (dtype, d, causal)]
        lengths = sorted({row["Nq"] for row in chosen})
        names = list(dict.fromkeys(row["name"] for row in chosen))
        figures = {(row["name"], row["Nq"]): f"{row['tflops']:.1f}" for row in chosen}
        title = f"TFLOP/s, {dtype}, d = {d}{', causal' if causal else ''}: {results['provenance']['device']}"
        body = [[name, *(figures.get((name, n), "-") for n in lengths)] for name in names]
        yield title, ["", *(f"N={n}" for n in lengths)], body


def remarks(results: dict) -> list[str]:
    """The ceilings, and what was not timed."""
    said = []
    for row in results["measurements"]:
        if row["kind"] == "ceiling":
            said.append(f"{row['name']}, {row['dtype']}, {peers.CEILING_SIZE}³: {row['tflops']:.0f} TFLOP/s")
    reasons = {(row["name"], row["reason"]): row for row in results["skipped"]}
    for (name, reason), row in reasons.items():
        said.append(f"not timed: {name} at N = {row['Nq']}, d = {row['d_head']}, {row['dtype']}: {reason}")
    return said


def print_tables(results: dict) -> None:
    for title, columns, rows in tables(results):
        table(title, columns, rows, right=range(1, len(columns)))
    for line in remarks(results):
        say(line)
