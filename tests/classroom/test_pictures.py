"""Pictures of a report, from what a grader left."""

import json
from dataclasses import asdict

import numpy as np

from flashladder.classroom import pictures
from flashladder.core.problem import Problem
from flashladder.simulator.accesses import Access

PNG = b"\x89PNG"
CONFLICT = Access(
    "kernel.cu", 7, "shared", "load", 4, 0, tuple(128 * lane for lane in range(32)), 32, 1, "x = tile[i];"
)


def leave(folder, *accesses: Access):
    (folder / "accesses.json").write_text(json.dumps([asdict(one) for one in accesses]))


def test_a_wrong_output_is_drawn_where_it_is_wrong(tmp_path):
    problem = Problem(B=2, Hq=2, Nq=16, d_head=64)
    inputs = problem.random(1)
    output = np.zeros(problem.shape("O"), np.uint16)
    np.savez(tmp_path / "wrong.npz", problem=json.dumps(asdict(problem)), O=output, **inputs)
    assert pictures.draw(tmp_path)["errors"].startswith(PNG)
    assert pictures.draw(tmp_path) == pictures.draw(tmp_path), "the same picture is the same file"


def test_the_access_with_the_most_conflicts_is_drawn(tmp_path):
    leave(tmp_path, CONFLICT)
    assert pictures.draw(tmp_path)["banks"].startswith(PNG)


def test_an_access_without_conflicts_is_no_picture(tmp_path):
    leave(tmp_path, Access("kernel.cu", 7, "shared", "load", 4, 0, tuple(range(0, 128, 4)), 1, 1, ""))
    assert pictures.draw(tmp_path) == {}
    (tmp_path / "accesses.json").unlink()
    assert pictures.draw(tmp_path) == {}


def test_a_students_source_is_no_formula(tmp_path):
    """Of Matplotlib's, where it would be refused, and nothing would be graded."""
    hostile = {"source": "int $x = $\\frac{; \x1b[31m" + "y" * 500, "file": "/a/$\\frac{$.cu"}
    leave(tmp_path, Access(**asdict(CONFLICT) | hostile))
    assert pictures.draw(tmp_path)["banks"].startswith(PNG)
