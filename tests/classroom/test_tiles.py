"""An assignment with another tile than the ladder's: what follows it, what is refused, and that an answer with the
ladder's numbers in it is wrong there."""

import re

import pytest
from graded import assignment_text
from shares import share

from flashladder.classroom import assignment, cases, exercise, handout, judge
from flashladder.classroom.grading import grade
from flashladder.core.errors import FlashLadderError
from flashladder.core.toml import tomllib
from flashladder.ladder import stages, technique, tiles
from flashladder.ladder.kernels import problem_for
from flashladder.ladder.launches import launches

VARIED = [one for one in stages.all_stages() if "tiles" in one.data]
WIDE = """    for (int n = 0; n < {fragments}; n += 2) {
        uint32_t piece[4];
        ptx::ldmatrix_x4(piece, piece_address<T, d_head>(K_tile, 8 * n, 2 * k));
        K_fragment[n][0] = piece[0], K_fragment[n][1] = piece[2];
        K_fragment[n + 1][0] = piece[1], K_fragment[n + 1][1] = piece[3];
    }"""


def varied(tile: str, stage: int | str = 4, name: str = "k_fragment") -> assignment.Assignment:
    return assignment.parse("varied", f"tile = {tile}\n{assignment_text(item(stage, name))}")


def item(stage: int | str, name: str, points: int = 100) -> str:
    return f'stage = "{stage}"\nname = "{name}"\npoints = {points}'


def constants(source: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"^constexpr int (Br|Bc) = (\d+);", source, re.M)}


