"""Writes what a service is given so that it grades with this project: Gradescope's autograder, Classroom 50's.

Both hold solutions and hidden seeds, or need them: docs/instructors.md says who may see what.
"""

import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

from flashladder.classroom.assignment import Assignment
from flashladder.classroom.closure import closure
from flashladder.classroom.handout import FILES, TREES
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, headers
from flashladder.ladder import stages

# What runs there; what these import comes with them.
PROGRAMS = (
    "flashladder.classroom.hosted",
    "flashladder.classroom.grading",
    "flashladder.classroom.device_worker",
    "flashladder.building.bootstrap",
    "flashladder.running.worker",
)
_ANY_DATE = (2000, 1, 1, 0, 0, 0)  # the same files give the same archive

_SETUP = """#!/usr/bin/env bash
# Gradescope runs this once, as root, when it makes the autograder's image.
set -euo pipefail
apt-get update
apt-get install -y --no-install-recommends python3 python3-venv python3-pip g++ make git bubblewrap util-linux
cd /autograder/source
python3 -B common/python/flashladder/building/bootstrap.py .venv
.venv/bin/python -m flashladder.classroom.hosted prepare assignment.toml
"""

_RUN = """#!/usr/bin/env bash
# Gradescope runs this for each submission. Without results.json it tells the instructor that the autograder failed.
set -euo pipefail
cd /autograder/source
.venv/bin/python -m flashladder.classroom.hosted gradescope assignment.toml /autograder/submission \\
    /autograder/results/results.json
"""

_AUTOGRADER = '''"""Classroom 50's autograder for {title}.

The grader is on the runner (FLASHLADDER_HOME), not in this bundle: students can read the bundle, and the grader has the
solutions.
"""

import os
import subprocess
import sys
from pathlib import Path

home = os.environ.get("FLASHLADDER_HOME")
if not home:
    sys.exit("FLASHLADDER_HOME is not set: this needs a runner of yours with FlashLadder on it (docs/instructors.md).")
python, assignment = Path(home, ".venv/bin/python"), Path(home, "docs/assignments/{name}.toml")
here = Path.cwd()
grade = [python, "-m", "flashladder.classroom.hosted", "classroom50", assignment, here, here / "result.json"]
sys.exit(subprocess.run(grade).returncode)
'''


def gradescope(assignment: Assignment, file: Path) -> Path:
    """Writes the autograder's zip: setup.sh, run_autograder, and of this project what grades."""
    with zipfile.ZipFile(file, "x", zipfile.ZIP_DEFLATED) as archive:

        def add(name: str, data: bytes, mode: int = 0o644) -> None:
            member = zipfile.ZipInfo(name, _ANY_DATE)
            member.external_attr = (stat.S_IFREG | mode) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, data)

        add("setup.sh", _SETUP.encode(), 0o755)
        add("run_autograder", _RUN.encode(), 0o755)
        add("assignment.toml", assignment.source.encode())
        for path in _grader(assignment):
            add(str(path.relative_to(ROOT)), path.read_bytes())
    return file


def _grader(assignment: Assignment) -> list[Path]:
    """The project's files that grade this assignment, solutions among them."""
    files = {ROOT / name for name in (*FILES, "pyproject.toml", "README.md")} | set(headers())
    for tree, kinds in TREES.items():
        files |= {file for file in (ROOT / tree).rglob("*") if file.suffix in kinds and file.is_file()}
    files |= set(closure(*PROGRAMS).values())
    for number in sorted(_with_those_kept(assignment.stages)):
        folder = stages.get(number).folder
        files |= {folder / "kernel.cu", *headers(folder)}
        files |= {folder / name for name in ("stage.toml", "exercises.toml", "mistakes.toml")}
    return sorted(file for file in files if file.is_file() and file.is_relative_to(ROOT))


def _with_those_kept(numbers: tuple[int, ...]) -> set[int]:
    """And the stages whose expectations theirs name (`keeps`)."""
    found, todo = set(), list(numbers)
    while todo:
        number = todo.pop()
        if number not in found:
            found.add(number)
            todo += [stages.get(name.partition(".")[0]).number for name in stages.get(number).data.get("keeps", [])]
    return found


def classroom50(assignment: Assignment, file: Path) -> Path:
    """Writes autograder.py for CLASSROOM/autograders/ASSIGNMENT/ of the class's classroom50 repository."""
    with open(file, "x") as opened:
        opened.write(_AUTOGRADER.format(title=assignment.title, name=assignment.name))
    return file


SERVICES: dict[str, tuple[str, Callable[[Assignment, Path], Path]]] = {
    "gradescope": ("autograder.zip", gradescope),
    "classroom50": ("autograder.py", classroom50),
}


def write(service: str, assignment: Assignment, folder: Path) -> Path:
    """Writes the service's file into the folder. FlashLadderError where it exists."""
    if service not in SERVICES:
        raise FlashLadderError(f"FOR={service}: choose {' or '.join(SERVICES)}.")
    name, make = SERVICES[service]
    file = folder / name
    if os.path.lexists(file):
        raise FlashLadderError(f"{file} exists, and nothing is written over it: name another folder by OUT=folder.")
    folder.mkdir(parents=True, exist_ok=True)
    return make(assignment, file)
