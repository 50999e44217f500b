"""The lessons of the parts besides attention itself: of stages that compute gradients, of decode, for several GPUs."""

from typing import ClassVar

from matplotlib.figure import Figure

from flashladder import plot
from flashladder.core import device
from flashladder.core.console import count
from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.errors import FlashLadderError, named
from flashladder.core.problem import Problem
from flashladder.core.ring_problem import RingProblem
from flashladder.ladder import mistakes, source, stages
from flashladder.ladder.kernels import WithKernel
from flashladder.ladder.ring import FORWARD
from flashladder.lessons.display import code, show, table
from flashladder.lessons.lesson import Lesson
from flashladder.lessons.trial import plant
from flashladder.measuring import recorded, ring_model


class _PartLesson(Lesson):
    """As Lesson: shows, builds, verifies, counts, breaks and judges."""

    PART: ClassVar[type[WithKernel]]
    IS_NOT: ClassVar[str]  # what is said of a stage of another part

    def _find(self, which: stages.Stage | int | str) -> WithKernel:
        stage = stages.entry(which)
        if not isinstance(stage, self.PART):
            right = f"{stage.LESSON}({stage.number})" if isinstance(stage, WithKernel) else "HostLesson()"
            raise FlashLadderError(f"Stage {stage.id} {self.IS_NOT}: use flashladder.lessons.{right}.")
        return stage

    def break_it(self, name: str) -> None:
        """Plants a mistake of stages/NN/mistakes.toml, any of them; shows who catches it. AssertionError if nobody."""
        plant(named(mistakes.mistakes(self.stage), name, f"Stage {self.stage.name}", "mistake"))

    def _of(self, stage: int | str | None) -> stages.Stage:
        return self.stage if stage is None else stages.entry(stage)  # also one of another part, to compare with


class BackwardLesson(_PartLesson):
    PART, IS_NOT = stages.Backward, "computes no gradients"
    OUTPUTS = "dQ, dK and dV of {} against the float64 reference, the worst of the three"
    PROBLEMS = (
        Problem(Hq=2, Hkv=1, Nq=70, Nkv=90, d_head=128, causal=True),
        Problem(Hq=1, Nq=96, d_head=64, dtype="fp16"),
    )


class DecodeLesson(_PartLesson):
    PART, IS_NOT = stages.Decode, "is not of decode"
    OUTPUTS = "O and the log-sum-exp of {} against the float64 reference"
    PROBLEMS = (
        DecodeProblem(Hq=8, Hkv=2, Nkv=300, d_head=128),
        DecodeProblem(B=3, Hq=4, Hkv=2, Nq=2, Nkv=90, lengths=(90, 0, 33), d_head=64, dtype="fp16", page_size=32),
    )

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


class RingLesson(_PartLesson):
    """And says who has, copies and computes what."""

    PART, IS_NOT = stages.Ring, "is for one GPU"
    OUTPUTS = "O of {} against the float64 reference"
    PROBLEMS = (
        RingProblem(Hq=2, Hkv=1, Nq=150, d_head=64, causal=False, ranks=2),
        RingProblem(Hq=2, Hkv=1, Nq=150, d_head=64, causal=True, ranks=4),
    )
    OPTIONS = {"own_stream": True, "repeat": 2}

    def verify(self, *problems: RingProblem, **options) -> None:
        super().verify(*(problems or map(self.stage.fitted, self.PROBLEMS)), **options)

    def show_way(self, way: str, *names: str) -> None:
        """Parts of another way beside the stage's kernel.cu: show_way("heads_first", "bring")."""
        for name in names:
            part = source.find(self.stage.folder / f"{way}.cu", name)
            show(code(part.text, part.first, f"stages/{self.stage.name}/{way}.cu, {name}"))

    def verify_way(self, way: str, *problems: RingProblem) -> None:
        """As verify(), of another way."""
        self.verify(*problems, library=self.stage.way_library(way))

    def ranks(self, problem: RingProblem) -> list[dict]:
        """Shows and returns what each rank has, copies and computes: "pieces", "pulled_bytes" and "scores"."""
        described = self.stage.describe(problem)["ranks"]
        rows = [
            [rank, one["pieces"], count(one["pulled_bytes"]), count(one["scores"])]
            for rank, one in enumerate(described)
        ]
        columns = ("rank", "pieces: first row, rows", "bytes copied from others", "scores of a head")
        show(table(f"{self.stage.name}, {problem}", columns, rows, right=(2, 3)))
        return described

    def timeline(self, problem: RingProblem) -> Figure:
        """Copies and kernels of all GPUs: from events on GPUs, which ranks may share, else a model."""
        where = device.choose(self.stage.min_compute)
        if where.kind == "gpu":
            result = self.stage.run(problem, own_stream=True, repeat=3, timed=True)
            return plot.timeline(ring_model.recorded(result.spans, f"{self.stage.slug}, {problem}", where.short))
        return plot.timeline(ring_model.modelled(self.stage.slug, problem))

    def one_gpu(self) -> None:
        """What stage 23 has on one GPU, as recorded: the measure for several."""
        name = stages.get(FORWARD).name
        results = recorded.of(name)
        rows = recorded.pick(results, name=name, dtype="bf16", d_head=128) if results else []
        if not rows:
            raise FlashLadderError(f"{name} has no recorded throughput.")
        by_key = {(row["causal"], row["Nq"]): row["tflops"] for row in rows}
        lengths = sorted({row["Nq"] for row in rows})
        body = [
            [mask, *(f"{by_key[causal, length]:.0f}" if (causal, length) in by_key else "-" for length in lengths)]
            for mask, causal in (("full", False), ("causal", True))
        ]
        provenance = results["provenance"]
        where = f"Recorded: {provenance['device']}, {provenance['date'][:10]}, commit {provenance['commit']}"
        title = f"{name} on one GPU, TFLOP/s, bf16, d = 128. {where}"
        show(table(title, ["", *(f"N = {length}" for length in lengths)], body, right=range(1, len(lengths) + 1)))
