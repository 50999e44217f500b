"""Exercises on the command line, with a judge that only looks for a word, and once with the real one."""

import json

import numpy as np
import pytest

from flashladder.classroom import exercise, judge, progress, remembered
from flashladder.classroom.judge import Finding, Judgement
from flashladder.commands import exercise as command
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages

NAME, STUB, RIGHT = "tile_offset", "return row * d_head + c * chunk;", "return row * d_head + (c ^ row % 8) * chunk;"


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """A work/ and a build/ of one's own."""
    monkeypatch.setenv("FLASHLADDER_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("FLASHLADDER_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(progress, "ROOT", tmp_path)
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def judged(monkeypatch):
    """Texts that were judged; right is what has the XOR."""
    texts = []

    def attempt(one, text, line, *more):
        if one.is_stub(text):
            return judge.NOT_WRITTEN
        texts.append(text)
        right = "^ row % 8" in text
        return Judgement((Finding("builds", True), Finding("correct", right, (f"{line(1)}: no conflict-free idea",))))

    monkeypatch.setattr(judge, "attempt", attempt)
    monkeypatch.setattr(remembered.build, "build", lambda targets: None)
    monkeypatch.setattr(remembered.build, "info", lambda: {})
    return texts


def file(name: str = NAME):
    return progress.file_of(exercise.get(5, name))


def write(text: str, name: str = NAME) -> None:
    file(name).write_text(file(name).read_text().replace(f"    {STUB}\n", f"    {text}\n", 1))


def state(name: str = NAME) -> str:
    return next(one.words for one in progress.states(stages.get(5)) if one.exercise.name == name)


def test_optional_ones_are_marked_and_come_last(capsys):
    assert command.command("07", []) == 0
    printed = capsys.readouterr().out
    assert "V, while S is computed (optional)" in printed and "NAME=request_k` begins one" in printed


def test_from_the_first_list_to_the_last_check(judged, capsys, places):
    assert command.command("05", []) == 0
    printed = capsys.readouterr().out
    assert f"{NAME} " in printed and "not begun" in printed and f"start NAME={NAME}" in printed
    command.command("05", ["start"], NAME)
    printed = capsys.readouterr().out
    assert "work/05_tile_offset.cu" in printed and exercise.get(5, NAME).task in printed
    assert command.command("05", ["check"]) == 1 and "not written yet" in capsys.readouterr().out
    write("return 7;")
    assert state() == "not checked yet"
    assert command.command("05", ["check"]) == 1
    number = file().read_text().splitlines().index("    return 7;") + 1
    assert f"  work/05_tile_offset.cu:{number}: no conflict-free idea" in capsys.readouterr().out
    assert state() == "wrong"
    file().write_text(file().read_text().replace("return 7;", RIGHT))
    assert command.command("05", ["check"], NAME) == 0 and "right" in capsys.readouterr().out
    assert state() == "right" and len(judged) == 2
    command.ladder()
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("05"))
    assert "■" in row and f"{exercise.get(5, NAME).points} of " in row
    command.command("05", ["hint"])
    assert "All that is begun of stage 05 is right" in capsys.readouterr().out


def test_nothing_is_written_over(judged, capsys):
    command.command("05", ["start"], NAME)
    write("mine")
    with pytest.raises(FlashLadderError, match="work/05_tile_offset.cu exists, and stays as it is"):
        command.command("05", ["start"], NAME)
    assert "mine" in file().read_text()
    command.command("05", ["start"])  # the next one
    assert len(list(file().parent.iterdir())) == 2


def test_a_kernel_to_mend(judged, capsys):
    command.command("05", ["start"], "mend_1")
    one, text = exercise.get(5, "mend_1"), file("mend_1").read_text()
    assert one.mistake.name not in text and one.mistake.mistake not in text and ">>>" not in text
    assert command.command("05", ["check"], "mend_1") == 1 and "not written yet" in capsys.readouterr().out
    file("mend_1").write_text(stages.get(5).source.read_text())
    assert command.command("05", ["check"], "mend_1") == 0


