"""The notebooks run from top to bottom: the first one, and an eighth of the others."""

import os

import pytest
from shares import share

from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import build_directory
from flashladder.ladder import kernels, mistakes, stages  # noqa: E402
from flashladder.lessons import notebook_format, notebooks

pytestmark = pytest.mark.usefixtures("jupyter")

FIRST, *OTHERS = (pytest.param(file, id=file.stem, marks=pytest.mark.long) for file in notebook_format.files())


@pytest.mark.parametrize("file", [FIRST, *share(OTHERS, 8)])
def test_runs_from_top_to_bottom(file):
    executed = notebook_format.canonical(notebooks.execute(file), file)
    code = [cell for cell in executed["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert any(cell["outputs"] for cell in code)


@pytest.fixture
def wrong_stage_05(tmp_path, monkeypatch):
    """A build folder like the real one, but its stage 05 forgets the swizzle on one side."""
    library = kernels.compile_kernel(mistakes.get(5, "swizzle_on_write_only").source(), stages.get(5))
    folder = tmp_path / "build"
    (folder / "lib").mkdir(parents=True)
    for entry in build_directory().iterdir():
        if entry.name != "lib":
            (folder / entry.name).symlink_to(entry)
    for entry in (build_directory() / "lib").iterdir():
        wrong = entry.name == f"libstage_{stages.get(5).id}.so"
        (folder / "lib" / entry.name).symlink_to(library if wrong else entry)
    monkeypatch.setenv("FLASHLADDER_BUILD", str(folder))
    monkeypatch.setenv("FLASHLADDER_DEVICE", "sim")


VERIFY = """\
from flashladder.lessons import Lesson
from flashladder.core.problem import Problem
Lesson(5).verify(Problem(d_head=128))"""


@pytest.mark.long
def test_a_wrong_kernel_fails_loudly(notebook, wrong_stage_05, capsys):
    file = notebook(VERIFY)
    before = file.read_text()
    with pytest.raises(FlashLadderError) as failure:
        notebooks.execute(file)
    message = str(failure.value)
    assert "Code cell 2:\n    from flashladder.lessons import Lesson" in message
    assert "AssertionError" in message and "relative Frobenius error" in message and "\x1b" not in message
    assert file.read_text() == before


@pytest.mark.long
def test_run_tells_and_goes_on(notebook, monkeypatch, capsys):
    good, bad = notebook("print(6 * 7)", name="good.ipynb"), notebook("1 / 0", name="bad.ipynb")
    monkeypatch.setattr(notebook_format, "files", lambda names=(): [bad, good])
    before = bad.read_text()
    assert notebooks.run(save=True) == 1
    printed = capsys.readouterr().out
    assert "ZeroDivisionError" in printed and "FAILED" in printed and "ran, saved" in printed
    assert bad.read_text() == before
    outputs = [cell.get("outputs", []) for cell in notebook_format.load(good)["cells"]]
    assert outputs[2] == [{"name": "stdout", "output_type": "stream", "text": ["42\n"]}]
    assert notebook_format.faults(good) == []


@pytest.mark.long
def test_the_kernel_is_this_interpreter(notebook, monkeypatch):
    import sys

    before = os.environ.get("JUPYTER_PATH")
    executed = notebooks.execute(notebook("import sys; print(sys.executable)"))
    assert "".join(executed["cells"][2]["outputs"][0]["text"]).strip() == sys.executable
    assert os.environ.get("JUPYTER_PATH") == before


def test_missing_jupyter_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(notebooks.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FlashLadderError, match="make notebooks.*pip install jupyterlab"):
        notebooks.open_lab()


@pytest.fixture
def started(monkeypatch):
    """Commands that open_lab() starts; nothing is."""
    commands = []
    monkeypatch.setattr(notebooks, "need", lambda package: None)
    done = notebooks.subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(notebooks.subprocess, "run", lambda command, **options: commands.append(command) or done)
    return commands


def test_root_has_to_ask_for_it(started, monkeypatch):
    monkeypatch.setattr(notebooks.os, "geteuid", lambda: 0)
    with pytest.raises(FlashLadderError, match="You are root.*make notebooks ARGS='-- --allow-root'"):
        notebooks.open_lab()
    assert not started
    assert notebooks.open_lab(["--allow-root"]) == 0 and started[0].count("--allow-root") == 1


def test_an_ordinary_user_is_not_root(started, monkeypatch):
    monkeypatch.setattr(notebooks.os, "geteuid", lambda: 1000)
    assert notebooks.open_lab() == 0 and "--allow-root" not in started[0]


def test_an_unknown_notebook_is_told():
    with pytest.raises(FlashLadderError, match="There is no notebook '77'"):
        notebook_format.files(["77"])
