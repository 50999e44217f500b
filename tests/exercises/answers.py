"""Wrong and right answers to the exercises of the stages, in the files of this folder:

    [swizzle.tile_offset]                            the stage's name and the exercise's
    wrong = [
      { name = "modulo_4", because = "technique:no_ldmatrix_conflicts", edits = [["row % 8", "row % 4"]] },
    ]
    right = [{ name = "bits", edits = [["row % 8", "(row & 7)"]] }]

edits: texts of the solution and what stands in their place (a third part says which occurrence, 1 for the first); or
answer: the whole text. because: the check that fails, "builds", "correct", "hazards:KIND" (a regular expression) or
"technique:NAME". says: words that the judgement has besides, such as the mistake that a wrong result fits.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from flashladder.classroom.exercise import Exercise, Mend, get
from flashladder.core.toml import tomllib
from flashladder.ladder import stages, technique

FOLDER = Path(__file__).parent
WRONG, RIGHT = 3, 2  # of each exercise to write there are at least as many


@dataclass(frozen=True)
class Answer:
    exercise: Exercise | Mend
    name: str
    text: str
    because: str = ""  # "" of a right one
    says: str = ""

    @property
    def id(self) -> str:
        return f"{self.exercise.stage.slug}-{self.exercise.name}-{self.name}"

    def complaint(self, found) -> str:
        """What surprises about a judgement; "" if it is as it should be."""
        told = f"{self.id}: {found.summary}: " + "\n".join(found.words)
        if not self.because:
            return "" if found.passed else f"a right answer is judged wrong: {told}"
        if found.passed:
            return f"a wrong answer ({self.because}) is judged right: {told}"
        check, _, name = self.because.partition(":")
        words = [text for one in found.findings if one.check == check and not one.passed for text in one.words]
        if not words or not any(re.search(self._pattern(check, name), text) for text in words):
            return f"judged wrong for another reason than {self.because}: {told}"
        return "" if any(self.says in text for text in found.words) else f"it does not say {self.says!r}: {told}"

    def _pattern(self, check: str, name: str) -> str:
        if check == "technique" and name:
            (one,) = technique.chosen(self.exercise.stage, [name])
            words = re.escape(one.failure).replace(r"\{left\}", "[0-9,]+").replace(r"\{right\}", "[0-9,]+")
            return f"{words}|nothing shows this: {re.escape(one.says)}"
        return f"^({name}): " if name else ""


@cache
def _described() -> dict[str, dict]:
    """By stage, what the files say of its exercises."""
    found = {}
    for file in sorted(FOLDER.glob("*.toml")):
        found |= tomllib.loads(file.read_text())
    return found


def names() -> list[str]:
    """Of the stages with answers, in their order; ValueError where one is called like no stage."""
    order = [stage.slug for stage in stages.all_parts()]
    return sorted(_described(), key=order.index)


def read(slug: str) -> list[Answer]:
    """Of a stage; ValueError where an edit does not fit the solution."""
    stage, found = stages.entry(slug), []
    for name, entry in _described().get(slug, {}).items():
        exercise = get(stage, name)
        solution = exercise.solution if isinstance(exercise, Exercise) else stage.source.read_text()
        for kind in ("wrong", "right"):
            for one in entry.get(kind, []):
                where = f"{slug}.{name}, {one['name']}"
                text = one["answer"] if "answer" in one else _edited(solution, one["edits"], where)
                if (kind == "wrong") != ("because" in one):
                    raise ValueError(f"{where}: a wrong answer says because of what, a right one does not.")
                found.append(Answer(exercise, one["name"], text, one.get("because", ""), one.get("says", "")))
    return found


def _edited(text: str, edits: list[list], where: str) -> str:
    for old, new, *which in edits:
        count = text.count(old)
        if not count or (count > 1 and not which) or (which and count < which[0]):
            raise ValueError(f"{where}: the solution has {old!r} {count} times.")
        at = -1
        for _ in range(which[0] if which else 1):
            at = text.index(old, at + 1)
        text = text[:at] + new + text[at + len(old) :]
    return text


def every() -> list[Answer]:
    return [one for name in names() for one in read(name)]
