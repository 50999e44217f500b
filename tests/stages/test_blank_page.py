"""Whole kernels from a blank page: the stage's own lines pass each part, a planted mistake in each fails it, and what a
page holds at first compiles and is not right. (`make check STAGE=06`; stages/NN_name/exercises.toml)"""

import re

import pytest
from chosen import chosen_stages
from shares import share

from flashladder.classroom import blank, whole
from flashladder.classroom.blank import WHOLE

PAGES = [blank.page(stage) for stage in chosen_stages() if blank.has_page(stage)]
# What is tried in `make test`: one page, and of its parts these; all of them: `make test-long`.
QUICK, QUICK_PARTS = 6, (None, "tiles")


def cases(named=lambda page: [None], of=1) -> list:
    """A case for each page, or for each page and each name that it gives; all but a few are long, and a share of them
    is tried."""
    found = [
        pytest.param(
            page,
            *([] if name is None else [name]),
            id="-".join(filter(None, [page.stage.id, name])),
            marks=() if page.stage.number == QUICK and name in QUICK_PARTS else pytest.mark.long,
        )
        for page in PAGES
        for name in named(page)
    ]
    return share(found, of)


def shown_parts(page: blank.Page) -> list[str]:
    return [one.name for one in page.subgoals[:-1]]


def given_parts(page: blank.Page) -> list[str]:
    return [one.name for one in page.subgoals[:-1]]


def judged(page: blank.Page, text: str, only: str = "") -> dict[str, whole.Part]:
    return {one.subgoal.name: one for one in whole.parts(page, text, "my.cu:{}".format, only)}


@pytest.mark.skipif(not PAGES, reason="the stages that are tested have no subgoals")
def test_there_are_pages():
    assert all(page.subgoals[-1].name == WHOLE for page in PAGES)
    # Of a kernel with a table of instances the whole is asked for at once.
    assert all(len(page.subgoals) >= 3 or "only_instance" in page.stage.data for page in PAGES)


@pytest.mark.long
@pytest.mark.parametrize("page", cases(of=6))
def test_the_stages_own_lines_pass_every_part(page):
    found = judged(page, blank.skeleton(page, WHOLE))
    assert list(found) == [one.name for one in page.subgoals]
    assert {name: one.words for name, one in found.items() if not one.passed} == {}
    assert found[WHOLE].judgement.passed


@pytest.mark.parametrize("page, name", cases(shown_parts, of=10))
def test_a_planted_mistake_fails_its_part_and_none_before_it(page, name):
    names = [one.name for one in page.subgoals]
    text = planted(page, name)
    for before in names[: names.index(name)]:
        assert judged(page, text, before)[before].passed, before
    found = judged(page, text, name)[name]
    assert not found.passed and found.begun and found.words
    assert any(f"of {kind} are" in words for kind in page.subgoal(name).shows for words in found.words), found.words
    # Nor does it race: what the calls that show it read is no fault of the kernel.
    assert found.summary == "wrong" and not any("race: " in words for words in found.words), found.words


# A barrier of stage 06 without which the numbers are right all the same, and a line that races then: of the whole
# kernel, and of a page on which nothing uses yet what is shown.
WITHOUT_BARRIER = {
    WHOLE: ("__syncwarp();  // the warp's rows are complete", "*reinterpret_cast<uint4 *>(to) ="),
    "tiles": ("__syncthreads();          // and so is", "ptx::cp_async_16(tile"),
}


@pytest.mark.skipif(not any(page.stage.number == QUICK for page in PAGES), reason="stage 06 is not tested")
@pytest.mark.long
@pytest.mark.parametrize("give", WITHOUT_BARRIER)
def test_a_hazard_fails_a_part_whose_numbers_are_right(give):
    page, (barrier, racing) = blank.page(QUICK), WITHOUT_BARRIER[give]
    text = blank.skeleton(page, give)
    assert text.count(barrier) == 1
    found = judged(page, text.replace(barrier, "//"), "tiles")["tiles"]
    assert not found.passed and found.summary == "right numbers, but with a hazard", found.words
    assert found.words and all(words.startswith("shared race: ") for words in found.words), found.words
    lines = {int(line) for words in found.words for line in re.findall(r"my\.cu:(\d+)", words)}
    assert any(racing in text.splitlines()[line - 1] for line in lines), found.words


@pytest.mark.long
@pytest.mark.parametrize("page", cases(of=8))
def test_a_planted_mistake_in_the_rest_fails_the_whole(page):
    text = planted(page, WHOLE)
    for part in shown_parts(page):
        assert judged(page, text, part)[part].passed, part
    found = judged(page, text, WHOLE)[WHOLE]
    assert not found.passed and found.summary.startswith("wrong numbers"), found.words


def planted(page: blank.Page, name: str) -> str:
    """The stage's own lines with the mistake of a subgoal."""
    text, mistake = blank.skeleton(page, WHOLE), page.subgoal(name).mistake
    assert text.count(mistake.before) == 1, f"{mistake.before!r} must stand once in the kernel"
    return text.replace(mistake.before, mistake.after)


@pytest.mark.long
@pytest.mark.parametrize("page", cases(of=2))
def test_an_empty_page_compiles_and_its_numbers_are_wrong(page):
    found = judged(page, blank.skeleton(page))
    assert [one.summary.split(" (")[0] for one in found.values()] == ["not shown yet"] * (len(found) - 1) + [
        "wrong numbers"
    ]
    assert found[WHOLE].judgement.built and "nothing is written to O" in found[WHOLE].words[0]


@pytest.mark.long
@pytest.mark.parametrize("page, name", cases(given_parts, of=10))
def test_what_is_given_is_right_and_the_rest_is_not_there(page, name):
    text = blank.skeleton(page, name)
    names = [one.name for one in page.subgoals]
    given = names[: 1 + names.index(name)]
    assert blank.given(text) == set(given)
    assert all(len(line) <= 120 for line in text.splitlines())
    assert f"// Yours: {names[len(given)]}." in text
    for part in names[:-1]:
        found = judged(page, text, part)[part]
        assert found.passed == (part in given) and found.begun == (part in given), (part, found.words)
