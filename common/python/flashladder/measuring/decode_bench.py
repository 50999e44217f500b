"""Decode on a GPU: microseconds of stages and peers, and what part of it reading K and V alone takes, in one run.

A cache that lies in L2 would be read faster than memory allows, and so each launch reads another copy of it; together
they are several times as large as L2. Launches follow one another in a CUDA graph where PyTorch is there to capture it,
else on the default stream; a time is that of the whole series over the number of its launches, and so contains the gap
between two launches. Candidates take turns, A B C A B C, and each is checked against the reference before.
"""

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from flashladder.core.abi import StageRefused
from flashladder.core.console import progress, say, table
from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory
from flashladder.ladder import stages
from flashladder.measuring import bench, decode_peers, gpu_memory, provenance, recorded
from flashladder.running import decoding
from flashladder.running.verify import Comparison, compare

READING = "reading K and V"
# Hq, Hkv, B and the length of the cache.
SHAPES = (
    *((32, 8, 1, n) for n in (1024, 4096, 16384, 65536)),
    *((32, 8, 8, n) for n in (1024, 4096, 16384)),
    *((32, 8, 32, n) for n in (1024, 4096)),
    (32, 8, 128, 4096), *((64, 8, B, 4096) for B in (1, 8, 32)), (64, 8, 32, 1024),
    (32, 32, 1, 4096), (32, 32, 8, 4096), (16, 1, 8, 16384),
)  # fmt: skip
# Of these also with unequal lengths and in pages: as many keys in all, so that the time should be nearly the same.
OTHER_CACHES = ((32, 8, 8, 4096), (32, 8, 32, 1024), (32, 8, 32, 4096), (32, 8, 8, 16384), (32, 8, 128, 4096))
# Whether lengths are unequal, and rows of a page, 0: in one piece. PyTorch's attention takes pages of 256.
CACHES = ((True, 0), (False, 64), (True, 64), (True, 256))
# What the table in common/include/decode_plan.cuh is chosen from: warps of a block, and blocks that share the work for
# each multiprocessor (0: one for each head).
TRIED_WARPS, TRIED_EACH = (8, 4), (0, 0.25, 0.5, 0.75, 1, 1.94, 2, 3)
UNIT, TILE = 32, 8  # keys and rows of Q that a warp computes at a time, as in decode_unit.cuh
MULTIPROCESSOR_BYTES = 228 * 1024  # of shared memory, on Hopper


def unequal_lengths(B: int, mean: int) -> tuple[int, ...]:
    """From a quarter of the mean to 7/4 of it, in a random order; their sum is that of equal lengths."""
    rising = np.linspace(mean / 4, mean * 7 / 4, B).round().astype(int)
    rising[-1] += B * mean - rising.sum()
    return tuple(int(length) for length in np.random.default_rng(0).permutation(rising))


