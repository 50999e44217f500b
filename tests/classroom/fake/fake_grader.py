"""A grader for tests: what a kernel's text says becomes of it. One module, found by PYTHONPATH, used as a real one is.

correct 0.5      half of each exercise's points
die 2            the process dies the first 2 times (counted by a file named in FAKE_GRADER_COUNTS)
sleep 3          seconds
says WORDS       what is said about what was lost
wrong            leaves an output to be drawn
"""

import json
import os
import re
import signal
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from flashladder.core.problem import Problem


@dataclass(frozen=True)
class Grade:
    stage: int
    exercises: list
    refused: str = ""
    isolation: str = "none: a test"
    budgets: dict = field(default_factory=dict)
    hashes: dict = field(default_factory=dict)
    first_wrong: str = ""
    hazards: list = field(default_factory=list)
    technique: list = field(default_factory=list)


def grade(assignment, kernel: Path, scratch: Path, isolated: str) -> Grade:
    text = kernel.read_text()

    def said(word: str, default: str = "") -> str:
        found = re.search(rf"^{word} ?(.*)", text, re.M)
        return found[1] if found else default

    time.sleep(float(said("sleep", "0")))
    _die(said("die"), kernel.name + text)
    share, words = float(said("correct", "1")), said("says", "not right")
    if "wrong" in text:
        _leave_wrong(scratch)
    lost = share < 1
    exercises = []
    for item in assignment.items:
        check = {"name": "correct: whole tiles", "passed": not lost, "points": share * item.points, "most": item.points}
        one = {"name": item.name, "points": share * item.points, "most": item.points}
        exercises.append(one | {"checks": [check | {"words": words if lost else ""}]})
    hazards = [{"kind": "shared_race", "line": 7, "exercise": "tile_offset", "message": words}] if lost else []
    first = f"O[0, 1, 2, 3] = 0, {words}" if lost else ""
    return Grade(assignment.stages[0], exercises, first_wrong=first, hazards=hazards, technique=[words] if lost else [])


def _die(times: str, name: str) -> None:
    """Like a machine that runs out of memory."""
    if not times:
        return
    folder = Path(os.environ["FAKE_GRADER_COUNTS"])
    marks = len(list(folder.glob("*")))
    if marks < int(times):
        (folder / str(marks)).touch()
        os.kill(os.getpid(), signal.SIGKILL)


def _leave_wrong(scratch: Path) -> None:
    problem = Problem(B=1, Hq=2, Nq=16, d_head=64)
    inputs = problem.random(1)
    output = np.zeros(problem.shape("Q"), np.uint16)
    np.savez(scratch / "wrong.npz", problem=json.dumps(asdict(problem)), O=output, **inputs)
