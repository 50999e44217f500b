"""%%puzzle and %%kernel, and the puzzles of a notebook: what is wrong with a cell is told there, and ends no run."""

import pytest

pytest.importorskip("matplotlib")

from flashladder.classroom import blank, done, exercise, puzzle_judge, puzzles, whole  # noqa: E402
from flashladder.classroom.judge import Finding, Judgement  # noqa: E402
from flashladder.core.errors import FlashLadderError  # noqa: E402
from flashladder.ladder import stages  # noqa: E402
from flashladder.lessons import (  # noqa: E402
    Lesson,
    notebook_format,
    puzzle_cells,
    sections,
    writing,
)

STAGES = [stages.entry(file.stem) for file in notebook_format.files() if file.stem[:2].isdigit()]
NAME, RIGHT = "no_conflicts", "return row * 32 + (column ^ row);"


@pytest.fixture(autouse=True)
def places(monkeypatch, tmp_path):
    monkeypatch.setenv("FLASHLADDER_DEVICE", "sim")


@pytest.fixture
def lesson(capsys):
    made = Lesson(5)
    capsys.readouterr()
    return made


def test_a_stub_says_not_written_yet(lesson, capsys, monkeypatch):
    monkeypatch.setattr(puzzle_judge.build, "build", lambda targets: pytest.fail("built for a stub"))
    assert writing.puzzle(f" {NAME} ", puzzles.get(5, NAME).stub) is None
    assert (
        capsys.readouterr().out
        == f'Remove these bank conflicts: not written yet. lesson.hint("{NAME}") gives a hint.\n'
    )


def test_a_right_answer_is_kept(lesson, capsys):
    assert writing.puzzle(NAME, RIGHT).passed
    assert "Remove these bank conflicts: right." in capsys.readouterr().out
    assert list(done.everything()) == [f"swizzle/puzzle/{NAME}"]


def test_a_wrong_one_names_the_line_of_the_cell(lesson, capsys):
    """The cell's first line is %%puzzle."""
    assert not writing.puzzle(NAME, "// a thought\nreturn rows;").passed
    assert '✗ compiles: line 3 of the cell: identifier "rows" is undefined' in capsys.readouterr().out
    assert not done.everything()


def test_hints_and_solutions_of_puzzles_and_exercises(lesson, capsys):
    for number in (1, 2, 3, 3):
        lesson.hint(NAME)
        assert f"hint {number} of 3" in capsys.readouterr().out
    lesson.solution(NAME)
    assert RIGHT in capsys.readouterr().out
    lesson.hint("tile_offset")
    assert "Where a chunk lies, hint 1" in capsys.readouterr().out
    with pytest.raises(FlashLadderError, match="no exercise 'other'"):
        lesson.hint("other")


def test_wrong_words_end_no_run(lesson, capsys, monkeypatch):
    assert writing.puzzle("other", RIGHT) is None
    assert "no puzzle 'other'. It has: no_conflicts" in capsys.readouterr().out
    monkeypatch.setattr(writing, "_current", [])
    assert writing.puzzle(NAME, RIGHT) is None
    assert "%%puzzle is about its stage" in capsys.readouterr().out


# ---- the section ----


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_notebooks_have_the_puzzles_of_their_stage(stage):
    (file,) = notebook_format.files([stage.id])
    cells = notebook_format.load(file)["cells"]
    assert puzzle_cells.faults(cells, stage) == []
    sources = [sections.text_of(cell) for cell in cells]
    for one in puzzles.puzzles(stage):
        assert f"%%puzzle {one.name}\n{one.stub}" in sources
        assert one.solution.strip() not in "\n".join(sources)


def small(*sources: str) -> list[dict]:
    return [{"cell_type": "markdown", "source": text} for text in ("# Title", *sources)]


