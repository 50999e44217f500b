"""The lists of the numbers that texts quote, held against their sources, and the tables that are declared for them:
`figures.toml`.

A stage's README and notebook share the list in the stage's folder; all other texts have docs/figures.toml.

    ["stages/05_swizzle/README.md"]
    "N = 4096: {} TFLOP/s at d = 128 after {}" = ["tflops(5)", "tflops(4)"]

    [tables.beside_cudnn]
    head = ""                                     # above the rows' names; may be left out
    cell = '{100 * tflops("shapes", N=N, d=d) / tflops("cuDNN attention", N=N, d=d) : .0f}'
    columns = { N = [512, 4096] }
    rows = { d = [128, 64], causal = [false, true] }

The words of the first kind are the text's own, `{}` in place of each number, and stand in one place of it alone. The
source is rounded as the text rounds: 264 or 264.3, 1,576 or 1576, +5.6, 68%.

A table stands between `<!-- results: table NAME -->` marks. A cell's `{source : format}` is a figure (figures.py),
whose variables are those of its row and its column; `{variable}` is text. Where the heads are other than "N = 512"
and "d = 128, full", columns and rows are lists, `{ head = "FP32", N = 512 }`, and either may have a cell of its own. A
table of single cells has a list as its head, and its rows are lists.
"""

import itertools
import re
from dataclasses import dataclass
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


_GENERATED = re.compile(r"<!-- results:.*?<!-- end results -->|<!--.*?-->", re.S)
_NUMBER = re.compile(r"(?P<sign>[-+]?)(?P<whole>\d+(?:,\d{3})*)(?:\.(?P<decimals>\d+))?(?P<percent>%?)")
_QUOTED = r"(?<![\d.,])([-+]?\d+(?:,\d{3})*(?:\.\d+)?%?(?:\s+\(stale\))?|\(not\s+recorded\s+yet\))(?!\d|[.,]\d)"


@dataclass(frozen=True)
class Quote:
    words: str
    sources: tuple[str, ...]

    @property
    def pattern(self) -> re.Pattern:
        spaced = (r"\s+".join(re.escape(word) for word in part.split(" ")) for part in self.words.split("{}"))
        return re.compile(_QUOTED.join(spaced))


@dataclass(frozen=True)
class Found:
    """A number of a text: where it stands, and what its source says in the text's rounding."""

    quote: Quote
    source: str
    part: int  # of the text
    start: int
    end: int
    text: str
    right: str


def of(file: Path) -> list[Quote]:
    quotes = []
    for words, sources in quoted(file).items():
        quote = Quote(words, (sources,) if isinstance(sources, str) else tuple(sources))
        if words.count("{}") != len(quote.sources) or not quote.sources:
            counts = f"{words.count('{}')} numbers, and {len(quote.sources)} sources"
            raise FlashLadderError(f'{list_of(file)}: "{words}" has {counts}')
        quotes.append(quote)
    return quotes


def prose(text: str) -> str:
    """The text with blanks in place of what is generated, character for character."""
    return _GENERATED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def rounded(value: float, like: str) -> str:
    """The value as a text would quote it that has quoted `like`."""
    form = _NUMBER.match(like)
    if not form:  # nothing was recorded then
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    percent = form["percent"]
    comma = "" if len(form["whole"]) > 3 and "," not in form["whole"] else ","
    sign = "+" if form["sign"] == "+" else ""
    return f"{value * (100 if percent else 1):{sign}{comma}.{len(form['decimals'] or '')}f}{percent}"


def find(parts: list[str], file: Path) -> list[Found]:
    """The quoted numbers of a text, of a notebook in its cells; FlashLadderError where the words of one stand nowhere
    in it, or in several places."""
    found = []
    plain = [prose(part) for part in parts]
    for quote in of(file):
        there = [(index, match) for index, part in enumerate(plain) for match in quote.pattern.finditer(part)]
        if len(there) != 1:
            how = "stands nowhere in the text" if not there else f"stands in {len(there)} places of the text"
            raise FlashLadderError(
                f'{file}: "{quote.words}" {how}: bring {list_of(file).name} up to date ({_sources(quote)})'
            )
        index, match = there[0]
        for number, source in enumerate(quote.sources, 1):
            text = match[number]
            try:
                right = _right(source, text, gpu_of(file))
            except FlashLadderError as error:
                raise FlashLadderError(f'{file}: "{quote.words}": {source}: {error}') from error
            found.append(Found(quote, source, index, match.start(number), match.end(number), text, right))
    return found


def _sources(quote: Quote) -> str:
    return ", ".join(quote.sources)


def _right(source: str, text: str, gpu: str) -> str:
    try:
        value, stale = figures.value_of(source, gpu=gpu)
    except figures.Unrecorded:
        return figures.UNRECORDED
    return rounded(value, text) + (figures.STALE if stale else "")


def faults(parts: list[str], file: Path) -> list[str]:
    """What a text says otherwise than the records, a line each, with its place."""
    return [
        f'{_place(parts, one)}: "{one.quote.words}": the text says {one.text}, {one.source} is {one.right}'
        for one in find(parts, file)
        if " ".join(one.text.split()) != one.right
    ]


def _place(parts: list[str], one: Found) -> str:
    line = f"line {parts[one.part].count(chr(10), 0, one.start) + 1}"
    return f"cell {one.part + 1} of its text, {line}" if len(parts) > 1 else line


def fill(parts: list[str], file: Path) -> list[str]:
    """The text with its quoted numbers as the records have them."""
    filled = list(parts)
    for one in sorted(find(parts, file), key=lambda one: -one.start):
        if " ".join(one.text.split()) != one.right:
            filled[one.part] = filled[one.part][: one.start] + one.right + filled[one.part][one.end :]
    return filled
