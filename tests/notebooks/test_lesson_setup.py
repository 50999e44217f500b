"""What a notebook's first cell does: finds or fetches the project, and says what will run where, or what is missing."""

import os
import subprocess
import sys

import pytest

from flashladder.building import toolchain
from flashladder.core import device, project
from flashladder.core.errors import FlashLadderError
from flashladder.core.toml import tomllib
from flashladder.ladder import stages
from flashladder.ladder.stages import Kernel
from flashladder.lessons import notebook_format, setup

ENVIRONMENT = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "FLASHLADDER_DEVICE")}


def run_first_cell(folder, repository="", bare=False, **more):
    """bare: without what is installed for this interpreter, which may be this very package."""
    command = [sys.executable, *(["-S"] if bare else []), "-c", notebook_format.first_cell(repository)]
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT | more, capture_output=True, text=True)


def test_one_line_says_what_runs_where():
    done = run_first_cell(notebook_format.FOLDER, FLASHLADDER_DEVICE="sim")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith("FlashLadder") and "run on the simulator" in line and "nvcc 1" in line and "Python 3" in line


def test_it_is_short():
    cell = notebook_format.first_cell("")
    assert len(cell.splitlines()) <= 10 and "repository" not in cell and "environ" not in cell


def planted(folder, name: str):
    """A package flashladder below `folder` that says so when it is imported, in a project of that name."""
    package = folder / "common/python/flashladder"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("print('imported', __file__)\n")
    (package / "lessons").mkdir()
    (package / "lessons" / "setup.py").write_text("def start():\n    pass\n")
    (folder / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n')


def test_nothing_is_imported_from_folders_further_up(tmp_path):
    """Only from the project whose folder notebooks/ it is: others write to /tmp, too."""
    folder = tmp_path / "mine" / "notebooks"
    folder.mkdir(parents=True)
    planted(tmp_path, "flashladder")
    done = run_first_cell(folder, bare=True)
    assert done.returncode and "No module named 'flashladder'" in done.stderr and "imported" not in done.stdout


def test_nothing_is_imported_from_another_project(tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    planted(tmp_path, "another")
    done = run_first_cell(folder, bare=True)
    assert done.returncode and "No module named 'flashladder'" in done.stderr and "imported" not in done.stdout


def test_found_where_it_is_installed(tmp_path):
    """A notebook that was copied elsewhere; PYTHONPATH stands for an installed package."""
    done = run_first_cell(tmp_path, bare=True)
    assert done.returncode
    planted(tmp_path / "site", "flashladder")
    done = run_first_cell(tmp_path, bare=True, PYTHONPATH=f"{tmp_path}/site/common/python")
    assert done.returncode == 0 and "imported" in done.stdout, done.stderr


def test_not_found_says_what_to_do(tmp_path, notebook, jupyter, monkeypatch):
    """The line that fails says it: it stands in the traceback."""
    from flashladder.lessons import notebooks

    file = notebook()
    content = notebook_format.load(file)
    content["cells"][1]["source"] = ["import sys\n", "sys.path.clear()\n", *content["cells"][1]["source"]]
    file.write_text(notebook_format.to_text(content))
    with pytest.raises(FlashLadderError, match="not found\\? Open the notebooks with `make notebooks`"):
        notebooks.execute(file)


def test_fetched_from_the_address(tmp_path):
    """A hosted machine: nothing on disk, an address is configured. The repository is a stand-in."""
    origin, place = tmp_path / "origin", tmp_path / "place"
    package = origin / "common/python/flashladder"
    package.mkdir(parents=True)
    place.mkdir()
    (package / "__init__.py").write_text("")
    (package / "lessons").mkdir()
    (package / "lessons" / "setup.py").write_text("def start(fetched):\n    print('started', fetched)\n")
    (origin / "pyproject.toml").write_text('[project]\nname = "flashladder"\n')
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], cwd=origin, check=True)
    for _ in range(2):  # the second time it is there, and still a hosted machine
        done = run_first_cell(place, origin.as_uri())
        assert done.stdout.splitlines()[-1] == "started True", done.stderr


@pytest.fixture
def gpu(program):
    """gpu(compute, driver) -> how `flashladder device` runs where nvidia-smi lists such a GPU."""

    def make(compute: str, driver: str, **more):
        program("nvidia-smi", f"Fake GPU, {compute}, {driver}, 81920")
        env = os.environ | {"PYTHONPATH": str(notebook_format.ROOT / "common/python")} | more
        return subprocess.run([sys.executable, "-m", "flashladder", "device"], env=env, capture_output=True, text=True)

    return make


def test_a_driver_too_old_for_the_toolkit(gpu):
    done = gpu("9.0", "550.54.15", FLASHLADDER_DEVICE="auto")
    assert done.returncode == 0 and "simulator" in done.stdout
    assert "driver 550.54.15, CUDA 13 needs 580 or newer" in done.stdout
    done = gpu("9.0", "550.54.15", FLASHLADDER_DEVICE="gpu")
    assert done.returncode == 1 and "CUDA 13 needs 580 or newer" in done.stderr


