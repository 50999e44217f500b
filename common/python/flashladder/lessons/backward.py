"""The lesson of a stage that computes gradients."""

from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.backward import Backward
from flashladder.lessons.queued import QueuedLesson


def find(which: Backward | int | str) -> Backward:
    stage = stages.entry(which)
    if not isinstance(stage, Backward):
        raise FlashLadderError(f"Stage {stage.id} computes no gradients: use flashladder.lessons.Lesson({stage.id}).")
    return stage


class BackwardLesson(QueuedLesson):
    OUTPUTS = "dQ, dK and dV of {} against the float64 reference, the worst of the three"
    PROBLEMS = (
        Problem(Hq=2, Hkv=1, Nq=70, Nkv=90, d_head=128, causal=True),
        Problem(Hq=1, Nq=96, d_head=64, dtype="fp16"),
    )
    _find = staticmethod(find)
