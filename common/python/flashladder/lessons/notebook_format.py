"""The canonical form of the notebooks: what a file may hold, so that a new run changes only what it has to.

Metadata is fixed ("Going deeper" is folded), the first code cell is generated, execution counts run from 1, cells are
named by their content, and outputs are small, without errors, colours of a terminal, or places on the machine that they
come from.
"""

import hashlib
import json
import re
from pathlib import Path

from flashladder.core import paths
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.core.toml import tomllib
from flashladder.ladder import stages
from flashladder.lessons import exercise_cells, notebook_predictions, puzzle_cells, sections

FOLDER = ROOT / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
MOST_BYTES = 1_000_000
WIDGETS = "application/vnd.jupyter.widget-view+json"
_MACHINE = re.compile(r"(?<![\w.:/])/(?:work|tmp|home|root|usr|opt|dev/shm|content|Users)/[\w.]")
_BADGE = re.compile(r"\n\n<!-- badge -->.*?<!-- end badge -->", re.S)
_MAP_ROW = re.compile(r"^(?P<row>\| \[\d\d [^|]*\]\((?P<name>\w+)\.ipynb\) \|[^|\n]*\|)[^|\n]*\|[^|\n]*\|$", re.M)
# The set-up cell: the same in every notebook. Code of a project is taken from that project alone, never from whatever
# lies further up; elsewhere the package has to be installed.
FIRST_CELL = """\
# Takes FlashLadder from the project that this folder belongs to, else as it is installed; says what will run where.
import sys
from pathlib import Path

project = Path.cwd().parent / "pyproject.toml"
{fetch}if project.is_file() and 'name = "flashladder"' in project.read_text():
    sys.path.insert(0, str(project.parent / "common/python"))
from flashladder.lessons import setup  # not found? Open the notebooks with `make notebooks` in the project's folder

setup.start({fetched})"""
# Where pyproject.toml names an address: a hosted machine has the notebook alone.
FETCH = """\
import subprocess

fetched = not project.is_file()
if fetched:
    project = Path("flashladder/pyproject.toml").resolve()
    if not project.is_file():
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", "{repository}", "flashladder"], check=True)
"""


def settings() -> dict[str, str]:
    """pyproject.toml's [tool.flashladder]: repository, hosted, badge; empty where it has none."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text()).get("tool", {}).get("flashladder", {})
    return {name: table.get(name, "") for name in ("repository", "hosted", "badge")}


def first_cell(repository: str) -> str:
    """The set-up cell; where there is an address to fetch the project from, it does so on a machine without it."""
    fetch = FETCH.replace("{repository}", repository) if repository else ""
    return FIRST_CELL.replace("{fetch}", fetch).replace("{fetched}", "fetched" if repository else "")


def badge(file: Path, hosted: str, picture: str = "") -> str:
    """The link that opens a notebook on the hosted service; "" where no address is configured."""
    if not hosted:
        return ""
    address = hosted.replace("{path}", f"notebooks/{file.name}")
    text = f"![Open this notebook on the hosted service]({picture})" if picture else "Open on the hosted service"
    return f"\n\n<!-- badge -->[{text}]({address})<!-- end badge -->"


def files(names: list[str] = ()) -> list[Path]:
    """The notebooks in their order: start_here, by number, the end. names: some of them, e.g. "05" or "start_here"."""
    found = sorted(
        FOLDER.glob("*.ipynb"), key=lambda file: (file.stem != "start_here", not file.stem[:2].isdigit(), file.stem)
    )
    if not names:
        return found
    chosen = []
    for name in names:
        stem = Path(name).stem
        matching = [file for file in found if file.stem == stem or file.stem.split("_")[0] == stem]
        if not matching:
            raise FlashLadderError(f"There is no notebook '{name}'. There are: {', '.join(f.stem for f in found)}.")
        chosen += matching
    return chosen


def load(file: Path) -> dict:
    try:
        return json.loads(file.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise FlashLadderError(f"{file} is no notebook: {error}") from error


def canonical(notebook: dict, file: Path) -> dict:
    """The notebook with canonical metadata, cell names, counts, outputs, first cell and badge. Nothing is executed."""
    configured = settings()
    cells, names, count = [], set(), 0
    for position, cell in enumerate(notebook["cells"]):
        source = sections.text_of(cell).strip("\n")
        kind = cell["cell_type"]
        code_before = any(one["cell_type"] == "code" for one in cells)
        if position == 0 and kind == "markdown":
            source = _BADGE.sub("", source) + badge(file, configured["hosted"], configured["badge"])
        elif kind == "code" and not code_before and "setup.start(" in source:
            source = first_cell(configured["repository"])
        elif kind == "markdown" and file.stem == "start_here":
            source = _mapped(source)
        if not source:
            continue
        folded = kind == "markdown" and source.startswith(f"## {sections.DEEPER}")
        metadata = dict(sections.FOLDED) if folded else {}
        clean = {"cell_type": kind, "id": _name(source, names), "metadata": metadata, "source": _lines(source)}
        if kind == "code":
            outputs = [one for one in map(_output, cell.get("outputs", [])) if one]
            count += 1
            executed = cell.get("execution_count") is not None
            clean |= {"execution_count": count if executed else None, "outputs": _joined(outputs)}
            for one in clean["outputs"]:
                if one["output_type"] == "execute_result":
                    one["execution_count"] = clean["execution_count"]
        cells.append(clean)
    return {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


def _mapped(source: str) -> str:
    """The map's rows with each stage's line and minutes as stage.toml has them."""

    def row(match: re.Match) -> str:
        stage = stages.entry(match["name"])
        return f"{match['row']} {'core' if stage.core else stage.line} | {stage.minutes} |"

    return _MAP_ROW.sub(row, source)


def _name(source: str, taken: set[str]) -> str:
    """A cell's id, by its content: it stays when the notebook is written anew."""
    number = 0
    while True:
        name = hashlib.sha256(f"{source}{number or ''}".encode()).hexdigest()[:8]
        if name not in taken:
            taken.add(name)
            return name
        number += 1


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _output(output: dict) -> dict | None:
    """Without widgets, which have no life in a saved notebook; of the metadata only a picture's words stay."""
    kind = output["output_type"]
    if kind == "stream":
        return {"name": output["name"], "output_type": kind, "text": _lines(sections.joined(output["text"]))}
    if kind == "error":
        return {key: output[key] for key in ("ename", "evalue", "output_type", "traceback")}
    if WIDGETS in output["data"]:
        return None
    data = {
        name: value if name == "image/png" or not isinstance(value, (str, list)) else _lines(sections.joined(value))
        for name, value in sorted(output["data"].items())
    }
    if "image/png" in data:
        data["image/png"] = sections.joined(data["image/png"]).strip()
    words = _words(output)
    clean = {"data": data, "metadata": {"image/png": {"alt": words}} if words else {}, "output_type": kind}
    return clean | ({"execution_count": None} if kind == "execute_result" else {})


