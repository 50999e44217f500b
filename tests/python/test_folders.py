"""Every folder with more than three files says what belongs there."""

import ast
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from flashladder.core.paths import ROOT

FEW = 3
# Their names say it: a stage's parts, which docs/architecture.md lists; cases beside the tests that read them.
NAMED = ("stages/*/*", "tests/*/*", "tests/*/*/*", "tests/*/*/*/*", ".github/*")


def folders() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no git repository: the list of the project's files is git's")
    counts = Counter(Path(name).parent.as_posix() for name in listed.stdout.splitlines())
    return sorted(name for name, count in counts.items() if count > FEW and name != ".")


def says(folder: Path) -> bool:
    """A README, a row of one above it, or a docstring of the package or of its tests' fixtures."""
    above = [parent / "README.md" for parent in folder.parents if parent != ROOT and parent.is_relative_to(ROOT)]
    row = f"| `{folder.name}/` |"
    if (folder / "README.md").exists() or any(one.exists() and row in one.read_text() for one in above):
        return True
    modules = [folder / name for name in ("__init__.py", "conftest.py")]
    return any(ast.get_docstring(ast.parse(one.read_text())) for one in modules if one.exists())


def test_every_folder_says_what_belongs_there():
    silent = [name for name in folders() if not any(Path(name).match(one) for one in NAMED) and not says(ROOT / name)]
    assert not silent, f"say in three lines of README.md what belongs in: {', '.join(silent)}"
