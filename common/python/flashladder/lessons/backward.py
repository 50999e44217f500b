"""The lesson of a stage that computes gradients."""

from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import backward, mistakes, stages
from flashladder.ladder.backward import Backward
from flashladder.lessons.display import show, table
from flashladder.lessons.lesson import Lesson
from flashladder.lessons.trial import plant
from flashladder.running import gradients
from flashladder.running.job import OutputsResult, Result

PROBLEMS = (
    Problem(Hq=2, Hkv=1, Nq=70, Nkv=90, d_head=128, causal=True),
    Problem(Hq=1, Nq=96, d_head=64, dtype="fp16"),
)


def find(which: Backward | int | str) -> Backward:
    stage = stages.entry(which)
    if not isinstance(stage, Backward):
        raise FlashLadderError(f"Stage {stage.id} computes no gradients: use flashladder.lessons.Lesson({stage.id}).")
    return stage


class BackwardLesson(Lesson):
    """As Lesson: shows, builds, verifies, counts, breaks and judges."""

    _find = staticmethod(find)

    def verify(self, *problems: Problem) -> None:
        """Runs the stage and compares dQ, dK and dV with the float64 reference. AssertionError where one is wrong."""
        rows, wrong = [], []
        for problem in problems or PROBLEMS:
            inputs = gradients.random_inputs(problem)
            result = backward.run(self.stage, problem, inputs)
            found = gradients.check(problem, inputs, result.bits)
            figures = [f"{found.frobenius:.1e}", f"{found.worst_ratio:.2f}"]
            rows.append([problem, result.device.short, *figures, "verified" if found else "WRONG"])
            wrong += [] if found else [f"{problem}: {found.message}"]
        columns = ("problem", "ran on", "relative error", "worst element / its bound", "")
        title = f"dQ, dK and dV of {self.stage.name} against the float64 reference, the worst of the three"
        show(table(title, columns, rows, right=(2, 3)))
        if wrong:
            raise AssertionError(f"{self.stage.name} is wrong. " + "\n".join(wrong))

    def break_it(self, name: str) -> None:
        """Plants a mistake of stages/NN/mistakes.toml, any of them; shows who catches it. AssertionError if nobody."""
        known = {one.name: one for one in mistakes.mistakes(self.stage)}
        if name not in known:
            raise FlashLadderError(f"There is no mistake '{name}' for stage {self.stage.name}: {', '.join(known)}.")
        plant(known[name])

    def _of(self, stage: int | str | None) -> stages.Stage:
        return self.stage if stage is None else stages.entry(stage)  # also one that computes attention, to compare with

    def _measured(self, stage: stages.Stage, problem: Problem) -> Result | OutputsResult:
        if not isinstance(stage, Backward):
            return super()._measured(stage, problem)
        return backward.run(stage, problem, gradients.random_inputs(problem), "sim")
