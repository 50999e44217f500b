"""A naive kernel, or an earlier stage's, is right and loses the technique's points, in every assignment."""

from dataclasses import replace

import pytest
from naive import naive
from shares import share

from flashladder.classroom import assignment as assignments
from flashladder.classroom import exercise, trials
from flashladder.classroom.exercise import techniques
from flashladder.classroom.grading import facts_of
from flashladder.ladder import stages

EVERY = [(one, number) for one in assignments.all_assignments() for number in one.stages]


def facts(one: assignments.Assignment, number: int, source: str, sandbox, name: str):
    checks = one.checks(exercise.get(number, name).checks)
    judgement = trials.judge(stages.get(number), source, one, sandbox, techniques(checks), diagnose=False)
    return judgement, facts_of(one, checks, judgement)


@pytest.mark.parametrize("one, number", EVERY, ids=lambda value: getattr(value, "name", value))
def test_every_exercise_is_graded_by_all_that_its_stage_shows(one, number):
    for item in one.of_stage(number).items:
        checks = one.checks(exercise.get(number, item.name).checks)
        assert techniques(checks) is None, f"{item.name} of {one.name} asks for {checks}"
    assert one.credit["technique"] > 0


@pytest.mark.parametrize(
    "one, number",
    share([pytest.param(*one, id=f"{one[0].name}-{one[1]}", marks=pytest.mark.long) for one in EVERY], 12),
)
def test_a_naive_kernel_is_right_and_loses_the_technique(one, number, sandbox):
    part = one.of_stage(number)
    if one.name == "turns":  # a thread for each row of the largest of its sizes takes more memory than a run may have
        part = replace(part, sizes=part.public_sizes)
    judgement, found = facts(part, number, naive(stages.get(number)), sandbox, part.items[0].name)
    assert judgement.built.ok, judgement.built.words
    wrong = judgement.first_wrong
    assert wrong is None, f"{wrong.trial}: {wrong.words}"
    assert not judgement.hazards, judgement.hazards
    fact = found["technique"]
    assert not fact.passed and fact.words.startswith("right, but"), fact


# Stages whose kernels can be launched as the one before is: the same grid, threads and shared memory.
LIKE_THE_ONE_BEFORE = [
    number
    for number in sorted({number for _, number in EVERY})
    if (before := stages.previous_of(stages.get(number)))
    and before.data["launch"][-1] == {**stages.get(number).data["launch"][-1]}
]


@pytest.mark.parametrize(
    "number", share([pytest.param(one, id=str(one), marks=pytest.mark.long) for one in LIKE_THE_ONE_BEFORE], 2)
)
def test_the_stage_before_loses_the_technique(number, sandbox):
    one = next(one for one, of in EVERY if of == number).of_stage(number)
    earlier = stages.previous_of(stages.get(number))
    judgement, found = facts(one, number, earlier.kernel.read_text(), sandbox, one.items[0].name)
    assert judgement.built.ok, judgement.built.words
    assert not found["technique"].passed and found["technique"].words, found


def test_without_credit_for_it_the_technique_is_what_an_exercise_asks_for():
    one = replace(EVERY[0][0], credit={"builds": 0.1, "correct": 0.9})
    assert one.checks(("correct", "hazards")) == ("correct", "hazards")
    assert one.checks(("correct", "technique")) == ("correct", "technique")
