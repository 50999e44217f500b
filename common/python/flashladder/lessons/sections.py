"""The sections of a lesson, and what in them is written from data: tasks, and a magic's cell below each.

## Where we are (2 min)      ## Write it (15 min)
## The idea (8 min)          ## Run it (5 min)
## Predict (3 min)           ## Break it (5 min)
## Check yourself (2 min)    ## Going deeper, which JupyterLab folds
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from flashladder.classroom.judge import NOT_WRITTEN
from flashladder.core.errors import FlashLadderError

CORE = ("Where we are", "The idea", "Predict", "Write it", "Run it", "Break it", "Check yourself")
DEEPER = "Going deeper"
FOLDED = {"jp-MarkdownHeadingCollapsed": True}  # JupyterLab hides what is below such a heading
_HEADING = re.compile(r"^## (?P<title>.+?)(?: \((?P<minutes>\d+) min\))?$", re.M)
_FENCED = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.M | re.S)
LONGEST = 120  # characters of a line of prose
_ATOM = re.compile(r"(?:`[^`]*`|\[[^\]]*\]\([^)]*\)|\S)+")  # no line breaks inside of code and links
_MARKUP = re.compile(r"(?:[-+*]|\d+[.)]|#+|=+)$|[>|]|```|~~~")  # what would mean something else at a line's beginning


def wrapped(text: str) -> str:
    """The text with its long lines of prose broken; code, tables and short lines stay as they are."""
    lines, fenced = [], False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        plain = fenced or line.lstrip().startswith(("```", "|", "<", "#")) or line.startswith("    ")
        lines += [line] if plain or len(line) <= LONGEST else _broken(line)
    return "\n".join(lines)


def _broken(line: str) -> list[str]:
    item = re.match(r"(?:[-*+] |\d+\. )?", line)[0]
    words: list[str] = []
    for word in _ATOM.findall(line[len(item) :]):
        if words and _MARKUP.match(word):
            words[-1] += " " + word
        else:
            words.append(word)
    lines, fresh = [item], True
    for word in words:
        if not fresh and len(lines[-1] + " " + word) > LONGEST:
            lines.append(" " * len(item))
            fresh = True
        lines[-1] += word if fresh else " " + word
        fresh = False
    return lines


def joined(text: str | list[str]) -> str:
    """A text of a notebook's file, which may be a list of its lines."""
    return text if isinstance(text, str) else "".join(text)


def text_of(cell: dict) -> str:
    return joined(cell["source"])


def written(cell: dict, magic: str) -> tuple[str, str]:
    """Argument and text of a cell that begins with the magic; empty of another one."""
    first, _, text = text_of(cell).partition("\n")
    if cell["cell_type"] == "code" and first.startswith(magic):
        return first.removeprefix(magic).strip(), text
    return "", ""


@dataclass(frozen=True)
class Section:
    """A heading of the second level."""

    title: str
    minutes: int | None
    cell: int  # index of its cell


def outline(cells: list[dict]) -> list[Section]:
    """The sections of a notebook, in their order."""
    return [
        Section(match["title"], int(match["minutes"]) if match["minutes"] else None, index)
        for index, cell in enumerate(cells)
        if cell["cell_type"] == "markdown"
        for match in _HEADING.finditer(_FENCED.sub("", text_of(cell)))
    ]


def minutes(cells: list[dict]) -> int:
    """Of a lesson's core path: the sum of what its headings say."""
    return sum(one.minutes or 0 for one in outline(cells))


def core(cells: list[dict]) -> list[dict]:
    """The cells before "## Going deeper"."""
    deeper = next((one.cell for one in outline(cells) if one.title == DEEPER), len(cells))
    return cells[:deeper]


def faults(cells: list[dict]) -> list[str]:
    """What is wrong with a lesson's sections, one sentence each."""
    there, found = outline(cells), []
    titles, wanted = [one.title for one in there], [*CORE, DEEPER]
    if titles != wanted:
        missing = [title for title in wanted if title not in titles]
        others = [title for title in titles if title not in wanted]
        what = [f"missing: {', '.join(missing)}"] if missing else []
        what += [f"not among them: {', '.join(others)}"] if others else []
        found.append(f"the sections are {', '.join(wanted)}, in this order; {'; '.join(what) or 'the order differs'}")
    for one in there:
        if one.title in CORE and not one.minutes:
            found.append(f'"## {one.title}" does not say how long it takes: write "## {one.title} (5 min)"')
        if one.title in wanted and not text_of(cells[one.cell]).startswith(f"## {one.title}"):
            found.append(f'"## {one.title}" stands inside a cell: begin a cell of its own with it')
    return found


def heading(cells: list[dict], title: str) -> int:
    """Index of the cell that begins with a section's heading."""
    for index, cell in enumerate(cells):
        first = text_of(cell).partition("\n")[0]
        if cell["cell_type"] == "markdown" and re.fullmatch(rf"## {title}(?: \(\d+ min\))?", first):
            return index
    raise FlashLadderError(f'no cell begins with the heading "## {title}"')


def prose(text: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "source": wrapped(text)}


def unsolved(magic: str, one, shown) -> dict:
    """The cell in which an exercise or puzzle is written, with what it shows as long as it is not."""
    data = {"text/html": shown.html, "text/plain": shown.text}
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    text = f"{magic}{one.name}\n{one.stub}"
    return {"cell_type": "code", "metadata": {}, "execution_count": 1, "outputs": [output], "source": text}


def refuse_answers(cells: list[dict], magic: str, asked: Iterable) -> None:
    """FlashLadderError where a cell of an exercise or puzzle holds an answer: the project's notebooks are unsolved
    ones, and yours stays as it is."""
    known = {one.name: one for one in asked}
    for cell in cells:
        name, text = written(cell, magic)
        stub = (name in known and known[name].is_stub(text)) or NOT_WRITTEN.summary in str(cell.get("outputs"))
        if name and not stub:
            raise FlashLadderError(f"The cell `{magic}{name}` holds an answer, which would be lost: keep it elsewhere.")


def unlike(kind: str, cells: list[dict], arranged: Callable[[], list[dict]]) -> list[str]:
    """A sentence where the exercises or puzzles (kind) of these cells are not as arranged() has them, which says what
    their file says; FlashLadderError of it: a section is missing that they stand in."""
    try:
        same = [text_of(cell) for cell in arranged()] == [text_of(cell) for cell in cells]
    except FlashLadderError as error:
        return [f"the {kind} have no place: {error}"]
    return [] if same else [f"the {kind} differ from exercises.toml: run `flashladder notebooks --exercises`"]
