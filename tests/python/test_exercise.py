"""What is to be written, as data: starters, answers read out of a reader's file, filled sources with their lines."""

import re
import shutil
from dataclasses import replace

import pytest

from flashladder.classroom import exercise
from flashladder.classroom.exercise import answer_lines, answers, exercises, fill, mends, starter
from flashladder.classroom.taking import changed_outside
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import source, stages

TOML = """
[[exercise]]
name = "tile_offset"
title = "Where a chunk lies"
part = "tile_offset"
stub = "return row * d_head + c * chunk;"
task = "Return where it lies."
hints = ["XOR.", "c ^ row % 8."]
points = 3

[[exercise]]
name = "scores"
title = "Products"
part = "S = QKᵀ"
first = "load_Q_fragment"
last = "load_K_fragment"
stub = '''
#pragma unroll
if (tiles)
    __syncwarp();
'''
task = "Load the fragments."
hints = []
points = 1

[[mend]]
mistake = "swizzle_on_write_only"
points = 2
"""


@pytest.fixture
def stage(tmp_path):
    """Stage 05 with other exercises: stage.text(...) writes its exercises.toml."""
    folder = tmp_path / "05_swizzle"
    shutil.copytree(stages.get(5).folder, folder)
    (folder / "exercises.toml").write_text(TOML)
    return replace(stages.get(5), folder=folder)


def with_toml(stage, old: str, new: str):
    assert old in TOML
    (stage.folder / "exercises.toml").write_text(TOML.replace(old, new, 1))
    return stage


@pytest.mark.parametrize("one", [one for stage in stages.all_parts() for one in exercises(stage)],
                         ids=lambda one: f"{one.stage.id}-{one.name}")  # fmt: skip
def test_the_solution_is_the_shipped_source(one):
    assert fill(one.stage, {one.name: one.solution}).source == one.stage.source.read_text()
    assert not one.is_stub(one.solution), "the stub is the solution"
    assert one.solution not in one.starter(), "the starter has the lines that are to be written"
    assert one.is_stub(answers(one.stage, one.starter())[one.name])
    for part in (one.title, one.task, *one.hints):
        assert part.strip() and "TODO" not in part


def test_a_starter_has_marks_and_indented_stubs(stage):
    text = starter(stage)
    stub = "    return row * d_head + c * chunk;\n    // <<< end of tile_offset\n}"
    assert f"    // >>> write: tile_offset (3 points)\n{stub}" in text
    stub = "#pragma unroll\n            if (tiles)\n                __syncwarp();\n"
    stub += "            // <<< end of scores\n        }\n"
    assert f"            // >>> write: scores (1 point)\n{stub}" in text
    assert "load_Q_fragment<T, d_head>(Q_fragment[k], Q_tile, k);" not in text
    assert "tile_offset (3" not in starter(stage, ["scores"])


def test_answers_are_read_back_with_their_lines(stage):
    text = starter(stage).replace("return row * d_head + c * chunk;", "// mine\n    return 7;")
    assert answers(stage, text)["tile_offset"] == "    // mine\n    return 7;"
    lines, first = text.splitlines(), answer_lines(stage, text)
    assert lines[first["tile_offset"] - 1] == "    // mine" and lines[first["scores"] - 1] == "#pragma unroll"
    assert answers(stage, text.replace("\n", "\r\n")) == answers(stage, text)
    assert answers(stage, starter(stage, ["scores"])).keys() == {"scores"}


def test_every_line_of_a_filled_source_is_mapped(stage):
    own = stage.source.read_text().splitlines()
    filled = fill(stage, {"scores": "one\ntwo", "tile_offset": "a\nb\nc"})
    lines = filled.source.splitlines()
    assert sorted([*filled.lines, *filled.others]) == list(range(1, len(lines) + 1))
    assert [lines[number - 1] for number in filled.lines] == ["a", "b", "c", "one", "two"]
    assert list(filled.lines.values()) == [("tile_offset", 1), ("tile_offset", 2), ("tile_offset", 3),
                                           ("scores", 1), ("scores", 2)]  # fmt: skip
    assert all(lines[number - 1] == own[origin - 1] for number, origin in filled.others.items())


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("    // <<< end of tile_offset\n", "", "opens tile_offset, and line 183 opens scores before it is closed"),
        ("            // <<< end of scores\n", "", "opens scores, and the file ends before it is closed"),
        ("    // >>> write: tile_offset (3 points)\n", "", "ends tile_offset, but the line `// >>> write: "),
        ("end of tile_offset", "end of scores", "ends scores, but tile_offset is open since line 27"),
        ("write: tile_offset", "write: tile_ofset", "'tile_ofset', which is no exercise of stage 05. It has: scores"),
        ("write: scores", "write: tile_offset", "opens tile_offset a second time"),
    ],
)  # fmt: skip
def test_damaged_marks_are_told(stage, old, new, words):
    text = starter(stage)
    assert old in text
    with pytest.raises(FlashLadderError) as refusal:
        answers(stage, text.replace(old, new))
    expected = re.sub(r"line 183", f"line {answer_lines(stage, text)['scores'] - 2}", words)
    assert expected in str(refusal.value) and "Line " in str(refusal.value)


