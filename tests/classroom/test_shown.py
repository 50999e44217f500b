"""Who is to write or to mend something is not shown it: in work files, in lessons, in what a service shows."""

import json
import re
from dataclasses import replace

import pytest

from flashladder.classroom import exercise, formats, marks, progress, report, taking
from flashladder.core.paths import ROOT
from flashladder.ladder import mistakes, stages
from flashladder.ladder.stage import Verdict
from flashladder.lessons import trial

STAGES = [stage for stage in stages.all_stages() if exercise.exercises(stage)]


@pytest.fixture(autouse=True)
def no_work_yet(tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHLADDER_WORK", str(tmp_path / "work"))


def apart(one: exercise.Exercise) -> list[exercise.Exercise]:
    others = [other for other in exercise.exercises(one.stage) if other.name != one.name]
    return [other for other in others if other.last < one.first or one.last < other.first]


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_work_file_shows_no_other_exercises_solution(stage):
    shipped = stage.source.read_text().splitlines()
    for one in exercise.exercises(stage):
        text = progress.first_text(one)
        assert exercise.answers(stage, text).keys() == {one.name}
        assert taking.changed_outside(stage, text) == [], "a blanked line is no change"
        hidden = [other for other in apart(one) if f"=== {other.name}: an exercise of its own" in text]
        assert hidden or not apart(one), one.name
        assert other_is_hidden(one, hidden), "a part of a hidden one is hidden with it"
        stub = [line.strip() for line in one.stub.splitlines()]
        for other in hidden:
            for line in shipped[other.first - 1 : other.last]:
                if len(line.strip()) > 20 and line.strip() not in stub and shipped.count(line) == 1:
                    assert line not in text.splitlines(), f"{one.name} shows a line of {other.name}: {line}"


def other_is_hidden(one, hidden) -> bool:
    gone = {number for other in hidden for number in range(other.first, other.last + 1)}
    return all(number in gone for other in apart(one) for number in range(other.first, other.last + 1))


def test_what_is_solved_is_shown(monkeypatch):
    one, *others = exercise.exercises(5)
    other = next(other for other in others if other in apart(one))
    passed = [progress.State(other, "right", passed=True)]
    monkeypatch.setattr(progress, "states", lambda stage: passed)
    assert other.solution in progress.first_text(one)


@pytest.fixture
def shown(monkeypatch):
    said = []
    monkeypatch.setattr(trial, "show", lambda item: said.append(str(item)))
    monkeypatch.setattr(mistakes, "run", lambda mistake: Verdict(True, "shared_race", "a race"))
    return said


def test_a_lesson_does_not_show_the_mistake_that_is_to_be_mended(shown, monkeypatch):
    mend, known = exercise.mends(5)[0], mistakes.get(5, "missing_barrier_after_load")
    trial.plant(mend.mistake)
    added = [line for line in mend.mistake.difference() if line.startswith("+  ")]
    assert "make exercise-05 start NAME=mend_1" in shown[0] and added
    assert not any(line in text for line in added for text in shown)
    trial.plant(known)
    assert any("The mistake: " in text for text in shown), "what is no exercise is shown"
    shown.clear()
    monkeypatch.setattr(progress, "to_mend", lambda _: None)
    trial.plant(mend.mistake)
    assert "The mistake: " in shown[0]


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_no_saved_notebook_shows_a_mistake_that_is_to_be_mended(stage):
    to_mend = {mend.mistake.name for mend in exercise.mends(stage)}
    for file in (ROOT / "notebooks").glob(f"{stage.id}_*.ipynb"):
        for cell in json.loads(file.read_text())["cells"]:
            planted = re.search(r'break_it\("(\w+)"', "".join(cell["source"]))
            if planted and planted[1] in to_mend and cell.get("outputs"):
                texts = ["".join(one.get("data", {}).get("text/plain", "")) for one in cell["outputs"]]
                assert not [text for text in texts if "@@ -" in text], f"{file.name} shows {planted[1]}"


def test_what_students_see_names_classes_of_sizes_and_no_size_or_seed(small):
    details = "fp16 B=2 H=1 Nq=256 Nkv=192 d=128: O[1, 0, 255, 7] = nan"
    check = marks.Check("correct: a ragged last tile", False, 0, 50, "a ragged last tile: wrong numbers", details)
    one = marks.nothing("ada", "ada", small)
    one = replace(one, exercises=(replace(one.exercises[0], checks=(check,), next="50 more points"),))
    told = {
        "CLASSROOM": "c",
        "ASSIGNMENT": "a",
        "OWNER": "o",
        "SUBMISSION_TAG": "t",
        "COMMIT_URL": "u",
        "RELEASE_URL": "r",
    }
    students = [
        json.dumps(formats.gradescope(one)),
        json.dumps(formats.classroom50(one, told, "2026-01-01T00:00:00Z")),
        report.markdown(one),
        report.html(one),
        formats.junit_suite(one),
    ]
    for text in students:
        assert "ragged last tile" in text.replace("\\", "") and "Nkv" not in text and "255" not in text, text
    assert "Nkv=192" in report.for_instructor(one).replace("\\", "")
