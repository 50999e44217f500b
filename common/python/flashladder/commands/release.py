"""make release VERSION=...: says all that keeps a release back; else writes the version, the changelog and the results
of this version, commits and tags. Nothing is pushed."""

import datetime
import re
import subprocess
import sys
from pathlib import Path

from flashladder.commands import docs, testing
from flashladder.commands.testing import git
from flashladder.core.console import plural, say
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.measuring import recorded

BRANCH = "main"
# Where the version stands: file, what finds it as group 2.
PLACES = (
    ("pyproject.toml", r'^(version = ")([^"]+)'),
    ("common/pyproject.toml", r'^(version = ")([^"]+)'),
    ("CMakeLists.txt", r"^(project\(FlashLadder VERSION )([0-9.]+)"),
    ("CITATION.cff", r"^(version: )(\S+)"),
)
_UNRELEASED = re.compile(r"^## Unreleased\n(.*?)(?=^## |\Z)", re.M | re.S)


def numbers(version: str) -> tuple[int, ...]:
    if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", version):
        raise FlashLadderError(f"VERSION={version}: three numbers are wanted, such as 0.2.0.")
    return tuple(int(part) for part in version.split("."))


def faults(version: str, root: Path) -> list[str]:
    """A sentence for each thing that keeps the release back; nothing is changed and nothing long is run."""
    wanted, found = numbers(version), []
    if git(root, "rev-parse", "HEAD") is None:
        return ["this folder is no git clone"]
    changes = (git(root, "status", "--porcelain") or "").splitlines()
    if changes:
        which = f"{changes[0].split()[-1]} among them"
        found.append(f"{plural(len(changes), 'file')} changed or unknown to git, {which}: commit them")
    branch = git(root, "branch", "--show-current")
    if branch != BRANCH:
        found.append(f"the branch is {branch or 'none'}; a release is made of {BRANCH}")
    tags = [tag for tag in (git(root, "tag", "--list", "v*") or "").split() if re.fullmatch(r"v\d+\.\d+\.\d+", tag)]
    newest = max(tags, key=lambda tag: numbers(tag[1:]), default="")
    if newest and wanted <= numbers(newest[1:]):
        found.append(f"{newest} is tagged already: the next version is above it")
    for name, pattern in PLACES:
        there = re.search(pattern, (root / name).read_text(), re.M)
        if not there:
            found.append(f"{name} has no version where one is looked for")
        elif numbers(there[2]) > wanted:
            found.append(f"{name} says {there[2]}, which is above {version}")
    unreleased = _UNRELEASED.search((root / "CHANGELOG.md").read_text())
    if not unreleased or not unreleased[1].strip():
        found.append("CHANGELOG.md has nothing below '## Unreleased': say what is new")
    missing = {"quick", "long"} - testing.passed(root)
    if missing:
        command = {"quick": "make test", "long": "make test-long"}
        words = " and ".join(f"`{command[one]}`" for one in sorted(missing, reverse=True))
        found.append(f"{words}: not known to have passed on this commit without changes")
    return found


def results_of(version: str, date: str) -> str:
    """What each kernel gave on each GPU, as JSON: what later versions are compared with."""
    rows = []
    for results in recorded.shipped():
        device = results["provenance"]["device"]
        for row in recorded.pick(results):
            names = ("name", "kind", "dtype", "d_head", "causal", "Nq", "tflops", "kernel_sha256")
            rows.append({"device": device} | {name: row[name] for name in names if name in row})
    origins = [
        {name: results["provenance"].get(name) for name in ("device", "date", "commit", "driver", "toolkit")}
        for results in recorded.shipped()
    ]
    return recorded.to_text({"version": 1, "release": version, "date": date, "recorded": origins, "measurements": rows})


def write(version: str, date: str, root: Path) -> list[str]:
    """Writes what a release changes; returns the files, relative to root."""
    for name, pattern in PLACES:
        text = (root / name).read_text()
        (root / name).write_text(re.sub(pattern, rf"\g<1>{version}", text, count=1, flags=re.M))
    citation = root / "CITATION.cff"
    lines = [line for line in citation.read_text().splitlines() if not line.startswith("date-released:")]
    at = next(at for at, line in enumerate(lines) if line.startswith("version:"))
    citation.write_text("\n".join([*lines[: at + 1], f"date-released: {date}", *lines[at + 1 :]]) + "\n")
    log = root / "CHANGELOG.md"
    news = _UNRELEASED.search(log.read_text())
    entry = f"## Unreleased\n\n## {version}, {date}\n\n{news[1].strip()}\n\n"
    log.write_text((log.read_text()[: news.start()] + entry + log.read_text()[news.end() :]).rstrip() + "\n")
    results = root / "docs/results/releases" / f"{version}.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(results_of(version, date))
    return [*(name for name, _ in PLACES), "CHANGELOG.md", results.relative_to(root).as_posix()]


def _lint() -> list[str]:
    done = subprocess.run([sys.executable, "-m", "flashladder", "format", "--check"], cwd=ROOT, env=for_python())
    return ["`make lint` objects, see above"] if done.returncode else []


def _site() -> list[str]:
    try:
        docs.run()
    except FlashLadderError as error:
        return [f"the site: {error}"]
    return []


def run(version: str) -> int:
    if not version:
        raise FlashLadderError("Name the version: `make release VERSION=0.2.0`.")
    found = faults(version, ROOT)
    if not found:  # what takes longer is asked only where the rest is well
        found = _lint() + _site()
    if found:
        raise FlashLadderError(f"{version} cannot be released yet:\n" + "\n".join(f"- {fault}" for fault in found))
    stale = {row["name"] for results in recorded.shipped() for row in recorded.pick(results) if recorded.is_stale(row)}
    if stale:
        say(f"remark: recorded before {', '.join(sorted(stale))} changed; tables mark them stale")
    files = write(version, datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), ROOT)
    for words in (["add", *files], ["commit", "-m", f"Version {version}"], ["tag", "-a", f"v{version}", "-m", version]):
        if git(ROOT, *words) is None:
            raise FlashLadderError(f"`git {words[0]}` failed; the files of the release are written: {', '.join(files)}")
    say(f"v{version} is committed and tagged, and not pushed: `git push origin {BRANCH} v{version}` does it.")
    return 0
