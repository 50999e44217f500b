"""Links in Markdown: where they stand, which anchors a page has, and what does not lead anywhere.

Links to the world outside (https:, mailto:) are left alone: the site is built and checked without a network.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from flashladder.lessons import notebook_format, sections

# [text](target "title") and ![text](target); the target has no spaces and no brackets.
_LINK = re.compile(r"(?P<open>\]\()(?P<target>[^()\s]+)(?P<close>(?:\s+\"[^\"]*\")?\))")
_FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\2[`~]*[ \t]*$|\Z)", re.M | re.S)
_INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?:(?: {4}|\t)[^\n]*(?:\n|\Z)|\n(?= {4}))+")
_INLINE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)
_OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.I)


@dataclass(frozen=True)
class Link:
    target: str  # as written, without its anchor; "" within the page
    anchor: str  # without #; "" for the whole page
    line: int  # counted from 1


def without_code(text: str) -> str:
    """The text with blanks in place of code, character for character: what looks like a link there is none."""
    for code in (_FENCE, _INDENTED, _INLINE):
        text = code.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return text


def _inside(text: str) -> Iterator[re.Match]:
    """Links of a page's text to places within the project."""
    return (link for link in _LINK.finditer(without_code(text)) if not _OUTSIDE.match(link["target"]))


def links(text: str) -> list[Link]:
    found = []
    for match in _inside(text):
        target, _, anchor = match["target"].partition("#")
        found.append(Link(target, anchor, text.count("\n", 0, match.start()) + 1))
    return found


def rewritten(text: str, new: Callable[[str, str], str]) -> str:
    """The text with the address of each link replaced by new(target, anchor)."""
    parts, end = [], 0
    for match in _inside(text):
        target, _, anchor = match["target"].partition("#")
        parts += [text[end : match.start("target")], new(target, anchor)]
        end = match.end("target")
    return "".join([*parts, text[end:]])


def slug(heading: str) -> str:
    """A heading's anchor as GitHub makes it: small letters, signs dropped, - for blanks."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(text: str, notebook: bool = False) -> set[str]:
    """A page's places: GitHub's, -1, -2 behind what was there before. JupyterLab's, of a notebook: headings as they
    are with - for blanks; small letters do, too, where the words are small."""
    plain = _FENCE.sub("", text)
    found, seen = set(), Counter()
    for heading in re.finditer(r"^#{1,6} +(.*?)#*\s*$", plain, re.M):
        words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)|<[^>]*>", lambda mark: mark[1] or "", heading[1]).strip()
        one = words.replace(" ", "-") if notebook else slug(words)
        found.add(f"{one}-{seen[one]}" if seen[one] else one)
        seen[one] += 1
    return found | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", plain))


def text_of(file: Path) -> str:
    """A page's Markdown; of a notebook that of its text cells, a blank line between them."""
    if file.suffix != ".ipynb":
        return file.read_text()
    cells = notebook_format.load(file)["cells"]
    texts = [sections.text_of(cell) for cell in cells if cell["cell_type"] == "markdown"]
    return "\n\n".join(texts)


def resolve(page: PurePosixPath, target: str) -> PurePosixPath:
    """The place within the project, relative to its root, that a page's link means; .. at its front leads out of it."""
    parts: list[str] = []
    for part in (page.parent / target).parts:
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return PurePosixPath(*parts)


def faults(root: Path, pages: list[PurePosixPath]) -> list[str]:
    """One sentence for each link of the pages below root that leads nowhere, and how to mend it."""
    found, known = [], {}
    for page in pages:
        known[page] = anchors(text_of(root / page), notebook=page.suffix == ".ipynb")
    for page in pages:
        where = "text " if page.suffix == ".ipynb" else ""
        for link in links(text_of(root / page)):
            place = resolve(page, link.target) if link.target else page
            at = f"{page}:{where}{link.line}: [...]({link.target}{'#' * bool(link.anchor)}{link.anchor})"
            if ".." in place.parts:
                found.append(f"{at} leads out of the project: name the place by an address, or leave the link out")
            elif not (root / place).exists():
                found.append(f"{at}: there is no {place}")
            elif (root / place).is_dir() and not (root / place / "README.md").exists():
                found.append(f"{at}: the folder {place} has no README.md to show: link to a file in it")
            elif link.anchor:
                place = place / "README.md" if (root / place).is_dir() else place
                if place in known and link.anchor not in known[place]:
                    found.append(f"{at}: no heading of {place} has this anchor; it has {_near(link, known[place])}")
    return found


def _near(link: Link, known: set[str]) -> str:
    words = set(link.anchor.split("-"))
    close = sorted(known, key=lambda one: (-len(words & set(one.split("-"))), one))[:3]
    return ", ".join(close) or "none"
