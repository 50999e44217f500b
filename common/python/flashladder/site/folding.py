"""What of a lesson's page is folded, and what of every page is mended for readers who do not see it.

Sphinx calls these through flashladder/site/extension.py, on pages that are read already: headings keep their places in
the table of contents, and their addresses.
"""

import re
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from flashladder.lessons import sections
from flashladder.site import shown_pictures

LESSONS = "notebooks/"
# A lesson's sections that a reader opens: what is done with one's own hands, and what is optional.
FOLDED = (*("Predict", "Write it", "Break it", "Check yourself"), sections.DEEPER)
PUZZLE = "A puzzle"
# Of the page before the lessons: what is looked up where it is needed.
OF_THE_START = ("How a lesson works", "How to read the plots")
EAGER = 2  # pictures that a page loads at once; the others when they come into sight


def fold(app: Sphinx, doctree: nodes.document, page: str) -> None:
    if not page.startswith(LESSONS):
        return
    folded = OF_THE_START if page == f"{LESSONS}start_here" else FOLDED
    for section in doctree.findall(nodes.section):
        title = section[0].astext()
        depth = _depth(section)
        if (depth == 2 and title.startswith(folded)) or title.startswith(PUZZLE):
            _fold(section)


def _depth(section: nodes.section) -> int:
    above, depth = section.parent, 1
    while above is not None:
        depth += isinstance(above, nodes.section)
        above = above.parent
    return depth


def _fold(section: nodes.section) -> None:
    """The heading opens what follows; where it has parts of its own, it names them."""
    parts = [part[0].astext() for part in section if isinstance(part, nodes.section)]
    section.insert(0, _html('<details class="fold"><summary>'))
    told = f'<span class="inside">{", ".join(map(escape, parts))}</span>' if parts else ""
    section.insert(2, _html(f"{told}</summary>"))
    section.append(_html("</details>"))


def _html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def mend(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """A table's head without words is no head; and what a page is about, for those who share it."""
    if "body" in context:
        files = {name: Path(app.srcdir) / place for place, name in getattr(app.builder, "images", {}).items()}
        source = Path(app.env.doc2path(page)) if doctree else Path()
        words = shown_pictures.words_of(source) if source.suffix == ".ipynb" else {}
        context["body"] = shown_pictures.dress(context["body"], files, words)
        context["body"] = re.sub(r"<th\b([^>]*)>(?:<p></p>)?</th>", r"<td\1></td>", context["body"])
        first, *rest = context["body"].split("<img ")
        eager, lazy = rest[:EAGER], rest[EAGER:]
        context["body"] = "<img ".join([first, *eager, *(f'loading="lazy" {one}' for one in lazy)])
    context["about"] = _about(doctree) if doctree else ""


def _about(doctree: nodes.document) -> str:
    """The first sentences of the page's text."""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) > 60:
            return text if len(text) <= 200 else text[:200].rpartition(" ")[0] + " …"
    return ""