def test_what_is_changed_outside_of_the_marks(stage):
    text = starter(stage)
    assert changed_outside(stage, text) == []
    lines = text.replace("return row * d_head + c * chunk;", "return 7;").splitlines()
    lines[20:20] = ["// a remark", "constexpr int mine = 3;  // why"]
    assert changed_outside(stage, "\n".join(lines)) == [22]


@pytest.mark.parametrize(
    "text, stub",
    [
        ("return row * d_head + c * chunk;", True),
        (
            "\n// my idea\n  return row*d_head + c * chunk ;  /* x\n */\n".replace("row*d", "row * d").replace(
                " ;", ";"
            ),
            True,
        ),
        ("", True),
        ("// nothing but words", True),
        ("return row * d_head + c * chunk + 0;", False),
    ],
)
def test_a_stub_stays_one_whatever_its_comments(stage, text, stub):
    assert exercise.get(stage, "tile_offset").is_stub(text) is stub


def test_a_function_begins_with_what_is_right_above_it(tmp_path):
    file = tmp_path / "kernel.cu"
    file.write_text("// A file.\n\n// One line.\nint a() {\n}\n\n// Two\n// lines.\ntemplate <int N>\nint b() {\n}\n")
    found = [(part.name, part.first, part.last) for part in source.parts(file)]
    assert found == [("top", 1, 1), ("a", 3, 5), ("b", 7, 11)]


def test_exercises_that_share_lines_are_not_written_at_once(stage):
    with_toml(stage, 'last = "load_K_fragment"\n', "")
    more = TOML[TOML.index('[[exercise]]\nname = "scores"') : TOML.index("[[mend]]")].replace("scores", "again")
    file = stage.folder / "exercises.toml"
    file.write_text(file.read_text() + more)
    with pytest.raises(FlashLadderError, match="(scores and again|again and scores) of stage 05 share lines"):
        fill(stage, {"scores": "", "again": ""})
    assert "// <<< end of again" in starter(stage, ["again"])


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("name = \"scores\"", "name = \"tile_offset\"", 'two exercises named "tile_offset"'),
        ("name = \"scores\"", "name = \"mend_1\"", "is no mend_N"),
        ("title = \"Products\"\n", "", "exercise scores lacks title"),
        ("title = \"Products\"", "titel = 3\ntitle = \"Products\"", "has titel, which means nothing"),
        ("part = \"tile_offset\"", "part = \"tile_ofset\"", 'has no part "tile_ofset"'),
        ("load_Q_fragment", "for (int", "stands in lines"),
        ("load_K_fragment", "load_V_fragment", 'has no line with \'load_V_fragment\''),
        ("points = 3", "points = 0", "whole number from 1"),
        ("points = 3", "points = 3\nchecks = [\"correct\"]", "has checks, which means nothing"),
        ("points = 3", "points = 3\noptional = 1", "optional is true or false"),
        ("[[mend]]", "[[mends]]", "not [mends]"),
        ("mistake = \"swizzle_on_write_only\"", "mistake = \"nothing\"", "no mistake 'nothing'"),
        ("mistake = \"swizzle_on_write_only\"", "mistake = \"x\"\nname = \"y\"", 'has "mistake" and "points"'),
        ("points = 3", "points = ", "exercises.toml: "),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_description_is_told(stage, old, new, words):
    with_toml(stage, old, new)
    with pytest.raises(FlashLadderError) as refusal:
        exercises(stage), mends(stage)
    assert words in str(refusal.value)


def test_a_mistake_to_mend_does_not_tell_itself(stage):
    (one,) = mends(stage)
    assert one.name == "mend_1" and exercise.get(stage, "mend_1") == one
    told = f"{one.name} {one.title} {one.task}"
    assert one.mistake.name not in told and one.mistake.mistake not in told
    own, planted = (text.splitlines() for text in (stage.source.read_text(), one.starter()))
    assert 0 < sum(line not in own for line in planted) <= 4 and one.is_stub(one.starter())
    assert one.hints[-1] == one.mistake.mistake and '"piece_address"' in one.hints[1]
    assert one.mistake.mistake not in one.hints[:-1]


def test_an_unknown_name_lists_those_that_there_are(stage):
    with pytest.raises(FlashLadderError, match="no exercise 'x'. It has: tile_offset, scores, mend_1"):
        exercise.get(stage, "x")
    with pytest.raises(FlashLadderError, match="no exercise 'mend_1' to write. It has: tile_offset, scores"):
        fill(stage, {"mend_1": ""})
    (stage.folder / "exercises.toml").unlink()
    assert exercises(stage) == [] and mends(stage) == []