def test_it_stands_at_the_end_of_the_idea_and_an_answer_is_kept():
    stage = stages.get(5)
    once = puzzle_cells.placed(small("## The idea (8 min)", "## Predict (3 min)\n\nGuess."), stage)
    texts = [cell["source"] for cell in once]
    assert texts[1] == "## The idea (8 min)" and texts[2].startswith("### A puzzle: Remove these bank conflicts")
    assert "lesson.hint(" in texts[2] and texts[3].startswith("%%puzzle") and texts[-1].startswith("## Predict")
    assert puzzle_cells.placed(once, stage) == once and puzzle_cells.faults(once, stage) == []
    assert "differ from exercises.toml" in puzzle_cells.faults([*once[:2], once[-1]], stage)[0]
    assert "have no place" in puzzle_cells.faults(once[:2], stage)[0]
    (cell,) = (cell for cell in once if cell["source"].startswith("%%puzzle"))
    cell["source"], cell["outputs"] = f"%%puzzle {NAME}\n{RIGHT}", []
    assert puzzle_cells.faults(once, stage)
    with pytest.raises(FlashLadderError, match="holds an answer, which would be lost"):
        puzzle_cells.placed(once, stage)
    with pytest.raises(FlashLadderError, match="no cell begins with the heading"):
        puzzle_cells.placed(small("Nothing."), stage)


@pytest.mark.long
def test_a_cell_in_a_kernel_has_the_saved_output(notebook, jupyter):
    from flashladder.lessons import notebooks

    one = puzzles.get(5, NAME)
    lesson = "from flashladder.lessons import Lesson\nlesson = Lesson(5)"
    file = notebook(lesson, f"%%puzzle {NAME}\n{one.stub}", "%%kernel 06\n// a page", "print(6 * 7)")
    executed = notebook_format.canonical(notebooks.execute(file), file)
    cells = [cell for cell in executed["cells"] if cell["cell_type"] == "code"]
    (written,) = (cell for cell in puzzle_cells.section(one.stage) if cell["cell_type"] == "code")
    assert cells[2]["outputs"] == notebook_format.canonical({"cells": [written]}, file)["cells"][0]["outputs"]
    assert "Copy this page into the cell" in str(cells[3]["outputs"]) and "flash_forward" in str(cells[3]["outputs"])
    assert "".join(cells[4]["outputs"][0]["text"]) == "42\n"


# ---- a whole kernel ----


@pytest.fixture
def judged(monkeypatch):
    def part(one, text, *others):
        passed = one.name in text.partition("// right:")[2]
        judgement = Judgement(
            (Finding("builds", True), Finding("correct", passed, () if passed else ("wrong at B=1",)))
        )
        words = () if passed else (f"{others[-1](1) if callable(others[-1]) else 'line'}: wrong",)
        return whole.Part(one, passed, words, judgement=judgement if one.name == blank.WHOLE else None)

    monkeypatch.setattr(whole, "_part", part)
    monkeypatch.setattr(whole, "_whole", lambda page, one, text, line: part(one, text, line))


def test_a_cell_is_judged_part_by_part_and_what_is_right_is_kept(judged, capsys):
    text = blank.skeleton(blank.page(6)) + "// right: tiles"
    found = writing.kernel("06", text)
    assert [one.passed for one in found] == [True, False, False, False]
    printed = capsys.readouterr().out
    assert "Q, K and V in shared memory: right." in printed and "O: wrong numbers." in printed
    assert list(done.everything()) == ["cp_async/blank page/tiles"]
    assert [one.subgoal.name for one in writing.kernel("06 scores", text)] == ["scores"]


def test_what_is_wrong_with_the_words_is_told(capsys):
    assert writing.kernel("", "x") is None and "Of which stage?" in capsys.readouterr().out
    assert writing.kernel("06", "int x;") is None and "flash_forward is not in it" in capsys.readouterr().out
    text = blank.skeleton(blank.page(6))
    assert writing.kernel("06 sums", text) is None and "no subgoal 'sums'" in capsys.readouterr().out
    assert writing.kernel("06", "// a page\n") is None and "Copy this page" in capsys.readouterr().out


def test_names_of_puzzles_are_no_exercises():
    for one in puzzles.every_puzzle():
        assert one.name not in [other.name for other in exercise.exercises(one.stage)]
