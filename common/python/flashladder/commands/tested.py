"""Which tests passed on which commit: build/tests.json, by whole runs of `make test`, for `make release`."""

import json
import subprocess
from pathlib import Path

from flashladder.core.paths import ROOT, build_directory

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
