"""Fixtures for the lessons and notebooks: machines that are not there, and notebooks made on the spot."""

import os
import stat
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "common/python"))


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    """What is written and solved here is not the reader's, and what the reader has solved changes nothing here."""
    monkeypatch.setenv("FLASHLADDER_WORK", str(tmp_path / "work"))
    return tmp_path / "work"


@pytest.fixture
def program(tmp_path, monkeypatch):
    """program(name, text) -> a program of that name, first on PATH, that prints the text."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def make(name: str, text: str) -> Path:
        file = folder / name
        file.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return file

    return make


@pytest.fixture
def jupyter():
    """Skips the test where notebooks cannot be executed."""
    sys.modules.setdefault("rfc3987_syntax", None)  # jsonschema would build a grammar of addresses for two seconds
    for package in ("nbclient", "nbformat", "ipykernel", "ipywidgets"):
        pytest.importorskip(package, reason="the notebooks' packages are not installed (extra `notebooks`)")


@pytest.fixture
def notebook(tmp_path):
    """notebook(cell, ...) -> a file with a title, the set-up cell and these code cells."""
    from flashladder.lessons import notebook_format

    def make(*sources: str, name: str = "lesson.ipynb") -> Path:
        code = [notebook_format.first_cell(""), *sources]
        cells = [{"cell_type": "markdown", "metadata": {}, "source": "# A title"}]
        cells += [
            {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [], "source": source}
            for source in code
        ]
        file = tmp_path / name
        notebook_format.write(notebook_format.canonical({"cells": cells}, file), file)
        return file

    return make