def test_hints_come_one_after_another(capsys, judged):
    command.command("05", ["start"], NAME)
    hints = exercise.get(5, NAME).hints
    for number, hint in enumerate(hints, 1):
        capsys.readouterr()
        command.command("05", ["hint"])
        said = capsys.readouterr().out
        assert f"hint {number} of {len(hints)}: {hint}" in said
        assert ("That is the last one; the solution is in" in said) == (number == len(hints))
    command.command("05", ["hint"], NAME)
    assert f"hint {len(hints)} of {len(hints)}" in capsys.readouterr().out
    command.command("05", ["start"], "mend_1")
    with pytest.raises(FlashLadderError, match=f"A hint for which.*: {NAME}, mend_1"):
        command.command("05", ["hint"])


def test_watch_judges_what_is_saved_until_it_is_right(judged, capsys, monkeypatch):
    command.command("05", ["start"], NAME)
    saves = iter(["return 1;", None, "return 2;", RIGHT])
    before = [STUB]

    def sleep(seconds):
        text = next(saves)
        if text:
            file().write_text(file().read_text().replace(before[0], text))
            before[0] = text

    monkeypatch.setattr(command.time, "sleep", sleep)
    assert command.command("05", ["watch"]) == 0
    assert [text.strip() for text in judged] == ["return 1;", "return 2;", RIGHT]
    assert "All of it is right." in capsys.readouterr().out


def test_watch_survives_damaged_marks_and_ends_by_the_reader(judged, capsys, monkeypatch):
    command.command("05", ["start"], NAME)
    whole = file().read_text()
    saves = iter([whole.replace("// <<< end of tile_offset", ""), whole.replace(STUB, "return 3;")])

    def sleep(seconds):
        try:
            file().write_text(next(saves))
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(command.time, "sleep", sleep)
    assert command.command("05", ["watch"], NAME) == 0
    printed = capsys.readouterr().out
    assert "put the line `// <<< end of tile_offset` back" in printed and "no conflict-free idea" in printed


@pytest.mark.parametrize(
    "damage, words",
    [
        (lambda text: text.replace("    // <<< end of tile_offset\n", ""), "work/05_tile_offset.cu: Line "),
        (lambda text: "int x;\n", "the lines `// >>> write: tile_offset"),
        (lambda text: text.encode("utf-16"), "has zero bytes, as UTF-16 and programs have (line 1): save it as UTF-8"),
    ],
)
def test_damaged_files_are_told(judged, capsys, damage, words):
    command.command("05", ["start"], NAME)
    text = damage(file().read_text())
    file().write_bytes(text.encode() if isinstance(text, str) else text)
    assert command.command("05", ["check"]) == 1
    assert words in capsys.readouterr().out
    assert state() == "damaged marks" and not judged


def test_changes_outside_of_the_marks_are_told(judged, capsys):
    command.command("05", ["start"], NAME)
    write(RIGHT)
    file().write_text(file().read_text().replace("constexpr int Br = 128;", "constexpr int Br = 64;"))
    assert command.command("05", ["check"]) == 0
    assert "outside of the marks is not judged" in capsys.readouterr().out


def test_what_is_missing_or_misspelt_is_told(judged):
    with pytest.raises(FlashLadderError, match="No exercise of stage 05 is begun: `make exercise-05 start NAME=...`"):
        command.command("05", ["check"])
    with pytest.raises(FlashLadderError, match="work/05_tile_offset.cu does not exist: `make exercise-05 start NAME="):
        command.command("05", ["check"], NAME)
    with pytest.raises(FlashLadderError, match="no exercise 'x'. It has: "):
        command.command("05", ["start"], "x")
    with pytest.raises(FlashLadderError, match="'fly': make exercise-05 can list, start, check, hint, watch"):
        command.command("05", ["fly"])


def test_an_answer_in_a_notebook_counts(judged, places):
    folder = places / "notebooks"
    folder.mkdir()
    cell = {"cell_type": "code", "source": [f"%%write {NAME}\n", RIGHT]}
    (folder / "05_swizzle.ipynb").write_text(json.dumps({"cells": [cell]}))
    assert state() == "not checked yet"
    progress.check(exercise.get(5, NAME), RIGHT)
    assert state() == "right"


