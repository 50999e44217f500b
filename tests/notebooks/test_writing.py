"""%%write, hints and solutions: what a reader writes in a cell is judged there, and nothing of it ends the run."""

import dataclasses

import pytest

pytest.importorskip("matplotlib")

from flashladder.classroom import exercise, judge  # noqa: E402
from flashladder.core.errors import FlashLadderError  # noqa: E402
from flashladder.ladder import stages  # noqa: E402
from flashladder.lessons import (  # noqa: E402
    HostLesson,
    Lesson,
    exercise_cells,
    notebook_format,
    sections,
    writing,
)
from flashladder.lessons.sections import wrapped  # noqa: E402

SOLVED = ("05_swizzle",)
STAGES = [stages.entry(file.stem) for file in notebook_format.files() if file.stem[:2].isdigit()]


@pytest.fixture(autouse=True)
def on_the_simulator(monkeypatch):
    monkeypatch.setenv("FLASHLADDER_DEVICE", "sim")


@pytest.fixture
def lesson(capsys):
    made = Lesson(5)
    capsys.readouterr()
    return made


def test_a_stub_says_not_written_yet(lesson, capsys, monkeypatch):
    monkeypatch.setattr(judge.build, "build", lambda targets: pytest.fail("built for a stub"))
    assert writing.write(" tile_offset ", exercise.get(5, "tile_offset").stub + "\n") is None
    assert capsys.readouterr().out == 'Where a chunk lies: not written yet. lesson.hint("tile_offset") gives a hint.\n'


def test_a_compiler_s_error_names_the_line_of_the_cell(lesson, capsys):
    """The cell's first line is %%write."""
    found = writing.write("tile_offset", "int place = c ^ row % 8;\nreturn row * d_head + plaice * chunk;")
    assert not found.passed
    printed = capsys.readouterr().out
    assert '✗ compiles: line 3 of the cell: identifier "plaice" is undefined' in printed
    assert "does not compile. 0 of 3 points." in printed and 'lesson.hint("tile_offset") gives a hint.' in printed


@pytest.mark.parametrize(
    "name, words",
    [("tile_ofset", "has no exercise 'tile_ofset'. It has: "), ("mend_1", "`make exercise-05 start NAME=mend_1`")],
)
def test_a_wrong_name_is_told_and_not_raised(lesson, capsys, name, words):
    assert writing.write(name, "x") is None
    assert words in capsys.readouterr().out


def test_without_a_lesson(monkeypatch, capsys):
    monkeypatch.setattr(writing, "_current", [])
    assert writing.write("tile_offset", "x") is None
    assert "Run the cell with `lesson = Lesson(...)` first" in capsys.readouterr().out


def test_hints_and_a_folded_solution(lesson, capsys, monkeypatch):
    one = exercise.get(5, "tile_offset")
    for number, hint in enumerate([*one.hints, one.hints[-1]], 1):
        lesson.hint("tile_offset")
        printed = capsys.readouterr().out
        assert f"hint {min(number, len(one.hints))} of {len(one.hints)}" in printed and hint in printed
    drawn = []
    monkeypatch.setattr("flashladder.lessons.writing.show", drawn.append)
    lesson.solution("tile_offset")
    assert drawn[0].html.startswith("<details><summary>") and drawn[0].html.endswith("</details>")
    assert f"{one.first}  {one.solution}" in drawn[0].text
    with pytest.raises(FlashLadderError, match="no exercise 'x'"):
        lesson.hint("x")
    assert HostLesson().hint and HostLesson().solution


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_the_notebook_has_the_stage_s_exercises(stage):
    (file,) = (file for file in notebook_format.files() if file.stem == stage.name)
    cells = notebook_format.load(file)["cells"]
    assert exercise_cells.faults(cells, stage) == []


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_no_task_shows_the_lines_of_another_one(stage):
    every = exercise.exercises(stage)
    cells = [*exercise_cells.section(stage), *exercise_cells.more(stage)]
    tasks = [cell for cell in cells if "```cpp" in cell["source"]]
    for cell, one in zip(tasks, sorted(every, key=lambda one: one.optional), strict=True):
        for other in every:
            apart = other.last < one.first or other.first > one.last
            assert not (apart and other.solution in cell["source"]), f"{one.name}'s task shows {other.name}'s solution"
        assert cell["source"].count(f"// your lines: {one.name}\n") == 1


def small(*sources: str) -> list[dict]:
    return [{"cell_type": "markdown", "source": text} for text in ("# Title", *sources)]


HEADINGS = ("## Write it (15 min)\n\nTwo functions.", "## Run it (5 min)", "## Going deeper")


