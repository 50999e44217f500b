"""The planted mistakes of each stage, stages/NN_name/mistakes.toml: of all of them one store.

The stage's own tests must notice every one (`make mutants`, commands/mutants.py), unless it says why it may live. Those
that say by what and in which words they are caught are the lesson's: `make stage-NN break` shows them, and a reader
finds and mends some of them. A table of the file:

    [no_rescale]
    class = "results"  # of CLASSES
    mistake = "O is not rescaled."  # what was done wrong, one sentence
    caught_by = "verification"  # or the simulator's name of the hazard, such as "shared_race"
    message = "relative Frobenius error"  # words that the verdict of `make stage-NN break` contains
    edits = [['O[i] *= rescale[r];', '']]  # pairs: text that stands in the source once, and what takes its place

caught_by and message are there together, or neither. `lives = "equivalent: why"` is of one that no test can notice.
`timed = "title"` is of one that ptxas repairs: it is right on a GPU, and `make ablations` times what the repair costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from flashladder.core.console import coloured, say
from flashladder.core.errors import FlashLadderError, named
from flashladder.ladder import stages
from flashladder.ladder.change import Change, tables, where
from flashladder.ladder.stage import Verdict

CLASSES = {"results": "wrong results", "hazard": "hazards", "technique": "technique gone"}
# The only reason for which a mistake may live; words of its own come after a colon.
REASONS = {"equivalent": "no input and no order of execution tells it from the stage"}


@dataclass(frozen=True)
class Mistake(Change):
    FILE: ClassVar[str] = "mistakes.toml"

    kind: str  # of CLASSES
    mistake: str  # what was done wrong, one sentence
    caught_by: str = ""  # "verification", or the simulator's name of the hazard; "" where the lesson does not show it
    message: str = ""  # words that the verdict must contain
    lives: str = ""  # why it may: a word of REASONS, then ": " and its own; "" where the stage's tests must notice
    timed: str = ""  # its name in a table of variants; "" where it is not timed

    @property
    def reason(self) -> str:
        return self.lives.partition(":")[0]


def mistakes(stage: stages.Stage | int | str) -> list[Mistake]:
    """All of a stage, in the order of its file. FlashLadderError says what is wrong with an entry."""
    stage = stages.entry(stage)
    entries = tables(stage, Mistake.FILE, ("class", "mistake"), ("caught_by", "message", "lives", "timed"))
    for name, entry in entries.items():
        wrong = _wrong(entry)
        if wrong:
            raise FlashLadderError(f"{where(stage, Mistake.FILE, name)}: {wrong}.")
    return [Mistake(stage, name, kind=entry.pop("class"), **entry) for name, entry in entries.items()]


def _wrong(entry: dict) -> str:
    """What is wrong with the values of an entry; "" where nothing is."""
    if entry["class"] not in CLASSES:
        return f"class {entry['class']!r} is none of {', '.join(CLASSES)}"
    if ("caught_by" in entry) != ("message" in entry):
        return "caught_by and message are there together, or neither"
    reason, _, words = entry.get("lives", "").partition(": ")
    if "lives" in entry and reason not in REASONS:
        return f"lives = {entry['lives']!r} begins with none of {', '.join(REASONS)}"
    if "lives" in entry and not words:
        return "an equivalent says why, as in 'equivalent: the loop runs once'"
    return ""


def of_lesson(stage: stages.Stage | int | str) -> list[Mistake]:
    """Those that `make stage-NN break` shows."""
    return [one for one in mistakes(stage) if one.caught_by]


def everything() -> list[Mistake]:
    """All mistakes of all stages."""
    return [one for stage in stages.all_parts() for one in mistakes(stage)]


def get(stage: stages.Stage | int | str, name: str) -> Mistake:
    """The lesson's mistake of that name. FlashLadderError lists those that there are."""
    return named(of_lesson(stage), name, f"Stage {stages.entry(stage).name}", "mistake")


def run(mistake: Mistake) -> Verdict:
    """Builds it (a kernel for bf16 with d_head 128) and runs it on the simulator: who catches it, in which words."""
    return mistake.stage.judge(mistake.source())


def show(stage: stages.Stage, names: Sequence[str] = ()) -> int:
    """Runs the lesson's mistakes, or any that are named, and says who caught them and how; 1 if one went unnoticed."""
    known = mistakes(stage)
    found = [named(known, name, f"Stage {stage.name}", "mistake") for name in names] or of_lesson(stage)
    if not found:
        say(f"{stage.name} has no mistakes to plant.")
    unnoticed = 0
    for one in found:
        verdict = run(one)
        unnoticed += not verdict.caught
        say(coloured(f"{one.name}: {one.mistake}", "bold"))
        say(f"  caught by {verdict.by}:" if verdict.caught else coloured("  NOT NOTICED:", "red"))
        say("\n".join(f"  {line}" for line in verdict.words()) + "\n")
    return 1 if unnoticed else 0
