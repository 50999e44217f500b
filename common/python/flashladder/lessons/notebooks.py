"""The notebooks: opens them, runs them from top to bottom, saves their outputs, checks their form.

python -m flashladder notebooks                     opens JupyterLab on the start page
python -m flashladder notebooks --run [05 ...]      executes; the first error ends it, with the cell and traceback
python -m flashladder notebooks --run --save        ... and writes the outputs into the files
python -m flashladder notebooks --format, --check   canonical form: write it, or only say what is not
python -m flashladder notebooks --exercises         the exercises and puzzles, from the stages' files
python -m flashladder notebooks --lengths           words, code cells and minutes of each lesson
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flashladder.core.console import say, table
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.ladder import stages
from flashladder.lessons import exercise_cells, lengths, notebook_format, puzzle_cells

CELL_SECONDS = 900  # no cell takes longer; a first build of everything is the longest
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def need(package: str) -> None:
    if not importlib.util.find_spec(package):
        raise FlashLadderError(
            f"{sys.executable} has no {package}. `make notebooks` installs it into .venv; for an interpreter of your "
            f"own: {sys.executable} -m pip install jupyterlab nbclient nbformat ipykernel ipywidgets"
        )


def open_lab(extra: list[str] = ()) -> int:
    """JupyterLab on the start page, until it is closed."""
    need("jupyterlab")
    if os.geteuid() == 0 and "--allow-root" not in extra:
        raise FlashLadderError(
            "You are root, and JupyterLab would run every notebook, and whoever reaches its address, as root. Use an "
            "ordinary user; where there is none, as in a container of your own, allow it: "
            "make notebooks ARGS='-- --allow-root'"
        )
    # Served from the root, so that links to stages/ and docs/ open, too.
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={ROOT}"]
    command += ["--LabApp.default_url=/lab/tree/notebooks/start_here.ipynb", *extra]
    if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME")):
        say("No display here: open the address that JupyterLab prints (from elsewhere, forward its port with ssh).")
        command.append("--no-browser")
    try:
        return subprocess.run(command, cwd=ROOT).returncode
    except KeyboardInterrupt:
        return 0


@contextmanager
def own_kernel() -> Iterator[Path]:
    """Has "python3" mean this interpreter, whatever kernels are installed for the user. Yields a scratch folder."""
    with tempfile.TemporaryDirectory(prefix="flashladder-jupyter-") as name:
        folder = Path(name) / "kernels" / "python3"
        folder.mkdir(parents=True)
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        # Notebooks that lie elsewhere, such as those of the tests, find this very package.
        spec = {
            "argv": command,
            "display_name": "Python 3",
            "language": "python",
            "env": {"PYTHONPATH": for_python()["PYTHONPATH"]},
        }
        (folder / "kernel.json").write_text(json.dumps(spec))
        before = os.environ.get("JUPYTER_PATH")
        os.environ["JUPYTER_PATH"] = os.pathsep.join([name, *filter(None, [before])])
        try:
            yield Path(name)
        finally:
            if before is None:
                del os.environ["JUPYTER_PATH"]
            else:
                os.environ["JUPYTER_PATH"] = before


def execute(file: Path) -> dict:
    """The executed notebook as JSON; FlashLadderError with the cell and its traceback where one fails."""
    import nbformat
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook = nbformat.read(file, as_version=4)
    resources = {"metadata": {"path": str(file.parent)}}
    with own_kernel() as folder:
        # Sockets in a folder and no ports: nobody else on this machine can listen in.
        manager = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=str(folder / "kernel"))
        client = NotebookClient(notebook, km=manager, timeout=CELL_SECONDS, resources=resources)
        client.owns_km = True  # has it end the kernel, too
        try:
            client.execute()
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            raise FlashLadderError(f"{file.name} failed.\n{_failure(notebook, error)}") from error
    return json.loads(nbformat.writes(notebook, version=4))


def _failure(notebook, error: Exception) -> str:
    """The failing cell's source and its traceback."""
    for number, cell in enumerate((one for one in notebook.cells if one.cell_type == "code"), 1):
        for output in cell.outputs:
            if output.output_type == "error":
                trace = "\n".join(output.traceback)
                trace = trace if sys.stdout.isatty() else _COLOURS.sub("", trace)
                return f"Code cell {number}:\n{textwrap.indent(cell.source, '    ', lambda line: True)}\n{trace}"
    return str(error)


