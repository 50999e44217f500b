"""What Sphinx is told besides its configuration: terms of the glossary are linked, docstrings are Markdown,
lessons are folded.

Only Sphinx imports this (docs/site/conf.py names it); nothing else of the package needs Sphinx.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx

from flashladder.lessons.glossary import GLOSSARY, any_of, form_of, terms
from flashladder.site import folding

GLOSSARY_PAGE = "docs/glossary"

_LINKED_IN = ("docs/", "stages/", "common/", "README")  # notebooks link their terms themselves, and a test sees to it


def link_terms(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Links each term where a page first uses it, and has every link to one tell its first sentence."""
    known = terms(GLOSSARY.read_text())
    find, by_form = any_of(known)
    by_anchor = {term.anchor: term for term in known}
    linked = set()
    for link in doctree.findall(nodes.reference):
        place, _, anchor = link.get("refuri", "").partition("#")
        if anchor in by_anchor and (place.endswith("glossary.html") or page == GLOSSARY_PAGE and not place):
            _dress(link, by_anchor[anchor])
            linked.add(anchor)
    if page == GLOSSARY_PAGE or not page.startswith(_LINKED_IN):
        return
    for text in list(doctree.findall(nodes.Text)):
        if _is_prose(text):
            _link_in(app, page, text, find, by_form, linked)


def _is_prose(text: nodes.Text) -> bool:
    above = text.parent
    if isinstance(above, nodes.Inline) and not isinstance(above, (nodes.strong, nodes.emphasis)):
        return False
    while above is not None:
        if isinstance(above, (nodes.reference, nodes.literal_block, nodes.title, nodes.raw, nodes.caption)):
            return False
        above = above.parent
    return True


def _dress(link: nodes.reference, term) -> None:
    link["reftitle"] = term.first_sentence
    link["classes"] = [*link.get("classes", []), "term"]


def _link_in(app: Sphinx, page: str, text: nodes.Text, find: re.Pattern, by_form: dict, linked: set) -> None:
    words, parts, end = text.astext(), [], 0
    for use in find.finditer(words):
        term = by_form[form_of(use[1])]
        if term.anchor in linked:
            continue
        linked.add(term.anchor)
        address = f"{app.builder.get_relative_uri(page, GLOSSARY_PAGE)}#{term.anchor}"
        link = nodes.reference("", use[1], internal=True, refuri=address)
        _dress(link, term)
        parts += [nodes.Text(words[end : use.start()]), link]
        end = use.end()
    if parts:
        text.parent.replace(text, [*parts, nodes.Text(words[end:])])


def docstring(app: Sphinx, what: str, name: str, thing, options, lines: list[str]) -> None:
    """Docstrings are plain text with `code` in backticks; autodoc takes them for reStructuredText."""
    text = "\n".join(lines)
    # A part that stands further in than the rest is code.
    text = re.sub(r"(?<=\n\n)((?: {4}[^\n]*(?:\n|\Z))+)", r"::\n\n\1\n", text)
    parts = re.split(r"(`+[^`\n]+`+|^::\n\n(?: {4}[^\n]*\n)+)", text, flags=re.M)
    for at, part in enumerate(parts):
        if at % 2 == 0:
            parts[at] = re.sub(r"([*|]|_\b)", r"\\\1", part)
        elif part.startswith("`") and not part.startswith("``"):
            parts[at] = f"`{part}`"
    lines[:] = "".join(parts).split("\n")


def setup(app: Sphinx) -> dict:
    app.connect("doctree-resolved", link_terms)
    app.connect("doctree-resolved", folding.fold)
    app.connect("html-page-context", folding.mend)
    app.connect("autodoc-process-docstring", docstring)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
