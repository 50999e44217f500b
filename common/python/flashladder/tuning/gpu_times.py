"""Configurations built, verified and timed: the Workshop and the Timer of flashladder.tuning.tune on real machines."""

import concurrent.futures
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from flashladder.building import build
from flashladder.core.abi import StageLibrary
from flashladder.core.console import progress
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.measuring import ablation_times, bench, peers, provenance
from flashladder.running.cudart import CudaError
from flashladder.running.job import Options, StageError, run_library
from flashladder.running.verify import check
from flashladder.tuning import instances, rules
from flashladder.tuning.configuration import Configuration
from flashladder.tuning.store import Known, Times
from flashladder.tuning.tune import TimingFailed

# cudaDeviceAttr
THREADS_A_MULTIPROCESSOR, SHARED_A_MULTIPROCESSOR = 39, 81
REGISTERS_A_MULTIPROCESSOR, SHARED_A_BLOCK = 82, 97
STANDS_FOR = 1000
CLOCK_SECONDS = 5.0
VERIFY_SECONDS = 300  # for one configuration


def verification(one: Configuration) -> Problem:
    """Several batches, heads, query blocks and tiles, an odd number of them."""
    return Problem(B=2, Hq=2, Nq=3 * one.Br, Nkv=5 * one.Bc, d_head=one.d_head, dtype=one.dtype)


class DeviceWorkshop:
    """Builds for a device, and runs each once against the float64 reference, in a process of its own."""

    def __init__(self, device: Device, table=instances):
        """table: the module with the stage's number and its build()."""
        self.device, self.table = device, table

    def prepare(self, configurations: Sequence[Configuration]) -> Iterator[tuple[Configuration, Known]]:
        with concurrent.futures.ThreadPoolExecutor(build.jobs()) as pool:
            running = {pool.submit(self._one, one): one for one in configurations}
            try:
                for done in concurrent.futures.as_completed(running):
                    yield running[done], done.result()
            finally:  # an interrupt does not wait for all the others
                pool.shutdown(wait=False, cancel_futures=True)

    def at_hand(self, configurations: Sequence[Configuration]) -> None:
        with concurrent.futures.ThreadPoolExecutor(build.jobs()) as pool:
            built = pool.map(self._build, configurations)
            list(progress(built, "build again", total=len(configurations)))

    def _build(self, one: Configuration) -> instances.Built:
        return self.table.build(one, self.device.gpu.compute if self.device.kind == "gpu" else None)

    def _one(self, one: Configuration) -> Known:
        try:
            built = self._build(one)
        except FlashLadderError as error:
            return Known("build", str(error))
        facts = {"registers": built.registers, "spill_bytes": built.spill_bytes}
        problem = verification(one)
        inputs = problem.random(1)
        try:
            options = Options(timeout=VERIFY_SECONDS)
            result = run_library(str(one), built.library, problem, inputs, self.device, options)
        except StageError as error:
            return Known("verify", str(error), **facts)
        comparison = check(problem, inputs, result.bits, result.log_sum_exp)
        if not comparison:
            return Known("verify", f"{problem}: {comparison.message}", **facts)
        return Known(resident_blocks=result.description["resident_blocks"], **facts)


