"""A made-up class, graded by the real grader: solutions have all points, stubs none, everything else loses some."""

import csv

import pytest
import synthetic

from flashladder.building import build
from flashladder.classroom import assignment, batch, hosted, isolation, pool
from flashladder.core.errors import FlashLadderError


@pytest.fixture
def level():
    try:
        return isolation.choose()
    except FlashLadderError as error:
        pytest.skip(str(error).splitlines()[0])


@pytest.mark.long
def test_a_made_up_class_has_every_kind_and_no_two_alike(tmp_path):
    one = assignment.get("swizzle")
    kinds = synthetic.write(one, 20, tmp_path / "class")
    assert len(kinds) == 20 and {kind.partition(" (")[0] for kind in kinds.values()} >= {
        synthetic.SOLVED, synthetic.STUB, synthetic.ENDLESS, "does not compile"}  # fmt: skip
    made = list(synthetic.submissions(one, 20))
    assert len({tuple(texts.values()) for _, _, texts in made}) == 20
    assert {name: kind for name, kind, _ in made} == kinds, "the same each time"


@pytest.mark.long
def test_solutions_have_all_points_stubs_none_and_the_rest_lose_some(level, tmp_path):
    one = assignment.get("swizzle")
    build.build(hosted.TARGETS)
    kinds = synthetic.write(one, 8, tmp_path / "class", once=True)
    assert len(kinds) == 5
    summary = batch.grade_class(one, tmp_path / "class", tmp_path / "out", pool.local(2))
    assert not summary.ungraded and not summary.refused, summary.words()
    rows = {row["id"]: row for row in csv.DictReader((tmp_path / "out/class.csv").open())}
    for name, kind in kinds.items():
        column = kind[kind.index("(") + 1 : -1]
        most = next(item.points for item in one.items if column.endswith(item.name))
        got, lost = float(rows[name][column]), 100 - float(rows[name]["points"])
        if kind.startswith(synthetic.SOLVED):
            assert (got, lost) == (most, 0), kind
        elif kind.startswith((synthetic.STUB, synthetic.ENDLESS, "does not compile")):
            assert (got, lost) == (0, most), kind
        else:
            assert got < most, f"{kind} lost nothing"
