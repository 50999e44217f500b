"""How much a reader has to read: words of prose of a stage's card, its notebook and its notes.

Code, tables, generated blocks, comments and folded answers are no prose; a generated task is. A word of `code` within a
sentence counts as one word, and so does each word of a link's text.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from flashladder.core.paths import ROOT
from flashladder.ladder import stages
from flashladder.ladder.stage import Stage
from flashladder.lessons import notebook_format, sections

OTHER_PARTS = ("backward", "backward_waits", "decode")  # their notes
MOST = {"card": 600, "core path": 1_500, "code cells": 12, "notes": 1_200, "everything": 60_000}
CARD_ON_HOPPER = 800
NOTES = ROOT / "docs/notes"
_NO_PROSE = (
    re.compile(r"<!-- results:.*?<!-- end results -->", re.S),
    re.compile(r"<!--.*?-->", re.S),
    re.compile(r"<details>.*?</details>", re.S),
    re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.M | re.S),
    re.compile(r"^ *\|.*$", re.M),
    re.compile(r"<[^>\n]+>"),
    re.compile(r"!\[[^\]]*\]\([^)]*\)"),
)


def words(text: str) -> int:
    """Of prose."""
    for pattern in _NO_PROSE:
        text = pattern.sub(" ", text)
    text = re.sub(r"\]\([^)]*\)", "] ", text)
    text = re.sub(r"`[^`]+`", "code", text)
    return sum(any(sign.isalnum() for sign in word) for word in text.split())


@dataclass(frozen=True)
class Lengths:
    stage: Stage
    card: int
    core: int
    code_cells: int  # on the core path
    folded: int
    notes: int  # of the note that has the stage's name
    minutes: int

    def faults(self) -> list[str]:
        """What is too long, with the file, its length and the limit; and minutes that disagree."""
        card = f"stages/{self.stage.name}/README.md"
        notebook = f"notebooks/{self.stage.name}.ipynb"
        limit = CARD_ON_HOPPER if self.stage.hopper else MOST["card"]
        found = []
        if self.card > limit:
            found.append(f"{card} has {self.card:,} words of prose; a card has at most {limit:,}")
        if self.core > MOST["core path"]:
            found.append(
                f'{notebook} has {self.core:,} words of prose before "{sections.DEEPER}"; the core path has at most '
                f"{MOST['core path']:,}"
            )
        if self.code_cells > MOST["code cells"]:
            found.append(
                f'{notebook} has {self.code_cells} code cells before "{sections.DEEPER}"; the core path has at most '
                f"{MOST['code cells']}"
            )
        wanted = self.stage.minutes
        if self.minutes and self.minutes != wanted:
            found.append(f"{notebook}: its sections take {self.minutes} minutes together; stage.toml says {wanted}")
        return found


def of(stage: Stage) -> Lengths:
    """Of a stage of the other parts whose notebook is not written yet, the card's alone."""
    file = notebook_format.FOLDER / f"{stage.name}.ipynb"
    cells = notebook_format.load(file)["cells"] if file.exists() or stage not in stages.other_parts() else []
    core = sections.core(cells)
    return Lengths(
        stage=stage,
        card=words((stage.folder / "README.md").read_text()),
        core=_prose(core),
        code_cells=sum(cell["cell_type"] == "code" for cell in core),
        folded=_prose(cells[len(core) :]),
        notes=sum(words(file.read_text()) for file in notes() if file.stem == stage.slug),
        minutes=sections.minutes(cells),
    )


def _prose(cells: list[dict]) -> int:
    return sum(words(sections.text_of(cell)) for cell in cells if cell["cell_type"] == "markdown")


def notes() -> list[Path]:
    """What was tried and rejected, a page each."""
    return sorted(NOTES.glob("*.md"))


def everything() -> int:
    """Words of all cards, notebooks and notes of the stages that compute attention."""
    lessons = [of(stage) for stage in stages.every_stage()]
    own = [file for file in notes() if file.stem not in OTHER_PARTS]
    return sum(one.card + one.core + one.folded for one in lessons) + sum(words(file.read_text()) for file in own)
