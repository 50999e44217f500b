"""What `make exercise-05 VERB ...` and `make puzzle-05 VERB ...` share: to do verb after verb, to say what came of an
answer, and to give hints."""

from collections.abc import Callable, Sequence
from pathlib import Path

from flashladder.classroom import progress, whole
from flashladder.classroom.exercise import Exercise, Mend
from flashladder.classroom.judge import Judgement
from flashladder.classroom.puzzles import Puzzle
from flashladder.core.console import coloured, say
from flashladder.core.errors import FlashLadderError
from flashladder.ladder.stage import Stage

Asked = Exercise | Mend | Puzzle


def follow(kind: str, verbs: dict[str, Callable[[Stage, str], int]], stage: Stage, words: list[str], name: str) -> int:
    """Does what the words ask for, in their order; without any it lists. The last status that is not 0, else 0."""
    unknown = [word for word in words if word not in verbs]
    if unknown:
        raise FlashLadderError(f"'{unknown[0]}': make {kind}-{stage.id} can {', '.join(verbs)}.")
    status = 0
    for word in words or ["list"]:
        status = verbs[word](stage, name) or status
    return status


def begun(kind: str, stage: Stage, every: Sequence[Asked], file_of: Callable[[Asked], Path]) -> list[Asked]:
    """Those that have a file in work/; FlashLadderError where none has."""
    found = [one for one in every if file_of(one).exists()]
    if not found:
        names = ", ".join(one.name for one in every) or "none yet"
        raise FlashLadderError(
            f"No {kind} of stage {stage.id} is begun: `make {kind}-{stage.id} start NAME=...`: {names}."
        )
    return found


def hint(kind: str, stage: Stage, open_ones: Sequence[Asked], solution: str) -> int:
    """The next hint of the one exercise or puzzle that is begun and not right; FlashLadderError where several are.

    kind: "exercise" or "puzzle", as make calls them. open_ones: of the stage. solution: where it is, with {name} and
    {stage}, said with the last hint.
    """
    if not open_ones:
        say(f"All that is begun of stage {stage.id} is right.")
        return 0
    one, *others = open_ones
    if others:
        names = ", ".join(each.name for each in open_ones)
        raise FlashLadderError(f"A hint for which? `make {kind}-{stage.id} hint NAME=...`: {names}.")
    if not one.hints:
        raise FlashLadderError(f"{one.name} has no hints.")
    given = progress.count_hint(f"{kind}s", f"{stage.id}_{one.name}", len(one.hints))
    say(f"{one.name}, hint {given} of {len(one.hints)}: {one.hints[given - 1]}")
    if given == len(one.hints):
        say(f"That is the last one; {solution.format(name=one.name, stage=stage.id)}.")
    return 0


def tell(title: str, found: Judgement | whole.Part, begun: bool, remarks: Sequence[str] = ()) -> bool:
    """Says what came of an answer; True where it is right. remarks: what else there is to say."""
    colour = "green" if found.passed else "red" if begun else "cyan"
    say(f"{title}: {coloured(found.summary, colour)}")
    for words in (*found.words, *remarks):
        say(f"  {words}")
    return found.passed
