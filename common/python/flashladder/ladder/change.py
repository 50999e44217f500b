"""A change of a stage's source, kept as edits: a text that stands in the source once, and what takes its place.

Planted mistakes (mistakes.py) and variants (ablations.py) are changes. Each kind has one TOML file in a stage's
folder, with a table for each change. Edits name text and no lines, so that they still fit when the lines beside them
change.
"""

import difflib
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from flashladder.core import toml
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, place
from flashladder.ladder.stage import Stage

Edits = tuple[tuple[str, str], ...]  # each: what stands in the source, and what is to stand there


@dataclass(frozen=True)
class Change:
    FILE: ClassVar[str]  # the file of a stage's folder that has changes of this kind

    stage: Stage
    name: str
    edits: Edits = field(repr=False)

    @property
    def id(self) -> str:
        return f"{self.stage.id}-{self.name}"

    def text(self) -> str:
        """The stage's source with the change. FlashLadderError where an edit does not fit the source any more."""
        text, pieces, at = self.stage.source.read_text(), [], 0
        for begin, end, new in self._places(text):
            pieces += [text[at:begin], new]
            at = end
        return "".join([*pieces, text[at:]])

    def source(self) -> Path:
        """A file with the changed source, below the build folder. FlashLadderError as text() says."""
        file = self.stage.source.name
        return place("break", f"{self.FILE.partition('.')[0]}-{self.id}", file, self.text())

    def difference(self) -> list[str]:
        """The lines of a unified diff from the stage's source to the changed one."""
        name = self.stage.source.name
        return list(difflib.unified_diff(*self._lines(), f"a/{name}", f"b/{name}", lineterm=""))

    def first_line(self) -> int:
        """The number of the source's first line that is changed, or before which lines are added."""
        blocks = difflib.SequenceMatcher(None, *self._lines(), autojunk=False).get_opcodes()
        return next(first + 1 for tag, first, *_ in blocks if tag != "equal")

    def _lines(self) -> tuple[list[str], list[str]]:
        """Those of the stage's source, and of the changed one."""
        return self.stage.source.read_text().splitlines(), self.text().splitlines()

    def _places(self, text: str) -> list[tuple[int, int, str]]:
        """Where each edit's old text begins and ends, and the new text; in the order of the source."""
        found = []
        for number, (old, new) in enumerate(self.edits, 1):
            at = text.find(old)
            if at < 0 or text.find(old, at + 1) >= 0:
                raise FlashLadderError(self._does_not_fit(number, "not there" if at < 0 else "there more than once"))
            found.append((at, at + len(old), new))
        found.sort()
        for (_, end, _), (begin, _, _) in zip(found, found[1:], strict=False):
            if begin < end:
                raise FlashLadderError(f"{self._where()}: two edits share {text[begin:end]!r}: make them one.")
        return found

    def _where(self) -> str:
        return where(self.stage, self.FILE, self.name)

    def _does_not_fit(self, number: int, how: str) -> str:
        """Which edit, what it looks for, and the two ways out."""
        source = self.stage.source
        source = source.relative_to(ROOT) if source.is_relative_to(ROOT) else source
        wanted = "\n".join(f"    {line}" for line in self.edits[number - 1][0].strip("\n").splitlines())
        return (
            f"{self._where()}: edit {number} of {len(self.edits)} does not fit {source}. Its text has to be there "
            f"once, and is {how}:\n{wanted}\n"
            f"If you have changed {source.name}: `git checkout {source}` takes the change back (keep a copy first). "
            f"If the change is meant to stay, bring the edit up to date."
        )


def where(stage: Stage, file: str, name: str = "") -> str:
    """The file of a stage's folder as messages name it, and a table of it."""
    return f"stages/{stage.name}/{file}" + (f", [{name}]" if name else "")


def tables(stage: Stage, file: str, needed: Collection[str], allowed: Collection[str] = ()) -> dict[str, dict]:
    """The tables of a stage's file, by name, with "edits" as Edits; {} where there is no such file. FlashLadderError
    says where it is no TOML, which key a table lacks (of `needed` and edits) or has for nothing, what is no edit."""
    found = toml.read(stage.folder / file, where(stage, file))
    for name, table in found.items():
        toml.check_keys(table, {"edits", *needed}, allowed, where(stage, file, name))
        table["edits"] = _edits(table["edits"], where(stage, file, name))
    return found


def _edits(entry: object, of: str) -> Edits:
    pairs = isinstance(entry, list) and all(isinstance(edit, list) and len(edit) == 2 for edit in entry)
    if not (entry and pairs and all(isinstance(text, str) for edit in entry for text in edit)):
        raise FlashLadderError(f"{of}: edits are pairs of texts, [[what is there, what takes its place], ...].")
    return tuple((old, new) for old, new in entry)
