"""Kernels with one idea changed at a time, which `make ablations` times (measuring/ablation_times.py).

The variants are patches: stages/NN_name/ablations/NAME.patch, with their titles in ablations.toml beside them.
"""

from dataclasses import dataclass
from pathlib import Path

from flashladder.core.toml import tomllib
from flashladder.ladder import stages
from flashladder.ladder.breakit import patched_source
from flashladder.ladder.kernels import compile_kernel


@dataclass(frozen=True)
class Ablation:
    stage: stages.Stage
    name: str
    title: str
    inputs: bool = False  # timed on inputs that hurt, too (measuring/hard_inputs.py)

    @property
    def id(self) -> str:
        return f"{self.stage.id}_{self.name}"

    @property
    def patch(self) -> Path:
        return self.stage.folder / "ablations" / f"{self.name}.patch"


def ablations() -> list[Ablation]:
    """Of all stages, in order."""
    found = []
    for stage in stages.all_stages():
        file = stage.folder / "ablations" / "ablations.toml"
        if file.exists():
            entries = tomllib.loads(file.read_text())
            found += [Ablation(stage, name, **entry) for name, entry in entries.items()]
    return found


def library(ablation: Ablation, compute: int | None = None) -> Path:
    """The variant's library, bf16 with d_head 128: PTX. With compute capability `compute` (90 for 9.0): native code for
    it, and d_head 64, too."""
    if compute is None:
        return compile_kernel(patched_source(ablation), ablation.stage)
    native = ablation.stage.min_compute.native(compute)
    native = ["-gencode", f"arch=compute_{native},code=sm_{native}"]
    return compile_kernel(patched_source(ablation), ablation.stage, *native, only="BF16")