def _words(output: dict) -> str:
    """What a screen reader says of a picture."""
    return output.get("metadata", {}).get("image/png", {}).get("alt", "")


def _joined(outputs: list[dict]) -> list[dict]:
    """What was printed in pieces, in one; carriage returns leave the last text of a line."""
    joined: list[dict] = []
    for one in outputs:
        if one["output_type"] == "stream" and joined and joined[-1].get("name") == one["name"]:
            joined[-1]["text"] += one["text"]
        else:
            joined.append(one)
    for one in joined:
        if one["output_type"] == "stream":
            lines = "".join(one["text"]).split("\n")
            one["text"] = _lines("\n".join(line.rstrip("\r").split("\r")[-1].rstrip() for line in lines))
    return [one for one in joined if one["output_type"] != "stream" or "".join(one["text"]).strip()]


def to_text(notebook: dict) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def write(notebook: dict, file: Path) -> None:
    paths.write(file, to_text(notebook))


def faults(file: Path) -> list[str]:
    """What keeps a notebook from being canonical, one sentence each; empty where all is well."""
    text = file.read_text()
    notebook = load(file)
    found = []
    cells = notebook.get("cells", [])
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    if not cells or cells[0]["cell_type"] != "markdown" or not sections.text_of(cells[0]).startswith("# "):
        found.append("the first cell is not a title")
    if not code or sections.text_of(code[0]) != first_cell(settings()["repository"]):
        found.append("the first code cell is not the set-up cell: run `flashladder notebooks --format`")
    for number, cell in enumerate(code, 1):
        where = f"code cell {number} ({sections.text_of(cell).splitlines()[0][:50]})"
        if cell.get("execution_count") != number:
            found.append(f"{where}: execution count {cell.get('execution_count')}; run `flashladder notebooks --save`")
        found += [f"{where}: {fault}" for output in cell.get("outputs", []) for fault in _output_faults(output)]
    found += notebook_predictions.faults(cells)
    if file.stem[:2].isdigit():
        found += notebook_predictions.later_faults(cells, int(file.stem[:2]))
        stage = stages.entry(file.stem)
        found += sections.faults(cells) + exercise_cells.faults(cells, stage) + puzzle_cells.faults(cells, stage)
    if len(text.encode()) > MOST_BYTES:
        found.append(f"it has {len(text.encode())} bytes, more than {MOST_BYTES}")
    if not found and text != to_text(canonical(notebook, file)):
        found.append("not in canonical form: run `flashladder notebooks --format`")
    return found


def _output_faults(output: dict) -> list[str]:
    if output["output_type"] == "error":
        return [f"an error is among its outputs: {output['ename']}"]
    if output["output_type"] == "stream":
        texts = [sections.joined(output["text"])]
        found = [f"it wrote to stderr: {texts[0][:80]}"] if output["name"] == "stderr" else []
    else:
        found = ["a picture without words"] if "image/png" in output["data"] and not _words(output) else []
        texts = [sections.joined(value) for name, value in output["data"].items() if name.startswith("text/")]
    for text in texts:
        if "\x1b" in text:
            found.append("colours of a terminal in its output")
        place = _MACHINE.search(text)
        if place:
            found.append(f"a place on this machine in its output: {text[place.start() : place.start() + 60]!r}")
    return found
