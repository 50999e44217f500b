"""The wheel, from the source to a clean environment in which these tests run once more."""

import os
import re
import shutil
import subprocess
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from warpsim_places import ROOT

pytestmark = pytest.mark.long


def succeed(*command, **options) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def packer(tmp_path_factory) -> Path:
    """A Python with what builds the wheel."""
    if not (ROOT / "build/CMakeCache.txt").is_file():
        pytest.skip("takes CUDA's headers from where this repository's build has them: `make build` first")
    folder = tmp_path_factory.mktemp("packer")
    venv.create(folder, with_pip=True)
    install = [folder / "bin/pip", "install", "--quiet", "scikit-build-core>=0.10,<2", "build>=1,<2"]
    done = subprocess.run(install, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"pip cannot fetch scikit-build-core: {done.stderr[-300:]}")
    return folder / "bin/python"


@pytest.fixture(scope="module")
def wheel(packer, tmp_path_factory) -> Path:
    """Compiled as the repository's own build is, so that a compiler cache has it all."""
    cache = (ROOT / "build/CMakeCache.txt").read_text()
    headers = re.search(r"^WARPSIM_CUDA_INCLUDE:\w+=(.*)$", cache, re.M)[1]
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.M)[1]
    env = os.environ | {"CXX": compiler} | ({"CMAKE_CXX_COMPILER_LAUNCHER": "ccache"} if shutil.which("ccache") else {})
    target = tmp_path_factory.mktemp("wheel")
    options = ["-C", f"build-dir={ROOT / 'build/wheel'}", "-C", f"cmake.define.WARPSIM_CUDA_INCLUDE={headers}"]
    succeed(
        packer, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", *options, "-w", target,
        ROOT / "common", env=env,
    )  # fmt: skip
    (found,) = target.glob("warpsim-*.whl")
    return found


@pytest.fixture(scope="module")
def clean(wheel, tmp_path_factory) -> Path:
    """The folder bin of an environment with the wheel, pytest and jsonschema, and nothing of this repository."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    succeed(folder / "bin/pip", "install", "--quiet", wheel, "pytest", "jsonschema")
    return folder / "bin"


def without_this_repository(folder: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
    return env | {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_the_wheel_has_the_package_and_the_simulator(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {f"warpsim/{file.name}" for file in (ROOT / "common/python/warpsim").iterdir() if file.suffix != ".md"}
    assert sources - {"warpsim/__pycache__"} <= names
    binaries = {"bin/warpsim", "bin/warpsim-inspect", "lib/libcudart.so.13", "lib/libcuda.so.1"}
    assert {name for name in names if "/bin/" in name or "/lib/" in name} == {f"warpsim/{name}" for name in binaries}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert re.fullmatch(r"warpsim-[\d.]+-py3-none-linux_\w+\.whl", wheel.name)


def test_these_tests_pass_where_nothing_else_is(clean, tmp_path):
    command = [clean / "python", "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", ROOT, "-p", "no:cacheprovider"]
    command += ["--confcutdir", ROOT / "tests/warpsim", ROOT / "tests/warpsim", "--ignore", __file__]
    done = succeed(*command, cwd=tmp_path, env=without_this_repository(clean))
    assert re.search(r"^\d+ passed", done, re.M), done


def test_the_commands_are_there(clean, examples, tmp_path):
    env = without_this_repository(clean)
    report = tmp_path / "report.json"
    command = ["warpsim", "--report", report, "--hazards", "warn", examples / "sum_of_squares"]
    subprocess.run(list(map(str, command)), env=env, capture_output=True)  # the sum may be wrong, after a race
    done = subprocess.run(["warpsim-report", report, "--root", examples], env=env, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout.startswith("sum_of_squares.cu:17:1: error: read at"), done.stderr
    assert "sum_of_squares" in succeed("warpsim-inspect", examples / "sum_of_squares", env=env)


def test_the_source_archive_has_what_cmake_asks_for(packer, tmp_path):
    command = [packer, "-m", "build", "--sdist", "--no-isolation", "--skip-dependency-check"]
    succeed(*command, "--outdir", tmp_path, ROOT / "common")
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.split("/", 1)[1] for name in file.getnames() if "/" in name}
    kept = [
        file.relative_to(ROOT / "common").as_posix()
        for file in (ROOT / "common/simulator").rglob("*")
        if file.suffix in (".cpp", ".h", ".map") or file.name == "CMakeLists.txt"
    ]
    assert set(kept) <= names and not [name for name in names if name.endswith(".pyc")]
    texts = [(ROOT / "common" / name).read_text() for name in kept]
    included = {one for text in texts for one in re.findall(r"#include <(command_line\.h|json_writer\.h)>", text)}
    assert included and {f"include/{name}" for name in included} <= names
