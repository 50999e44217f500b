"""Which configuration is the fastest: all of them at a few lengths, the best few again at all lengths.

    first      each configuration at the short list of lengths, in a heat with the peers: A B C A B C ...
    finals     the best few of each of those lengths, all in one heat with the peers, at every length: the winner over
               all lengths; chosen at a length is the winner, unless another is faster there by more than 1 percent
    flags      the winner over all lengths, and it with one flag off at a time, in one heat with the peers, likewise
    stages     the flags of stages 04 to 11 beside those stages themselves, in one heat at three lengths

Times of different heats are compared as multiples of FlashAttention-2's in the same heat, where it is installed, so
that a change of clocks between them matters less. Everything measured is in the Store before the next heat begins, and
what is chosen follows from what the Store holds: a tuner that was killed and started again chooses as one that was not.
"""

import hashlib
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from flashladder.core.console import progress, say
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.measuring.bench import LENGTHS, problem_at
from flashladder.tuning import space
from flashladder.tuning.configuration import Configuration, of_stage
from flashladder.tuning.store import Known, Store, Times

YARDSTICK = "FlashAttention-2"
# A difference below this is none: it changes from run to run, and each further choice is built with the stage.
PAYS = 1.01
BASELINE = 11  # the stage whose flags run in the finals whatever the first heats say


@dataclass(frozen=True)
class Plan:
    candidates: tuple[Configuration, ...]  # that no rule refuses
    lengths: tuple[int, ...] = LENGTHS
    short_list: tuple[int, ...] = (1024, 4096)  # lengths of the first heats
    tokens: int = 16384  # B * N, the same for all lengths
    heads: int = 16
    best: int = 6  # of each length of the short list that go on to the finals
    first_seconds: float = 0.02  # of kernel time for each candidate in a first heat
    seconds: float = 0.15  # in all other heats
    stages: tuple[int, ...] = (4, 5, 6, 7, 8, 9, 10, 11)  # that run beside their flags
    stage_lengths: tuple[int, ...] = (1024, 4096, 16384)

    def problem(self, dtype: str, d_head: int, length: int) -> Problem:
        return problem_at(length, self.tokens, self.heads, d_head, dtype)

    def groups(self) -> list[tuple[str, int]]:
        """(dtype, d_head), for each of which there is a winner."""
        return list(dict.fromkeys((one.dtype, one.d_head) for one in self.candidates))


class TimingFailed(Exception):
    """A configuration that had been verified was wrong, or failed, in a heat. ends: this process's CUDA is of no more
    use."""

    def __init__(self, configuration: Configuration, message: str, ends: bool = False):
        super().__init__(message)
        self.configuration, self.ends = configuration, ends


class Workshop(Protocol):
    def prepare(self, configurations: Sequence[Configuration]) -> Iterable[tuple[Configuration, Known]]:
        """Builds and verifies them side by side; each as it is ready."""

    def at_hand(self, configurations: Sequence[Configuration]) -> None:
        """Builds again what was built before, where the libraries are gone: another machine, `make clean`."""


class Timer(Protocol):
    peers: tuple[str, ...]  # that run in each heat
    hard: bool  # whether it can make other inputs than normal ones

    def heat(
        self,
        problem: Problem,
        configurations: Sequence[Configuration],
        seconds: float,
        numbers: Sequence[int] = (),
        inputs: str = "normal",
    ) -> dict[str, Times]:
        """Times the configurations, the stages of these numbers and the peers in turn, each for so many seconds of
        kernel time, on inputs of one of ablation_times.KINDS. TimingFailed."""


@dataclass(frozen=True)
class Heat:
    round: str  # "first", "finals", "flags" or "stages"
    problem: Problem
    times: dict[str, Times]

    def median(self, name: str) -> float:
        return statistics.median(self.times[name].ms)

    def score(self, name: str) -> float:
        """The smaller the faster, comparable between heats of one problem."""
        return self.median(name) / (self.median(YARDSTICK) if YARDSTICK in self.times else 1.0)

    def ranked(self) -> list[str]:
        """The configurations, the fastest first."""
        names = [name for name, one in self.times.items() if one.kind == "configuration"]
        return sorted(names, key=lambda name: (self.median(name), name))