def run(names: list[str] = (), save: bool = False) -> int:
    """Executes the notebooks in their order, shows a table at the end; 1 if one failed."""
    for package in ("nbclient", "nbformat", "ipykernel"):
        need(package)
    chosen, rows, errors = notebook_format.files(names), [], []
    if not chosen:
        raise FlashLadderError(f"There are no notebooks in {notebook_format.FOLDER}.")
    for number, file in enumerate(chosen, 1):
        say(f"[{number}/{len(chosen)}] {file.name} ...")
        began = time.monotonic()
        try:
            executed = notebook_format.canonical(execute(file), file)
            verdict = "ran"
            if save:
                notebook_format.write(executed, file)
                verdict = "ran, saved"
        except FlashLadderError as error:
            errors.append(str(error))
            say(str(error))
            verdict = "FAILED"
        rows.append([file.stem, f"{time.monotonic() - began:.0f}", verdict])
    table("Notebooks", ("notebook", "seconds", ""), rows, right=(1,))
    return 1 if errors else 0


def format_all() -> int:
    for file in notebook_format.files():
        before = file.read_text()
        after = notebook_format.to_text(notebook_format.canonical(notebook_format.load(file), file))
        if after != before:
            notebook_format.write(json.loads(after), file)
            say(f"formatted {file.name}")
    return 0


def write_exercises(names: list[str] = ()) -> int:
    """Writes the exercises and puzzles anew, as the stages' exercises.toml have them. Nothing is
    executed."""
    for file in notebook_format.files(names):
        if not file.stem[:2].isdigit():
            continue
        before, notebook = file.read_text(), notebook_format.load(file)
        stage = stages.entry(file.stem)
        differing = [one for one in (exercise_cells, puzzle_cells) if one.faults(notebook["cells"], stage)]
        if not differing:
            continue
        try:
            for one in differing:
                notebook["cells"] = one.placed(notebook["cells"], stage)
        except FlashLadderError as error:
            raise FlashLadderError(f"{file.name}: {error}") from error
        after = notebook_format.canonical(notebook, file)
        if notebook_format.to_text(after) != before:
            notebook_format.write(after, file)
            say(f"exercises written: {file.name}")
    return 0


def check(names: list[str] = ()) -> int:
    """Says what is not canonical; 1 if something is not."""
    files = notebook_format.files(names)
    found = [(file, fault) for file in files for fault in notebook_format.faults(file)]
    for file, fault in found:
        say(f"{file.name}: {fault}")
    say(f"{len(files)} notebooks, {len(found)} faults." if found else "All notebooks are canonical.")
    return 1 if found else 0


def show_lengths(names: list[str] = ()) -> int:
    """What a reader has to read of each lesson; 1 where something is too long."""
    chosen = [stages.entry(file.stem) for file in notebook_format.files(names) if file.stem[:2].isdigit()]
    measured = [lengths.of(stage) for stage in chosen]
    columns = ("", "card", "core path", "code cells", "folded", "notes", "minutes", "")
    rows = [
        [one.stage.name, one.card, one.core, one.code_cells, one.folded, one.notes, one.minutes,
         "too long" if one.faults() else ""]
        for one in measured
    ]  # fmt: skip
    table("Words of prose", columns, rows, right=range(1, 7))
    for fault in (fault for one in measured for fault in one.faults()):
        say(fault)
    return 1 if any(one.faults() for one in measured) else 0
