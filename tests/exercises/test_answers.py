"""Plausible wrong answers to exercises are judged wrong, each for its reason, and right ones in another style right.

To try all takes an hour: `make test-long` tries a wrong one to each exercise and a right one to each third, others after
each change of stages or tests (FLASHLADDER_MUTANTS_SEED=... draws the same again), FLASHLADDER_ANSWERS=all all of them.
"""

import os
import random

import pytest
from answers import FOLDER, RIGHT, WRONG, every, read

from flashladder.classroom import judge
from flashladder.classroom.exercise import exercises
from flashladder.commands import mutants
from flashladder.ladder import stages

EVERY = every()
QUICK = ("05-tile_offset", "06-wait")  # the exercises whose answers `make test` tries


@pytest.fixture(autouse=True)
def on_the_simulator(monkeypatch):
    monkeypatch.setenv("FLASHLADDER_DEVICE", "sim")


def drawn() -> list:
    """The answers that are tried, in the order of the files."""
    if os.environ.get("FLASHLADDER_ANSWERS") == "all":
        return EVERY
    dice = random.Random(mutants.seed())
    chosen = {one.id for one in EVERY if one.id.startswith(QUICK)}
    for number, name in enumerate(dict.fromkeys((one.exercise.stage.id, one.exercise.name) for one in EVERY)):
        own = [one for one in EVERY if (one.exercise.stage.id, one.exercise.name) == name]
        wrong, right = [one.id for one in own if one.because], [one.id for one in own if not one.because]
        chosen |= {dice.choice(wrong)} if wrong else set()
        chosen |= {dice.choice(right)} if right and number % 3 == 0 else set()
    return [one for one in EVERY if one.id in chosen]


def params() -> list:
    return [
        pytest.param(one, id=one.id, marks=() if one.id.startswith(QUICK) else pytest.mark.long)
        for one in drawn()
    ]  # fmt: skip


@pytest.mark.parametrize("answer", params())
def test_an_answer_is_judged_as_it_is(answer):
    complaint = answer.complaint(judge.attempt(answer.exercise, answer.text))
    assert not complaint, complaint


@pytest.mark.parametrize("file", sorted(FOLDER.glob("[0-9][0-9].toml")), ids=lambda file: file.stem)
def test_each_exercise_has_wrong_and_right_answers(file):
    """Those that are to be written; and no two answers are the same text, or the solution, or the stub."""
    found = read(file)
    for one in exercises(stages.entry(file.stem)):
        own = [answer for answer in found if answer.exercise.name == one.name]
        wrong = [answer for answer in own if answer.because]
        told = f"{file.name}: {one.name} has {len(wrong)} wrong answers and {len(own) - len(wrong)} right ones"
        assert len(wrong) >= WRONG and len(own) - len(wrong) >= RIGHT, told
        texts = {" ".join(answer.text.split()) for answer in own} | {" ".join(one.solution.split())}
        assert len(texts) == len(own) + 1, f"{file.name}: two answers to {one.name} are the same"
        assert not any(one.is_stub(answer.text) for answer in own), f"{file.name}: the stub of {one.name} is no answer"
