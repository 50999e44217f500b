"""A whole kernel from a blank page: the page, what is said of what a kernel shows, the commands. Nothing is compiled
here; tests/stages/test_blank_page.py judges kernels."""

import re

import numpy as np
import pytest

from flashladder.classroom import blank, done, judge, shown, whole
from flashladder.classroom.blank import WHOLE
from flashladder.classroom.judge import Finding, Judgement
from flashladder.commands import blank as command
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages, technique

PROBLEM = Problem(B=1, Hq=1, Nq=8, Nkv=16, d_head=64)
BC = 8


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHLADDER_WORK", str(tmp_path / "work"))
    return tmp_path


# ---- pages ----


@pytest.mark.parametrize("page", blank.pages(), ids=lambda page: page.stage.id)
def test_every_page_can_be_written(page):
    text = blank.skeleton(page)
    assert text.count("__global__") == 1 and "flash_forward" in text and "show.cuh" in text
    for one in page.subgoals:
        assert f"// {one.name}: {one.title}" in text and 5 <= one.minutes <= 180
        if one.name != WHOLE:
            assert f"// {one.name} (given): " in blank.skeleton(page, one.name)
    asked = " ".join(text.replace("\n// ", " ").split())
    for expected in technique.expectations(page.stage):  # a choice among instances is none of a page of one
        chosen = expected.own_choice and "only_instance" in page.stage.data
        assert (f"- {expected.says}" in asked) != chosen, expected.name
    solved = page.stage.source.read_text()
    for line in solved.splitlines():  # what it computes is not there
        if re.search(r"__shfl_|mma_\w+<|exp2?\(|tma_load\(", line) and not line.strip().startswith("//"):
            assert line not in text


@pytest.mark.parametrize(
    "stage", [one for one in stages.all_stages() if one.slug not in ("naive", "autotune", "shapes", "fp8")], ids=str
)
def test_a_kernel_without_parts_has_a_page_too(stage):
    page = blank.page(stage)
    assert page.subgoals[-1].name == WHOLE and "flash_kernel" in blank.skeleton(page)


def test_the_launch_is_the_one_of_stage_toml():
    text = blank.skeleton(blank.page(6))
    assert ".grid = dim3(params.Nq / Br, params.Hq, params.B)" in text
    assert ".shared_bytes = size_t((Br + 2 * Bc) * d_head * 2)" in text and "constexpr int threads = 128;" in text
    hopper = blank.skeleton(blank.page("tile_scheduler"))
    assert ".grid = flash::persistent(params.Hq * params.B * ((params.Nq + Br - 1) / Br))" in hopper
    assert ".Q_box_rows = Br" in hopper and ".KV_box_rows = Bc" in hopper and ".log_sum_exp = true" in hopper


def test_a_page_of_one_instance_has_no_table_and_says_so():
    page = blank.page("shapes")
    text, name = blank.skeleton(page), page.stage.data["only_instance"]
    assert name.startswith("(BF16, 128, 128, 128, 12): ") and name in " ".join(re.sub("// ?", "", text).split())
    assert "Configuration" not in text and "instances.h" not in text
    assert ".grid = flash::persistent(params.Hq * params.B * ((params.Nq + Br - 1) / Br))" in text
    assert "size_t((3 * Br + 2 * 2 * Bc) * d_head * 2 + 16 * (2 + 2 * 2) + 48)" in text
    assert re.search(r"\.min_compute = 90,\n *\.Br = Br,\n *\.Bc = Bc,", text)
    assert {one.problem.d_head for one in judge.all_cases(page.stage, judge.CHECKS)} == {128}
    assert {one.problem.dtype for one in judge.all_cases(page.stage, judge.CHECKS)} == {"bf16"}
    assert all(one.configuration is None for one in judge.all_cases(page.stage, judge.CHECKS))


def test_what_has_no_page_says_why():
    with pytest.raises(FlashLadderError, match="program of the host"):
        blank.page(0)
    with pytest.raises(FlashLadderError, match="Stage 40 computes gradients: .* `make exercise-40`"):
        blank.page("backward_naive")
    with pytest.raises(FlashLadderError, match="Stage 60 is for several GPUs: .* whole kernel.$"):
        blank.page("gather")
    with pytest.raises(FlashLadderError, match="table of instances.*06"):
        blank.skeleton(blank.page(12))
    with pytest.raises(FlashLadderError, match="several kernels"):
        blank.skeleton(blank.page(1))
    with pytest.raises(FlashLadderError, match="no subgoal 'sums'. It has: tiles, scores, softmax, whole"):
        blank.page(6).subgoal("sums")


