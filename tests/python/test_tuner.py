"""The tuner with a timer that makes its times up: what it chooses, what it remembers when it is killed, what fails.

No figure here is of a machine; the store lies in the test's own folder.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.tuning import space, tune
from flashladder.tuning.configuration import of_stage
from flashladder.tuning.store import Known, Place, Store, Times
from flashladder.tuning.tune import YARDSTICK, Plan, TimingFailed, Tuner

PLACE = Place("made-up GPU", "1", "13.0", "0" * 64)
CANDIDATES = tuple(space.admitted(space.bounded("bf16", 64)).admitted[:24])
PLAN = Plan(CANDIDATES, lengths=(512, 1024, 4096), best=3)


def milliseconds(name: str, length: int) -> float:
    """Of a candidate: any figure that depends on both; the same ones in each process."""
    noise = sum((place + length) * ord(letter) for place, letter in enumerate(name)) % 997
    return 1 + noise / 997


class MadeUp:
    """Workshop and Timer. deadly: that so many-th heat, counted from 1, kills the process."""

    peers = (YARDSTICK,)

    def __init__(self, deadly: int = 0, bad: dict[str, str] | None = None):
        self.deadly, self.bad = deadly, bad or {}
        self.prepared, self.heats, self.built_again = [], [], []

    def prepare(self, configurations):
        for one in configurations:
            self.prepared.append(one)
            kind = self.bad.get(str(one), "")
            yield one, Known("build", "nvcc: no") if kind == "build" else Known(registers=100, spill_bytes=0)

    def at_hand(self, configurations):
        self.built_again += configurations

    def heat(self, problem, configurations, seconds, numbers=()):
        self.heats.append((problem, configurations))
        if len(self.heats) == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        for one in configurations:
            if self.bad.get(str(one), "") in ("time", "ends"):
                raise TimingFailed(one, "wrong at element 3", self.bad[str(one)] == "ends")
        names = {str(one): "configuration" for one in configurations} | {YARDSTICK: "peer"}
        names |= {stages.get(number).name: "stage" for number in numbers}
        return {
            name: Times(kind, tuple(milliseconds(name, problem.Nq) * (1 + run / 100) for run in range(5)))
            for name, kind in names.items()
        }


def run(file: Path, machine: MadeUp, plan: Plan = PLAN):
    store = Store(file, PLACE)
    try:
        return Tuner(plan, store, machine, machine).run()
    finally:
        store.close()


def choice(outcome) -> dict[str, str]:
    chosen = {str(problem): str(one) for problem, one in outcome.chosen.items()}
    return chosen | {str(group): str(one) for group, one in outcome.winners.items()}


def test_the_best_of_each_length_of_the_short_list_reach_the_finals(tmp_path):
    outcome = run(tmp_path / "store", MadeUp())
    finals = [heat for heat in outcome.heats if heat.round == "finals"]
    assert [heat.problem.Nq for heat in finals] == [512, 1024, 4096]
    expected = set()
    for length in PLAN.short_list:
        yardstick = milliseconds(YARDSTICK, length)
        ranked = sorted(CANDIDATES, key=lambda one: (milliseconds(str(one), length) / yardstick, str(one)))
        expected |= {str(one) for one in ranked[: PLAN.best]}
    for heat in finals:
        assert set(heat.times) == expected | {YARDSTICK, str(of_stage(11, "bf16", 64))}


@pytest.mark.parametrize("pays", [1.0, 1.01, 1000.0])
def test_the_winner_is_chosen_at_each_length_unless_another_is_noticeably_faster_there(tmp_path, monkeypatch, pays):
    monkeypatch.setattr(tune, "PAYS", pays)
    outcome = run(tmp_path / "store", MadeUp(), replace(PLAN, lengths=(512, 1024, 1536, 2048, 3000, 4096), best=8))
    winner = str(outcome.winners["bf16", 64])
    finals = [heat for heat in outcome.heats if heat.round == "finals"]
    fastest = {
        heat.problem: min((name for name in heat.times if name != YARDSTICK), key=lambda n: heat.median(n))
        for heat in finals
    }
    assert set(fastest.values()) != {winner}, "made-up times in which there is nothing to choose"
    for heat in finals:
        faster = heat.median(winner) / heat.median(fastest[heat.problem])
        assert str(outcome.chosen[heat.problem]) == (fastest[heat.problem] if faster > pays else winner)


def test_the_winner_is_timed_beside_itself_with_each_flag_off(tmp_path):
    outcome = run(tmp_path / "store", MadeUp())
    winner = outcome.winners["bf16", 64]
    beside = {str(winner), YARDSTICK, *(str(one.configuration) for one in space.neighbours(winner))}
    flags = [heat for heat in outcome.heats if heat.round == "flags"]
    assert len(flags) == len(PLAN.lengths) and all(set(heat.times) == beside for heat in flags)


def test_the_flags_of_each_stage_run_beside_the_stage(tmp_path):
    outcome = run(tmp_path / "store", MadeUp())
    names = {stages.get(number).name for number in PLAN.stages} | {str(of_stage(n, "bf16", 64)) for n in PLAN.stages}
    beside = [heat for heat in outcome.heats if heat.round == "stages"]
    assert [heat.problem.Nq for heat in beside] == list(PLAN.stage_lengths)
    assert all(set(heat.times) == names | {YARDSTICK} for heat in beside)


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import test_tuner
test_tuner.run(Path({file!r}), test_tuner.MadeUp(deadly={deadly}))
"""


