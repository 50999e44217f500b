"""Named parts of a kernel's source: its functions, and its phases between marks such as `// ---- load ----`."""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from flashladder.core.errors import FlashLadderError

_MARK = re.compile(r"^(\s*)// .*?---- ")
_MARK_NAMES = re.compile(r"---- (.+?) ----")
_NO_FUNCTION = re.compile(r"\s|[/#})]|(namespace|struct|class|enum|using|constexpr|template|typedef)\b")
_BEFORE_THE_NAME = re.compile(r"__(?:launch_bounds|cluster_dims)__\(.*?\)|\bextern \"C\"")
_NAME = re.compile(r"(\w+)\s*\(")


@dataclass(frozen=True)
class Part:
    name: str
    file: Path
    first: int  # line numbers of the file, from 1; both inclusive
    last: int
    body: tuple[int, int]  # the same between a function's braces, or behind a phase's mark; of "top" all

    @property
    def text(self) -> str:
        return "\n".join(self.file.read_text().splitlines()[self.first - 1 : self.last])


def parts(file: Path) -> list[Part]:
    """All parts, in the order of the file: "top" (all before the first function), functions, phases."""
    return list(_parts(file, file.read_text()))


@lru_cache(maxsize=256)
def _parts(file: Path, text: str) -> tuple[Part, ...]:
    """Of a file with this text."""
    lines = text.splitlines()
    functions = _functions(file, lines)
    phases = _phases(file, lines)
    found = sorted([*functions, *phases], key=lambda part: part.first)
    first = found[0].first if found else len(lines) + 1
    last = _without_blank_end(lines, 0, first - 1)
    return (Part("top", file, 1, last, (1, last)), *found) if last else tuple(found)


def find(file: Path, name: str) -> Part:
    """The part of that name. FlashLadderError lists the names that there are."""
    known = parts(file)
    for part in known:
        if part.name == name:
            return part
    names = ", ".join(f'"{part.name}"' for part in known)
    raise FlashLadderError(f'{file.parent.name}/{file.name} has no part "{name}". It has: {names}.')


def _without_blank_end(lines: list[str], first: int, last: int) -> int:
    """The last line number in (first, last] that is not blank; first where there is none."""
    while last > first and not lines[last - 1].strip():
        last -= 1
    return last


def _functions(file: Path, lines: list[str]) -> list[Part]:
    """Functions at the left margin, with the comment and the template line above them."""
    found, number = [], 0
    while number < len(lines):
        start = number
        if not lines[start] or _NO_FUNCTION.match(lines[start]) or "(" not in lines[start]:
            number += 1
            continue
        while number < len(lines) and not re.search(r"[{;]\s*(//.*)?$", lines[number]):
            number += 1  # a signature of several lines
        signature = re.sub(_BEFORE_THE_NAME, "", " ".join(lines[start : number + 1]))
        name = _NAME.search(signature)
        if number >= len(lines) or not re.search(r"\{\s*(//.*)?$", lines[number]) or not name:
            number += 1
            continue
        opened = number + 1
        while number < len(lines) and not lines[number].startswith("}"):
            number += 1
        first = start
        while first and re.match(r"template|//(?! ----)", lines[first - 1]):
            first -= 1
        found.append(Part(name[1], file, first + 1, number + 1, (opened + 1, number)))
        number += 1
    return found


def _phases(file: Path, lines: list[str]) -> list[Part]:
    """From each mark to the next one, or to the end of the braces around it; at the left margin, to the file's end."""
    found = []
    for number, line in enumerate(lines):
        mark = _MARK.match(line)
        if not mark:
            continue
        indent, last = len(mark[1]), number + 1
        while last < len(lines) and not _MARK.match(lines[last]):
            text = lines[last]
            if indent and text.strip() and not text.startswith("#") and len(text) - len(text.lstrip()) < indent:
                break
            last += 1
        last = _without_blank_end(lines, number + 1, last)
        found += [Part(name, file, number + 1, last, (number + 2, last)) for name in _MARK_NAMES.findall(line)]
    return found