@dataclass
class Tried:
    """What became of the configurations of either stage."""

    known: dict = field(default_factory=dict)  # configuration -> Known

    @property
    def failures(self) -> dict:
        """Those that no rule refused, and that did not build, or were wrong."""
        return {one: known for one, known in self.known.items() if known.failed}

    def usable(self, configurations: Iterable) -> list:
        return [one for one in dict.fromkeys(configurations) if not self.known[one].failed]


@dataclass
class Outcome(Tried):
    heats: list[Heat] = field(default_factory=list)
    chosen: dict[Problem, Configuration] = field(default_factory=dict)
    winners: dict[tuple[str, int], Configuration] = field(default_factory=dict)  # by dtype and d_head
    neighbours: dict[tuple[str, int], list[space.Neighbour]] = field(default_factory=dict)  # of the winners


@dataclass(frozen=True)
class Measurer:
    """Builds, verifies and times configurations, or takes what the Store has of it."""

    store: Store
    workshop: Workshop
    timer: Timer
    tried: Tried

    def prepare(self, configurations: Iterable, what: str) -> None:
        wanted = list(dict.fromkeys(configurations))
        found = {one: self.store.known(str(one)) for one in wanted}
        self.tried.known |= {one: known for one, known in found.items() if known}
        unknown = [one for one, known in found.items() if not known]
        if unknown:
            say(f"{what}: {len(unknown)} configurations, {len(wanted) - len(unknown)} are known")
        for one, known in progress(self.workshop.prepare(unknown), what, total=len(unknown)):
            self._remember(one, known)

    def _remember(self, one, known: Known) -> None:
        self.store.remember(str(one), known)
        self.tried.known[one] = known

    def stored(self, problem: Problem, running: Sequence, seconds: float, beside: Sequence) -> dict[str, Times] | None:
        """The heat of these configurations and what runs beside them, where it has been run."""
        return self.store.heat(str(problem), self._key(running, seconds, beside))

    def _key(self, running: Sequence, seconds: float, beside: Sequence, *inputs: str) -> str:
        """What tells a heat from others of the same problem: who runs in it, and for how long."""
        names = "\n".join([*map(str, running), *map(str, beside), *self.timer.peers, *inputs])
        return f"{hashlib.sha256(names.encode()).hexdigest()[:16]}, {seconds:g} s"

    def heat(
        self, problem: Problem, configurations: Iterable, seconds: float, beside: Sequence = (), *inputs: str
    ) -> dict[str, Times] | None:
        """Runs the heat, or takes it from the store; without those that fail in it. None if all of them do.

        inputs: one of ablation_times.KINDS where they are not normal.
        """
        while running := self.tried.usable(configurations):
            key = self._key(running, seconds, beside, *inputs)
            times = self.store.heat(str(problem), key)
            if not times:
                try:
                    times = self.timer.heat(problem, running, seconds, beside, *inputs)
                except TimingFailed as failure:
                    self._note(failure)
                    continue
                self.store.remember_heat(str(problem), key, times)
            return times
        return None

    def _note(self, failure: TimingFailed) -> None:
        one = failure.configuration
        self._remember(one, replace(self.tried.known[one], failed="time", message=str(failure)))
        if failure.ends:
            raise FlashLadderError(
                f"{one} was verified, but failed when it was timed: {failure}\n"
                "CUDA is of no more use in this process. It is noted; start again, and the tuner goes on without it."
            )