def test_exercises_stand_in_their_sections_and_are_written_once():
    stage = stages.get(5)
    once = exercise_cells.placed(small(*HEADINGS, "### Other ways"), stage)
    texts = [cell["source"] for cell in once]
    write, run, deeper = (texts.index(heading) for heading in HEADINGS)
    one = exercise.get(5, "tile_offset")
    assert write < texts.index(f"%%write tile_offset\n{one.stub}") < run and not one.optional
    assert "lesson.hint(" in texts[write + 1] and wrapped(one.task) in texts[write + 1]
    assert texts[deeper + 1].startswith(exercise_cells.MORE) and texts[-1] == "### Other ways"
    optional = [other for other in exercise.exercises(stage) if other.optional]
    assert optional and all(texts.index(f"%%write {other.name}\n{other.stub}") > deeper for other in optional)
    assert one.solution not in "\n".join(texts)
    assert exercise_cells.placed(once, stage) == once and exercise_cells.faults(once, stage) == []
    with pytest.raises(FlashLadderError, match='no cell begins with the heading "## Write it"'):
        exercise_cells.placed(small("Nothing."), stage)


def test_more_than_two_exercises_for_everyone_are_a_fault(monkeypatch):
    every = [dataclasses.replace(one, optional=False) for one in exercise.exercises(5)]
    monkeypatch.setattr(exercise, "exercises", lambda stage: every)
    stage = stages.get(5)
    (fault,) = exercise_cells.faults(exercise_cells.placed(small(*HEADINGS), stage), stage)
    assert fault == "exercises.toml asks everyone for 4 exercises: mark all but one or two `optional = true`"


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda text: text + "\nreturn 7;", "%%write tile_offset` holds something else than the stub"),
        (lambda text: text.replace("%%write tile_offset", "%%write other"), "differ from exercises.toml"),
    ],
)
def test_a_cell_that_is_no_stub_is_a_fault_and_is_kept(change, words):
    stage = stages.get(5)
    cells = exercise_cells.placed(small(*HEADINGS), stage)
    (cell,) = (cell for cell in cells if cell["source"].startswith("%%write tile_offset"))
    cell["source"] = change(cell["source"])
    assert any(words in fault for fault in exercise_cells.faults(cells, stage))
    cell["outputs"] = []
    with pytest.raises(FlashLadderError, match="holds an answer, which would be lost"):
        exercise_cells.placed(cells, stage)


def test_an_older_stub_and_task_are_replaced():
    stage = stages.get(5)
    wanted = exercise_cells.placed(small(*HEADINGS), stage)
    cells = [dict(cell) for cell in wanted]
    (cell,) = (cell for cell in cells if cell["source"].startswith("%%write tile_offset"))
    cell["source"] = "%%write tile_offset\nreturn 0;  // an older stub: its output says so"
    (place,) = (n for n, cell in enumerate(cells) if cell["source"].startswith("### Where a chunk lies"))
    cells[place] = cells[place] | {"source": "### An older title (2 points)"}
    assert exercise_cells.faults(cells, stage) and exercise_cells.placed(cells, stage) == wanted
    assert "differ" in exercise_cells.faults(small(*HEADINGS), stage)[0]
    assert "have no place" in exercise_cells.faults(small("## Build"), stage)[0]


def solved(file, folder):
    """A copy of a notebook with the solutions in its cells."""
    notebook = notebook_format.load(file)
    for cell in notebook["cells"]:
        first, _, _ = sections.text_of(cell).partition("\n")
        if first.startswith("%%write "):
            name = first.removeprefix("%%write ")
            cell["source"] = f"{first}\n{exercise.get(file.stem, name).solution}"
    copy = folder / file.name
    notebook_format.write(notebook, copy)
    return copy


def outputs(cell: dict) -> str:
    return "\n".join(sections.joined(one.get("data", {}).get("text/plain", "")) for one in cell["outputs"])


@pytest.mark.long
def test_cells_in_a_kernel(notebook, jupyter):
    """An unwritten one has the output that the notebooks are saved with; a wrong one does not end the run."""
    from flashladder.lessons import notebooks

    one = exercise.get(5, "tile_offset")
    file = notebook(
        "from flashladder.lessons import Lesson\nlesson = Lesson(5)",
        f"%%write {one.name}\n{one.stub}",
        f"%%write {one.name}\nreturn plaice;",
        "print(6 * 7)",
    )
    executed = notebook_format.canonical(notebooks.execute(file), file)
    cells = [cell for cell in executed["cells"] if cell["cell_type"] == "code"]
    written = [cell for cell in exercise_cells.section(one.stage) if cell["source"].startswith(f"%%write {one.name}")]
    saved = notebook_format.canonical({"cells": written}, file)["cells"]
    assert cells[2]["outputs"] == saved[0]["outputs"]
    assert 'line 2 of the cell: identifier "plaice" is undefined' in outputs(cells[3])
    assert "".join(cells[4]["outputs"][0]["text"]) == "42\n"


@pytest.mark.long
@pytest.mark.parametrize("name", SOLVED)
def test_a_solved_notebook_runs_and_every_answer_is_right(name, jupyter, tmp_path):
    from flashladder.lessons import notebooks

    (file,) = notebook_format.files([name])
    executed = notebooks.execute(solved(file, tmp_path))
    written = [cell for cell in executed["cells"] if sections.text_of(cell).startswith("%%write ")]
    every = exercise.exercises(name)
    assert len(written) == len(every)
    for one, cell in zip(every, written):
        printed = outputs(cell)
        assert f"{one.title}: right. {one.points} of {one.points} point" in printed and "✓ compiles" in printed, printed