def test_a_gpu_too_old_for_the_toolkit(gpu):
    done = gpu("6.1", "580.10", FLASHLADDER_DEVICE="auto")
    assert "simulator" in done.stdout and "compute capability 6.1, CUDA 13 needs 7.5" in done.stdout


def test_a_gpu_that_fits(gpu):
    assert gpu("9.0", "580.159.04", FLASHLADDER_DEVICE="auto").stdout.strip() == "Fake GPU"


def test_a_turing_gpu_shares_the_work(monkeypatch):
    turing = device.Gpu("Fake T4", 75, "580.1", 15360)
    monkeypatch.setattr(device, "find_gpu", lambda: turing)
    monkeypatch.setenv("FLASHLADDER_DEVICE", "auto")
    line = setup.summary()
    assert "stages 00 to 03, 40, 50, 51 run on Fake T4" in line and "run on the simulator" in line
    assert "stages 04 to 13, 41, 52 run on the simulator (warpsim, on the CPU; Fake T4 has compute capability" in line


def test_the_other_parts_stages_are_named_too(monkeypatch):
    """The notebooks of gradients, decode and several GPUs begin with the same line."""
    monkeypatch.setenv("FLASHLADDER_DEVICE", "sim")
    last = stages.all_parts()[-1]
    assert f"stages 00 to {last.id} run on" in setup.summary() and not isinstance(last, Kernel)


def test_an_nvcc_too_old(program, monkeypatch):
    monkeypatch.setattr(toolchain, "USUAL_CUDA_ROOTS", ())
    monkeypatch.setattr(toolchain.sysconfig, "get_path", lambda name: "/nonexistent")
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    old = program("nvcc", "Cuda compilation tools, release 12.4, V12.4.131")
    monkeypatch.setenv("CUDACXX", str(old))
    monkeypatch.setenv("PATH", str(old.parent) + ":/usr/bin:/bin")
    with pytest.raises(FlashLadderError, match=r"is of CUDA 12\.4: too old"):
        toolchain.require_nvcc()
    assert project.requirement("cuda-toolkit") in setup.missing()


def test_no_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "/nonexistent/g++")
    with pytest.raises(FlashLadderError, match=r"No C\+\+ compiler found.*apt install g\+\+"):
        setup.start()


def test_missing_packages_are_named_or_installed(monkeypatch, capsys):
    monkeypatch.setattr(setup, "missing", lambda comforts: ["tqdm>=4.66,<5"])
    with pytest.raises(FlashLadderError, match="make notebooks.*pip install 'tqdm"):
        setup.start()
    calls = []

    def fake_run(command, **options):
        calls.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(setup.subprocess, "run", fake_run)
    setup.install(["tqdm>=4.66,<5"])
    assert calls[0][:4] == [sys.executable, "-m", "pip", "install"] and calls[0][-1] == "tqdm>=4.66,<5"
    assert "Installing 1 of 1" in capsys.readouterr().out
    monkeypatch.setattr(setup.subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 1, "", "no network"))
    with pytest.raises(FlashLadderError, match="could not install(.|\n)*no network"):
        setup.install(["tqdm>=4.66,<5"])


def test_what_the_package_does_without_is_no_error(monkeypatch):
    find = setup.importlib.util.find_spec
    hidden = ("tqdm", "ml_dtypes")
    monkeypatch.setattr(setup.importlib.util, "find_spec", lambda name: None if name in hidden else find(name))
    assert not any(one.startswith(hidden) for one in setup.missing())
    assert {one.split(">")[0] for one in setup.missing(comforts=True)} >= set(hidden)


def test_requirements_are_those_of_the_package():
    content = tomllib.loads((notebook_format.ROOT / "pyproject.toml").read_text())["project"]
    wanted = {one.split(";")[0] for one in content["dependencies"]}
    named = {*setup.PACKAGES, *setup.COMFORTS, "tomli", "tomli-w"}  # the last: `make assignment` alone writes TOML
    assert {project.requirement(name) for name in named} == wanted
    extras = content["optional-dependencies"]
    assert [project.requirement(toolchain.NVCC)] == extras["cuda"]
    assert [project.requirement(toolchain.NVDISASM)] == extras["nvdisasm"]
    assert [project.requirement(name) for name in setup.TOOLS] == extras["cmake"] + extras["ninja"]
    assert project.version() == content["version"]


def test_the_toolkits_version_is_pinned_in_one_place():
    pin = project.requirement(toolchain.NVCC)
    files = subprocess.run(
        ["git", "grep", "-lF", pin.partition("==")[0] + "=="], cwd=notebook_format.ROOT, capture_output=True, text=True
    )
    if files.returncode == 128:
        pytest.skip("no git repository here")
    assert files.stdout.split() == ["pyproject.toml"], "read it from pyproject.toml (flashladder.core.project)"
