"""What surrounds the points: deadlines, corrections, one student alone, rosters, pseudonyms, common mistakes."""

import csv
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from graded import assignment_text

from flashladder.classroom import assignment, batch, exercise, late, marks, pool, roster
from flashladder.classroom.batch import Options
from flashladder.commands import classroom
from flashladder.core.errors import FlashLadderError

FIRST = exercise.exercises(5)[0].name
DUE = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)
LATE = "[late]\ncost_per_day = 10\nmost_days = 2\ngrace_minutes = 15\n"
ALL = Options()
EXTENDED = '[[extension]]\nstudent = "ben"\nuntil = 2026-11-25T12:00:00Z\nwhy = "ill"\n'
TEXTS = {"ada": "correct 1", "ben": "correct 0.5", "cho": "correct 0.5\nsays line 3 is wrong"}


def with_deadline(more: str = LATE + EXTENDED, deadline: str = "2026-11-20T12:00:00Z") -> assignment.Assignment:
    text = assignment_text(f'stage = 5\nname = "{FIRST}"\npoints = 100')
    return assignment.parse("small", text.replace('deadline = "Friday"', f"deadline = {deadline}") + more)


@pytest.fixture
def graded(tmp_path, fake_grader):
    """graded(assignment, options, texts) -> (summary, rows of class.csv by id, the folder of results)."""

    def grade(one, options=ALL, texts=TEXTS, out="out"):
        for student, text in texts.items():
            folder = tmp_path / "handed-in" / student
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "05_swizzle.cu").write_text(text)
        summary = batch.grade_class(
            one, tmp_path / "handed-in", tmp_path / out, pool.local(2), fake_grader, options=options
        )
        rows = csv.DictReader((tmp_path / out / "class.csv").open())
        return summary, {row["id"]: row for row in rows}, tmp_path / out

    return grade


@pytest.mark.parametrize(
    "after, days, cost, words",
    [
        (timedelta(hours=-1), 0, 0, ""),
        (timedelta(minutes=14), 0, 0, ""),
        (timedelta(minutes=16), 1, 10, "Handed in 1 day late"),
        (timedelta(days=1, seconds=1), 2, 20, "Handed in 2 days late"),
        (timedelta(days=2, hours=1), 3, 100, "after 2 days nothing is accepted"),
    ],
)
def test_a_day_that_has_begun_costs_its_points(after, days, cost, words):
    policy = with_deadline().late
    found = late.of_submission(DUE + after, DUE, policy, None, 100)
    assert (found.days, found.cost) == (days, cost) and words in found.words


@pytest.mark.long
def test_being_late_costs_points_and_an_extension_is_for_one_student(graded):
    handed_in = DUE + timedelta(days=1, hours=3)
    summary, rows, out = graded(with_deadline(), Options(times=lambda *_: handed_in))
    assert {name: row["points"] for name, row in rows.items()} == {"ada": "80", "ben": "50", "cho": "30"}
    assert rows["ada"]["late"] == "2 d, -20" and rows["ben"]["late"] == ""
    report = (out / "students/ada/report.md").read_text()
    assert "Handed in 2 days late" in report and "10 points for each day begun" in report
    assert "deadline was extended to Wednesday, 25 November 2026" in (out / "students/ben/report.md").read_text()


@pytest.mark.long
def test_another_deadline_grades_nothing_anew(graded):
    one = with_deadline()
    graded(one)
    later = with_deadline(LATE.replace("= 10", "= 5"), "2026-11-27T12:00:00+01:00")
    assert later.digest == one.digest and "Friday, 27 November 2026, 12:00 (UTC+0100)" == later.deadline
    summary, rows, _ = graded(later, Options(times=lambda *_: DUE + timedelta(days=7)))
    assert summary.graded == 0 and rows["ada"]["points"] == "95"
    assert with_deadline("").late is None


@pytest.mark.parametrize(
    "more, deadline, words",
    [
        (LATE, '"Friday"', "need a deadline that is a time"),
        (LATE, "2026-11-20T12:00:00", "no time with its zone"),
        (LATE.replace("most_days", "days"), "2026-11-20T12:00:00Z", "most_days"),
        (LATE.replace("= 10", "= -1"), "2026-11-20T12:00:00Z", "none below 0"),
        (EXTENDED.replace("why", "because"), "2026-11-20T12:00:00Z", "why"),
    ],
)
def test_a_deadline_that_makes_no_sense_is_refused_in_words(more, deadline, words):
    with pytest.raises(FlashLadderError, match=words):
        with_deadline(more, deadline)


def test_when_something_was_handed_in_is_said_and_not_guessed(tmp_path):
    told = classroom.Grading("small", tmp_path)
    with pytest.raises(FlashLadderError, match="TIMES=times.csv"):
        classroom._times(told, with_deadline())
    assert classroom._times(told, with_deadline("")) is None
    file = tmp_path / "times.csv"
    file.write_text("id,handed_in\nada,2026-11-20T13:00:00+01:00\nben.zip,2026-11-21T00:00:00Z\n")
    times = classroom._times(classroom.Grading("small", tmp_path, times=str(file)), with_deadline())
    assert times("ada", Path("ada")) == DUE and times("ben", Path("ben.zip")).day == 21
    assert times("cho", Path("cho")) is None
    for text, words in (("id,time\n", "columns id and handed_in"), ("id,handed_in\nada,Friday\n", "Friday")):
        file.write_text(text + ("ada,x\n" if "time\n" in text else ""))
        with pytest.raises(FlashLadderError, match=words):
            late.read_times(file)


