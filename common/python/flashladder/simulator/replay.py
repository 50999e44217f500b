"""A model of one multiprocessor: from what warps do, in their order, to when they do it. Nothing here is measured.

A warp's program is a list of steps. `Stretch` is work of one kind; the others are what warps say to one another and to
what goes on in the background. A warp runs its steps in order. Each has a scheduler (its number modulo four), which
has an issue slot, a tensor core, a unit for exponentials and one for integers, maxima and conversions; shared memory
and the way to the L2 cache are the multiprocessor's. A unit serves whoever comes first, and nobody else meanwhile.
While a scheduler's tensor core multiplies, its other units are slower, and additions and multiplications of fp32 make
the products take longer.

A stretch takes as long as the busiest unit is busy with it, or as long as a warp alone needs between dependent
instructions (its pace), whichever is more. It is cut into quanta, between which other warps have their turn.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field

from flashladder.core.errors import FlashLadderError
from flashladder.simulator.clocks import Clocks

QUANTUM = 48.0  # clocks, about: no more than this goes by before another warp has its turn
OF_SCHEDULER = ("issue", "tensor", "special", "alu")
OF_MULTIPROCESSOR = ("shared", "memory")
UNITS = (*OF_SCHEDULER, *OF_MULTIPROCESSOR)
WARPGROUP = 4


@dataclass(frozen=True)
class Step:
    place: object = field(default=None, kw_only=True)  # where in the source; handed on to the span


@dataclass(frozen=True)
class Stretch(Step):
    kind: str  # "product", "arithmetic", "copy"
    units: dict[str, float]  # clocks of each unit
    pace: float = 0.0  # clocks that a warp alone takes at least
    latency: float = 0.0  # behind it, before the next step
    fp32: float = 0.0  # additions and multiplications of fp32, which take time from products beside them


@dataclass(frozen=True)
class Async(Step):
    """Bytes on their way by cp.async, until the group is waited for that the next Commit makes."""

    bytes: float


@dataclass(frozen=True)
class Load(Step):
    """Bytes that the warp itself waits for, at its next step."""

    bytes: float


@dataclass(frozen=True)
class Commit(Step):
    queue: str  # "cp.async", "wgmma", "bulk"


@dataclass(frozen=True)
class WaitGroups(Step):
    queue: str
    most: int  # groups that may still be in flight


@dataclass(frozen=True)
class Barrier(Step):
    """An arrival at a use of a barrier of the block; waits: for all that arrive at that use."""

    key: Hashable
    waits: bool


@dataclass(frozen=True)
class Arrive(Step):
    """An arrival that a phase of an mbarrier needs: at once, or (copies) when the warp's cp.async have come."""

    key: Hashable
    copies: bool = False


@dataclass(frozen=True)
class Copy(Step):
    """Bytes that TMA brings, and that a phase of an mbarrier needs."""

    key: Hashable
    bytes: float


@dataclass(frozen=True)
class WaitPhase(Step):
    key: Hashable


@dataclass(frozen=True)
class Store(Step):
    """Bytes that TMA takes out of shared memory, for the group that the next Commit makes."""

    bytes: float


@dataclass(frozen=True)
class Together(Step):
    """What four warps of a warpgroup execute together; clocks: of each one's tensor core, in the background."""

    clocks: float = 0.0


@dataclass(frozen=True)
class Warp:
    block: int
    number: int  # in its block
    steps: tuple


@dataclass(frozen=True)
class Span:
    warp: int  # its place in the list that was replayed
    kind: str  # "product", "arithmetic", "copy", "wait"; in the background "wgmma", "bytes"
    start: float
    end: float
    place: object = None
    step: object = None  # of waits: what was waited for


@dataclass
class Replayed:
    spans: list[Span] = field(default_factory=list)
    busy: dict[tuple[str, int], list[tuple[float, float]]] = field(default_factory=dict)  # by unit and its number
    ends: list[float] = field(default_factory=list)  # of the warps

    @property
    def end(self) -> float:
        return max(self.ends, default=0.0)


def scheduler_of(warp: int, clocks: Clocks) -> int:
    """Of the warp at that place among all on the multiprocessor."""
    return warp % int(clocks.schedulers)


class _Background:
    """What goes on without its warp, and when it ends."""

    def __init__(self, end: float):
        self.end = end


class _State:
    """Of one warp while it is replayed."""

    def __init__(self):
        self.at = 0  # its next step
        self.open: dict[str, list[_Background]] = defaultdict(list)  # by queue: what no group has yet
        self.groups: dict[str, list[list[_Background]]] = defaultdict(list)  # by queue: groups not yet waited for
        self.copied = 0.0  # when all its cp.async so far have come
        self.left = 0  # quanta of the stretch under way
        self.began = 0.0  # that stretch
        self.since: float | None = None  # when a wait for groups began
        self.together = 0  # steps with its warpgroup so far


