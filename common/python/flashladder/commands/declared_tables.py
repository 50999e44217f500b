"""Tables that a text's list declares (figure_lists.py), between `<!-- results: table NAME -->` marks.

    [tables.beside_cudnn]
    head = ""                                     # above the rows' names; may be left out
    cell = '{100 * tflops("shapes", N=N, d=d) / tflops("cuDNN attention", N=N, d=d) : .0f}'
    columns = { N = [512, 4096] }
    rows = { d = [128, 64], causal = [false, true] }

A cell's `{source : format}` is a figure (figures.py), whose variables are those of its row and its column; `{variable}`
is text. Where the heads are other than "N = 512" and "d = 128, full", columns and rows are lists, `{ head = "FP32", N =
512 }`, and either may have a cell of its own. A table of single cells has a list as its head, and its rows are lists.
"""

import itertools
import re

from flashladder.commands import figures
from flashladder.commands.markdown import table
from flashladder.core.errors import FlashLadderError

NOTHING = "-"  # a cell with a figure that is not recorded yet
_FIGURE = re.compile(r"\{([^{}]+)\}")


def page(declared: dict, gpu: str = "") -> str:
    """gpu: of throughputs for which a cell names none, "" for recorded.MAIN."""
    if isinstance(declared.get("head"), list):
        rows = [[_filled(cell, {}, gpu) for cell in row] for row in declared["rows"]]
        return table(declared["head"], rows)
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
    return table([declared.get("head", ""), *(column["head"] for column in columns)], body)


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