CORRECTION = f"""[[override]]
student = "cho"
exercise = "05 {FIRST}"
points = 75
by = "B. Meyer"
why = "the harness was wrong"
"""


@pytest.mark.long
def test_a_correction_survives_every_run_and_says_whose_it_is(graded, tmp_path):
    one = with_deadline("")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / marks.FILE).write_text(CORRECTION)
    _, rows, out = graded(one)
    words = f"05 {FIRST}: 75 points by B. Meyer (the grader gave 50): the harness was wrong"
    assert rows["cho"]["points"] == "75" and rows["cho"]["corrected"] == words and rows["ben"]["points"] == "50"
    graded(assignment.parse("small", one.source.replace("seeds = [2]", "seeds = [3]")))
    _, rows, out = graded(one, Options(only="cho"))
    assert rows["cho"]["points"] == "75"
    assert "by B. Meyer" in (out / "students/cho/report.html").read_text()
    (out / marks.FILE).write_text(CORRECTION.replace(f'exercise = "05 {FIRST}"\n', "").replace("cho", "dan"))
    summary, rows, _ = graded(one)
    assert summary.nobodys == ["dan (overrides.toml)"] and rows["cho"]["points"] == "50"


@pytest.mark.parametrize(
    "change, words",
    [
        (("points = 75", "points = 175"), "points are 0 to 100"),
        (('by = "B. Meyer"\n', ""), "lacks by"),
        (('by = "B. Meyer"', 'by = " "'), "not empty"),
        (("points = 75", 'points = "many"'), "a number"),
        ((f"05 {FIRST}", "05 nothing"), "names no exercise of small: '05 nothing'"),
        (("[[override]]", "[[correction]]"), "has \\[\\[override\\]\\], not"),
        (("why", "reason"), "lacks why"),
    ],
)
def test_a_correction_that_makes_no_sense_is_refused_in_words(tmp_path, change, words):
    assert change[0] in CORRECTION
    (tmp_path / marks.FILE).write_text(CORRECTION.replace(*change))
    with pytest.raises(FlashLadderError, match=words):
        marks.read(tmp_path / marks.FILE, with_deadline(""))


@pytest.mark.long
def test_one_student_alone_is_graded_anew(graded):
    one = with_deadline("")
    summary, rows, _ = graded(one, Options(only="ben"))
    assert summary.graded == 1 and rows["ben"]["points"] == "50" and rows["ada"]["points"] == ""
    assert "not graded yet" in rows["ada"]["remark"]
    assert graded(one)[0].graded == 2
    summary, rows, _ = graded(one, Options(only="ben"))
    assert summary.graded == 1 and {row["points"] for row in rows.values()} == {"100", "50"}
    with pytest.raises(FlashLadderError, match="ONLY=zoe: there is no such submission. There are: ada, ben, cho"):
        graded(one, Options(only="zoe"))


@pytest.mark.long
def test_nothing_of_an_earlier_submission_is_left(graded):
    one = with_deadline("")
    _, _, out = graded(one, texts={"ada": "correct 0\nwrong"})
    assert (out / "students/ada/05-errors.png").exists()
    graded(one, texts={"ada": "correct 1"})
    assert not (out / "students/ada/05-errors.png").exists()


CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Older
    Points Possible,,,,,10