def test_a_second_check_takes_the_judgement_from_the_first(judged, capsys, places, monkeypatch):
    command.command("05", ["start"], NAME)
    write("return 7;")
    capsys.readouterr()
    assert command.command("05", ["check"]) == 1
    doing, said = capsys.readouterr().out.split("\n", 1)
    assert doing.startswith(f"{NAME}: compiling it; it takes ")
    assert command.command("05", ["check"]) == 1 and capsys.readouterr().out == said and len(judged) == 1
    file().write_text("\n" + file().read_text())  # its lines have other numbers, which it names
    assert command.command("05", ["check"]) == 1 and len(judged) == 2
    (places / "build/simulator").mkdir(parents=True)
    for change in (
        lambda: monkeypatch.setenv("WARPSIM_DEVICE", "sm_80"),
        lambda: monkeypatch.setattr(remembered.build, "info", lambda: {"nvcc_version": "1"}),
        lambda: (places / "build/simulator/libcudart.so.13").write_text("another simulator"),
    ):
        before = len(judged)
        change()
        command.command("05", ["check"])
        assert len(judged) == before + 1
    for kept in (places / "build/exercises/judgements").iterdir():
        kept.write_text('[{"check": "builds"')  # no judgement
    assert command.command("05", ["check"]) == 1 and len(judged) == before + 2


def test_a_wrong_result_is_kept_with_its_numbers(judged, monkeypatch):
    attempt = judge.attempt
    problem = Problem(Hq=1, Nq=4, d_head=64)
    wrong = judge.Wrong(problem, problem.random(1), np.ones(problem.shape("O"), np.uint16))
    monkeypatch.setattr(judge, "attempt", lambda *given: judge.Judgement(attempt(*given).findings, wrong=wrong))
    for found in (progress.check(exercise.get(5, NAME), "return 7;").wrong for _ in range(2)):
        assert found.problem == problem and (found.output == 1).all()
        assert all((found.inputs[name] == wrong.inputs[name]).all() for name in "QKV")
    assert len(judged) == 1


def test_how_long_it_takes_is_known_the_second_time(judged, capsys):
    stage = stages.get(5)
    assert "it will be known" in remembered.expected_time(stage)
    remembered.took(stage, 18.4)
    assert remembered.expected_time(stage) == "it takes about 18 s"


def test_lines_around_an_answer_are_those_of_the_file(judged):
    """Of the shipped source a line that stands above the marks, and one below, where the file has more lines."""
    command.command("05", ["start"], NAME)
    source = stages.get(5).source.read_text().splitlines()
    answer = progress.answer_in(exercise.get(5, NAME), file())
    own = file().read_text().splitlines()
    for number in (1, len(source) - 3):
        at = int(answer.shipped(number).removeprefix("work/05_tile_offset.cu:"))
        assert own[at - 1] == source[number - 1]
    assert answer.shipped(len(source) - 3) != f"work/05_tile_offset.cu:{len(source) - 3}"
    file().write_text(file().read_text().replace(source[-1], "// gone"))
    assert progress.answer_in(exercise.get(5, NAME), file()).shipped(len(source)) == f"kernel.cu:{len(source)}"


def test_an_editor_is_opened_for_a_person_alone(judged, monkeypatch, capsys):
    opened = []
    monkeypatch.setenv("EDITOR", "my-editor --wait")
    done = command.subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(command.subprocess, "run", lambda words: opened.append(words) or done)
    command.command("05", ["start"], NAME)
    assert not opened
    file().unlink()
    monkeypatch.setattr(command.sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr(command.sys.stdout, "isatty", lambda: True, raising=False)
    command.command("05", ["start"], NAME)
    assert opened == [["my-editor", "--wait", str(file())]]


@pytest.mark.long
def test_make_passes_words_and_names_on(make, tmp_path):
    there = {"FLASHLADDER_WORK": str(tmp_path / "work")}
    listed, begun = make("exercise-05", **there), make("exercise-05", "start", f"NAME={NAME}", **there)
    assert listed.returncode == 0 and "not begun" in listed.stdout, listed.stderr
    assert begun.returncode == 0 and (tmp_path / "work/05_tile_offset.cu").exists(), begun.stderr
    again = make("exercise-05", "start", f"NAME={NAME}", **there)
    assert again.returncode != 0 and "exists, and stays as it is" in again.stderr
    assert "05   Swizzle" in make("exercises", **there).stdout