def heads_and_tiles(problem: DecodeProblem) -> tuple[int, int]:
    """Heads as stage lean counts them, one for each block's rows of Q, and tiles of such rows."""
    rows = problem.Hq // problem.Hkv * problem.Nq
    tiles = 1 if rows <= TILE else 2
    return problem.B * problem.Hkv * -(-rows // (tiles * TILE)), tiles


def tries(problem: DecodeProblem, multiprocessors: int) -> dict[str, list[tuple[int, float, int]]]:
    """Configurations of a problem, each with the entries of decode_plan.cuh's table (warps, blocks for each
    multiprocessor, resident blocks) that come to it there. resident: 0, and where more blocks fit on a multiprocessor
    than it would have if they were spread evenly, as many as that."""
    heads, tiles = heads_and_tiles(problem)
    units = heads * -(-problem.Nkv // UNIT)
    found: dict[str, list[tuple[int, float, int]]] = {}
    tried = TRIED_WARPS if tiles == 1 else TRIED_WARPS[:1]
    if tiles == 1 and problem.d_head == 64:
        tried += (16,)  # of stage paged_kv alone: lean refuses them
    for warps in tried:
        buffers, results = 2 * warps * UNIT * problem.d_head * 2, 4 * warps * tiles * TILE * (problem.d_head + 6)
        fit = MULTIPROCESSOR_BYTES // (buffers + results + 2048)
        for each in TRIED_EACH:
            blocks = max(1, min(int(each * multiprocessors), (units - 1) // warps + 1)) if each else heads
            if problem.equal_lengths and blocks > heads:
                blocks -= blocks % heads
            blocks, evenly = min(blocks, units), -(-blocks // multiprocessors)
            for resident in (0, evenly) if evenly < fit else (0,):
                name = f"warps_{warps}+blocks_{blocks}" + (f"+resident_{resident}" if resident else "")
                found.setdefault(name, []).append((warps, each, resident))
    return found


def read_library() -> Path:
    return build_directory() / "lib/libread_cache.so"


@dataclass(frozen=True)
class Settings:
    shapes: tuple[tuple[int, int, int, int], ...] = SHAPES
    other_caches: tuple[tuple[int, int, int, int], ...] = OTHER_CACHES
    head_dims: tuple[int, ...] = (128,)
    dtype: str = "bf16"
    stages: tuple[int, ...] = ()  # none: all
    tries: bool = False  # of the stages that take configurations, also those that their table is chosen from
    peers: bool = True
    rounds: int = 7
    series_ms: float = 20.0  # of one time, about
    most_launches: int = 512  # of a series
    cold_bytes: int = 1 << 30  # of all copies together: many times what an L2 holds

    def problems(self) -> list[DecodeProblem]:
        return [
            self._problem(shape, d, unequal, page_size)
            for d in self.head_dims
            for shapes, caches in ((self.shapes, ((False, 0),)), (self.other_caches, CACHES))
            for shape in shapes
            for unequal, page_size in caches
        ]

    def _problem(self, shape: tuple[int, int, int, int], d: int, unequal: bool, page_size: int) -> DecodeProblem:
        Hq, Hkv, B, length = shape
        lengths = unequal_lengths(B, length) if unequal else (length,) * B
        fields = {"Nkv": max(lengths), "lengths": lengths, "page_size": page_size}
        return DecodeProblem(B=B, Hq=Hq, Hkv=Hkv, d_head=d, dtype=self.dtype, **fields)


@dataclass
class Candidate:
    name: str
    kind: str  # "stage", "peer" or "ceiling"
    launch: Callable[[int, int], None]  # queues the work on a copy of the cache, on a stream
    output: Callable[[int], np.ndarray] | None = None  # O of a copy as bit patterns, after launch()
    facts: dict = field(default_factory=dict)
    series: Callable[[], None] | None = None  # queues all launches of one time
    launches: int = 0
    times_us: list[float] = field(default_factory=list)
    comparison: Comparison | None = None


class DecodeBench(bench.Benchmark):
    TITLE = "Benchmark of decode"

    def __init__(self, settings: Settings, device: Device):
        super().__init__(settings, device)
        self.reader = ctypes.CDLL(str(read_library()))
        self.sink = self.cudart.malloc(16)
        self.scratch: list[int] = []  # of this problem's stages
        self.lengths = self.table = 0  # of this problem, on the device
        self.pages: np.ndarray | None = None  # the table on the host
        self.other_caches: list[dict] = []  # measurements of unequal lengths and of pages
        self.expected: tuple = ()  # of this problem's last copy

    @property
    def SUFFIX(self) -> str:  # noqa: N802 - as of the other benchmarks
        return "-decode-shares" if self.settings.tries else "-decode"

    def wanted_stages(self) -> list[stages.Decode]:
        wanted = self.settings.stages or tuple(stage.number for stage in stages.decode_stages())
        return [stages.entry(number) for number in wanted]

    @staticmethod
    def fields_of(problem: DecodeProblem) -> dict:
        """Its lengths only where they differ."""
        names = ("B", "Hq", "Hkv", "Nq", "Nkv", "d_head", "dtype", "page_size")
        lengths = {} if set(problem.lengths) == {problem.Nkv} else {"lengths": list(problem.lengths)}
        return {name: getattr(problem, name) for name in names} | lengths

    # ---- one problem ----

    def copies_of(self, problem: DecodeProblem) -> list:
        """As many copies of the inputs, each with other numbers, as go far beyond L2; at least two."""
        free, _ = self.cudart.memory()
        fit, far = int(free * 0.8) // room(problem), -(-self.settings.cold_bytes // problem.cache_bytes())
        count = max(2, min(far, fit, 256))
        if self.torch:
            return [gpu_memory.TorchMemory(problem, seed) for seed in range(count)]
        return [gpu_memory.PlainMemory(problem, seed, self.cudart) for seed in range(count)]

    def stage_candidate(
        self, stage: stages.Decode, problem: DecodeProblem, copies: list, configuration: str | None = None
    ) -> Candidate:
        """configuration: None for the stage's own choice."""
        library = self.libraries[stage.number]
        description = library.describe(problem.params({}, configuration=configuration)).as_dict()
        needed = description["workspace_bytes"]
        scratch = self.cudart.malloc(needed) if needed else 0
        self.scratch += [scratch] if scratch else []
        if needed:
            self.cudart.fill(scratch, 0, description["zeroed_bytes"])
        lengths = 0 if description["optional_lengths"] and problem.equal_lengths else self.lengths
        shared = {"lengths": lengths, "block_table": self.table}
        params = [problem.params(one.pointers() | shared, scratch, needed, configuration) for one in copies]

        def launch(copy: int, stream: int) -> None:
            library.launch(params[copy], stream)

        kept = ("threads", "shared_bytes", "registers", "spill_bytes", "resident_blocks", "splits", "grid")
        kept += ("configuration",) if description["configuration"] else ()
        facts = {key: description[key] for key in kept} | {"kernel_sha256": stage.kernel_hash()}
        name = stage.name + (f" {configuration}" if configuration else "")
        return Candidate(name, "stage", launch, lambda copy: copies[copy].bits("O"), facts)

    def peer_candidates(self, problem: DecodeProblem, copies: list) -> list[Candidate]:
        if not (self.torch and self.settings.peers):
            return []
        found = []
        for name in decode_peers.names(problem):
            try:
                calls, kept = decode_peers.calls(name, problem, [one.tensors for one in copies], self.pages), {}
            except RuntimeError as error:
                self.skip(name, problem, str(error).splitlines()[0])
                continue

            def launch(copy: int, stream: int, calls=calls, kept=kept) -> None:  # on PyTorch's current stream
                kept["O"] = calls[copy]()

            found.append(Candidate(name, "peer", launch, lambda copy, kept=kept: gpu_memory.host_bits(kept["O"])))
        return found

    def reading(self, problem: DecodeProblem, copies: list) -> Candidate:
        size = ctypes.c_size_t(problem.cache_bytes() // 2)

        def launch(copy: int, stream: int) -> None:
            one = copies[copy].pointers()
            status = self.reader.read_cache(
                ctypes.c_void_p(one["K"]), ctypes.c_void_p(one["V"]), size, ctypes.c_void_p(self.sink),
                ctypes.c_void_p(stream),
            )  # fmt: skip
            if status:
                raise FlashLadderError(f"read_cache() failed (cudaError {status})")

        return Candidate(READING, "ceiling", launch)

    def admit(self, candidate: Candidate, problem: DecodeProblem, copies: list) -> bool:
        """Runs the candidate on the last copy and compares it with the reference: True if it may be timed."""
        last = len(copies) - 1
        copies[last].poison()
        try:
            candidate.launch(last, 0)
            self.cudart.synchronize()
        except (StageRefused, RuntimeError) as error:  # a peer raises RuntimeError where it has no kernel
            self.skip(candidate.name, problem, str(error).splitlines()[0])
            return False
        if candidate.output is None:
            return True
        self.expected = self.expected or expected(problem, copies[last], self.pages)
        candidate.comparison = compare(some_heads(problem, candidate.output(last)), *self.expected, problem.dtype)
        return self.accepts(candidate, problem)

    # ---- time ----

    def prepare(self, candidate: Candidate, copies: int) -> None:
        """Makes the candidate's series: whole rounds through the copies, as many as fill the time wanted."""

        def a_round() -> None:
            for copy in range(copies):
                candidate.launch(copy, 0)

        round_ms = max(self.elapsed_ms(a_round), 1e-3)
        rounds = int(min(self.settings.series_ms / round_ms, self.settings.most_launches / copies))
        candidate.launches = copies * max(1, rounds)
        candidate.series = self.captured(candidate, copies) if self.torch else self.direct(candidate, copies)

    def direct(self, candidate: Candidate, copies: int) -> Callable[[], None]:
        def series() -> None:
            for number in range(candidate.launches):
                candidate.launch(number % copies, 0)

        return series

    def captured(self, candidate: Candidate, copies: int) -> Callable[[], None]:
        """The same launches as a CUDA graph, so that the host's time for a launch does not count."""
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            stream = self.torch.cuda.current_stream().cuda_stream
            for number in range(candidate.launches):
                candidate.launch(number % copies, stream)
        return graph.replay

    def time_once(self, candidate: Candidate) -> float:
        """Microseconds of a launch."""
        return self.elapsed_ms(candidate.series) * 1e3 / candidate.launches

    def bench_problem(self, problem: DecodeProblem) -> None:
        if 2 * room(problem) > self.cudart.memory()[0] * 0.8:
            self.skip("all", problem, "two copies of the cache do not fit in memory")
            return
        copies = self.copies_of(problem)
        self.lengths = self.uploaded(np.array(problem.lengths, np.int32))
        self.pages = problem.block_table() if problem.page_size else None
        self.table = self.uploaded(self.pages) if problem.page_size else 0
        candidates = [
            self.reading(problem, copies),
            *(self.stage_candidate(stage, problem, copies) for stage in self.stages),
            *self.tried(problem, copies),
            *self.peer_candidates(problem, copies),
        ]
        admitted = [one for one in candidates if self.admit(one, problem, copies)]
        for candidate in admitted:
            self.prepare(candidate, len(copies))
            self.time_once(candidate)
        for _ in range(self.settings.rounds):
            for candidate in admitted:
                candidate.times_us.append(self.time_once(candidate))
        limit = float(np.median(admitted[0].times_us))
        clocks = provenance.clocks()
        for candidate in admitted:
            self.record(candidate, problem, limit, {"copies": len(copies), "sm_mhz": clocks and clocks["sm_mhz"]})
        for one in copies:
            one.release()
        for pointer in filter(None, (self.lengths, self.table, *self.scratch)):
            self.cudart.free(pointer)
        self.scratch, self.expected = [], ()

    def uploaded(self, array: np.ndarray) -> int:
        pointer = self.cudart.malloc(array.nbytes)
        self.cudart.upload(pointer, array)
        return pointer

    def tried(self, problem: DecodeProblem, copies) -> list[Candidate]:
        """The stages that take configurations, with each that suits the problem."""
        found = []
        for stage in self.stages if self.settings.tries else ():
            for configuration in tries(problem, self.multiprocessors()) if stage.configuration(problem) else ():
                try:
                    found.append(self.stage_candidate(stage, problem, copies, configuration))
                except StageRefused:
                    continue  # this configuration has no instance for the problem
        return found

    def record(self, candidate: Candidate, problem: DecodeProblem, limit_us: float, facts: dict) -> None:
        median = float(np.median(candidate.times_us))
        row = {"name": candidate.name, "kind": candidate.kind, **self.fields_of(problem)}
        row |= {
            "us": bench.spread(candidate.times_us, 3),
            "launches": candidate.launches * len(candidate.times_us),
            "bytes": problem.cache_bytes(),
            "gb_per_s": float(f"{problem.cache_bytes() / median / 1e3:.4g}"),
            "of_reading": float(f"{limit_us / median:.4g}"),
        }
        if candidate.comparison:
            row["relative_error"] = float(f"{candidate.comparison.frobenius:.3g}")
        rows = self.measurements if problem.equal_lengths else self.other_caches
        rows.append(row | facts | candidate.facts)

    def run(self) -> dict:
        for problem in progress(self.settings.problems(), "bench"):
            self.bench_problem(problem)
        more = {"other_caches": self.other_caches, "multiprocessors": self.multiprocessors()}
        return self.results(self.stages, graph=bool(self.torch)) | more

    @staticmethod
    def print_tables(results: dict) -> None:
        print_table(results)


def room(problem: DecodeProblem) -> int:
    """Bytes of K and V as they lie in memory."""
    return problem.bytes("K") + problem.bytes("V")


def picked(problem: DecodeProblem) -> list[tuple[int, int]]:
    """The heads of K and V, with their sequences, that are compared with the reference: the first one and the last."""
    return [(0, 0), (problem.B - 1, problem.Hkv - 1)]


def some_heads(problem: DecodeProblem, tensor: np.ndarray) -> np.ndarray:
    """Of Q or O, those of the heads picked()."""
    group = problem.Hq // problem.Hkv
    return np.stack([tensor[b, h * group : (h + 1) * group] for b, h in picked(problem)])


def expected(problem: DecodeProblem, memory, pages: np.ndarray | None = None) -> tuple:
    """O of the heads picked(), by the reference of these alone. pages: the table of a cache in pages."""
    alone = DecodeProblem(
        B=2, Hq=problem.Hq // problem.Hkv, Hkv=1, Nq=problem.Nq, Nkv=problem.Nkv, d_head=problem.d_head,
        dtype=problem.dtype, lengths=tuple(problem.lengths[b] for b, _ in picked(problem)),
    )  # fmt: skip
    own = {"Q": some_heads(problem, memory.bits("Q"))}
    for name in "KV":
        whole = {name: memory.bits(name), "block_table": pages}
        own[name] = np.zeros(alone.shape(name), np.uint16)
        for place, (b, h) in enumerate(picked(problem)):
            own[name][place, 0, : problem.lengths[b]] = problem.cache_rows(whole, name, b)[h]
    return decoding.expected(alone, own)[0]


def run_bench(settings: Settings, device: Device | None = None) -> Path:
    """Times everything, prints a table, and returns the JSON file below build/results."""
    file = bench.run_bench(settings, device, DecodeBench)
    say(f"\nWritten: {os.path.relpath(file, ROOT)}")
    return file


def print_table(results: dict) -> None:
    """Microseconds and the part of them that reading takes, by shape and name."""

    def told(row: dict) -> str:
        return f"{row['us']['median']:.1f}" + (f" ({row['of_reading']:.2f})" if row["name"] != READING else "")

    names, body = recorded.by_shape(results["measurements"], lambda row: (_shape(row),), told)
    title = f"us, and the part of it that reading takes: {results['provenance']['device']}"
    table(title, ["", *names], body, right=range(1, len(names) + 1))
    for d in sorted({row["d_head"] for row in results.get("other_caches", ())}):
        head, body = beside_equal(results, d)
        table(f"us, and times those of equal lengths in one piece; d = {d}", head, body, right=range(4, len(head)))
    for row in results["skipped"]:
        say(f"not timed: {row['name']} at B = {row['B']}, N = {row['Nkv']}, d = {row['d_head']}: {row['reason']}")


def _shape(row: dict) -> str:
    return f"{row['Hq']}/{row['Hkv']} B={row['B']} N={row['Nkv']} d={row['d_head']}"


def beside_equal(results: dict, d: int) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table of other caches: microseconds of each candidate, and how many times those of as many
    keys in equal lengths and one piece."""
    rows = [row for row in results.get("other_caches", ()) if row["d_head"] == d]
    names = list(dict.fromkeys(row["name"] for row in rows))
    caches: dict[tuple, dict[str, str]] = {}
    for row in rows:
        keys = sum(row["lengths"]) // row["B"] if "lengths" in row else row["Nkv"]
        same = {name: row[name] for name in ("name", "B", "Hq", "Hkv", "d_head")} | {"Nkv": keys}
        equal = next((one for one in results["measurements"] if same.items() <= one.items()), None)
        times = f" ({_median(row) / _median(equal):.2f})" if equal else ""
        what = f"{'unequal' if 'lengths' in row else 'equal'}, {_pages(row)}"
        cache = f"{row['Hq']} / {row['Hkv']}", str(row["B"]), f"{keys:,}", what
        caches.setdefault(cache, {})[row["name"]] = f"{_median(row):.1f}{times}"
    head = ["heads of Q / of K and V", "B", "mean N", "lengths and cache", *names]
    return head, [[*cache, *(found.get(name, "-") for name in names)] for cache, found in caches.items()]


def _pages(row: dict) -> str:
    return f"pages of {row['page_size']}" if row["page_size"] else "one piece"


def fastest(results: dict) -> list[str]:
    """Of each shape what a stage takes by its own choice, and its five fastest configurations."""
    shapes: dict[str, list[dict]] = {}
    for row in results["measurements"]:
        if row["kind"] == "stage":
            shapes.setdefault(_shape(row), []).append(row)
    return [f"{shape}: {_told(rows[:1])}; {_told(sorted(rows[1:], key=_median)[:5])}" for shape, rows in shapes.items()]


def _median(row: dict) -> float:
    return row["us"]["median"]


def _told(rows: list[dict]) -> str:
    return ", ".join(f"{row['configuration']} {_median(row):.1f}" for row in rows)