"Lovelace, Ada",4711,u1,ada@uni.example,A,9
"Cho, Cee",4712,u2,cho,A,8
"Zuse, Konrad",4713,u3,kz,B,7
"Student, Test",1,,,B,
"""
MOODLE = """First name,Last name,ID number,Email address
Ada,Lovelace,4711,ada@uni.example
Ben,Ünal,4712,ben@uni.example
"""


def some(name: str, identity: str = "", points: float = 50) -> marks.Marks:
    return marks.Marks(identity or name, name, with_deadline(""), (), total=points)


def test_canvas_takes_what_is_matched_to_its_roster(tmp_path):
    (tmp_path / "roster.csv").write_text(CANVAS)
    every = [some("lovelaceada_LATE_4711_99_05_swizzle.cu", "ada", 22.5), some("cho"), some("nobody"), some("u2", "x")]
    found = roster.matched(roster.read(tmp_path / "roster.csv"), every[:3], "Small")
    rows = list(csv.reader(found.text.splitlines()))
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Small"]
    assert rows[1][0].strip() == "Points Possible" and rows[1][-1] == "100"
    assert [(row[0], row[-1]) for row in rows[2:]] == [
        ("Lovelace, Ada", "22.5"), ("Cho, Cee", "50"), ("Zuse, Konrad", "")]  # fmt: skip
    assert found.without_row == ["nobody"] and found.without_submission == ["Zuse, Konrad"]
    twice = roster.matched(roster.read(tmp_path / "roster.csv"), every, "Small")
    assert "Cho, Cee,50" not in twice.text and len(twice.without_row) == 3, "who of two is meant is not guessed"


def test_moodle_takes_what_is_matched_to_its_roster(tmp_path):
    (tmp_path / "roster.csv").write_text(MOODLE, encoding="utf-8-sig")
    every = [some("Ada Lovelace_12345_assignsubmission_file", "ada"), some("ben", points=0)]
    found = roster.matched(roster.read(tmp_path / "roster.csv"), every, "Small")
    assert found.text.splitlines() == ["Email address,ID number,Small", "ada@uni.example,4711,50",
                                       "ben@uni.example,4712,0"]  # fmt: skip
    (tmp_path / "roster.csv").write_text("name\nada\n")
    with pytest.raises(FlashLadderError, match="is no roster"):
        roster.read(tmp_path / "roster.csv")


@pytest.mark.long
def test_a_class_writes_the_file_for_its_roster(graded, tmp_path):
    (tmp_path / "roster.csv").write_text(CANVAS)
    summary, _, out = graded(with_deadline(""), Options(roster=roster.read(tmp_path / "roster.csv")))
    assert '"Lovelace, Ada",4711,u1,ada@uni.example,A,100' in (out / "canvas.csv").read_text()
    assert summary.without_row == ["ben"] and "Submissions of nobody in the roster" in "\n".join(summary.words())


@pytest.mark.long
def test_what_a_class_has_in_common_is_told_with_an_example(graded):
    texts = TEXTS | {"dan": "correct 0.25\nsays line 7 is wrong", "eve": "correct 0.25\nsays something else"}
    _, _, out = graded(with_deadline(""), texts=texts)
    page = (out / "common.md").read_text()
    assert "5 submissions were graded" in page and "1 have all points" in page
    assert re.search(
        r"\*\*2 times, correct: whole tiles\*\* \(cho, dan\). An example:\n\n```text\nline 3 is wrong", page
    )


@pytest.mark.long
def test_on_request_no_name_is_in_the_reports(graded):
    _, rows, out = graded(with_deadline(""), Options(pseudonyms=True))
    assert all(re.fullmatch("student-[0-9a-f]{8}", name) for name in rows) and len(rows) == 3
    known = {row["id"]: row["pseudonym"] for row in csv.DictReader((out / "pseudonyms.csv").open())}
    assert set(known) == set(TEXTS) and set(known.values()) == set(rows)
    assert (out / "pseudonyms.csv").stat().st_mode & 0o077 == 0
    for file in out.rglob("*"):
        if file.is_file() and file.suffix in (".md", ".html", ".csv", ".xml") and file.name != "pseudonyms.csv":
            assert not re.search(r"\b(ada|ben|cho)\b", file.read_text()), file
    summary, again, _ = graded(with_deadline(""), Options(pseudonyms=True))
    assert set(again) == set(rows), "the same in every run"
    assert summary.earlier == []


@pytest.mark.long
def test_what_earlier_runs_left_under_names_is_told(graded):
    _, _, out = graded(with_deadline(""))
    (out / "similar.md").write_text("ada and ben")
    (out / "instructor").mkdir(exist_ok=True)
    (out / "instructor/zoe.md").write_text("zoe")  # who has withdrawn
    assert graded(with_deadline(""))[0].earlier == ["instructor/zoe.md"]
    summary, *_ = graded(with_deadline(""), Options(pseudonyms=True))
    assert {"students/ada", "students/ben", "students/cho", "instructor/zoe.md", "similar.md"} <= set(summary.earlier)
    assert not any("student-" in one for one in summary.earlier)
    assert "remove what nobody is to see:\n  instructor/" in "\n".join(summary.words())


def test_answers_that_are_alike_are_hints_and_no_verdict(graded):
    pytest.importorskip("copydetect", reason="copydetect is not installed (extra: similarity)")
    one = with_deadline("")
    written = exercise.get(5, FIRST)
    own = "\n".join(
        f"    int piece_{n} = (row * {n} + c) ^ (row >> {n % 5});\n    row += piece_{n} % 3;" for n in range(12)
    )
    other = "\n".join(f"    while (c > {n} && row) {{ c -= {n}; row = row / 2 + c * {n}; }}" for n in range(12))
    text = exercise.starter(5, [FIRST])

    def filled(answer: str) -> str:
        begin, end = text.index(written.opening) + len(written.opening), text.index(written.closing)
        return f"{text[:begin]}\n{answer}\n{text[end:]}"

    texts = {"ada": filled(own), "ben": filled(own.replace("piece", "chunk")), "cho": filled(other)}
    _, _, out = graded(one, Options(similar=True), texts=texts)
    page = (out / "similar.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ") and "%" in line]
    assert len(rows) == 1 and "ada and ben" in rows[0] and "This is no verdict" in page


def test_without_copydetect_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr("flashladder.classroom.similarity.find_spec", lambda _: None)
    with pytest.raises(FlashLadderError, match=r"pip install 'flashladder\[similarity\]'"):
        classroom.similarity.require()