@pytest.mark.parametrize("deadly", [20, *(pytest.param(one, marks=pytest.mark.long) for one in (49, 55))])
def test_killed_at_any_heat_and_started_again_it_chooses_the_same_and_loses_that_heat_alone(tmp_path, deadly):
    whole, machine = tmp_path / "whole", MadeUp()
    expected = choice(run(whole, machine))
    every = len(machine.heats)
    file = tmp_path / "killed"
    code = KILLED.format(tests=str(Path(__file__).parent), file=str(file), deadly=deadly)
    done = subprocess.run([sys.executable, "-c", code], env=for_python(), capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    again = MadeUp()
    assert choice(run(file, again)) == expected
    assert len(again.heats) == every - (deadly - 1), "heats that were finished before the kill are not run again"
    assert not set(again.prepared) & set(CANDIDATES), "what was built and verified before the kill is known"


def test_nothing_is_timed_twice_and_another_kernel_driver_or_gpu_is_timed_anew(tmp_path):
    run(tmp_path / "store", MadeUp())
    again = MadeUp()
    run(tmp_path / "store", again)
    assert not again.heats and not again.prepared and not again.built_again
    for field in ("gpu", "driver", "toolkit", "kernel"):
        store = Store(tmp_path / "store", replace(PLACE, **{field: "another"}))
        assert store.known(str(CANDIDATES[0])) is None, f"taken from another {field}"


def test_what_does_not_build_is_noted_and_not_chosen(tmp_path):
    favourite = run(tmp_path / "before", MadeUp()).winners["bf16", 64]
    outcome = run(tmp_path / "store", MadeUp(bad={str(favourite): "build"}))
    assert outcome.failures[favourite].message == "nvcc: no"
    assert all(str(favourite) not in heat.times for heat in outcome.heats)
    assert favourite not in outcome.chosen.values()


def test_what_is_wrong_when_it_is_timed_leaves_the_heat_to_the_others(tmp_path):
    bad = CANDIDATES[3]
    outcome = run(tmp_path / "store", MadeUp(bad={str(bad): "time"}))
    assert outcome.failures == {bad: Known("time", "wrong at element 3", 100, 0)}
    assert all(str(bad) not in heat.times for heat in outcome.heats) and outcome.chosen
    known = Store(tmp_path / "store", PLACE).known(str(bad))
    assert known.failed == "time" and known.registers == 100


def test_what_ends_cuda_is_noted_before_the_tuner_stops_and_left_out_when_it_starts_again(tmp_path):
    bad = CANDIDATES[3]
    with pytest.raises(FlashLadderError, match="start again"):
        run(tmp_path / "store", MadeUp(bad={str(bad): "ends"}))
    outcome = run(tmp_path / "store", MadeUp(bad={str(bad): "ends"}))
    assert bad in outcome.failures and outcome.chosen


def test_a_store_that_is_none_is_told(tmp_path):
    file = tmp_path / "store"
    file.write_text(json.dumps({"not": "a database"}) * 100)
    with pytest.raises(FlashLadderError, match="--store"):
        Store(file, PLACE)
