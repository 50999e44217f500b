"""Each notebook links a term of the glossary where it first uses it. The terms are the glossary's own headings.

A link is [lane](../docs/glossary.md#lane). flashladder/lessons/glossary.py reads docs/glossary.md.
"""

import re
from pathlib import Path

import pytest

from flashladder.lessons import notebook_format, sections
from flashladder.lessons.glossary import GLOSSARY, Term, any_of, form_of, terms

LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]*)\)")
# What is no prose: fenced code, headings, comments, HTML tags.
NO_PROSE = re.compile(r"^```.*?^```|^#+ .*?$|<!--.*?-->|<[^>\n]+>", re.M | re.S)


def first_uses(prose: str, known: list[Term]) -> dict[Term, tuple[str, str]]:
    """For each term used: (address of the link that its first use is in or "", words around it).

    A longer term hides a shorter one in it. Texts of links to other places than the glossary do not count, nor does
    code, apart from `code` that is a term as it stands.
    """
    word, by_form = any_of(known)
    prose = NO_PROSE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), prose)
    # Of `code` only that stays which is a term.
    prose = re.sub(r"`([^`\n]+)`", lambda code: f" {code[1]} " if code[1].lower() in by_form else " code ", prose)
    links = [(link.start(), link.end(1), link[2]) for link in LINK.finditer(prose)]
    prose = LINK.sub(lambda link: f"[{link[1]}]" + " " * (len(link[2]) + 2), prose)  # addresses have words, too
    found: dict[Term, tuple[str, str]] = {}
    for use in word.finditer(prose):
        address = next((place for start, end, place in links if start <= use.start() < end), "")
        if address and "glossary.md" not in address:
            continue
        around = prose[max(0, use.start() - 40) : use.end() + 40].replace("\n", " ").strip()
        found.setdefault(by_form[form_of(use[1])], (address, around))
    return found


def unlinked(prose: str, known: list[Term]) -> list[str]:
    """A sentence for each term whose first use is no link to it."""
    return [
        f'"{term.name}" is first used in "... {around} ...": make it [{term.name}](../docs/glossary.md#{term.anchor})'
        for term, (address, around) in first_uses(prose, known).items()
        if address != f"../docs/glossary.md#{term.anchor}"
    ]


def prose_of(file: Path) -> str:
    cells = notebook_format.load(file)["cells"]
    return "\n\n".join(sections.text_of(cell) for cell in cells if cell["cell_type"] == "markdown")


@pytest.mark.parametrize("file", notebook_format.files(), ids=lambda file: file.stem)
def test_first_use_is_a_link(file):
    faults = unlinked(prose_of(file), terms(GLOSSARY.read_text()))
    assert not faults, f"notebooks/{file.name}:\n" + "\n".join(faults)


def test_the_glossary_has_what_lessons_take_for_granted():
    wanted = (
        "ptx, divergent branch, frobenius norm, issue slot, bnhd, resident block, spill, multiprocessor, lane, tile"
    )
    names = {term.name for term in terms(GLOSSARY.read_text())}
    missing = [name for name in wanted.split(", ") if name not in names]
    assert not missing, f"docs/glossary.md has no heading `### ...` below `## Terms` for: {', '.join(missing)}"


def test_headings_make_anchors_that_every_page_resolves():
    """GitHub makes an anchor small and drops signs, JupyterLab keeps the words as they are: so they are small words."""
    known = terms(GLOSSARY.read_text())
    odd = [term.name for term in known if not re.fullmatch(r"[a-z0-9]+([ -][a-z0-9]+)*", term.name)]
    assert not odd, f"headings of terms are small letters, digits, spaces and hyphens; these are not: {odd}"
    names = [term.name for term in known]
    assert names == sorted(names), "the terms are in alphabetical order"
    forms = [form for term in known for form in term.forms]
    twice = {form for form in forms if forms.count(form) > 1}
    assert not twice, f"two terms have these words: {', '.join(sorted(twice))}"


SMALL = "## Terms\n\n### bank\nA column.\n\n### bank conflict\nAlso: conflicts, `ldmatrix`.\nTwo.\n\n## Names\n"


@pytest.mark.parametrize(
    "prose, faults",
    [
        ("A [bank](../docs/glossary.md#bank) is; other banks follow.", 0),
        ("Some Banks. Then a [bank](../docs/glossary.md#bank).", 1),
        ("A [bank](../docs/glossary.md#bank-conflict).", 1),
        ("A bank conflict and no more.", 1),
        ("[bank conflicts](../docs/glossary.md#bank-conflict)", 0),
        ("# A bank\n\n[the bank](05_swizzle.ipynb) `bank[3]` embankment <!-- bank -->\n```\nbank\n```", 0),
        ("An `ldmatrix` of code.", 1),
        ("An [`ldmatrix`](../docs/glossary.md#bank-conflict) of code.", 0),
        ("<details><summary>bank</summary>", 1),
    ],
)
def test_first_uses_are_found(prose, faults):
    assert len(unlinked(prose, terms(SMALL))) == faults, unlinked(prose, terms(SMALL))