class Tuner:
    def __init__(self, plan: Plan, store: Store, workshop: Workshop, timer: Timer):
        self.plan, self.outcome = plan, Outcome()
        self.measurer = Measurer(store, workshop, timer, self.outcome)

    def run(self) -> Outcome:
        baselines = [of_stage(BASELINE, dtype, d_head) for dtype, d_head in self.plan.groups()]
        self.measurer.prepare([*self.plan.candidates, *baselines], "build and verify")
        self._first()
        for group, baseline in zip(self.plan.groups(), baselines, strict=True):
            self._finals(group, baseline)
        self._flags()
        self._stages()
        return self.outcome

    def _at_hand(
        self, heats: Iterable[tuple[Problem, list[Configuration]]], seconds: float, stages: Sequence[int] = ()
    ) -> None:
        """The libraries of the heats that are still to be run."""
        wanted = [
            one
            for problem, running in heats
            if not self.measurer.stored(problem, running, seconds, stages)
            for one in running
        ]
        self.measurer.workshop.at_hand(list(dict.fromkeys(wanted)))

    def _heat(
        self,
        kind: str,
        problem: Problem,
        configurations: Iterable[Configuration],
        seconds: float,
        stages: Sequence[int] = (),
    ) -> Heat | None:
        times = self.measurer.heat(problem, configurations, seconds, stages)
        if not times:
            return None
        self.outcome.heats.append(Heat(kind, problem, times))
        return self.outcome.heats[-1]

    def _first(self) -> None:
        entries = [
            (self.plan.problem(dtype, d_head, length), one)
            for dtype, d_head in self.plan.groups()
            for length in self.plan.short_list
            for one in self.outcome.usable(self.plan.candidates)
            if (one.dtype, one.d_head) == (dtype, d_head)
        ]
        say(f"first heats: {len(entries)}")
        self._at_hand(((problem, [one]) for problem, one in entries), self.plan.first_seconds)
        for problem, one in progress(entries, "all, at a few lengths"):
            self._heat("first", problem, [one], self.plan.first_seconds)

    def _finalists(self, group: tuple[str, int]) -> list[Configuration]:
        """The best few of each length of the short list."""
        found: list[Configuration] = []
        by_name = {str(one): one for one in self.plan.candidates}
        for length in self.plan.short_list:
            problem = self.plan.problem(*group, length)
            heats = [heat for heat in self.outcome.heats if (heat.round, heat.problem) == ("first", problem)]
            scores = sorted((heat.score(name), name) for heat in heats for name in heat.ranked())
            found += [by_name[name] for _, name in scores[: self.plan.best]]
        return found

    def _at_lengths(
        self,
        kind: str,
        group: tuple[str, int],
        running: list[Configuration],
        lengths: Sequence[int],
        stages: Sequence[int] = (),
    ) -> Iterator[Heat]:
        problems = [self.plan.problem(*group, length) for length in lengths]
        say(f"{kind}, {group[0]}, d = {group[1]}: {len(problems)} heats of {len(running) + len(stages)} and the peers")
        self._at_hand(((problem, self.outcome.usable(running)) for problem in problems), self.plan.seconds, stages)
        for problem in progress(problems, f"{kind}, {group[0]}, d = {group[1]}"):
            heat = self._heat(kind, problem, running, self.plan.seconds, stages)
            if heat:
                yield heat

    def _finals(self, group: tuple[str, int], baseline: Configuration) -> None:
        running = [*self._finalists(group), baseline]
        by_name = {str(one): one for one in running}
        heats = list(self._at_lengths("finals", group, running, self.plan.lengths))
        if not heats:
            return

        def far_behind(name: str) -> float:
            """The logarithm of the geometric mean of what it takes over what the fastest takes."""
            return sum(math.log(heat.median(name) / heat.median(heat.ranked()[0])) for heat in heats)

        everywhere = [name for name in by_name if all(name in heat.times for heat in heats)]
        winner = min(everywhere, key=lambda name: (far_behind(name), name))
        self.outcome.winners[group] = by_name[winner]
        for heat in heats:
            fastest = heat.ranked()[0]
            faster = heat.median(winner) > PAYS * heat.median(fastest)
            self.outcome.chosen[heat.problem] = by_name[fastest if faster else winner]

    def _flags(self) -> None:
        for group, winner in self.outcome.winners.items():
            self.outcome.neighbours[group] = space.neighbours(winner)
        changed = [one.configuration for several in self.outcome.neighbours.values() for one in several]
        self.measurer.prepare(changed, "build the winners' neighbours")
        for group, winner in self.outcome.winners.items():
            running = [winner, *(one.configuration for one in self.outcome.neighbours[group])]
            list(self._at_lengths("flags", group, running, self.plan.lengths))

    def _stages(self) -> None:
        of_stages = {group: [of_stage(number, *group) for number in self.plan.stages] for group in self.plan.groups()}
        self.measurer.prepare([one for several in of_stages.values() for one in several], "build the stages' flags")
        for group, running in of_stages.items():
            list(self._at_lengths("stages", group, running, self.plan.stage_lengths, self.plan.stages))