def changed_page(tmp_path, before: str, after: str) -> blank.Page:
    """Stage 06 with changed subgoals."""
    stage = stages.get(6)
    folder = tmp_path / stage.name
    folder.mkdir()
    for file in ("kernel.cu", "stage.toml", "exercises.toml"):
        (folder / file).write_text((stage.folder / file).read_text())
    text = (folder / "exercises.toml").read_text()
    assert before in text
    (folder / "exercises.toml").write_text(text.replace(before, after, 1))
    copy = type(stage)(stage.number, stage.name, stage.title, stage.technique, stage.min_compute, 5, folder, stage.data)
    return blank.page(copy)


@pytest.mark.parametrize(
    "before, after, said",
    [
        ('shows = ["S"]', 'shows = ["T"]', "'T' is nothing to show"),
        ("minutes = 45", "hours = 1", "a subgoal has"),
        ('name = "whole"', 'name = "all"', "the last subgoal is 'whole'"),
        ('part = "piece_address"', 'part = "piece"', 'no part "piece"'),
        ('{ part = "piece_address" }', '{ part = "piece_address", to = "x" }', "lines have part"),
        ('until = "// Two neigh', 'until = "// Three neigh', "stands in no line"),
        ("[[subgoal]]", "[[subgoal", "exercises.toml: Expected"),
    ],
)
def test_a_wrong_description_is_named(tmp_path, before, after, said):
    with pytest.raises(FlashLadderError, match=said):
        changed_page(tmp_path, before, after)


# ---- what a kernel shows ----


def buffer(**changed: np.ndarray) -> tuple[dict, np.ndarray]:
    """The inputs, and what a right kernel shows of them, with some kinds in place of it."""
    inputs = PROBLEM.random(1)
    q, k, v = (PROBLEM.values(inputs, name)[0, 0] for name in "QKV")
    scores = q @ k.T
    weights = np.exp(PROBLEM.scale * scores - 3.0)
    sums = np.log(np.exp(PROBLEM.scale * scores).sum(axis=1))[:, None]
    kinds = {"Q": q, "K": k, "V": v, "S": scores, "P": weights, "log_sum_exp": sums} | changed
    words = [np.full(shown.OUTSIDE_WORDS, shown.NOTHING, np.uint32)]
    for name in shown.KINDS:
        array = kinds[name]
        bits = array if array.dtype == np.uint32 else array.astype(np.float32).view(np.uint32)
        words.append(bits.ravel())
    return inputs, np.concatenate(words)


def said(kind: str, **changed: np.ndarray) -> list[str]:
    inputs, words = buffer(**changed)
    assert words.nbytes == shown.buffer_bytes(PROBLEM)
    return shown.faults(PROBLEM, inputs, words, kind, BC)


def right(kind: str) -> np.ndarray:
    _, words = buffer()
    place = shown.OUTSIDE_WORDS
    for name in shown.KINDS[: shown.KINDS.index(kind)]:
        place += int(np.prod(shown.shapes(PROBLEM)[name]))
    shape = shown.shapes(PROBLEM)[kind]
    return words[place : place + int(np.prod(shape))].reshape(shape).copy()


@pytest.mark.parametrize("kind", shown.KINDS)
def test_what_is_right_has_no_faults(kind):
    assert said(kind) == []


@pytest.mark.parametrize("kind", shown.KINDS)
def test_one_wrong_element_is_found_and_named(kind):
    bits = right(kind)
    row, column = bits.shape[0] - 1, bits.shape[1] - 1
    values = bits.view(np.float32)
    values[row, column] = values[row, column] * 1.25 + 0.25
    (words, *_) = said(kind, **{kind: bits})
    assert f"of {kind} are wrong" in words and (f"row {row}" in words)


def test_each_tile_of_P_may_refer_to_a_maximum_of_its_own_and_to_no_two():
    tiles = right("P").view(np.float32)
    tiles[:, BC:] *= 32.0
    assert said("P", P=tiles) == []
    tiles[:, BC + 1] *= 2.0
    wrong = said("P", P=tiles)
    assert "of P are wrong" in wrong[0] and "whichever maximum" in wrong[1]


