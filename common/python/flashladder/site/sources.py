"""Collects the site's pages into one folder for Sphinx, so that no text is kept twice.

The pages are the project's own: each Markdown file and notebook lies in the folder at the place that it has in the
project, so that links between pages hold. Besides, pages are made of what is no page: a kernel with what it adds to
the one before (kernel_pages), headers with their comments (header_pages), the recorded results (results_table).
docs/site has what is of the site alone: the front page, Sphinx's configuration, the style.
"""

import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.ladder import stages
from flashladder.ladder.stage import Stage
from flashladder.lessons import notebook_format, sections
from flashladder.site import front, header_pages, kernel_pages, lesson_pages, links, results_table, run_page

FRONT = ROOT / "docs/site/index.md"
PYTHON_PAGE = "api/python.md"
# Where Markdown of the project lies; other folders (build, work, .venv, what a class hands in) are none of it.
PATTERNS = (
    "*.md",
    "docs/*.md",
    "docs/notes/*.md",
    "docs/results/**/*.md",
    "stages/*/README.md",
    "common/**/*.md",
    "tests/**/README.md",
    "notebooks/*.ipynb",
)


@dataclass(frozen=True)
class Section:
    caption: str
    pages: tuple[str, ...]  # in order, of which those that there are are taken; a pattern takes the rest that fits


# The order of the pages, for "previous" and "next", too. Every page belongs to one; the last section takes what no
# other one wants.
SECTIONS = (
    Section("Try it", run_page.PAGES),
    Section("Lessons", ("notebooks/start_here.ipynb", "notebooks/[0-9]*.ipynb", "notebooks/*.ipynb")),
    Section("Stages", ("stages/*/README.md",)),
    Section(
        "Understand",
        (
            "docs/installing.md",
            "docs/concepts.md",
            "docs/glossary.md",
            "docs/our_names_and_theirs.md",
            "docs/correctness.md",
        ),
    ),
    Section("Notes", ("docs/notes/README.md", "docs/notes/*.md")),
    Section(
        "Results",
        (
            "docs/results_table.md",
            "docs/results.md",
            "docs/results/**/*.md",
            "docs/benchmarks.md",
            "docs/profiler.md",
            "docs/timeline.md",
        ),
    ),
    Section("Practise and teach", ("docs/exercises.md", "docs/instructors.md", "docs/grading.md")),
    Section(
        "The simulator",
        (
            "common/simulator/README.md",
            "docs/mistakes_on_a_gpu.md",
            "docs/detections.md",
            "common/simulator/**/*.md",
            "tests/fuzz/README.md",
        ),
    ),
    Section("Reference", (PYTHON_PAGE, "api/*.rst", "docs/architecture.md")),
    Section("Carry it on", ("README.md", "docs/contributing.md", "CHANGELOG.md", "**/*.md")),
)


def pages(root: Path = ROOT) -> list[PurePosixPath]:
    """The project's own pages, relative to root."""
    found = {file.relative_to(root).as_posix() for pattern in PATTERNS for file in root.glob(pattern)}
    return [PurePosixPath(name) for name in sorted(found) if "/site/" not in name]


def ordered(names: Iterable[PurePosixPath]) -> list[tuple[str, list[PurePosixPath]]]:
    """Captions with their pages: every page once, in the first place that wants it."""
    left = sorted(names)
    taken: list[tuple[str, list[PurePosixPath]]] = []
    for section in SECTIONS:
        mine: list[PurePosixPath] = []
        for pattern in section.pages:
            deep = pattern.replace("**/", "")
            fits = [name for name in left if name.match(pattern) or ("**/" in pattern and name.match(deep))]
            if "**/" in pattern:
                head = pattern.partition("**/")[0]
                fits = [name for name in left if name.as_posix().startswith(head) and name.suffix == ".md"]
            mine += fits
            left = [name for name in left if name not in fits]
        if mine:
            taken.append((section.caption, mine))
    return taken


def collect(target: Path, root: Path = ROOT) -> list[PurePosixPath]:
    """Writes the sources anew into the folder `target`; returns the pages' places in it, made ones among them."""
    own = pages(root)
    wrong = links.faults(root, own)
    if wrong:
        raise FlashLadderError("Links of the pages lead nowhere:\n" + "\n".join(wrong))
    made = _made()
    # Rewritten in place, and only what has changed: Sphinx reads again only what is newer than what it built.
    keep: set[Path] = set()
    for page in own:
        text, files = _page(root, page, set(own) | set(made))
        keep.add(_write(target / page, text))
        keep |= {_copy(root / file, target / file) for file in files}
    for page, text in made.items():
        keep.add(_write(target / page, text))
    everything = [*own, *made]
    keep.add(_write(target / "index.md", front.page(FRONT.read_text(), ordered(_top(everything)), run_page.is_built())))
    for file in [file for file in target.rglob("*") if file.is_file() and file not in keep]:
        file.unlink()
    return sorted([*everything, PurePosixPath("index.md")])


def _made() -> dict[PurePosixPath, str]:
    """Pages that are no file of the project, by place."""
    found = kernel_pages.pages() | header_pages.pages()
    found["docs/results_table.md"] = results_table.page()
    found[PYTHON_PAGE] = (FRONT.parent / "python.md").read_text()
    if run_page.is_built():
        found |= run_page.texts()
    return {PurePosixPath(name): text for name, text in found.items()}


def _top(everything: list[PurePosixPath]) -> list[PurePosixPath]:
    """Without the kernels' pages, which stand below their stages'."""
    return [page for page in everything if page.name != kernel_pages.NAME]


def _page(root: Path, page: PurePosixPath, known: set[PurePosixPath]) -> tuple[str, set[PurePosixPath]]:
    """(a page's text for the site, files besides pages that it shows or links)."""
    files: set[PurePosixPath] = set()

    def lead(target: str, anchor: str) -> str:
        return (place_of(target) if target else "") + (f"#{links.slug(anchor.replace('-', ' '))}" if anchor else "")

    def place_of(target: str) -> str:
        place = links.resolve(page, target)
        if (root / place).is_dir():
            return f"{target.rstrip('/')}/README.md"
        source = place.parent / kernel_pages.NAME
        if place not in known and source in known and place.suffix in (".cu", ".cpp"):
            return str(PurePosixPath(target).parent / kernel_pages.NAME)
        if place not in known:
            files.add(place)
        return target

    if page.suffix == ".md":
        text = one_line_each(links.rewritten((root / page).read_text(), lead))
        if page.parent.parent.name == "stages":
            text = kernel_pages.below(_with_actions(text, page.parent.name))
        return text, files
    notebook = notebook_format.load(root / page)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = links.rewritten(sections.text_of(cell), lead)
    lesson_pages.prepare(notebook, _stage(page.stem), page.stem)
    return json.dumps(notebook, ensure_ascii=False, indent=1), files


def one_line_each(text: str) -> str:
    """The words of pictures: MyST drops the ends of lines in them, and two words become one."""
    return re.sub(r"!\[[^]]*\]\(", lambda words: words[0].replace("\n", " "), text)


def _stage(name: str) -> Stage | None:
    return next((one for one in stages.all_parts() if one.name == name), None)


def _with_actions(card: str, name: str) -> str:
    """A stage's card with buttons below its title."""
    stage = _stage(name)
    title, _, rest = card.partition("\n")
    return f"{title}\n\n{lesson_pages.actions(stage, '../../', lesson=False)}\n{rest}" if stage else card


def _write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text() != text:
        file.write_text(text)
    return file


def _copy(file: Path, to: Path) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, to)
    return to
