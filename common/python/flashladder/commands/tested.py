"""Which tests passed on which commit: build/tests.json, by whole runs of `make test`, for `make release`.

And with which simulator its own tests passed. The long ones build it anew for other CPUs and with sanitizers, and fuzz
it; what they say depends on it and its tests alone. So `make test-simulator` runs all and writes
tests/simulator/passed.toml. As long as its hash holds, the long tests leave them out, and the quick ones try a few.
"""

import hashlib
import json
import os
import subprocess
from pathlib import Path

from flashladder.core.paths import ROOT, build_directory
from flashladder.core.toml import tomllib

PARTS = {"quick": {"quick"}, "long": {"long"}, "all": {"quick", "long"}}


def git(root: Path, *words: str) -> str | None:
    """What git prints, without white space around it; None where it fails or is not there."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def commit_of(root: Path) -> str | None:
    """The commit of a folder without changes; None where there are changes, or no git."""
    return None if git(root, "status", "--porcelain") != "" else git(root, "rev-parse", "HEAD")


def _file() -> Path:
    return build_directory() / "tests.json"


def passed(root: Path = ROOT) -> set[str]:
    """Of "quick" and "long", which passed on the commit that is checked out, without changes."""
    try:
        state = json.loads(_file().read_text())
    except (OSError, ValueError):
        return set()
    return set(state["passed"]) if state.get("commit") and state["commit"] == commit_of(root) else set()


def remember(which: str, status: int, before: str | None, root: Path = ROOT) -> None:
    """After a run of a key of PARTS; before: commit_of() when it began. Changed meanwhile, it counts for nothing."""
    if before and before == commit_of(root):
        now = passed(root) | PARTS[which] if status == 0 else passed(root) - PARTS[which]
        _file().parent.mkdir(parents=True, exist_ok=True)
        _file().write_text(json.dumps({"commit": before, "passed": sorted(now)}) + "\n")


# ---- the simulator's tests ----

AGAIN = "FLASHLADDER_AGAIN"  # where it is set in the environment, they run in any case
PASSED = "tests/simulator/passed.toml"
OF_THE_SIMULATOR = ("tests/simulator", "tests/fuzz")
# What is built, the tests and programs that are run on it, and what they start.
COUNTS = (
    "common/simulator", "common/include/command_line.h", "common/include/json_writer.h", *OF_THE_SIMULATOR,
    "tests/conftest.py", "tests/shares.py", "tests/of_another_build", "common/python/flashladder/commands/fuzz.py",
)  # fmt: skip


def of_the_simulator(root: Path = ROOT) -> str:
    """A hash of all sources that these tests depend on; texts are none."""
    found = [file for one in COUNTS for file in ((root / one).rglob("*") if (root / one).is_dir() else [root / one])]
    digest = hashlib.sha256()
    for file in sorted(found):
        name = file.relative_to(root).as_posix()
        if file.is_file() and name != PASSED and file.suffix != ".md" and "__pycache__" not in file.parts:
            data = file.read_bytes()
            digest.update(f"{name} {len(data)} ".encode() + data)
    return digest.hexdigest()


def why_left_out(root: Path = ROOT) -> str:
    """Why these tests need not run: they passed with this very simulator. "" where they must."""
    try:
        same = tomllib.loads((root / PASSED).read_text())["sha256"] == of_the_simulator(root)
    except (OSError, ValueError, KeyError):
        return ""
    if not same or os.environ.get(AGAIN):
        return ""
    return f"passed with this simulator ({PASSED} has its hash); `make test-simulator` runs it again"


def remember_simulator(before: str, root: Path = ROOT) -> bool:
    """After all of them passed; before: of_the_simulator() when they began. False where it has changed meanwhile."""
    if before != of_the_simulator(root):
        return False
    (root / PASSED).write_text(
        "# With which simulator, and tests of it, these passed; written by `make test-simulator`.\n"
        f'sha256 = "{before}"\n'
    )
    return True
