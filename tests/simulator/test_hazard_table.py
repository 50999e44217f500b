"""The page's table of hazards has every kind once, and quotes what the examples say."""

import re
from pathlib import Path

import pytest
from hazard_table import ROWS, kinds, message, on_a_gpu, ran, said, written

pytestmark = pytest.mark.simulator_only


def rows_of_the_page():
    """{kind: its line}"""
    lines = written().splitlines()[2:]
    return {line.split("`")[1]: line for line in lines}


def test_every_kind_has_a_row():
    assert sorted(row.kind for row in ROWS) == sorted(kinds())
    assert list(rows_of_the_page()) == [row.kind for row in ROWS]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.kind)
def test_the_page_quotes_what_the_example_says(row):
    assert said(row)["kind"] == row.kind
    line = rows_of_the_page()[row.kind]
    assert f"`` {message(row)} ``" in line, "python tests/simulator/hazard_table.py --write"
    assert line.endswith(f"| {on_a_gpu(row)} |") and f"`{row.program}`" in line


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.kind)
def test_a_title_comes_before_the_message(row):
    place = f"{Path(said(row)['file']).name}:{said(row)['line']}"
    assert re.search(rf"^warpsim: (note: )?[a-z][\w -]+ at {re.escape(place)}$", ran(row).stderr, re.M), ran(row).stderr
