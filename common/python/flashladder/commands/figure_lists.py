"""The lists of the numbers that texts quote, and the tables that are declared for them: `figures.toml`.

A stage's README and notebook share the list in the stage's folder; all other texts have docs/figures.toml.

    ["stages/05_swizzle/README.md"]
    "N = 4096: {} TFLOP/s at d = 128 after {}" = ["tflops(5)", "tflops(4)"]

    [tables.beside_cudnn]
    head = ""                                     # above the rows' names; may be left out
    cell = '{100 * tflops("shapes", N=N, d=d) / tflops("cuDNN attention", N=N, d=d) : .0f}'
    columns = { N = [512, 4096] }
    rows = { d = [128, 64], causal = [false, true] }

The first kind is commands/quotes.py's. A table stands between `<!-- results: table NAME -->` marks. A cell's `{source :
format}` is a figure (figures.py), whose variables are those of its row and its column; `{variable}` is text. Where the
heads are other than "N = 512" and "d = 128, full", columns and rows are lists, `{ head = "FP32", N = 512 }`, and either
may have a cell of its own. A table of single cells has a list as its head, and its rows are lists.
"""

import itertools
import re
from functools import cache
from pathlib import Path

from flashladder.commands import figures, markdown
from flashladder.core import toml
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.measuring import recorded

NAME = "figures.toml"
NOTHING = "-"  # a cell with a figure that is not recorded yet
_FIGURE = re.compile(r"\{([^{}]+)\}")


def list_of(text: Path) -> Path:
    """The list that a text's numbers and tables stand in, whether it is there or not."""
    stage = text.stem if text.suffix == ".ipynb" else text.parent.name
    folder = ROOT / "stages" / stage
    return (folder if (folder / "stage.toml").exists() else ROOT / "docs") / NAME


def gpu_of(text: Path) -> str:
    """The GPU whose throughputs a text quotes where it names none: a stage's page and notebook that of its stage, and
    "" (recorded.MAIN) others."""
    folder = list_of(text).parent
    return recorded.gpu_of(folder.name) if (folder / "stage.toml").exists() else ""


def lists() -> list[Path]:
    return sorted([*ROOT.glob(f"stages/*/{NAME}"), *ROOT.glob(f"docs/{NAME}")])


@cache
def read(file: Path) -> dict:
    """{a text's place in the project: {words: sources}}, and "tables"."""
    return toml.read(file, str(file))


def quoted(text: Path) -> dict[str, str | list[str]]:
    """{words: sources} of a text."""
    place = text.relative_to(ROOT).as_posix() if text.is_relative_to(ROOT) else text.name
    return read(list_of(text)).get(place, {})


def table(text: Path, name: str) -> dict:
    declared = read(list_of(text)).get("tables", {})
    if name not in declared:
        there = ", ".join(declared) or "none"
        raise FlashLadderError(f'{list_of(text)} declares no table "{name}"; there are: {there}')
    return declared[name]


def page(declared: dict, gpu: str = "") -> str:
    """gpu: of throughputs for which a cell names none, "" for recorded.MAIN."""
    if isinstance(declared.get("head"), list):
        rows = [[_filled(cell, {}, gpu) for cell in row] for row in declared["rows"]]
        return markdown.table(declared["head"], rows)
    columns, rows = (_variants(declared[key]) for key in ("columns", "rows"))
    body = []
    for row in rows:
        cells = []
        for column in columns:
            cell = row.get("cell") or column.get("cell") or declared.get("cell")
            if cell is None:
                raise FlashLadderError(f'no cell is declared for "{row["head"]}", "{column["head"]}"')
            cells.append(_filled(cell, column | row, gpu))
        body.append([_filled(row["head"], row, gpu), *cells])
    return markdown.table([declared.get("head", ""), *(column["head"] for column in columns)], body)


def _variants(declared: list[dict] | dict[str, list]) -> list[dict]:
    """Rows or columns with their heads; of lists of values every combination."""
    if isinstance(declared, list):
        return declared
    combined = [dict(zip(declared, values)) for values in itertools.product(*declared.values())]
    return [{"head": ", ".join(_head(name, value) for name, value in one.items())} | one for one in combined]


def _head(name: str, value: int | bool) -> str:
    return ("causal" if value else "full") if name == "causal" else f"{name} = {value}"


def _filled(cell: str, names: dict, gpu: str) -> str:
    def text(match: re.Match) -> str:
        what = match[1].strip()
        return str(names[what]) if what in names else figures.text_of(what, names, gpu)

    filled = _FIGURE.sub(text, " ".join(cell.split()))
    return NOTHING if figures.UNRECORDED in filled else filled
