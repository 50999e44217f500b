"""A class of two hundred hostile submissions and two honest ones: each ends, the honest ones have their points, and
nothing is left behind."""

import csv
import json
import shutil
import tempfile
from pathlib import Path

import pytest
from graded import assignment_text
from hostile import EXERCISE, HONEST, STAGE, write
from shares import share

from flashladder.classroom import assignment, batch, pool, task

HANDS = 20  # into which the submissions are dealt, a class of each


@pytest.fixture
def small_class():
    text = assignment_text(f'stage = {STAGE}\nname = "{EXERCISE}"\npoints = 100')
    return assignment.parse("hostile", text)


def graded(one, folder: Path, out: Path, monkeypatch, tmp_path) -> dict[str, dict]:
    """Rows of class.csv by name. A submission whose process takes a quarter of an hour is none that ends: on a machine
    of its own the slowest takes less than a minute, by the limits of device_code.COMPILING and RUNNING."""
    original = task.run
    monkeypatch.setattr(task, "run", lambda todo: original(todo, 900))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    summary = batch.grade_class(one, folder, out, pool.local(2))
    assert not summary.ungraded, "\n".join(summary.words())
    assert not summary.retried, "\n".join(summary.words())
    return {row["name"]: row for row in csv.DictReader((out / "class.csv").open())}


def children() -> set[str]:
    """The processes that this one has started and that have not ended, as their numbers."""
    return {child for file in Path("/proc/self/task").glob("*/children") for child in file.read_text().split()}


BEFORE = set()  # of other tests in this process, such as the runner of kernels


@pytest.fixture(autouse=True)
def started_before():
    BEFORE.clear()
    BEFORE.update(children())


def nothing_is_left(tmp_path: Path) -> None:
    assert not list((tmp_path / "temporary").iterdir())
    assert not children() - BEFORE


def honest_have_their_points(rows: dict[str, dict]) -> None:
    solution, stub = (rows[name] for name in HONEST)
    assert (solution["points"], stub["points"]) == ("100", "0"), (solution, stub)


EACH = [pytest.param(hand, id=str(hand), marks=pytest.mark.long) for hand in range(HANDS)]


@pytest.mark.parametrize("hand", share(EACH, HANDS))
def test_two_hundred_hostile_submissions_cost_the_others_nothing(hand, small_class, level, tmp_path, monkeypatch):
    names = sorted(write(tmp_path / "all"))
    assert len(names) >= 200
    for number, name in enumerate(names):
        place = tmp_path / "all" / name
        if number % HANDS == hand:
            continue
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()
    names = names[hand::HANDS]
    rows = graded(small_class, tmp_path / "all", tmp_path / "out", monkeypatch, tmp_path)
    assert len(rows) == len(names) + len(HONEST)
    honest_have_their_points(rows)
    # What says the solution's lines between the marks has its points, whatever stands outside of them.
    taken = {name for name in rows if name.startswith("outside_") or name.startswith("archive_")}
    for name, row in rows.items():
        if name not in HONEST and name not in taken:
            assert float(row["points"]) < 100, f"{name} has all points: {row}"
    archives = {name: row for name, row in rows.items() if name.startswith("archive_")}
    refused = {name for name, row in archives.items() if row["points"] == "0" and row["remark"]}
    must = {"archive_dictionary.tar.xz", "archive_bomb.zip", "archive_fifo.tar"} & rows.keys()
    assert len(refused) >= 35 // HANDS and refused >= must
    for file in (tmp_path / "out/students").glob("*/results.json"):
        assert "root:x:0" not in json.dumps(json.loads(file.read_text())), file
    nothing_is_left(tmp_path)
