"""Each stage has a picture, and the file that its card shows is what the code draws."""

import pytest
from shares import drawn, kernels

pytest.importorskip("matplotlib")

from flashladder import plot  # noqa: E402
from flashladder.core.errors import FlashLadderError  # noqa: E402
from flashladder.core.paths import ROOT  # noqa: E402
from flashladder.ladder import stages  # noqa: E402
from flashladder.plot import cards, style  # noqa: E402

STAGES = stages.all_parts()
each_stage = pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
SMALLEST_TEXT = 9  # points: on a phone a figure of 5.2 inches is shown a fifth smaller than it is drawn


@each_stage
def test_every_stage_has_a_picture_on_its_card(stage):
    assert stage.slug in cards.names(), f"plot/cards has no picture of {stage.slug}"
    words = cards.words(stage.slug)
    assert len(words.split()) >= 8, f"{words!r} says too little for one who cannot see the picture"
    shown = " ".join((stage.folder / "README.md").read_text().split())
    assert f"![{' '.join(words.split())}](../../docs/pictures/{stage.slug}.svg)" in shown


SOON = drawn(kernels(), STAGES, 3)  # drawn by `make test`; the others by `make test-long`


@pytest.mark.parametrize(
    "stage", [pytest.param(one, id=one.name, marks=() if id(one) in SOON else pytest.mark.long) for one in STAGES]
)
def test_the_file_is_what_the_code_draws_and_readable_on_a_phone(stage, tmp_path):
    file, figure = cards.file_of(stage.slug), cards.card(stage.slug)
    assert file.exists(), f"{file.relative_to(ROOT)} is not there: `make results` writes it"
    assert cards.contents(file) == cards.contents(style.save(figure, tmp_path / "drawn.svg"))
    width, _ = figure.get_size_inches()
    assert width <= 5.5
    found = figure.findobj(lambda one: hasattr(one, "get_fontsize") and one.get_text().strip() and one.get_visible())
    assert found
    small = {one.get_text(): one.get_fontsize() for one in found if one.get_fontsize() < SMALLEST_TEXT}
    assert not small


def test_pictures_are_of_stages_that_there_are():
    slugs = {stage.slug for stage in STAGES}
    assert set(cards.names()) <= slugs
    assert {file.stem for file in cards.FOLDER.glob("*.svg")} <= slugs


def test_a_picture_that_there_is_not():
    with pytest.raises(FlashLadderError, match="no picture of a stage 'swizle'"):
        plot.card("swizle")


def figure(text, x=0.5):
    made = style.new_figure(3, 2, "A text in a frame")
    made.subplots().text(x, 0.5, text)
    return made


@pytest.fixture
def one_card(monkeypatch, tmp_path):
    """What the only card draws; its file lies in tmp_path."""
    drawn = {}
    monkeypatch.setattr(cards, "FOLDER", tmp_path)
    monkeypatch.setattr(cards, "names", lambda: ["one"])
    monkeypatch.setattr(cards, "card", lambda name: figure(**drawn))
    return drawn


def test_a_picture_is_written_again_when_it_changes_and_only_then(one_card, tmp_path):
    one_card |= {"text": "four banks", "x": 0.5}
    file = tmp_path / "one.svg"
    assert cards.write_all() == [file]
    before = file.read_bytes()
    one_card["x"] = 0.50001
    assert cards.write_all() == []
    assert file.read_bytes() == before
    one_card["x"] = 0.6
    assert cards.write_all() == [file]
    one_card["text"] = "five banks"
    assert cards.write_all() == [file]
    assert [one.name for one in tmp_path.iterdir()] == ["one.svg"]


def test_a_picture_has_its_texts_as_texts_and_no_date(tmp_path):
    file = style.save(figure("four banks"), tmp_path / "one.svg")
    size, texts = cards.contents(file)
    assert size == (216, 144)
    assert "four banks" in texts
    source = file.read_text()
    assert "sans-serif" in source
    assert "<dc:date>" not in source
    assert "Matplotlib v" not in source
