"""What the lessons of the later parts have in common: gradients (backward.py) and decode (decode.py)."""

from typing import ClassVar

from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import mistakes, stages
from flashladder.ladder.queued import Queued
from flashladder.lessons.display import show, table
from flashladder.lessons.lesson import Lesson
from flashladder.lessons.trial import plant
from flashladder.running.job import OutputsResult, Result


class QueuedLesson(Lesson):
    """As Lesson: shows, builds, verifies, counts, breaks and judges."""

    OUTPUTS: ClassVar[str]  # what is compared with what, {} for the stage
    PROBLEMS: ClassVar[tuple[Problem, ...]]  # that verify() looks at

    def verify(self, *problems: Problem) -> None:
        """Runs the stage and compares what it wrote with the float64 reference. AssertionError where it is wrong."""
        rows, wrong = [], []
        for problem in problems or self.PROBLEMS:
            inputs = self.stage.random_inputs(problem)
            result = self.stage.run(problem, inputs)
            found = self.stage.compared(problem, inputs, result)
            figures = [f"{found.frobenius:.1e}", f"{found.worst_ratio:.2f}"]
            rows.append([problem, result.device.short, *figures, "verified" if found else "WRONG"])
            wrong += [] if found else [f"{problem}: {found.message}"]
        columns = ("problem", "ran on", "relative error", "worst element / its bound", "")
        show(table(self.OUTPUTS.format(self.stage.name), columns, rows, right=(2, 3)))
        if wrong:
            raise AssertionError(f"{self.stage.name} is wrong. " + "\n".join(wrong))

    def break_it(self, name: str) -> None:
        """Plants a mistake of stages/NN/mistakes.toml, any of them; shows who catches it. AssertionError if nobody."""
        known = {one.name: one for one in mistakes.mistakes(self.stage)}
        if name not in known:
            raise FlashLadderError(f"There is no mistake '{name}' for stage {self.stage.name}: {', '.join(known)}.")
        plant(known[name])

    def _of(self, stage: int | str | None) -> stages.Stage:
        return self.stage if stage is None else stages.entry(stage)  # also one of another part, to compare with

    def _measured(self, stage: stages.Stage, problem: Problem) -> Result | OutputsResult:
        if not isinstance(stage, Queued):
            return super()._measured(stage, problem)
        return stage.run(problem, device="sim")