def test_missing_elements_are_counted_and_placed():
    bits = right("S")
    bits[4:, :] = shown.NOTHING
    (words,) = said("S", S=bits)
    assert words == "64 of 128 elements of S are not shown: the first is row 4, column 0, all are in rows 4 to 7"
    bits[:] = shown.NOTHING
    (words,) = said("S", S=bits)
    assert words.startswith("S is not shown: call show_S")


def test_two_values_for_one_element_are_a_fault():
    bits = right("K")
    bits[2, 3] = shown.VARIOUS
    (words,) = said("K", K=bits)
    assert "shown with more than one value" in words and "row 2, column 3" in words


def test_a_place_outside_is_named():
    inputs, words = buffer()
    kind = shown.KINDS.index("S")
    words[2 * kind : 2 * kind + 2] = 8, 5
    (said,) = shown.faults(PROBLEM, inputs, words, "S", BC)
    assert said == "show_S is called for row 8, column 5: S has 8 x 16 elements"


def test_usual_mistakes_are_guessed():
    scaled = right("S").view(np.float32) * np.float32(PROBLEM.scale)
    assert "before it is scaled" in said("S", S=scaled)[1]
    base_2 = right("log_sum_exp").view(np.float32) / np.float32(np.log(2))
    assert "logarithm to base 2" in said("log_sum_exp", log_sum_exp=base_2)[1]


# ---- the commands ----


@pytest.fixture
def judged(monkeypatch):
    """Kernels whose parts are right by name in a comment: // right: tiles scores"""

    def fake(one, text, *others):
        passed = f" {one.name}" in text.partition("// right:")[2].splitlines()[0]
        judgement = Judgement(
            (Finding("builds", True), Finding("correct", passed, () if passed else ("wrong at B=1",)))
        )
        words = () if passed else ("wrong",)
        return whole.Part(one, passed, words, judgement=judgement if one.name == WHOLE else None)

    monkeypatch.setattr(whole, "_part", fake)
    monkeypatch.setattr(whole, "_whole", lambda page, one, text, line: fake(one, text))


def write(right: str) -> None:
    file = blank.page(6).file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(blank.skeleton(blank.page(6)) + f"// right: {right}\n")


def test_new_writes_once_and_never_over_a_file(capsys, places):
    assert command.new("6", "") == 0
    file = places / "work/06/kernel.cu"
    assert "about 170 minutes" in capsys.readouterr().out and file.exists()
    file.write_text("mine")
    with pytest.raises(FlashLadderError, match="exists, and stays as it is. KERNEL="):
        command.new("6", "")
    assert file.read_text() == "mine"


def test_the_whole_is_not_given():
    with pytest.raises(FlashLadderError, match="nothing left to write"):
        command.new("6", "", WHOLE)


def test_check_tells_part_by_part_and_keeps_what_is_right(judged, capsys):
    write("tiles")
    assert command.check("6", "") == 1
    printed = capsys.readouterr().out
    assert "tiles, Q, K and V in shared memory: right" in printed and "scores, S = QKᵀ in registers: wrong" in printed
    assert "whole, O: wrong numbers" in printed and "1 of 4 parts are right. Next: scores" in printed
    assert set(done.everything()) == {"cp_async/blank page/tiles"}
    assert command.check("6", "", "tiles") == 0 and command.check("6", "", "scores") == 1
    write("whole")
    assert command.check("6", "") == 0
    assert "by your own hand" in capsys.readouterr().out
    assert len(done.everything()) == 4


def test_what_was_given_is_not_kept_as_done(judged):
    page = blank.page(6)
    page.file.parent.mkdir(parents=True)
    page.file.write_text(blank.skeleton(page, "tiles") + "// right: tiles scores\n")
    command.check("6", "")
    assert set(done.everything()) == {"cp_async/blank page/scores"}


def test_check_without_a_file_or_an_entry_says_what_to_do(judged, places):
    with pytest.raises(FlashLadderError, match="does not exist: `make new STAGE=06` writes it"):
        command.check("6", "")
    with pytest.raises(FlashLadderError, match="`make new STAGE=06 KERNEL=.*` writes it"):
        command.check("6", str(places / "my.cu"))
    (places / "my.cu").write_text("__global__ void flash_kernel() {}")
    with pytest.raises(FlashLadderError, match="flash_forward is not in it.*make new STAGE=06"):
        command.check("6", str(places / "my.cu"))


def test_calls_in_comments_do_not_count_as_shown():
    part = whole._part(blank.page(6).subgoal("scores"), "// show_S(params, 0, 0, x);\n", None)
    assert not part.begun and part.summary == "not shown yet (show_S)"
