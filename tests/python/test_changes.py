"""Planted mistakes and variants are edits of a stage's source: they fit, and change something."""

import re
from dataclasses import replace

import pytest

from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import STAGES
from flashladder.ladder import ablations, change, mistakes, stages

EVERY = stages.every_stage()
SWIZZLE = stages.get(5)
LOOP = "for (int j = 0; j < tiles; ++j) {"


def bare(text: str) -> str:
    """A source without comments and blanks."""
    return " ".join(re.sub("//.*", "", text).split())


def example(*edits: tuple[str, str], stage: stages.Stage = SWIZZLE) -> mistakes.Mistake:
    return mistakes.Mistake(stage, "example", edits, "results", "An example.")


@pytest.mark.parametrize("stage", EVERY, ids=lambda stage: stage.name)
def test_every_mistake_fits_its_source_and_no_two_are_the_same(stage):
    by_result = {bare(stage.source.read_text()): "the stage as it is"}
    for one in mistakes.mistakes(stage):
        other = by_result.setdefault(bare(one.text()), one.name)
        assert other == one.name, f"{one.id} comes to the same as {other}"


@pytest.mark.parametrize("stage", EVERY, ids=lambda stage: stage.name)
def test_a_stage_has_mistakes_to_show_and_mistakes_for_its_tests(stage):
    shown, unnoticed = mistakes.of_lesson(stage), [one for one in mistakes.mistakes(stage) if one.lives]
    assert len(shown) >= 3, f"stage {stage.id} shows {len(shown)}: describe by what more of mistakes.toml are caught"
    must_die = [one for one in mistakes.mistakes(stage) if one not in unnoticed]
    assert len(must_die) >= 10, f"stage {stage.id} has {len(must_die)}: add some to its mistakes.toml"
    missing = {"results", "hazard"} - {one.kind for one in must_die}
    assert not missing, f"stage {stage.id} has none of the class {', '.join(missing)}"


def test_those_that_are_named_are_shown_else_those_of_the_lesson(monkeypatch, capsys):
    monkeypatch.setattr(mistakes, "run", lambda one: mistakes.Verdict(True, "verification", "words"))
    hidden = next(one for one in mistakes.mistakes(SWIZZLE) if not one.caught_by)
    assert mistakes.show(SWIZZLE, [hidden.name]) == 0
    assert capsys.readouterr().out == f"{hidden.name}: {hidden.mistake}\n  caught by verification:\n  words\n\n"
    mistakes.show(SWIZZLE)
    shown = capsys.readouterr().out
    assert shown.count("caught by") == len(mistakes.of_lesson(SWIZZLE)) and hidden.mistake not in shown
    with pytest.raises(FlashLadderError, match=f"no mistake 'none'. It has: .*, {hidden.name}"):
        mistakes.show(SWIZZLE, ["none"])


def test_variants_fit_their_sources_and_no_two_are_the_same():
    found = ablations.ablations()
    assert {one.stage.folder / one.FILE for one in found} == set(STAGES.glob(f"*/{ablations.Ablation.FILE}"))
    texts = [bare(one.text()) for one in found]
    assert len(set(texts)) == len(texts) and not {bare(one.stage.source.read_text()) for one in found} & set(texts)


def test_edits_fit_whatever_changes_beside_them(tmp_path, monkeypatch):
    """In whichever order they stand; each by the source's own text, and not by what another has put there."""
    edits = ("int tiles = params.Nkv / Bc;", f"int tiles = 3;  // {LOOP}"), (LOOP, "for (int j = 1; j < tiles; ++j) {")
    before = example(*edits).difference()
    assert example(*reversed(edits)).difference() == before
    assert [line for line in before if line.startswith(("+", "-"))][2:] == [
        "-    const int tiles = params.Nkv / Bc;  // of K and V",
        f"-    {LOOP}",
        f"+    const int tiles = 3;  // {LOOP}  // of K and V",
        "+    for (int j = 1; j < tiles; ++j) {",
    ]
    kernel = tmp_path / "kernel.cu"
    kernel.write_text("// A line more.\n" + SWIZZLE.kernel.read_text().replace("  // of K and V", ""))
    monkeypatch.setattr(stages.Kernel, "source", kernel)
    assert "    const int tiles = 3;  // for (int j = 0; j < tiles; ++j) {\n" in example(*edits).text()


