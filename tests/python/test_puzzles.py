"""Puzzles: each solution is right and each stub is not; what is said of a wrong answer; the commands."""

import dataclasses

import pytest

from flashladder.classroom import done, puzzle_judge, puzzles
from flashladder.classroom.judge import NOT_WRITTEN, Finding, Judgement
from flashladder.classroom.puzzles import CLOSE, OPEN
from flashladder.commands import puzzle as command
from flashladder.core.errors import FlashLadderError

EVERY = puzzles.every_puzzle()
QUICK = ("coalesce", "no_conflicts")  # compiled in `make test`; all of them: `make test-long`
CASES = [pytest.param(one, id=one.name, marks=() if one.name in QUICK else pytest.mark.long) for one in EVERY]


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHLADDER_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("FLASHLADDER_DEVICE", "sim")
    return tmp_path


def judged(one: puzzles.Puzzle, text: str) -> Judgement:
    return puzzle_judge.judge(one, text, "line {} of mine".format)


def test_where_there_are_puzzles():
    assert sorted({one.stage.number for one in EVERY}) == [1, 2, 3, 4, 5, 14, 15, 16]
    names = [one.name for one in EVERY]
    assert len(names) == len(set(names)), "a name is the argument of %%puzzle"
    for one in EVERY:
        assert one.hints and 2 <= one.minutes <= 10 and len(one.solution.splitlines()) <= 5
        assert one.stub.strip() != one.solution.strip()


@pytest.mark.parametrize("one", CASES)
def test_the_solution_is_right(one):
    found = judged(one, one.solution)
    assert found.passed, found.words


@pytest.mark.parametrize("one", CASES)
def test_the_stub_is_wrong_with_words(one):
    assert judged(one, one.stub) == NOT_WRITTEN and judged(one, "// nothing") == NOT_WRITTEN
    text = one.stub if one.name != "release_the_buffer" else "__syncwarp();"
    found = judged(dataclasses.replace(one, stub="int another;"), text)
    assert found.written and not found.passed and found.words


def test_a_mistake_of_the_compiler_is_named_with_the_readers_line():
    found = judged(puzzles.get(5, "no_conflicts"), "// first\nreturn rows * 32;")
    assert found.summary == "does not compile" and found.words[0].startswith("line 2 of mine: identifier")


def test_a_place_outside_is_told_at_the_given_line():
    found = judged(puzzles.get(5, "no_conflicts"), "return row * 33 + column;  // padding: there is no room")
    assert not found.passed and found.hazards
    assert any("the given line `for (int i = 0; i < 32; ++i)" in words for words in found.words), found.words


def test_right_numbers_without_the_idea_are_not_enough():
    found = judged(puzzles.get(1, "coalesce"), "const int row = threadIdx.x % 64, column = i;")
    assert found.summary == "right, but without the technique" and "8,192 sectors" in found.words[0]


def test_the_page_holds_the_stub_between_its_marks():
    for one in EVERY:
        text, first = puzzles.answer(one.page())
        assert one.is_stub(text) and one.page().splitlines()[first - 2].strip() == OPEN
        assert one.kernel(one.solution).count(CLOSE) == 1 and one.kernel("x").splitlines()[one.first_line - 1] == "x"


@pytest.mark.parametrize("text", (f"{OPEN}\n", f"{CLOSE}\n{OPEN}\n", f"{OPEN}\n{OPEN}\n{CLOSE}\n", ""))
def test_damaged_marks_are_told(text):
    with pytest.raises(FlashLadderError, match="stand once each around your lines"):
        puzzles.answer(text)


@pytest.mark.parametrize(
    "before, after, said",
    [
        ("minutes = 5", "hours = 1", "lacks minutes"),
        ("threads = 32", "threads = 32\nblocks = 2", "has blocks, which means nothing"),
        (CLOSE, "// end", "stand once each"),
        ('relation = "=="', 'relation = "~"', "relation is one of"),
    ],
)
def test_a_wrong_description_is_named(tmp_path, before, after, said):
    stage = puzzles.get(5, "no_conflicts").stage
    text = (stage.folder / "exercises.toml").read_text()
    assert before in text
    (tmp_path / "exercises.toml").write_text(text.replace(before, after, 1))
    with pytest.raises(FlashLadderError, match=said):
        puzzles.puzzles(dataclasses.replace(stage, folder=tmp_path))


# ---- the commands ----


@pytest.fixture
def fake(monkeypatch):
    def judge(one, text, line):
        if one.is_stub(text):
            return NOT_WRITTEN
        right = "^" in text
        return Judgement((Finding("builds", True), Finding("correct", right, () if right else (f"{line(1)}: no XOR",))))

    monkeypatch.setattr(puzzle_judge, "judge", judge)


def write(text: str) -> None:
    one = puzzles.get(5, "no_conflicts")
    one.file.write_text(one.file.read_text().replace(one.stub, text, 1))


def test_from_the_list_to_what_is_kept(fake, capsys, places, monkeypatch):
    monkeypatch.setenv("FLASHLADDER_BUILD", str(places / "build"))
    assert command.command("5", []) == 0
    assert "no_conflicts" in capsys.readouterr().out
    assert command.command("5", ["start"]) == 0
    assert (places / "work/puzzles/05_no_conflicts.cu").exists()
    with pytest.raises(FlashLadderError, match="exists, and stays as it is"):
        command.command("5", ["start"])
    assert command.command("5", ["check"]) == 1
    assert "not written yet" in capsys.readouterr().out
    for number in (1, 2, 3, 3):
        assert command.command("5", ["hint"]) == 0
        assert f"hint {number} of 3" in capsys.readouterr().out
    write("return row * 32 + column + 0;")
    assert command.command("5", ["check"]) == 1
    file = puzzles.get(5, "no_conflicts").file
    (line,) = (number for number, text in enumerate(file.read_text().splitlines(), 1) if "column + 0" in text)
    assert f"05_no_conflicts.cu:{line}: no XOR" in capsys.readouterr().out
    assert not done.everything()
    file.write_text(file.read_text().replace("column + 0", "(column ^ row)"))
    assert command.command("5", ["check", "hint"]) == 0
    assert "All that is begun" in capsys.readouterr().out
    assert list(done.everything()) == ["swizzle/puzzle/no_conflicts"]
    assert command.command("5", ["solution"]) == 0 and "column ^ row" in capsys.readouterr().out


def test_wrong_words_are_answered():
    with pytest.raises(FlashLadderError, match="make puzzle-05 can list, start, check, hint, solution"):
        command.command("5", ["fly"])
    with pytest.raises(FlashLadderError, match="Stage 07 has no puzzles; stages 01, 02, 03, 04, 05, .* have"):
        command.command("7", [])
    with pytest.raises(FlashLadderError, match="no puzzle 'x'. It has: no_conflicts"):
        command.command("5", ["start"], "x")
    with pytest.raises(FlashLadderError, match="No puzzle of stage 05 is begun"):
        command.command("5", ["check"])
    with pytest.raises(FlashLadderError, match="does not exist: `make puzzle-05 start NAME=no_conflicts` writes it"):
        command.command("5", ["check"], "no_conflicts")
