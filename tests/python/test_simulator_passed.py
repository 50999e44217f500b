"""When the simulator's long tests are left out, and few of the others tried: as long as it, and they, are as they were
when they passed."""

import re
import shutil

import pytest
from hostcc import ROOT

from flashladder.commands import testing

LONG = "tests/simulator/test_marches.py"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A few of the files that count; the tests have passed with them."""
    monkeypatch.delenv(testing.AGAIN, raising=False)
    files = [name for name in testing.COUNTS if (ROOT / name).is_file()]
    for name in ("common/simulator/CMakeLists.txt", LONG, *files):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    assert testing.remember_simulator(testing.of_the_simulator(tmp_path), tmp_path)
    return tmp_path


def test_what_counts_is_there():
    missing = [name for name in (*testing.COUNTS, LONG) if not (ROOT / name).exists()]
    assert not missing, f"commands/testing.py names files that are gone: {', '.join(missing)}"


def test_every_header_of_the_kernels_that_it_includes_counts():
    headers = {file.name for file in (ROOT / "common/include").iterdir()}
    files = [file for folder in ("common/simulator", *testing.OF_THE_SIMULATOR) for file in (ROOT / folder).rglob("*")]
    texts = [file.read_text() for file in files if file.suffix in (".cpp", ".h", ".cu", ".cuh", ".py")]
    own = {file.name for file in files}
    included = {name for text in texts for name in re.findall(r'#include ["<]([\w.]+)[">]', text)} & headers - own
    assert included, "the tools of the simulator include none: this test looks at the wrong place"
    assert {f"common/include/{name}" for name in included} <= set(testing.COUNTS)


def test_they_are_left_out_with_the_way_to_run_them(tree):
    assert "make test-simulator" in testing.why_left_out(tree) and testing.PASSED in testing.why_left_out(tree)


def test_few_of_the_others_are_tried(monkeypatch):
    monkeypatch.delenv("FLASHLADDER_DEALT", raising=False)
    monkeypatch.setattr(testing, "why_left_out", lambda: "they passed")
    share, *names = testing.dealt("quick")["FLASHLADDER_DEALT"].split()
    assert share == f"0/{testing.OF_A_KNOWN_SIMULATOR}" and {"test_clean", "test_fuzz"} <= set(names)
    assert testing.dealt("all") == {}
    monkeypatch.setattr(testing, "why_left_out", lambda: "")
    assert testing.dealt("quick") == {}


def test_they_run_where_somebody_says_so(tree, monkeypatch):
    monkeypatch.setenv(testing.AGAIN, "1")
    assert testing.why_left_out(tree) == ""


@pytest.mark.parametrize("text", (None, "", "sha256 = ", 'sha256 = "0"', "passed = true"))
def test_they_run_where_no_record_holds(tree, text):
    file = tree / testing.PASSED
    file.unlink() if text is None else file.write_text(text)
    assert testing.why_left_out(tree) == ""


@pytest.mark.parametrize("name", ("common/simulator/CMakeLists.txt", LONG, "tests/conftest.py"))
def test_they_run_after_any_change(tree, name):
    before = (tree / name).read_text()
    (tree / name).write_text(before + "\n")
    assert testing.why_left_out(tree) == ""
    (tree / name).write_text(before)
    assert testing.why_left_out(tree)


def test_a_text_is_no_change(tree):
    (tree / "common/simulator/README.md").write_text("Words.")
    assert testing.why_left_out(tree)


def test_a_new_and_a_renamed_file_are_changes(tree):
    new = tree / "common/simulator/new.cpp"
    new.write_text("")
    assert testing.why_left_out(tree) == ""
    new.unlink()
    (tree / LONG).rename(tree / "tests/simulator/test_other.py")
    assert testing.why_left_out(tree) == ""


def test_what_python_leaves_behind_is_no_change(tree):
    left = tree / "tests/simulator/__pycache__/test_marches.pyc"
    left.parent.mkdir()
    left.write_bytes(b"left")
    assert testing.why_left_out(tree)


def test_a_change_while_they_ran_is_not_remembered(tree):
    before = testing.of_the_simulator(tree)
    (tree / testing.PASSED).unlink()
    (tree / "common/simulator/new.cpp").write_text("")
    assert not testing.remember_simulator(before, tree) and not (tree / testing.PASSED).exists()
