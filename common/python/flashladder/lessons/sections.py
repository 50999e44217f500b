"""A section of a notebook that is written from data: a heading, then a task and a magic's cell for each thing in it."""

import re

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


def text_of(cell: dict) -> str:
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def written(cell: dict, magic: str) -> tuple[str, str]:
    """Argument and text of a cell that begins with the magic; empty of another one."""
    first, _, text = text_of(cell).partition("\n")
    if cell["cell_type"] == "code" and first.startswith(magic):
        return first.removeprefix(magic).strip(), text
    return "", ""


def found(cells: list[dict], heading: str, magic: str) -> tuple[int, int]:
    """Where the section stands: index of its first cell and of the one behind it; (0, 0) where there is none."""
    for first, cell in enumerate(cells):
        if text_of(cell).startswith(heading):
            last = first + 1
            while last < len(cells) and (text_of(cells[last]).startswith("### ") or written(cells[last], magic)[0]):
                last += 1
            return first, last
    return 0, 0
