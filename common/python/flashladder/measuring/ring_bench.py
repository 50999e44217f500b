"""Attention of one sequence over the GPUs of a host: milliseconds of the stages for several GPUs and of peers.

Each part runs in a process of its own with a limit of time, and says what it has as soon as it has it, so that a part
that fails or hangs leaves what it and the others have measured: the links, the stages, and the peers, which are
processes of PyTorch, one for each GPU. Candidates take turns. Clocks follow the power that was spent just before, by
several percent, so the same work runs in front of every time that is taken. A time is that of a series of calls, of the
slowest GPU, over the number of calls.
"""

import concurrent.futures
import functools
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from ctypes import c_size_t, c_void_p
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from flashladder.core import device as devices
from flashladder.core.abi import RingLibrary, StageLibrary
from flashladder.core.console import say, table
from flashladder.core.device import Device, cudart
from flashladder.core.dtypes import FROBENIUS_LIMIT, from_bits
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, results_directory, stage_library
from flashladder.core.ring_problem import RingProblem
from flashladder.ladder import stages
from flashladder.ladder.ring import FORWARD, library_of
from flashladder.measuring import bench, provenance, recorded
from flashladder.measuring.ring_memory import Blocks, Share, Streams, forward_params, ring_ranks
from flashladder.measuring.ring_rows import (
    LONG_MS,
    Pace,
    Settings,
    Told,
    fields_of,
    least_seconds,
    rounds_that_fit,
    row_of,
)
from flashladder.running.cudart import Cudart

IDEAL = "one GPU, a part of the heads"  # as many as all heads over all GPUs: nothing is copied
THERE = "K and V there"  # a variant of the last stage: the same kernel, and nothing to wait for
SHARE_OF_TIME = {"numbers": 0.15, "links": 0.12, "stages": 0.6, "peers": 1.0}  # of what is left when a part begins
PATIENCE_S = 15.0  # beyond a part's time, before it is ended
LISTS = ("measurements", "links", "verified", "skipped")  # of a record
POISON = 0xFFFF  # of which no output has a number: a NaN
LINK_BYTES = tuple(1 << n for n in (18, 20, 22, 24, 26, 28))


# ---- the stages ----


@dataclass
class Candidate:
    name: str
    kind: str  # "stage", "variant" or "ideal"
    checked: bool  # whether it is only timed when its output is right
    launch: Callable[[], None]  # queues one call on all devices
    shares: list[Share] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    host_us: list[float] = field(default_factory=list)
    facts: dict = field(default_factory=dict)


