"""The command as `pip install .` puts it anywhere: which project it works on, and what it says where there is none."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hostcc import ROOT

from flashladder.core import paths
from flashladder.core.errors import FlashLadderError


@pytest.fixture
def elsewhere(tmp_path, monkeypatch) -> Path:
    """A package that lies in no project, in a folder that is none, with nothing named."""
    package = tmp_path / "lib/python3/site-packages/flashladder"
    package.mkdir(parents=True)
    monkeypatch.delenv("FLASHLADDER_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    return package


def made_project(folder: Path) -> Path:
    (folder / "common/python/flashladder/core").mkdir(parents=True)
    (folder / "common/python/flashladder/core/paths.py").touch()
    (folder / "stages/05_swizzle").mkdir(parents=True)
    return folder.resolve()


def test_a_package_in_a_project_takes_that_one(tmp_path, elsewhere, monkeypatch):
    project = made_project(tmp_path / "clone")
    other = made_project(tmp_path / "other")
    monkeypatch.setenv("FLASHLADDER_ROOT", str(other))
    monkeypatch.chdir(other)
    assert paths.project_folder(project / "common/python/flashladder") == project


def test_an_installed_one_looks_upwards_and_at_what_is_named(tmp_path, elsewhere, monkeypatch):
    with pytest.raises(FlashLadderError, match="git clone"):
        paths.project_folder(elsewhere)
    project, other = made_project(tmp_path / "clone"), made_project(tmp_path / "other")
    monkeypatch.chdir(project / "stages/05_swizzle")
    assert paths.project_folder(elsewhere) == project
    monkeypatch.setenv("FLASHLADDER_ROOT", str(other))
    assert paths.project_folder(elsewhere) == other
    monkeypatch.setenv("FLASHLADDER_ROOT", str(tmp_path))
    with pytest.raises(FlashLadderError, match="FLASHLADDER_ROOT=.* is no folder"):
        paths.project_folder(elsewhere)


def test_a_folder_of_another_user_is_not_taken_unasked(tmp_path, elsewhere, monkeypatch):
    project = made_project(tmp_path / "clone")
    monkeypatch.chdir(project)
    monkeypatch.setattr(os, "getuid", lambda: project.stat().st_uid + 1)
    if project.stat().st_uid == 0:
        real = Path.stat
        owner = type("Owner", (), {"st_uid": 4711, "st_mode": real(project).st_mode})
        monkeypatch.setattr(Path, "stat", lambda self, **k: owner if self == project else real(self, **k))
    with pytest.raises(FlashLadderError, match="belongs to another user"):
        paths.project_folder(elsewhere)
    monkeypatch.setenv("FLASHLADDER_ROOT", str(project))
    assert paths.project_folder(elsewhere) == project


def test_headers_are_what_a_kernel_can_include(tmp_path):
    (tmp_path / "__pycache__").mkdir()
    for name in ("b.h", "a.cuh", "make_a.py", ".a.cuh.swp", "a.cuh~"):
        (tmp_path / name).touch()
    assert [file.name for file in paths.headers(tmp_path)] == ["a.cuh", "b.h"]
    assert {"attention.h", "ptx.cuh"} <= {file.name for file in paths.headers()}


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with the package as `pip install .` puts it, of a copy whose build/lib is full of other things."""
    if not importlib.util.find_spec("wheel") and not importlib.util.find_spec("setuptools.command.bdist_wheel"):
        pytest.skip("this Python cannot pack a package without fetching what does: pip install 'setuptools>=70.1'")
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "setup.cfg", "README.md"):
        shutil.copy(ROOT / name, source / name)
    ignored = shutil.ignore_patterns("*.egg-info", "__pycache__")
    shutil.copytree(ROOT / "common/python", source / "common/python", ignore=ignored)
    (source / "build/lib").mkdir(parents=True)
    (source / "build/lib/libstage_05.so").write_text("CMake's")
    target = tmp_path_factory.mktemp("target")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*command, "--target", target, source], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def call(installed: Path, folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess:
    env = {name: value for name, value in os.environ.items() if name != "FLASHLADDER_ROOT"}
    env |= {"PYTHONPATH": str(installed)} | variables
    command = [sys.executable, installed / "bin/flashladder", *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


@pytest.mark.long
def test_the_installed_command_works_from_any_folder(installed, tmp_path):
    assert not list(installed.rglob("*.so")), "what CMake built is no part of the package"
    lost = call(installed, tmp_path, "stages")
    assert lost.returncode == 1 and "FLASHLADDER_ROOT=" in lost.stderr and "Traceback" not in lost.stderr
    for folder, variables in (
        (ROOT, {}),
        (ROOT / "stages/05_swizzle", {}),
        (tmp_path, {"FLASHLADDER_ROOT": str(ROOT)}),
    ):
        done = call(installed, folder, "diff", "5", **variables)
        assert done.returncode == 0, done.stderr
        assert "05_swizzle" in done.stdout and "lines changed" in done.stdout
