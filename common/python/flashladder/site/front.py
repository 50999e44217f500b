"""The front page: docs/site/index.md with its buttons and its picture, and the order of all pages behind it."""

from pathlib import PurePosixPath

from flashladder.core.errors import FlashLadderError
from flashladder.plot.climbing import FRONT_WORDS

BUTTONS, CLIMB, SECTIONS = "<!-- site: buttons -->", "<!-- site: climb -->", "<!-- site: pages -->"
START = '<a class="button" href="notebooks/start_here.html">Start the lessons</a>'
RUN = '<a class="button first" href="run.html">Run a kernel now</a>'
WRITE = '<a href="write.html">or write some lines of one</a>'
# Two files: letters of a wide picture are too small on a telephone.
PICTURE = f"""\
<figure class="climb"><a href="docs/results_table.html"><picture>
<source media="(max-width: 46em)" srcset="_static/climb-narrow.svg" width="380" height="320">
<img src="_static/climb.svg" width="840" height="350" alt="{FRONT_WORDS}: all figures">
</picture></a></figure>"""


def page(template: str, sections: list[tuple[str, list[PurePosixPath]]], runs: bool) -> str:
    """runs: the site has the page that runs kernels."""
    buttons = (
        f'<div class="actions">\n{RUN} {START} {WRITE}\n</div>' if runs else f'<div class="actions">\n{START}\n</div>'
    )
    filled = {BUTTONS: _html(buttons), CLIMB: _html(PICTURE), SECTIONS: contents(sections)}
    for mark, text in filled.items():
        if template.count(mark) != 1:
            raise FlashLadderError(f"docs/site/index.md must have the line {mark} once.")
        template = template.replace(mark, text)
    return template


def _html(text: str) -> str:
    return f"```{{raw}} html\n{text}\n```"


def contents(sections: list[tuple[str, list[PurePosixPath]]]) -> str:
    """Sphinx's tables of contents, hidden: the sidebar shows them."""
    parts = []
    for caption, pages in sections:
        names = [f"/{page.with_suffix('')}" for page in pages]
        parts.append("\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```"]))
    return "\n\n".join(parts)
