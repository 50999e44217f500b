"""Kernels with one idea changed at a time, which `make ablations` times (measuring/ablation_times.py).

The variants of a stage are the tables of stages/NN_name/ablations.toml: a title, edits (ladder/change.py), and perhaps
`inputs`; and those of its planted mistakes that ptxas repairs (`timed` in mistakes.toml).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from flashladder.ladder import mistakes, stages
from flashladder.ladder.change import Change, tables
from flashladder.ladder.kernels import compile_kernel


@dataclass(frozen=True)
class Ablation(Change):
    FILE: ClassVar[str] = "ablations.toml"

    title: str
    inputs: bool = False  # timed on inputs that hurt, too (measuring/ablation_times.py)
    hazard: str = ""  # what the simulator calls it, of a planted mistake

    @property
    def id(self) -> str:
        """As records, figures.toml and marks of documents name it: 05_padding."""
        return f"{self.stage.id}_{self.name}"


def ablations() -> list[Ablation]:
    """Of all stages, in order."""
    found = []
    for stage in stages.all_stages():
        entries = tables(stage, Ablation.FILE, ("title",), ("inputs",)).items()
        found += [Ablation(stage, name, **entry) for name, entry in entries]
        timed = [one for one in mistakes.mistakes(stage) if one.timed]
        found += [Ablation(stage, one.name, one.edits, one.timed, hazard=one.caught_by) for one in timed]
    return found


def library(ablation: Ablation, compute: int | None = None) -> Path:
    """The variant's library, bf16 with d_head 128: PTX. With compute capability `compute` (90 for 9.0): native code for
    it, and d_head 64, too."""
    if compute is None:
        return compile_kernel(ablation.source(), ablation.stage)
    native = ablation.stage.min_compute.native(compute)
    native = ["-gencode", f"arch=compute_{native},code=sm_{native}"]
    return compile_kernel(ablation.source(), ablation.stage, *native, only="BF16")