def test_kernel_launch_sizes_and_expectations_follow():
    ready = assignment.get("tensor-cores")
    other = assignment.parse("mine", f'tile = "64x128"\n{ready.source}')
    kernel, shipped = other.kernel(4), stages.get(4)
    assert constants(kernel.source.read_text()) == {"Br": 64, "Bc": 128} != constants(shipped.source.read_text())
    assert kernel.kernel_hash() != shipped.kernel_hash() and other.digest != ready.digest
    for before, after in zip(ready.sizes, other.sizes, strict=True):
        assert [(p.Nq // 128, p.Nkv // 64) for p in before.problems] == [
            (p.Nq // 64, p.Nkv // 128) for p in after.problems
        ]
    problem = other.sizes[0].problems[0]
    (launch,) = launches(kernel, problem)
    assert launch.grid[0] == problem.Nq // 64 and launch.shared_bytes == (64 + 2 * 128) * problem.d_head * 2
    names = technique.namespace(kernel, problem)
    assert (names["Br"], names["Bc"], names["whole"]) == (64, 128, 1)
    assert technique.runs(kernel)[0].problem.Nkv % 128 == 0


def test_a_part_of_the_tile_may_be_left_out_and_its_own_is_no_change():
    assert dict(tiles.tile_of(varied("{ Bc = 32 }").kernel(4))) == {"Br": 128, "Bc": 32}
    assert varied('"64x32"').kernel(4) == varied("{ Br = 64, Bc = 32 }").kernel(4)
    assert varied('"128x64"').kernel(4) is stages.get(4)


def test_threads_follow_where_the_tile_decides_them():
    kernel = varied("{ Br = 64 }", "wgmma", "descriptors").kernel("wgmma")
    assert launches(kernel, problem_for(kernel))[0].threads == 128


def test_a_stage_that_takes_any_length_keeps_the_lengths():
    ready = assignment.get("masking")
    other = assignment.parse("mine", f"tile = {{ Bc = 128 }}\n{ready.source}")
    assert other.sizes == ready.sizes and other.digest != ready.digest


@pytest.mark.parametrize(
    "tile, number, name, words",
    [
        ('"64"', 4, "k_fragment", 'tile is "64x32" (Br x Bc), or { Br = 64, Bc = 32 }'),
        ("64", 4, "k_fragment", 'tile is "64x32"'),
        ("{}", 4, "k_fragment", 'tile is "64x32"'),
        ("{ Bd = 32 }", 4, "k_fragment", "tile has Br and Bc, not Bd"),
        ("{ Bc = 0 }", 4, "k_fragment", "Bc is a whole number of rows, not 0"),
        ("{ Bc = true }", 4, "k_fragment", "not True"),
        ('"96x64"', 4, "k_fragment", "stage 04 does not take Br = 96: its kernel is right with 64, 128"),
        ('"64x64"', 1, "scores", "stage 01 takes no other tile: its kernels have none"),
        ('"64x64"', "wgmma", "descriptors", "does not take Bc = 64: its kernel is right with 128"),
        ('"64x64"', "ping_pong", "turn", "takes no other tile: its tile goes with the head dim"),
        ('"64x64"', "shapes", "whole", "takes no other tile: its kernel is built as a table of instances"),
        ('"64x64"', "fp8", "any", "takes no other tile: its tile goes with the head dim"),
    ],
)
def test_a_tile_that_makes_no_sense_is_refused_in_words(tile, number, name, words):
    with pytest.raises(FlashLadderError, match="varied.toml is no valid assignment: .*" + re.escape(words)):
        varied(tile, number, name)


def test_stages_of_different_tiles_are_not_set_together():
    text = assignment_text(item(3, "scores", 50), item(5, "tile_offset", 50))
    with pytest.raises(FlashLadderError, match="its stages have different tiles"):
        assignment.parse("varied", f"tile = {{ Bc = 32 }}\n{text}")


@pytest.mark.parametrize("stage", VARIED, ids=lambda one: one.id)
def test_each_tile_of_a_stage_is_a_kernel_with_its_exercises(stage):
    """That some of them are right the long test below says."""
    own = tiles.tile_of(stage)
    for name, values in stage.data["tiles"].items():
        for value in values if name in own else ():
            kernel = tiles.retiled(stage, {name: value})
            assert constants(kernel.source.read_text()) == own | {name: value} == tiles.tile_of(kernel)
            assert [one.solution for one in exercise.exercises(kernel)] == [
                one.solution for one in exercise.exercises(stage)
            ]
            assert len(cases.cases(kernel)) == len(cases.cases(stage))


def test_the_students_folder_has_the_tile_everywhere(tmp_path):
    one = varied('"64x32"')
    folder = handout.write(one, tmp_path / "given")
    for name in ("04_tensor_cores.cu", "harness/stages/04_tensor_cores/kernel.cu"):
        text = (folder / name).read_text()
        assert constants(text) == {"Br": 64, "Bc": 32}
        assert text.startswith(
            "// The tile is Br = 64, Bc = 32. What comments say of rows is of the lesson's tile, Br ="
        )
    data = tomllib.loads((folder / "harness/stages/04_tensor_cores/stage.toml").read_text())
    assert (data["launch"][0]["Br"], data["launch"][0]["Bc"]) == (64, 32) and "tiles" not in data
    sheet = (folder / "README.md").read_text()
    assert "The tile of `04_tensor_cores.cu` is `Br = 64`, `Bc = 32`; in the lesson" in sheet
    assert "N=64" in sheet or "Nq=64" in sheet
    assert "The tile of" not in (handout.write(varied('"128x64"'), tmp_path / "plain") / "README.md").read_text()


@pytest.mark.long
def test_an_answer_with_the_ladders_numbers_is_wrong_and_one_for_this_tile_is_right(level, tmp_path):
    one = varied("{ Bc = 128 }")
    points = {}
    for fragments in ("8", "16"):  # of 8 rows of K: Bc = 64 in the ladder
        (tmp_path / fragments).mkdir()
        file = tmp_path / fragments / "04_tensor_cores.cu"
        written = handout.chosen(one, 4)[0]
        before, rest = handout.starter(one, 4).split(written.opening)
        after = rest.split(written.closing)[1]
        answer = WIDE.replace("{fragments}", fragments)
        file.write_text(f"{before}{written.opening}\n{answer}\n{written.closing}{after}")
        points[fragments] = grade(one, file, tmp_path / fragments)
    assert points["8"].points < 50 and points["8"].first_wrong, points["8"]
    assert points["16"].points == 100 and not points["16"].remarks, points["16"]


EACH = [
    pytest.param(stage, pick, marks=pytest.mark.long, id=f"{stage.id}-{pick.__name__}")
    for stage in VARIED
    for pick in (min, max)
]


@pytest.mark.parametrize("stage, pick", share(EACH, 8))
def test_the_shipped_kernel_is_right_and_uses_its_technique_with_another_tile(stage, pick):
    """The fewest rows of Q with the fewest or the most of K: with the launcher that is compiled, as by `make check` in
    a students' folder."""
    known = stage.data["tiles"]
    wanted = {"Br": min(known["Br"])} | ({"Bc": pick(known["Bc"])} if "Bc" in known else {})
    kernel = tiles.retiled(stage, wanted)
    found = judge.judge(kernel, kernel.source.read_text())
    assert found.passed, found.words
