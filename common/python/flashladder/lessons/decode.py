"""The lesson of a decode stage."""

from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.ladder.decode import Decode
from flashladder.lessons.queued import QueuedLesson
from flashladder.measuring import recorded


def find(which: Decode | int | str) -> Decode:
    stage = stages.entry(which)
    if not isinstance(stage, Decode):
        raise FlashLadderError(f"Stage {stage.id} is not of decode: use flashladder.lessons.Lesson({stage.id}).")
    return stage


class DecodeLesson(QueuedLesson):
    OUTPUTS = "O and the log-sum-exp of {} against the float64 reference"
    PROBLEMS = (
        DecodeProblem(Hq=8, Hkv=2, Nkv=300, d_head=128),
        DecodeProblem(B=3, Hq=4, Hkv=2, Nq=2, Nkv=90, lengths=(90, 0, 33), d_head=64, dtype="fp16", page_size=32),
    )
    _find = staticmethod(find)

    def microseconds(self, stage: int | str | None = None, B: int = 1, N: int = 4096, **heads: int) -> float:
        """As recorded()."""
        return self.recorded(stage, B, N, **heads)["us"]["median"]

    def recorded(self, stage: int | str | None = None, B: int = 1, N: int = 4096, Hq: int = 32, Hkv: int = 8) -> dict:
        """The measurement of a stage, of a peer, or of "reading K and V"; d = 128, in one piece."""
        name = stage if isinstance(stage, str) else self._of(stage).name
        record, wanted = recorded.first("decode"), {"name": name, "B": B, "Nkv": N, "Hq": Hq, "Hkv": Hkv}
        wanted |= {"d_head": 128, "page_size": 0}
        for row in record["measurements"] if record else ():
            if wanted.items() <= row.items():
                return row
        raise FlashLadderError(f"There is no record of {', '.join(f'{key} {value}' for key, value in wanted.items())}.")
