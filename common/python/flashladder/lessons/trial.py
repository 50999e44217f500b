"""Changed kernels, built, run on the simulator, and judged: a mistake that is planted, or a reader's own change."""

import difflib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flashladder.classroom import progress
from flashladder.classroom.exercise import Mend
from flashladder.core.console import count
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import place
from flashladder.core.problem import Problem
from flashladder.ladder import mistakes, stages
from flashladder.ladder.kernels import judge
from flashladder.ladder.stage import Verdict
from flashladder.lessons.display import diff, message, note, show, step
from flashladder.running.job import StageError
from warpsim.counters import by_name


def changed_kernel(stage: stages.Stage, changes: Sequence[tuple[str, str]]) -> Path:
    """A copy of the kernel with each (old, new) replaced everywhere; FlashLadderError where old is not there."""
    text = stage.kernel.read_text()
    if not changes or not all(isinstance(one, (tuple, list)) and len(one) == 2 for one in changes):
        raise FlashLadderError('What to change goes in pairs: try_it(("c ^ row % 8", "c ^ row % 4")), for example.')
    for old, new in changes:
        if old not in text:
            raise FlashLadderError(f"stages/{stage.name}/kernel.cu does not contain: {old}")
        text = text.replace(old, new)
    return place("break", f"{stage.id}_trial-{hashlib.sha256(text.encode()).hexdigest()[:8]}", "kernel.cu", text)


def plant(mistake: mistakes.Mistake) -> Verdict:
    """Shows the mistake, runs it on the simulator and shows who objected. AssertionError if nobody did. Of one that is
    to be found and mended, the lines are not shown before it is."""
    mend = progress.to_mend(mistake)
    if mend:
        show(note(still_to_mend(mend), "Not shown:"))
    else:
        show(diff(mistake.difference(), f"The mistake: {mistake.mistake}"))
    name = mistake.name
    with step(f"Building and running {name} on the simulator", f"Built and run on the simulator: {name}."):
        verdict = mistakes.run(mistake)
    show_verdict(verdict)
    if not verdict.caught:
        raise AssertionError(f"{name}: nobody noticed this mistake.")
    return verdict


def still_to_mend(mend: Mend) -> str:
    return (
        "to find and mend what is planted here is an exercise "
        f"(`make exercise-{mend.stage.id} start NAME={mend.name}`). Its lines stand here once it is mended."
    )


def show_verdict(verdict: Verdict) -> None:
    """Who objected, in which words."""
    if verdict.caught:
        show(message("\n".join(verdict.words(6)), f"Caught by {verdict.by.replace('_', ' ')}:"))
    else:
        show(note(verdict.message, "No check objects:"))


@dataclass
class Trial:
    verdict: Verdict
    counts: dict[str, float | None]  # empty where the launch failed

    @classmethod
    def of(cls, stage: stages.Stage, library: Path, problem: Problem) -> "Trial":
        verdict = judge(stage, library)
        try:
            report = stage.run(problem, device="sim", library=library, timeout=300).report
        except StageError:
            return cls(verdict, {})  # the verdict has the words for it
        return cls(verdict, by_name(report))

    def count(self, name: str) -> float:
        if self.counts.get(name) is None:
            raise FlashLadderError(f'No counter "{name}" here. There are: {", ".join(self.counts) or "none"}.')
        return self.counts[name]

    def difference(self, stage: stages.Stage, kernel: Path) -> list[str]:
        before, after = stage.kernel.read_text().splitlines(), kernel.read_text().splitlines()
        return list(difflib.unified_diff(before, after, n=1, lineterm=""))[2:]

    def rows(self, original: dict[str, float | None], names: Sequence[str] = ()) -> list[list[str]]:
        """(name, original, changed) of the counters named, else of all that differ."""
        if not self.counts:
            return []
        every = dict.fromkeys([*original, *self.counts])
        wanted = names or [name for name in every if original.get(name, 0) != self.counts.get(name, 0)]
        return [[name, count(original.get(name, 0)), count(self.counts.get(name, 0))] for name in wanted]