def test_a_file_of_the_changed_source_is_the_sources_namesake():
    one = example((LOOP, "for (int j = 1; j < tiles; ++j) {"))
    assert one.source().name == "kernel.cu" and one.source().read_text() == one.text()
    lines = SWIZZLE.kernel.read_text().splitlines()
    assert lines[one.first_line() - 1].strip() == LOOP


def test_the_first_line_of_what_is_only_added_is_the_one_behind_it():
    one = example((f"    {LOOP}\n", f"    {LOOP}\n        __syncthreads();\n"))
    assert LOOP in SWIZZLE.kernel.read_text().splitlines()[one.first_line() - 2]


@pytest.mark.parametrize(
    "edits, words",
    [
        (
            [(LOOP, ""), ("no such\n    text", "")],
            "edit 2 of 2 does not fit {source}. Its text has to be there once, and is",
        ),
        ([("no such\n    text", "")], "is not there:\n    no such\n        text\n"),
        ([("__syncwarp();", "")], "is there more than once:\n    __syncwarp();\n"),
        ([("nothing", "")], "`git checkout {source}` takes the change back"),
        ([("", "more")], "is there more than once"),
        ([(LOOP, ""), ("< tiles; ++j) {", "")], "two edits share '< tiles; ++j) {{': make them one"),
    ],
)
def test_an_edit_that_does_not_fit_says_where_and_what_to_do(edits, words):
    with pytest.raises(FlashLadderError) as caught:
        example(*edits).text()
    said = str(caught.value)
    assert said.startswith("stages/05_swizzle/mistakes.toml, [example]: "), said
    assert words.format(source="stages/05_swizzle/kernel.cu") in said


HEAD = 'class = "results"\nmistake = "M."\n'
EDITS = 'edits = [["a", "b"]]'


@pytest.mark.parametrize(
    "entry, words",
    [
        (f'class = "results"\n{EDITS}', " lacks mistake."),
        (HEAD, " lacks edits."),
        (f'{HEAD}{EDITS}\nfate = "dies"', " has fate, which means nothing."),
        (f'class = "style"\nmistake = "M."\n{EDITS}', ": class 'style' is none of results, hazard, technique."),
        (f'{HEAD}{EDITS}\ncaught_by = "verification"', ": caught_by and message are there together, or neither."),
        (f'{HEAD}{EDITS}\nlives = "luck"', ": lives = 'luck' begins with none of equivalent."),
        (f'{HEAD}{EDITS}\nlives = "equivalent"', ": an equivalent says why, as in"),
        (f'{HEAD}edits = [["a", "b", 2]]', ": edits are pairs of texts"),
        (f"{HEAD}edits = []", ": edits are pairs of texts"),
        (f'{HEAD}edits = ["ab"]', ": edits are pairs of texts"),
    ],
)
def test_a_wrong_entry_says_what_is_wrong(tmp_path, entry, words):
    (tmp_path / "mistakes.toml").write_text(f"[example]\n{entry}\n")
    with pytest.raises(FlashLadderError) as caught:
        mistakes.mistakes(replace(SWIZZLE, folder=tmp_path))
    assert str(caught.value).startswith(f"stages/05_swizzle/mistakes.toml, [example]{words}"), caught.value


def test_what_is_no_toml_says_so_and_what_is_not_there_is_none(tmp_path):
    stage = replace(SWIZZLE, folder=tmp_path)
    assert mistakes.mistakes(stage) == [] and change.tables(stage, "ablations.toml", ()) == {}
    (tmp_path / "mistakes.toml").write_text("[example\n")
    with pytest.raises(FlashLadderError, match="^stages/05_swizzle/mistakes.toml: "):
        mistakes.mistakes(stage)