class Machine:
    def __init__(self, warps: list[Warp], clocks: Clocks):
        self.warps, self.clocks = warps, clocks
        self.result = Replayed(ends=[0.0] * len(warps))
        self.free: dict[tuple[str, int], float] = defaultdict(float)
        self.states = [_State() for _ in warps]
        self.flying: list[_Background] = []  # wgmma under way
        # What units take beside products of the tensor core, over what they take without them.
        self.slower = {
            "issue": clocks.issue_beside / clocks.issue,
            "special": clocks.special_beside / clocks.special,
            "alu": clocks.alu_beside / clocks.alu,
        }
        self.needed: dict[Hashable, int] = defaultdict(int)  # by key: arrivals that are still to come
        self.latest: dict[Hashable, float] = defaultdict(float)  # when the last of those so far comes
        self.waiting: dict[Hashable, list[tuple[int, float]]] = defaultdict(list)  # warps, and since when
        self.groups: dict[tuple[int, int, int], list[tuple[int, float]]] = defaultdict(list)
        self.queue: list[tuple[float, int]] = []
        self.scheduler = []
        for number, warp in enumerate(warps):
            self.scheduler.append(scheduler_of(number, clocks))
            for step in warp.steps:
                if isinstance(step, (Barrier, Arrive, Copy)):
                    self.needed[step.key] += 1
        for number, warp in enumerate(warps):
            for step in warp.steps:
                if isinstance(step, WaitPhase) and step.key not in self.needed:
                    raise FlashLadderError(f"warp {number} waits for {step.key}, which nothing completes: {step.place}")

    def run(self) -> Replayed:
        self.queue = [(0.0, number) for number in range(len(self.warps))]
        heapq.heapify(self.queue)
        while self.queue:
            now, number = heapq.heappop(self.queue)
            self._step(number, now)
        for number, (warp, state) in enumerate(zip(self.warps, self.states, strict=True)):
            if state.at < len(warp.steps):
                step = warp.steps[state.at]
                raise FlashLadderError(
                    f"the timeline's model comes to no end: warp {number} waits for ever at step {state.at}, {step}"
                )
        return self.result

    def _book(self, unit: str, number: int, now: float, clocks: float) -> float:
        """Takes the unit from the time on that it is free; the time at which it is again."""
        if clocks <= 0:
            return now
        where = (unit, self.scheduler[number] if unit in OF_SCHEDULER else 0)
        start = max(now, self.free[where])
        self.free[where] = start + clocks
        spans = self.result.busy.setdefault(where, [])
        if spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], start + clocks)
        else:
            spans.append((start, start + clocks))
        return start + clocks

    def _span(self, number: int, kind: str, start: float, end: float, place, step=None) -> None:
        if end > start:
            self.result.spans.append(Span(number, kind, start, end, place, step))

    def _go_on(self, number: int, now: float) -> None:
        self.states[number].at += 1
        heapq.heappush(self.queue, (now, number))

    def _step(self, number: int, now: float) -> None:
        state, steps = self.states[number], self.warps[number].steps
        if state.at == len(steps):
            self.result.ends[number] = now
            return
        step = steps[state.at]
        handler = getattr(self, "_" + type(step).__name__.lower())
        handler(number, state, step, now)

    # ---- a handler for each kind of step ----

    def _stretch(self, number: int, state: _State, step: Stretch, now: float) -> None:
        unshared = max(step.pace, *step.units.values(), 0.0)
        quanta = max(1, math.ceil(unshared / QUANTUM))
        if not state.left:
            state.left, state.began = quanta, now
        beside = self.free["tensor", self.scheduler[number]] > now and "tensor" not in step.units
        ends = [
            self._book(unit, number, now, clocks * (self.slower.get(unit, 1.0) if beside else 1.0) / quanta)
            for unit, clocks in step.units.items()
        ]
        if beside:
            self._slow_products(number, now, step.fp32 * self.clocks.fp32_takes / quanta)
        end = max(now + step.pace / quanta, *ends, now)
        state.left -= 1
        if state.left:
            heapq.heappush(self.queue, (end, number))
            return
        self._span(number, step.kind, state.began, end + step.latency, step.place)
        self._go_on(number, end + step.latency)

    def _slow_products(self, number: int, now: float, clocks: float) -> None:
        """Has the tensor core of the warp's scheduler come later to the end of all that it has to do. A product that is
        under way ends when the last of the four schedulers' cores does, so each moves it by a quarter."""
        if clocks:
            self.free["tensor", self.scheduler[number]] += clocks
            for product in self.flying:
                if product.end > now:
                    product.end += clocks / self.clocks.schedulers

    def _async(self, number: int, state: _State, step: Async, now: float) -> None:
        end = self._book("memory", number, now, step.bytes * self.clocks.memory_byte) + self.clocks.memory_latency
        self._span(number, "bytes", now, end, step.place)
        state.open["cp.async"].append(_Background(end))
        state.copied = max(state.copied, end)
        self._go_on(number, now)

    def _load(self, number: int, state: _State, step: Load, now: float) -> None:
        end = self._book("memory", number, now, step.bytes * self.clocks.memory_byte) + self.clocks.memory_latency
        self._span(number, "wait", now, end, step.place, step)
        self._go_on(number, end)

    def _store(self, number: int, state: _State, step: Store, now: float) -> None:
        end = self._book("memory", number, now, step.bytes * self.clocks.memory_byte) + self.clocks.tma_latency
        self._span(number, "bytes", now, end, step.place)
        state.open["bulk"].append(_Background(end))
        self._go_on(number, now)

    def _commit(self, number: int, state: _State, step: Commit, now: float) -> None:
        state.groups[step.queue].append(state.open.pop(step.queue, []))
        self._go_on(number, now)

    def _waitgroups(self, number: int, state: _State, step: WaitGroups, now: float) -> None:
        groups = state.groups[step.queue]
        waited_for = max(len(groups) - step.most, 0)
        done = max((one.end for group in groups[:waited_for] for one in group), default=0.0)
        if done > now:
            state.since = now if state.since is None else state.since
            heapq.heappush(self.queue, (done, number))  # what is under way may be slowed until then: look again
            return
        del groups[:waited_for]
        end = now
        if state.since is not None:
            end += self.clocks.wgmma_latency if step.queue == "wgmma" else 0.0
            self._span(number, "wait", state.since, end, step.place, step)
            state.since = None
        self._go_on(number, end)

    def _comes(self, key: Hashable, when: float) -> None:
        """One of the things that the key needs comes at that time; the last one lets those go on that wait."""
        self.needed[key] -= 1
        self.latest[key] = max(self.latest[key], when)
        if self.needed[key]:
            return
        for number, since in self.waiting.pop(key, []):
            self._released(number, since)

    def _released(self, number: int, since: float) -> None:
        state = self.states[number]
        step = self.warps[number].steps[state.at]
        end = max(since, self.latest[step.key]) + self.clocks.barrier
        self._span(number, "wait", since, end, step.place, step)
        self._go_on(number, end)

    def _barrier(self, number: int, state: _State, step: Barrier, now: float) -> None:
        if step.waits:
            self.waiting[step.key].append((number, now))
            self._comes(step.key, now)
        else:
            self._comes(step.key, now)
            self._go_on(number, now)

    def _arrive(self, number: int, state: _State, step: Arrive, now: float) -> None:
        self._comes(step.key, max(now, state.copied) if step.copies else now)
        self._go_on(number, now)

    def _copy(self, number: int, state: _State, step: Copy, now: float) -> None:
        end = self._book("memory", number, now, step.bytes * self.clocks.memory_byte) + self.clocks.tma_latency
        self._span(number, "bytes", now, end, step.place, step)
        self._comes(step.key, end)
        self._go_on(number, now)

    def _waitphase(self, number: int, state: _State, step: WaitPhase, now: float) -> None:
        if self.needed[step.key]:
            self.waiting[step.key].append((number, now))
        elif self.latest[step.key] <= now:
            self._go_on(number, now)
        else:
            self._released(number, now)

    def _together(self, number: int, state: _State, step: Together, now: float) -> None:
        warp = self.warps[number]
        group = (warp.block, warp.number // WARPGROUP, state.together)
        state.together += 1
        here = self.groups[group]
        here.append((number, now))
        if len(here) < WARPGROUP:
            return
        start = max(since for _, since in here)
        ends = [self._book("tensor", member, start, step.clocks) for member, _ in here]
        product = _Background(max(ends))
        if step.clocks:
            self.flying = [one for one in self.flying if one.end > start] + [product]
        for member, _ in here:
            own = self.states[member]
            if step.clocks:
                own.open["wgmma"].append(product)
                self._span(member, "wgmma", max(ends) - step.clocks, max(ends), step.place)
            self._go_on(member, start)
        del self.groups[group]


def replay(warps: list[Warp], clocks: Clocks) -> Replayed:
    """When the warps do their steps, all of them resident on one multiprocessor from clock 0 on."""
    return Machine(warps, clocks).run()
