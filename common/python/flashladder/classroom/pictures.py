"""Pictures of a report, from what the grader left in its scratch folder."""

import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from flashladder.classroom.text import one_line
from flashladder.core.problem import Problem
from flashladder.plot import errors
from flashladder.plot.packed import png
from flashladder.plot.swizzle import bank_grid
from flashladder.simulator.accesses import Access

DPI = 80


def draw(scratch: Path) -> dict[str, bytes]:
    """PNGs by name; of what the grader left alone.

    wrong.npz (problem: JSON of its fields; Q, K, V and O: bit patterns) gives "errors", the map of the first head that
    is wrong. accesses.json (a list of Access's fields) gives "banks", the access with the most wavefronts too many.
    """
    found = {}
    if (scratch / "wrong.npz").exists():
        found["errors"] = png(_errors(scratch / "wrong.npz"), DPI)
    if (scratch / "accesses.json").exists():
        accesses = [_access(one) for one in json.loads((scratch / "accesses.json").read_text())]
        shared = [one for one in accesses if one.space == "shared" and one.cost > one.ideal]
        if shared:
            found["banks"] = png(bank_grid(max(shared, key=lambda one: one.cost - one.ideal)), DPI)
    return found


def _access(fields: dict) -> Access:
    """The words in it came from a student: Matplotlib would take what stands between two $ for a formula."""
    words = {name: one_line(fields[name], 90).replace("$", r"\$") for name in ("file", "source")}
    return Access(**fields | words | {"addresses": tuple(fields["addresses"])})


def _errors(file: Path) -> Figure:
    with np.load(file) as saved:
        problem = Problem(**json.loads(str(saved["problem"])))
        inputs, output = {name: saved[name] for name in "QKV"}, saved["O"]
    return errors.error_map(problem, inputs, output)
