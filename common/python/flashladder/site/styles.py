"""The styles of a built page, put into its head: without a file to wait for it is painted one round trip earlier, and
nothing moves when one has come. Of the theme's rules it gets those that can match: their classes and ids stand in the
page or in a script."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path

STATIC = "_static/"
# A page's links to styles in _static, as Sphinx writes them, or what an earlier build has put in their place; a link of
# the page's own text.
_LINKS = re.compile(r'(?:<link rel="stylesheet" type="text/css" href="[^"]*_static/[^"]*" />\s*)+')
_INSIDE = re.compile(r'<style data-from="([^"]*)">.*?</style>\n', re.S)
_OWN = re.compile(r'<link rel="stylesheet" href="([^":]*)">\n?')
_TEXTS = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_SIGNS = re.compile(rf"url\((?:{_TEXTS}|[^)\"']*)\)|{_TEXTS}|([{{}};])", re.S)
_WITH_RULES = ("@media", "@supports")
_WORD = re.compile(r"[\w-]+")


def put_into_pages(site: Path) -> None:
    in_scripts = {word for file in site.rglob("*.js") for word in _WORD.findall(file.read_text())}
    files: dict[str, str] = {}
    for page in site.rglob("*.html"):
        text = page.read_text()
        found = _LINKS.search(text) or _INSIDE.search(text)
        if not found:
            continue
        names = re.findall(r'_static/[^"?]*', found[0]) if found.re is _LINKS else found[1].split()
        head, body = text[: found.start()], text[found.end() :]
        names += [str((page.parent / name).relative_to(site)) for name in _OWN.findall(body)]
        body = _OWN.sub("", body)
        for name in names:
            files.setdefault(name, (site / name).read_text())
        known = in_scripts | set(_WORD.findall(head + body))
        style = "".join(needed(files[name], known) if name.startswith(STATIC) else files[name] for name in names)
        page.write_text(f'{head}<style data-from="{" ".join(names)}">{style}</style>\n{body}')


def needed(style: str, known: set[str]) -> str:
    """The rules that can match where only these classes and ids are known, without comments and indentation."""
    return "".join(_kept(_without_comments(style), known))


@functools.cache
def _without_comments(style: str) -> str:
    return re.sub(r"/\*.*?\*/", "", style, flags=re.S)


def _kept(style: str, known: set[str]) -> Iterator[str]:
    for head, body in _rules(style):
        if body is None:
            yield f"{head};"
        elif head.startswith(_WITH_RULES):
            inner = "".join(_kept(body, known))
            if inner:
                yield f"{head}{{{inner}}}"
        elif head.startswith("@"):
            yield f"{head}{{{_short(body)}}}"
        else:
            selectors = [one for one, names in _selectors(head) if names <= known]
            if selectors and body.strip():
                yield f"{','.join(selectors)}{{{_short(body)}}}"


@functools.cache
def _rules(style: str) -> list[tuple[str, str | None]]:
    """What stands before each block, and what stands in it; a statement without a block has None."""
    found, begin, depth, head = [], 0, 0, ""
    for sign in _SIGNS.finditer(style):
        if sign[1] == "{":
            if not depth:
                head, begin = _short(style[begin : sign.start()]), sign.end()
            depth += 1
        elif sign[1] == "}":
            depth -= 1
            if not depth:
                found.append((head, style[begin : sign.start()]))
                begin = sign.end()
        elif sign[1] == ";" and not depth:
            found.append((_short(style[begin : sign.start()]), None))
            begin = sign.end()
    return found


@functools.cache
def _short(text: str) -> str:
    """Outside of texts, one space where there are several and a new line."""
    parts = re.split(f"({_TEXTS})", text.strip(), flags=re.S)
    return "".join(part if at % 2 else re.sub(r"\s+", " ", part) for at, part in enumerate(parts))


@functools.cache
def _selectors(head: str) -> list[tuple[str, set[str]]]:
    """The parts between commas that stand outside of parentheses, each with the classes and ids without which it
    matches nothing."""
    found, depth = [""], 0
    for part in re.split(r"([(),])", head):
        depth += {"(": 1, ")": -1}.get(part, 0)
        if part == "," and not depth:
            found.append("")
        else:
            found[-1] += part
    return [(one.strip(), _names(one)) for one in found]


def _names(selector: str) -> set[str]:
    """Of what stands in parentheses and brackets nothing is asked: it may be what must not be there."""
    outside, count = re.sub(r"\[[^]]*\]", "", selector), 1
    while count:
        outside, count = re.subn(r"\([^()]*\)", "", outside)
    return set() if "\\" in selector else set(re.findall(r"[.#]([\w-]+)", outside))
