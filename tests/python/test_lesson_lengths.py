"""Lessons stay short enough to be read: words of cards, core paths and notes, and the minutes that a lesson says."""

import dataclasses
import re

import pytest

pytest.importorskip("matplotlib")

from flashladder.core.paths import ROOT  # noqa: E402
from flashladder.ladder import stages  # noqa: E402
from flashladder.lessons import lengths, notebook_format, sections  # noqa: E402

STAGES = stages.all_parts()
NOTEBOOKS = {file.stem for file in notebook_format.files()}


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_lesson_is_short(stage):
    faults = lengths.of(stage).faults()
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_card_says_how_long_the_lesson_takes(stage):
    card = (stage.folder / "README.md").read_text()
    assert re.findall(r"\*\*Lesson:\*\*[^,]*,\s(\d+)\sminutes", card) == [str(stage.minutes)]


@pytest.mark.parametrize("stage", [one for one in STAGES if one.name in NOTEBOOKS], ids=lambda stage: stage.name)
def test_each_section_says_how_long_it_takes(stage):
    (file,) = notebook_format.files([stage.name])
    faults = sections.faults(notebook_format.load(file)["cells"])
    assert not faults, f"{file.relative_to(ROOT)}: " + "\n".join(faults)


def test_notes_are_short():
    counted = {file.name: lengths.words(file.read_text()) for file in lengths.notes()}
    assert not {name: number for name, number in counted.items() if number > lengths.MOST["notes"]}


def test_the_whole_ladder_can_be_read():
    counted, limit = lengths.everything(), lengths.MOST["everything"]
    assert counted <= limit, f"cards, notebooks and notes have {counted:,} words of prose together, more than {limit:,}"


@pytest.mark.parametrize(
    "text, number",
    [
        ("Three short words.", 3),
        ("A [link of words](page.md#a-b-c) and `some code` here -", 7),
        ("Before.\n\n```cpp\nint x = 1;\n```\n\nAfter.", 2),
        ("Before.\n\n<!-- results: table card -->\nMany words here\n<!-- end results -->\n\nAfter.", 2),
        ("| a | b |\n| --- | --- |\n| c | d |\n\nBelow it.", 2),
        ("A question?\n\n<details><summary>Answer</summary>\n\nIt is folded.\n</details>", 2),
        ("![a picture in words](x.svg)\n\n<!-- a comment -->\nOne.", 1),
        ("## A heading (5 min)\n\nB = 4 · 16", 7),
    ],
)
def test_words_of_prose(text, number):
    assert lengths.words(text) == number


def test_what_is_too_long_is_told_with_its_file_and_limit():
    stage = stages.get(5)
    short = lengths.Lengths(stage, card=600, core=1_500, code_cells=12, folded=9_000, notes=0, minutes=40)
    assert dataclasses.replace(short, stage=_with_minutes(stage, 40)).faults() == []
    long = dataclasses.replace(short, stage=_with_minutes(stage, 45), card=601, core=1_501, code_cells=13)
    card, core, cells, minutes = long.faults()
    assert card == "stages/05_swizzle/README.md has 601 words of prose; a card has at most 600"
    assert core.startswith('notebooks/05_swizzle.ipynb has 1,501 words of prose before "Going deeper"')
    assert "13 code cells" in cells and "at most 12" in cells
    assert minutes.endswith("its sections take 40 minutes together; stage.toml says 45")
    hopper = dataclasses.replace(short, stage=_with_minutes(stages.get("tma"), 40), card=800)
    assert hopper.faults() == [] and dataclasses.replace(hopper, card=801).faults()


def _with_minutes(stage, minutes):
    return dataclasses.replace(stage, data={**stage.data, "minutes": minutes})


def cells_of(*headings: str) -> list[dict]:
    return [{"cell_type": "markdown", "source": text} for text in ("# Title", *headings)]


GOOD = [*(f"## {title} (5 min)" for title in sections.CORE), f"## {sections.DEEPER}"]


@pytest.mark.parametrize(
    "headings, words",
    [
        (GOOD[:-1], "missing: Going deeper"),
        ([*GOOD, "## Next"], "not among them: Next"),
        ([GOOD[1], GOOD[0], *GOOD[2:]], "the order differs"),
        (["## Where we are", *GOOD[1:]], 'write "## Where we are (5 min)"'),
        ([f"Text.\n\n{GOOD[0]}", *GOOD[1:]], '"## Where we are" stands inside a cell'),
    ],
)
def test_wrong_sections_are_told(headings, words):
    assert words in " ".join(sections.faults(cells_of(*headings)))


def test_right_sections_have_no_fault_and_their_minutes_are_summed():
    cells = cells_of(GOOD[0] + "\n\n```\n## in code\n```", *GOOD[1:], "### more")
    assert sections.faults(cells) == [] and sections.minutes(cells) == 5 * len(sections.CORE)
    assert sections.core(cells) == cells[: 1 + len(sections.CORE)]
