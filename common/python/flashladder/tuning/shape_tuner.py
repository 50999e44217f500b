"""Which configuration of stage shapes is the fastest, by type, head dim, mask and length.

There are few of them, so all run in one heat at each length, with the stage before and the peers: A B C A B C ... The
winner of a type, head dim and mask is the one that is least behind over all lengths; chosen at a length is the winner,
unless another is faster there by more than half a percent. Those within 1 percent of the fastest run once more, on
scores with which most bets are lost, and one that loses much there gives way. What was measured is in the Store before
the next heat begins.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from flashladder.core.console import progress
from flashladder.core.device import Device
from flashladder.core.problem import Problem
from flashladder.measuring import bench
from flashladder.tuning import record, shape_table
from flashladder.tuning.shapes import Configuration
from flashladder.tuning.store import Store, Times
from flashladder.tuning.tune import PAYS, Measurer, Timer, Tried, Workshop

BESIDE = ("no_gap",)  # stages that run in each heat
FASTER = 1.005  # on normal scores: for who takes more than so many times as long, the fastest is chosen
HARD = "huge"  # of ablation_times.KINDS: scores with which most bets are lost
GIVES_WAY = 1.05  # on HARD: who takes more than so many times as long as another that is as fast otherwise


@dataclass(frozen=True)
class Plan:
    candidates: tuple[Configuration, ...]  # that no rule refuses
    lengths: tuple[int, ...] = bench.LENGTHS
    tokens: int = 16384  # B * N, the same for all lengths
    heads: int = 16
    seconds: float = 0.15  # of kernel time for each in a heat
    beside: tuple[str, ...] = BESIDE

    def groups(self) -> list[tuple[str, int, bool]]:
        """(dtype, d_head, causal), for each of which there is a winner."""
        found = dict.fromkeys((one.dtype, one.d_head) for one in self.candidates)
        return [(*group, causal) for group in found for causal in (False, True)]

    def problem(self, group: tuple[str, int, bool], length: int) -> Problem:
        dtype, d_head, causal = group
        return bench.problem_at(length, self.tokens, self.heads, d_head, dtype, causal)

    def of(self, group: tuple[str, int, bool]) -> list[Configuration]:
        return [one for one in self.candidates if (one.dtype, one.d_head) == group[:2]]


@dataclass
class Outcome(Tried):
    heats: dict[Problem, dict[str, Times]] = field(default_factory=dict)
    hard: dict[Problem, dict[str, Times]] = field(default_factory=dict)  # on HARD, where several are level
    chosen: dict[Problem, Configuration] = field(default_factory=dict)
    winners: dict[tuple[str, int, bool], Configuration] = field(default_factory=dict)


def run(plan: Plan, store: Store, workshop: Workshop, timer: Timer) -> Outcome:
    outcome = Outcome()
    measurer = Measurer(store, workshop, timer, outcome)
    known = {one: store.known(str(one)) for one in plan.candidates}
    workshop.at_hand([one for one, found in known.items() if found and not found.failed])
    measurer.prepare(plan.candidates, "build and verify")
    for group in plan.groups():
        dtype, d_head, causal = group
        what = f"{dtype}, d = {d_head}, {'causal' if causal else 'full'}"
        heats = {}
        for length in progress(plan.lengths, what):
            problem = plan.problem(group, length)
            times = measurer.heat(problem, plan.of(group), plan.seconds, plan.beside)
            if times:
                heats[problem] = outcome.heats[problem] = times
        winner = _winner(plan.of(group), heats)
        if not winner:
            continue
        outcome.winners[group] = winner
        for problem, times in progress(heats.items(), f"{what}, {HARD} scores", total=len(heats)):
            level = _level(plan.of(group), times)
            if len(level) > 1 and timer.hard:
                outcome.hard[problem] = measurer.heat(problem, level, plan.seconds, plan.beside, HARD) or {}
            outcome.chosen[problem] = _chosen(winner, level, times, outcome.hard.get(problem, {}))
    return outcome


def _median(times: Times) -> float:
    return statistics.median(times.ms)


def _winner(candidates: Sequence[Configuration], heats: dict[Problem, dict[str, Times]]) -> Configuration | None:
    """The one that is least behind over all heats; None where none ran in all of them."""
    everywhere = [one for one in candidates if heats and all(str(one) in times for times in heats.values())]
    if not everywhere:
        return None
    least = {problem: min(_median(times[str(one)]) for one in everywhere) for problem, times in heats.items()}

    def far_behind(one: Configuration) -> float:
        """The logarithm of the geometric mean of what it takes over what the fastest takes."""
        return sum(math.log(_median(times[str(one)]) / least[problem]) for problem, times in heats.items())

    return min(everywhere, key=lambda one: (far_behind(one), str(one)))


def _level(candidates: Sequence[Configuration], times: dict[str, Times]) -> list[Configuration]:
    """Those that the fastest of a heat is not ahead of by more than PAYS, the fastest first."""
    ran = sorted((one for one in candidates if str(one) in times), key=lambda one: (_median(times[str(one)]), str(one)))
    return [one for one in ran if _median(times[str(one)]) <= PAYS * _median(times[str(ran[0])])]


def _chosen(
    winner: Configuration, level: list[Configuration], times: dict[str, Times], hard: dict[str, Times]
) -> Configuration:
    """Of those that are level in a heat, `times`: the winner, or the fastest where that is FASTER; unless the one gives
    way on HARD. hard: the heat on it, empty where there was none."""
    slower = str(winner) not in times or _median(times[str(winner)]) > FASTER * _median(times[str(level[0])])
    best = level[0] if slower else winner
    ran = [one for one in level if str(one) in hard]
    if not ran:
        return best
    quickest = min(ran, key=lambda one: (_median(hard[str(one)]), str(one)))
    stays = best in ran and _median(hard[str(best)]) <= GIVES_WAY * _median(hard[str(quickest)])
    return best if stays else quickest  # one that is missing there was wrong


# ---- the record ----


def _shape(problem: Problem) -> dict:
    return {name: getattr(problem, name) for name in ("dtype", "d_head", "causal", "B", "Hq", "Nq")}


def make_record(outcome: Outcome, plan: Plan, device: Device, multiprocessors: int) -> dict:
    """docs/results/GPU-shapes.json: what is known of each configuration, all heats, what was chosen."""
    return record.head(plan, device, multiprocessors, shape_table.kernel_hash()) | {
        "configurations": [
            {"configuration": str(one), "dtype": one.dtype, "d_head": one.d_head, **asdict(known)}
            for one, known in outcome.known.items()
        ],
        "measurements": [
            {"name": name, "kind": times.kind, **_shape(problem), **record.figures_of(problem, times)}
            for problem, heat in outcome.heats.items()
            for name, times in heat.items()
        ],
        "hard": [
            {"name": name, "kind": times.kind, "inputs": HARD, **_shape(problem), **record.figures_of(problem, times)}
            for problem, heat in outcome.hard.items()
            for name, times in heat.items()
        ],
        "chosen": [
            {**_shape(problem), "configuration": str(one),
             "tflops": record.figures_of(problem, outcome.heats[problem][str(one)])["tflops"]}
            for problem, one in outcome.chosen.items()
        ],
        "winners": [
            {"dtype": dtype, "d_head": d_head, "causal": causal, "configuration": str(one)}
            for (dtype, d_head, causal), one in outcome.winners.items()
        ],
    }  # fmt: skip
