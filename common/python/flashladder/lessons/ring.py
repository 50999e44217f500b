"""The lesson of a stage for several GPUs."""

from matplotlib.figure import Figure

from flashladder import plot
from flashladder.core import device
from flashladder.core.console import count
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.core.ring_problem import RingProblem
from flashladder.ladder import stages
from flashladder.ladder.ring import FORWARD, Ring
from flashladder.lessons.display import show, table
from flashladder.lessons.lesson import Lesson
from flashladder.measuring import recorded, ring_model
from flashladder.running.job import OutputsResult, Result

FORWARD_STAGE = stages.get(FORWARD).name
PROBLEMS = tuple(
    RingProblem(Hq=2, Hkv=1, Nq=150, d_head=64, causal=causal, ranks=ranks) for causal, ranks in ((False, 2), (True, 4))
)  # or the next longer ones that the stage takes


def find(which: Ring | int | str) -> Ring:
    stage = stages.entry(which)
    if not isinstance(stage, Ring):
        raise FlashLadderError(f"Stage {stage.id} is for one GPU: use flashladder.lessons.Lesson({stage.id}).")
    return stage


class RingLesson(Lesson):
    """As Lesson: shows, builds, verifies and breaks; and says who has, copies and computes what."""

    _find = staticmethod(find)

    def verify(self, *problems: RingProblem) -> None:
        """Runs the stage and compares O with the float64 reference. AssertionError where a result is wrong."""
        rows, wrong = [], []
        for problem in problems or map(self.stage.fitted, PROBLEMS):
            inputs = self.stage.random_inputs(problem)
            result = self.stage.run(problem, inputs, own_stream=True, repeat=2)
            found = self.stage.check(problem, inputs, result.bits)
            figures = [f"{found.frobenius:.1e}", f"{found.worst_ratio:.2f}"]
            rows.append([problem, result.device.short, *figures, "verified" if found else "WRONG"])
            wrong += [] if found else [f"{problem}: {found.message}"]
        columns = ("problem", "ran on", "relative error", "worst element / its bound", "")
        show(table(f"O of {self.stage.name} against the float64 reference", columns, rows, right=(2, 3)))
        if wrong:
            raise AssertionError(f"{self.stage.name} is wrong. " + "\n".join(wrong))

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
        results = recorded.of(FORWARD_STAGE)
        rows = recorded.pick(results, name=FORWARD_STAGE, dtype="bf16", d_head=128) if results else []
        if not rows:
            raise FlashLadderError(f"{FORWARD_STAGE} has no recorded throughput.")
        by_key = {(row["causal"], row["Nq"]): row["tflops"] for row in rows}
        lengths = sorted({row["Nq"] for row in rows})
        body = [
            [mask, *(f"{by_key[causal, length]:.0f}" if (causal, length) in by_key else "-" for length in lengths)]
            for mask, causal in (("full", False), ("causal", True))
        ]
        provenance = results["provenance"]
        where = f"Recorded: {provenance['device']}, {provenance['date'][:10]}, commit {provenance['commit']}"
        title = f"{FORWARD_STAGE} on one GPU, TFLOP/s, bf16, d = 128. {where}"
        show(table(title, ["", *(f"N = {length}" for length in lengths)], body, right=range(1, len(lengths) + 1)))

    def _measured(self, stage: stages.Stage, problem: Problem) -> Result | OutputsResult:
        return stage.run(problem, device="sim")