class GpuTimer:
    """Heats by the rules of measuring/bench.py: each candidate verified for the very problem, then run in turn with a
    cold L2 cache."""

    def __init__(self, device: Device, numbers: tuple[int, ...], table=instances):
        """numbers: of the stages that heats can have, too. table: as of DeviceWorkshop."""
        self.device, self.table = device, table
        self.bench = bench.Bench(bench.Settings(stages=numbers), device)
        self.peers = peers.names() if self.bench.torch else ()
        self.hard = bool(self.bench.torch)
        self._taken: tuple[Problem, str] | None = None
        self._libraries: dict[Configuration, StageLibrary] = {}
        self._mhz, self._clock_at = None, -CLOCK_SECONDS

    @property
    def multiprocessors(self) -> int:
        return self.bench.multiprocessors()

    def limits(self) -> rules.Device:
        """What the rules ask of a GPU, as the CUDA runtime tells it of this one."""
        ask = self.bench.cudart.attribute
        return rules.Device(
            self.device.gpu.name,
            shared_a_block=ask(SHARED_A_BLOCK),
            shared_a_multiprocessor=ask(SHARED_A_MULTIPROCESSOR),
            threads_a_multiprocessor=ask(THREADS_A_MULTIPROCESSOR),
            registers_a_multiprocessor=ask(REGISTERS_A_MULTIPROCESSOR),
        )

    def heat(
        self,
        problem: Problem,
        configurations: Sequence[Configuration],
        seconds: float,
        numbers: Sequence[int] = (),
        inputs: str = "normal",
    ) -> dict[str, Times]:
        self.bench.settings = replace(self.bench.settings, seconds=seconds)
        try:
            self._take(problem, inputs)
            candidates = [self._candidate(one, problem) for one in configurations]
            for one, candidate in zip(configurations, candidates, strict=True):
                self._admit(one, candidate, problem)
            beside = [self._stage(number, problem) for number in numbers]
            running = [*candidates, *beside, *self._peers]
            for candidate in running:
                candidate.times_ms = []
            self.bench.measure(running)
        except CudaError as error:  # of which of them cannot be told
            raise FlashLadderError(f"{problem}: the timing stopped: {error}. Start again: it goes on here.") from error
        mhz = self._clock()
        kinds = {candidate.name: "configuration" for candidate in candidates}
        kinds |= {candidate.name: "stage" for candidate in beside}
        return {
            candidate.name: Times(kinds.get(candidate.name, "peer"), _short(candidate.times_ms), mhz)
            for candidate in running
        }

    def _take(self, problem: Problem, inputs: str) -> None:
        """Inputs, reference and peers of the problem; kept while heats of the same problem and inputs follow."""
        if (problem, inputs) == self._taken:
            return
        if self._taken:
            self._memory.release()
        self.bench.prepare = None
        if inputs != "normal":
            self.bench.prepare = lambda problem, tensors: ablation_times.fill(inputs, problem, tensors)
        self._taken, (self._memory, self._expected) = (problem, inputs), self.bench.prepared(problem)
        self._peers = [
            peer
            for peer in self.bench.peer_candidates(problem, self._memory)
            if self.bench.admit(peer, problem, self._memory, self._expected)
        ]

    def _clock(self) -> int | None:
        """MHz of the multiprocessors; asked for now and then, since nvidia-smi takes as long as a heat."""
        if time.monotonic() - self._clock_at > CLOCK_SECONDS:
            clocks = provenance.clocks()
            self._mhz, self._clock_at = clocks["sm_mhz"] if clocks else None, time.monotonic()
        return self._mhz

    def _candidate(self, one: Configuration, problem: Problem) -> bench.Candidate:
        # To the benchmark it is a stage of another number, with a library of its own.
        stage = replace(stages.get(self.table.STAGE), number=STANDS_FOR, name=str(one))
        if one not in self._libraries:
            self._libraries[one] = StageLibrary(self.table.build(one, self.device.gpu.compute).library)
        self.bench.libraries[STANDS_FOR] = self._libraries[one]
        candidate = self.bench.stage_candidate(stage, problem, self._memory)
        if not candidate:
            raise TimingFailed(one, self.bench.skipped.pop()["reason"])
        return candidate

    def _stage(self, number: int, problem: Problem) -> bench.Candidate:
        candidate = self.bench.stage_candidate(stages.get(number), problem, self._memory)
        if not candidate or not self.bench.admit(candidate, problem, self._memory, self._expected):
            raise FlashLadderError(f"{problem}: {self.bench.skipped[-1]['name']}: {self.bench.skipped[-1]['reason']}")
        return candidate

    def _admit(self, one: Configuration, candidate: bench.Candidate, problem: Problem) -> None:
        try:
            if not self.bench.admit(candidate, problem, self._memory, self._expected):
                raise TimingFailed(one, self.bench.skipped.pop()["reason"])
        except FlashLadderError as error:
            raise TimingFailed(one, str(error)) from error
        except CudaError as error:
            raise TimingFailed(one, str(error), ends=True) from error


def _short(times: list[float]) -> tuple[float, ...]:
    return tuple(round(one, 5) for one in times)
