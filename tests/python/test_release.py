"""make release: all that keeps one back is said at once and nothing is changed; else it is written, in a clone of a few
files."""

import json
import subprocess
from pathlib import Path

import pytest
from hostcc import ROOT

from flashladder.commands import release, testing
from flashladder.core.errors import FlashLadderError
from flashladder.measuring import recorded


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", folder, *identity, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path, monkeypatch) -> Path:
    """A clone that is ready for 0.2.0: clean, on main, with news, its tests passed."""
    folder = tmp_path / "clone"
    folder.mkdir()
    for name, _ in release.PLACES:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text((ROOT / name).read_text())
    (folder / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n- News.\n\n## 0.1.0, 2026-01-01\n\n- Old.\n")
    git(tmp_path, "init", "-q", "-b", "main", str(folder))
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    monkeypatch.setenv("FLASHLADDER_BUILD", str(tmp_path / "build"))
    testing.remember("all", 0, testing.commit_of(folder), folder)
    return folder


def test_a_ready_clone_has_no_faults(clone):
    assert release.faults("0.2.0", clone) == []


def change(clone: Path, name: str, old: str, new: str) -> None:
    """Committed, with the tests passed on it."""
    text = (clone / name).read_text()
    assert old in text
    (clone / name).write_text(text.replace(old, new))
    git(clone, "commit", "-qam", "change")
    testing.remember("all", 0, testing.commit_of(clone), clone)


@pytest.mark.parametrize(
    "spoil, said",
    [
        (lambda c: (c / "new.txt").touch(), "1 file changed or unknown to git, new.txt among them"),
        (lambda c: git(c, "checkout", "-qb", "idea"), "the branch is idea"),
        (lambda c: git(c, "tag", "v0.2.0"), "v0.2.0 is tagged already"),
        (lambda c: git(c, "tag", "v0.10.0"), "v0.10.0 is tagged already"),
        (lambda c: change(c, "CHANGELOG.md", "- News.\n", ""), "nothing below '## Unreleased'"),
        (
            lambda c: change(c, "CITATION.cff", "version: 0.1.0", "version: 0.3.0"),
            "CITATION.cff says 0.3.0, which is above",
        ),
        (lambda c: git(c, "commit", "-q", "--allow-empty", "-m", "x"), "`make test` and `make test-long`: not known"),
        (
            lambda c: testing.remember("long", 1, testing.commit_of(c), c),
            "`make test-long`: not known to have passed",
        ),
    ],
)
def test_what_keeps_it_back_is_said(clone, spoil, said):
    spoil(clone)
    found = release.faults("0.2.0", clone)
    assert any(said in fault for fault in found), found


def test_two_faults_are_told_at_once(clone):
    (clone / "new.txt").touch()
    git(clone, "tag", "v1.0.0")
    assert len(release.faults("0.2.0", clone)) >= 2


@pytest.mark.parametrize("version", ["1", "v1.0.0", "1.0", "1.0.0-rc1", "01.0.0"])
def test_a_version_is_three_numbers(version):
    with pytest.raises(FlashLadderError, match="three numbers"):
        release.numbers(version)


def test_tests_of_changed_files_count_for_nothing(clone):
    before = testing.commit_of(clone)
    (clone / "CHANGELOG.md").write_text("changed while they ran")
    testing.remember("all", 0, before, clone)
    assert testing.passed(clone) == set() and testing.commit_of(clone) is None


def test_what_is_written(clone):
    files = release.write("0.2.0", "2026-02-01", clone)
    assert sorted(files) == sorted(
        git(clone, "status", "--porcelain", "-uall").replace("?? ", "").replace("M ", "").split()
    )
    for name, _ in release.PLACES:
        assert "0.2.0" in (clone / name).read_text() and "0.1.0" not in (clone / name).read_text(), name
    assert "date-released: 2026-02-01" in (clone / "CITATION.cff").read_text()
    log = (clone / "CHANGELOG.md").read_text()
    assert "## Unreleased\n\n## 0.2.0, 2026-02-01\n\n- News.\n\n## 0.1.0, 2026-01-01\n\n- Old.\n" in log
    results = json.loads((clone / "docs/results/releases/0.2.0.json").read_text())
    assert results["release"] == "0.2.0"
    assert len(results["measurements"]) == sum(len(recorded.pick(one)) for one in recorded.shipped())
    release.write("0.3.0", "2026-03-01", clone)
    assert (clone / "CITATION.cff").read_text().count("date-released") == 1


def test_the_projects_own_places_agree():
    import re

    found = {name: re.search(pattern, (ROOT / name).read_text(), re.M)[2] for name, pattern in release.PLACES}
    assert len(set(found.values())) == 1, found
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text()