class StagesPart:
    """All in one process: a host thread queues the work of all GPUs."""

    def __init__(self, settings: Settings, where: Device, told: Told):
        self.settings, self.told = settings, told
        self.cudart = Cudart(cudart(where))
        self.ranks = settings.ranks or self.cudart.devices()
        self.streams = Streams(self.cudart, self.ranks)
        self.forward = StageLibrary(library_of(FORWARD))
        wanted = settings.stages or tuple(stage.slug for stage in stages.ring_stages())
        self.stages = [stages.entry(name) for name in wanted]
        self.blocks: Blocks | None = None
        self.expected: dict[tuple, np.ndarray] = {}

    def run(self) -> None:
        for problem in self.settings.problems(self.ranks):
            began = time.monotonic()
            if self.told.left() < least_seconds(problem, 3 * (len(self.stages) + 3)):  # a check and two rounds
                self.told.skip("all", problem, "no time left")
                continue
            if not self.blocks or self.blocks.rows != problem.Nq:
                if self.blocks:
                    self.blocks.free()
                shape = (problem.Nq, problem.d_head, problem.dtype)
                self.blocks, self.expected = Blocks(self.cudart, self.ranks, *shape), {}
            self.problem(problem)
            say(f"stages, {problem}: {time.monotonic() - began:.1f} s")

    def problem(self, problem: RingProblem) -> None:
        made = []
        try:
            for candidate in self.candidates(problem):
                made.append(candidate)
            self.time([one for one in made if not one.checked or self.admit(one, problem)], problem)
        finally:
            self.streams.synchronize()
            for share in {id(share): share for one in made for share in one.shares}.values():
                share.free()

    # ---- candidates ----

    def candidates(self, problem: RingProblem) -> Iterator[Candidate]:
        yield self.ideal(problem)
        for stage in self.stages:
            for make in (self.stage, *(functools.partial(self.way, way) for way in stage.ways)):
                try:
                    candidate = make(stage, problem)
                except Exception as error:
                    self.told.skip(stage.name, problem, str(error))
                    continue
                yield candidate
                if candidate.kind == "stage" and not stage.by_another_stage:
                    yield self.keys_there(stage, problem, candidate)

    def ideal(self, problem: RingProblem) -> Candidate:
        counts = [max(1, heads // self.ranks) for heads in (problem.Hq, problem.Hkv)]
        shares = []
        for rank in range(self.ranks):
            heads = tuple([rank * count + i for i in range(count)] for count in counts)
            shares.append(Share(self.blocks, rank, heads, [(0, problem.Nq)]))
        self.streams.synchronize()
        params = [forward_params(share, problem, problem.causal) for share in shares]

        def launch() -> None:
            for rank, one in enumerate(params):
                self.cudart.call("cudaSetDevice", rank)
                self.forward.launch(one, self.streams.main[rank])

        return Candidate(IDEAL, "ideal", False, launch, shares)

    def stage(self, stage, problem: RingProblem) -> Candidate:
        facts = {"kernel_sha256": stage.kernel_hash()}
        return self.called(stage.name, "stage", stage_library(stage.number), stage, problem, facts=facts)

    def way(self, way: str, stage, problem: RingProblem) -> Candidate:
        name = f"{stage.id} {way.replace('_', ' ')}"
        facts = {"way": way, "kernel_sha256": stage.way_hash(way)}
        return self.called(name, "variant", stage.way_library(way), stage, problem, facts=facts)

    def keys_there(self, stage, problem: RingProblem, whose: Candidate) -> Candidate:
        """In the workspaces of the stage's candidate, which have K and V."""
        arguments = (stage_library(stage.number), stage, problem, whose.shares, "groups_1+kept")
        return self.called(f"{stage.id} {THERE}", "variant", *arguments)

    def called(  # noqa: PLR0913 - all that differs between the candidates
        self, name: str, kind: str, file: Path, stage, problem: RingProblem, shares=(), configuration=None, facts=None
    ) -> Candidate:
        """A flash_ring(); shares: where the memory is another candidate's."""
        library = RingLibrary(file)
        forward = str(library_of(FORWARD)) if stage.by_another_stage else None
        params = problem.ring_params(forward, configuration)
        described = [library.describe(params, rank).as_dict() for rank in range(self.ranks)]
        sizes, checked, shares = [one["workspace_bytes"] for one in described], not shares, list(shares)
        if not shares:
            heads = (list(range(problem.Hq)), list(range(problem.Hkv)))
            for rank, one in enumerate(described):
                shares.append(Share(self.blocks, rank, heads, one["pieces"]))
                shares[-1].make_scratch(sizes[rank])
            self.streams.synchronize()
        structs = ring_ranks(shares, self.streams, sizes)
        facts = {"pulled_bytes": max(one["pulled_bytes"] for one in described)} | (facts or {})
        return Candidate(name, kind, checked, lambda: library.launch(params, structs), shares, facts=facts)

    # ---- right or wrong ----

    def admit(self, candidate: Candidate, problem: RingProblem) -> bool:
        try:
            for share in candidate.shares:
                share.poison()
            self.streams.synchronize()
            candidate.launch()
            self.streams.synchronize()
            heads = sorted({0, problem.Hq - 1})
            candidate.facts |= self.errors(candidate, problem, heads)
        except Exception as error:
            self.told.skip(candidate.name, problem, str(error))
            return False
        worst, limit = max(candidate.facts["off"], candidate.facts["row_error"]), 2 * FROBENIUS_LIMIT[problem.dtype]
        if not worst <= limit:  # also of a NaN
            self.told.skip(candidate.name, problem, f"WRONG: relative error {worst:.2g}, at most {limit:.2g}")
            return False
        return True

    def errors(self, candidate: Candidate, problem: RingProblem, heads: list[int]) -> dict:
        """Of the first and the last head: relative to what one GPU computes from the whole sequence, all rows (of a
        long one every eighth or so), and to some rows in float64."""
        off, row_error, step = 0.0, 0.0, self.step(problem)
        for head in heads:
            got = np.empty((problem.Nq, problem.d_head), np.uint16)
            for share in candidate.shares:
                own, done = share.output(head), 0
                for first, rows in share.pieces:
                    got[first : first + rows] = own[done : done + rows]
                    done += rows
            if (got == POISON).any():
                return {"off": float("nan"), "row_error": float("nan")}
            some, wanted = from_bits(got[::step], problem.dtype), self.one_gpu(problem, head)
            off = max(off, float(np.linalg.norm(some - wanted) / np.linalg.norm(wanted)))
            rows, exact = self.exact(problem, head)
            of_rows = from_bits(got[rows], problem.dtype)
            row_error = max(row_error, float(np.linalg.norm(of_rows - exact) / np.linalg.norm(exact)))
        return {"off": float(f"{off:.3g}"), "row_error": float(f"{row_error:.3g}")}

    def step(self, problem: RingProblem) -> int:
        return max(1, problem.Nq >> 16)

    def one_gpu(self, problem: RingProblem, head: int) -> np.ndarray:
        kv_head = head // (problem.Hq // problem.Hkv)
        key = ("one", problem.causal, head, kv_head)
        if key not in self.expected:
            share = Share(self.blocks, 0, ([head], [kv_head]), [(0, problem.Nq)])
            self.streams.synchronize()
            self.cudart.call("cudaSetDevice", 0)
            self.forward.launch(forward_params(share, problem, problem.causal), self.streams.main[0])
            self.streams.synchronize()
            self.expected[key] = from_bits(share.output(0)[:: self.step(problem)], problem.dtype)
            share.free()
        return self.expected[key]

    def exact(self, problem: RingProblem, head: int) -> tuple[list[int], np.ndarray]:
        """Some rows, and O there, with a softmax in float64."""
        kv_head = head // (problem.Hq // problem.Hkv)
        rows = [0, problem.Nq // 2 - 1, problem.Nq // 2 + 5, problem.Nq - 1]
        key = ("exact", problem.causal, head, kv_head)
        if key not in self.expected:
            seen = [row + 1 if problem.causal else problem.Nq for row in rows]
            pairs = zip(rows, seen, strict=True)
            found = [self.blocks.attention_row(head, kv_head, *pair, problem.scale) for pair in pairs]
            self.expected[key] = np.array(found)
        return rows, self.expected[key]

    # ---- time ----

    def once(self, candidate: Candidate, calls: int, filler: tuple[Candidate, int]) -> float:
        """Milliseconds of a call of a series, behind the filler's calls."""
        for _ in range(filler[1]):
            filler[0].launch()
        self.streams.begin()
        began = time.perf_counter()
        for _ in range(calls):
            candidate.launch()
        candidate.host_us.append((time.perf_counter() - began) * 1e6 / calls)
        return max(self.streams.end()) / calls

    def time(self, admitted: list[Candidate], problem: RingProblem) -> None:
        ideal, first = admitted[0], {}
        self.once(ideal, 1, (ideal, 0))
        of_ideal = self.once(ideal, 1, (ideal, 0))
        for candidate in admitted:  # also warms up; of a long call the check has done so
            if of_ideal < LONG_MS:
                self.once(candidate, 1, (ideal, 1))
            first[candidate.name] = of_ideal if of_ideal >= LONG_MS else self.once(candidate, 1, (ideal, 1))
        paces = {name: Pace.of(self.settings, ms) for name, ms in first.items()}
        filler = (ideal, math.ceil(paces[ideal.name].filler_ms / max(of_ideal, 1e-3)))
        a_round = sum(paces[name].seconds(ms) for name, ms in first.items())
        rounds = rounds_that_fit(min(pace.rounds for pace in paces.values()), a_round, self.told.left())
        if not rounds:
            return self.told.skip("all", problem, "no time left for two rounds")
        for number in range(rounds):
            turn = number % len(admitted)
            for candidate in admitted[turn:] + admitted[:turn]:  # each comes behind each other one in turn
                candidate.times.append(self.once(candidate, paces[candidate.name].calls, filler))
        limit = statistics.median(ideal.times)
        for candidate in admitted:
            facts = {
                "of_ideal": float(f"{limit / statistics.median(candidate.times):.4g}"),
                "calls": paces[candidate.name].calls,
                "rounds": rounds,
                "host_us": round(statistics.median(candidate.host_us), 1),
            }
            row = row_of(problem, candidate.name, candidate.kind, candidate.times, facts | candidate.facts)
            self.told.row("measurements", row)


# ---- the links ----

Pairs = list[tuple[int, int]]  # (to, from)


def link_patterns(ranks: int) -> dict[str, list[Pairs]]:
    """By name: copies that run at the same time, in each way that there is. Of more ways the slowest counts."""
    every = [(to, source) for to in range(ranks) for source in range(ranks) if to != source]
    found = {"one way": [[pair] for pair in every], "both ways": [[(a, b), (b, a)] for a, b in every if a < b]}
    if ranks > 2 and ranks & (ranks - 1) == 0:  # each GPU with one other
        found["in pairs, all pairs"] = [[(to, to ^ other) for to in range(ranks)] for other in range(1, ranks)]
    turns = [(to, (to - step) % ranks) for step in range(1, ranks) for to in range(ranks)]
    return found | {"all at once": [turns]}


class Links:
    """Copies by the copy engines, from one of two pieces of memory of each GPU to the other one of another GPU."""

    HOLD_BYTES = 256 << 20  # to be set, in about 90 us, while copies are queued behind: the host must not be the limit

    def __init__(self, runtime: Cudart, ranks: int):
        self.runtime, self.streams, self.memory = runtime, Streams(runtime, ranks), []
        for rank in range(ranks):
            runtime.call("cudaSetDevice", rank)
            for other in range(ranks):
                if other != rank:
                    runtime.call("cudaDeviceEnablePeerAccess", other, 0)
            self.memory.append((runtime.malloc(max(LINK_BYTES)), runtime.malloc(max(LINK_BYTES))))

    def gb_per_s(self, pairs: Pairs, size: int) -> float:
        """That each GPU receives, best of three."""
        runtime, streams, each = self.runtime, self.streams, max(1, min(32, (256 << 20) // size))
        best, receivers = 0.0, len({to for to, _ in pairs})
        for _ in range(3):
            for rank, (_, own) in enumerate(self.memory):
                runtime.call("cudaSetDevice", rank)
                for _ in range(4 + each * len(pairs) // 10):
                    runtime.fill(own, 0, self.HOLD_BYTES, streams.main[rank])
            streams.begin()
            for _ in range(each):
                for to, source in pairs:
                    ends = (self.memory[to][1], self.memory[source][0])
                    runtime.call("cudaSetDevice", to)
                    runtime.call("cudaMemcpyAsync", *map(c_void_p, ends), c_size_t(size), 4, streams.main[to])
            best = max(best, each * size * len(pairs) / receivers / max(streams.end()) / 1e6)
        return best


def links_part(settings: Settings, where: Device, told: Told) -> None:
    """Gigabytes a second and direction that the copy engines move, by the bytes of a copy: from one GPU, between two
    both ways, and all GPUs at once, each from every other one."""
    runtime = Cudart(cudart(where))
    ranks = settings.ranks or runtime.devices()
    links = Links(runtime, ranks)
    for name, ways in link_patterns(ranks).items():
        for size in LINK_BYTES:
            if told.left() < 3:
                return told.skip(f"links, {name}", None, "no time left")
            rates = [links.gb_per_s(pairs, size) for pairs in ways]
            row = {"pattern": name, "ranks": ranks, "bytes": size, "gb_per_s": float(f"{min(rates):.4g}")}
            told.row("links", row | ({"fastest": float(f"{max(rates):.4g}"), "ways": len(ways)} if ways[1:] else {}))
    links.streams.synchronize()


# ---- small problems, beside the reference in float64 ----


def numbers_part(settings: Settings, where: Device, told: Told) -> None:
    """Each stage and its other ways with so many ranks, twice on the same memory. Each in a process of its own, all at
    the same time."""
    ranks = settings.ranks or Cudart(cudart(where)).devices()
    wanted = settings.stages or tuple(stage.slug for stage in stages.ring_stages())
    runs = []
    for stage in map(stages.entry, wanted):
        for way in (None, *stage.ways):
            name = f"{stage.id} {way.replace('_', ' ')}" if way else stage.name
            for causal, d_head in ((True, 64), (False, 128)):
                shape = {"Hq": 2 * ranks, "Hkv": ranks, "Nq": 100 * ranks + 7, "d_head": d_head, "causal": causal}
                problem = stage.fitted(RingProblem(**shape, ranks=ranks))
                runs.append((name, stage, way and stage.way_library(way), problem))

    def verify(name: str, stage, library: Path | None, problem: RingProblem) -> None:
        try:
            inputs = stage.random_inputs(problem)
            result = stage.run(problem, inputs, where.kind, library, own_stream=True, repeat=2)
            found = stage.compared(problem, inputs, result)
        except Exception as error:
            return told.skip(name, problem, str(error))
        if not found:
            return told.skip(name, problem, f"WRONG: {found.message}")
        kind = "variant" if library else "stage"
        told.row("verified", {"name": name, "kind": kind, **fields_of(problem), "message": found.message})

    with concurrent.futures.ThreadPoolExecutor(len(runs)) as pool:
        list(pool.map(lambda run: verify(*run), runs))


# ---- all of it ----


def do_part(part: str, settings: Settings, told: Told) -> None:
    """In a process of its own."""
    where = devices.choose(90)
    if part == "numbers":
        numbers_part(settings, where, told)
    elif part == "links":
        links_part(settings, where, told)
    elif part == "stages":
        StagesPart(settings, where, told).run()
    else:
        from flashladder.measuring import ring_peers  # which asks for PyTorch

        ring_peers.run(settings, where, told)


def in_its_own_process(part: str, settings: Settings, where: Device, seconds: float, rows: Path) -> str:
    """ "" or what went wrong."""
    words = [sys.executable, "-m", "flashladder.measuring.ring_bench", part, str(rows), str(seconds)]
    environment = for_python(devices.environment(where) | {"CUDA_MODULE_LOADING": "EAGER"})
    if where.kind == "sim":
        environment |= {"FLASHLADDER_DEVICE": "sim", "WARPSIM_DEVICES": str(settings.ranks)}
    child = subprocess.Popen([*words, json.dumps(asdict(settings))], env=environment, start_new_session=True, cwd=ROOT)
    try:
        status = child.wait(seconds + PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"it was ended after {seconds + PATIENCE_S:.0f} s"
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return f"it ended with status {status}" if status else ""


def run_bench(settings: Settings, where: Device) -> Path:
    """Times what the settings ask for, prints a table, and returns the JSON file below build/results."""
    bench.check_build(where)
    began = time.monotonic()
    record = {
        "version": 1,
        "provenance": provenance.collect(where, stages.ring_stages()),
        "settings": asdict(settings),
        **{name: [] for name in LISTS},
    }
    rows, file = results_directory() / "ring-rows.jsonl", None
    rows.parent.mkdir(parents=True, exist_ok=True)
    rows.unlink(missing_ok=True)
    for part in settings.parts:
        left = settings.budget_s - (time.monotonic() - began)
        seconds = max(5.0, SHARE_OF_TIME[part] * left)
        say(f"{part}: at most {seconds:.0f} s")
        wrong = in_its_own_process(part, settings, where, seconds, rows)
        if wrong:
            Told(rows, 0).skip(part, None, wrong)
        lines = list(map(json.loads, rows.read_text().splitlines())) if rows.exists() else []
        record |= {name: [line[name] for line in lines if name in line] for name in LISTS}
        for line in lines:
            record["provenance"] |= line.get("versions", {})
        if file:  # also what is there so far
            file.write_text(recorded.to_text(record))
        else:
            file = recorded.write_live(record, f"{bench.slug(where.short)}-ring")
    rows.unlink(missing_ok=True)
    print_table(record)
    say(f"\nWritten: {os.path.relpath(file, ROOT)}")
    return file


REHEARSAL = Settings(
    ranks=2, lengths=(512,), heads=((4, 2),), masks=(True,), d_head=64, parts=("stages",), rounds=2, series_ms=0.0,
    filler_ms=0.0,
)  # fmt: skip


def rehearse(settings: Settings, where: Device) -> None:
    """On the simulator, which has no times: the same calls with small numbers, and what is right or wrong of them."""
    rows = results_directory() / "ring-rehearsal.jsonl"
    rows.parent.mkdir(parents=True, exist_ok=True)
    rows.unlink(missing_ok=True)
    for part in settings.parts:
        wrong = in_its_own_process(part, settings, where, settings.budget_s, rows)
        if wrong:
            raise FlashLadderError(f"{part}: {wrong}")
    for line in map(json.loads, rows.read_text().splitlines()):
        for kind, row in line.items():
            told = f"relative error {row['off']:.1e}" if "off" in row else row.get("reason", "no output to check")
            say(f"{row.get('name', kind)}: {told}")
    rows.unlink()


def print_table(record: dict) -> None:
    """TFLOP/s of a GPU by problem and name, with the part of the ideal."""

    def shape(row: dict) -> tuple[str]:
        mask = "causal" if row["causal"] else "full"
        return (f"{row['ranks']} x {row['N'] // 1024}k {row['Hq']}/{row['Hkv']} {mask}",)

    def told(row: dict) -> str:
        return f"{row['tflops_per_gpu']:.0f}" + (f" ({row['of_ideal']:.2f})" if "of_ideal" in row else "")

    names, body = recorded.by_shape(record["measurements"], shape, told)
    table("TFLOP/s of each GPU, and the part of the ideal", ["", *names], body, right=range(1, len(names) + 1))
    for row in record["verified"]:
        say(f"right: {row['name']}, {row['ranks']} ranks, N = {row['N']}, causal {row['causal']}: {row['message']}")
    for row in record["links"]:
        say(f"{row['pattern']}, {row['bytes'] >> 10} KiB a copy: {row['gb_per_s']:.0f} GB/s a direction")
    for row in record["skipped"]:
        problem = f" at N = {row['N']}, {row['Hq']}/{row['Hkv']}, causal {row['causal']}" if "N" in row else ""
        say(f"not timed: {row['name']}{problem}: {row['reason']}")


def main(arguments: list[str]) -> int:
    part, rows, seconds, settings = arguments
    do_part(part, Settings.read(settings), Told(Path(rows), float(seconds)))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except FlashLadderError as error:
        say(f"error: {error}")
        sys.exit(1)
