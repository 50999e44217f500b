"""Plausible wrong answers to exercises are judged wrong, each for its reason, and right ones in another style right.

To try all takes long: `make test-long` tries one to an eighth of each part's exercises, a right one to each third of
them, others after each change of a kernel, the stage or its answers; FLASHLADDER_WHOLE=1 tries all of them.
"""

import collections
import random

import pytest
from answers import RIGHT, WRONG, every, names, read
from shares import WHOLE, drawn, kernels

from flashladder.classroom import judge
from flashladder.classroom.exercise import exercises
from flashladder.ladder import stages

EVERY = every()
# The exercises of which `make test` tries an answer for each reason to be wrong, and a right one; all are tried by
# `make test-long`.
QUICK = ("swizzle-tile_offset-added",)


@pytest.fixture(autouse=True)
def on_the_simulator(monkeypatch):
    monkeypatch.setenv("FLASHLADDER_DEVICE", "sim")


def chosen_answers() -> list:
    """The answers that are tried, in the order of the stages."""
    if WHOLE:
        return EVERY
    chosen = {one.id for one in EVERY if one.id.startswith(QUICK)}
    asked = list(dict.fromkeys(one.exercise for one in EVERY))
    parts = collections.defaultdict(list)
    for exercise in asked:
        parts[type(exercise.stage)].append(exercise)
    tried_now = set().union(*(drawn(kernels(), some, 8) for some in parts.values()))
    for number, exercise in enumerate(one for one in asked if id(one) in tried_now):
        stage, own = exercise.stage, [one for one in EVERY if one.exercise == exercise]
        dice = random.Random(stage.source.read_text() + repr(own) + exercise.name)
        wrong, right = [one.id for one in own if one.because], [one.id for one in own if not one.because]
        tried = right if right and number % 3 == 0 else wrong
        chosen |= {dice.choice(tried)} if tried else set()
    return [one for one in EVERY if one.id in chosen]


def params() -> list:
    found, reasons = [], set()
    for one in chosen_answers():
        reason = one.exercise, one.because.partition(":")[0]
        quick = one.id.startswith(QUICK) and reason not in reasons
        reasons.add(reason)
        found.append(pytest.param(one, id=one.id, marks=() if quick else pytest.mark.long))
    return found


@pytest.mark.parametrize("answer", params())
def test_an_answer_is_judged_as_it_is(answer):
    complaint = answer.complaint(judge.attempt(answer.exercise, answer.text))
    assert not complaint, complaint


@pytest.mark.parametrize("name", names())
def test_each_exercise_has_wrong_and_right_answers(name):
    """Those of the stage that are to be written; and no two answers are the same text, the solution, or the stub."""
    found = read(name)
    named = {answer.exercise.name for answer in found}
    for one in (exercise for exercise in exercises(stages.entry(name)) if exercise.name in named):
        own = [answer for answer in found if answer.exercise.name == one.name]
        wrong = [answer for answer in own if answer.because]
        told = f"{name}: {one.name} has {len(wrong)} wrong answers and {len(own) - len(wrong)} right ones"
        assert len(wrong) >= WRONG and len(own) - len(wrong) >= RIGHT, told
        texts = {" ".join(answer.text.split()) for answer in own} | {" ".join(one.solution.split())}
        assert len(texts) == len(own) + 1, f"{name}: two answers to {one.name} are the same"
        assert not any(one.is_stub(answer.text) for answer in own), f"{name}: the stub of {one.name} is no answer"
