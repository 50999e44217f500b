"""The styles of a built page, put into its head: without a file to wait for it is painted one round trip earlier, and
nothing moves when one has come. Of the theme's rules it gets those that can match: their classes and ids stand in the
page or in a script."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tinycss2

STATIC = "_static/"
# A page's links to styles in _static, as Sphinx writes them, or what an earlier build has put in their place; a link of
# the page's own text.
_LINKS = re.compile(r'(?:<link rel="stylesheet" type="text/css" href="[^"]*_static/[^"]*" />\s*)+')
_INSIDE = re.compile(r'<style data-from="([^"]*)">.*?</style>\n', re.S)
_OWN = re.compile(r'<link rel="stylesheet" href="([^":]*)">\n?')
_WITH_RULES = ("media", "supports")
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


@dataclass(frozen=True)
class Rule:
    """Of a style. What matches nothing is left out: selectors, or all that stands inside."""

    head: str
    body: str = ""
    selectors: tuple[tuple[str, frozenset[str]], ...] = ()  # with the classes and ids that each needs
    inside: tuple["Rule", ...] | None = None

    def needed(self, known: set[str]) -> str:
        if self.inside is not None:
            rules = "".join(rule.needed(known) for rule in self.inside)
            return f"{self.head}{{{rules}}}" if rules else ""
        if not self.selectors:
            return self.head + self.body
        kept = [text for text, names in self.selectors if names <= known]
        return ",".join(kept) + self.body if kept and self.body else ""


def needed(style: str, known: set[str]) -> str:
    """The rules that can match where only these classes and ids are known, without comments and indentation."""
    return "".join(rule.needed(known) for rule in _parsed(style))


@functools.cache
def _parsed(style: str) -> tuple[Rule, ...]:
    return tuple(_rules(tinycss2.parse_stylesheet(style, skip_comments=True, skip_whitespace=True)))


def _rules(nodes: list) -> Iterator[Rule]:
    for node in nodes:
        if node.type == "qualified-rule":
            body = _short(node.content)
            yield Rule("", body and f"{{{body}}}", tuple(_selectors(node.prelude)))
        elif node.type == "at-rule":
            head = f"@{node.at_keyword} {_short(node.prelude)}".strip()
            if node.content is None:
                yield Rule(head, ";")
            elif node.lower_at_keyword in _WITH_RULES:
                inside = tinycss2.parse_rule_list(node.content, skip_comments=True, skip_whitespace=True)
                yield Rule(head, inside=tuple(_rules(inside)))
            else:
                yield Rule(head, f"{{{_short(node.content)}}}")


def _short(tokens: list) -> str:
    """One space where there are several and a new line, and no comments."""
    kept = list(_without_comments(tokens))
    while kept and kept[-1].type == "whitespace":
        kept.pop()
    while kept and kept[0].type == "whitespace":
        kept.pop(0)
    return tinycss2.serialize(kept)


def _without_comments(tokens: list) -> Iterator:
    for token in tokens:
        if token.type == "whitespace":
            token.value = " "
        for part in ("content", "arguments"):
            if isinstance(getattr(token, part, None), list):
                setattr(token, part, list(_without_comments(getattr(token, part))))
        if token.type != "comment":
            yield token


def _selectors(prelude: list) -> Iterator[tuple[str, frozenset[str]]]:
    """The parts between commas, each with the classes and ids without which it matches nothing. Of what stands in
    parentheses and brackets nothing is asked: it may be what must not be there."""
    parts: list[list] = [[]]
    for token in prelude:
        parts.append([]) if token == "," else parts[-1].append(token)
    for part in parts:
        names = {token.value for token in part if token.type == "hash"}
        names |= {
            after.value for dot, after in zip(part, part[1:], strict=False) if dot == "." and after.type == "ident"
        }
        yield _short(part), frozenset(name for name in names if _WORD.fullmatch(name))
