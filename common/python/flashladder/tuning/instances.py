"""Instances of stage 12's kernel: the table of those built by default, and any configuration in a library of its own.

stages/12_autotune/instances.h is that table: a line for each instance, and one for each stretch of lengths of each GPU
that was tuned (docs/results/GPU-tuning.json), with what was the fastest there; of GPUs that chose alike, the first.
`make results` writes it.
"""

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import TypeVar

from flashladder.core.abi import DTYPES
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import place
from flashladder.ladder import launches, stages
from flashladder.ladder.kernels import code_hash, compile_kernel, native_options
from flashladder.measuring import machine_code, recorded
from flashladder.tuning.configuration import Configuration, of_stage, parse

STAGE = "autotune"
TABLE = stages.get(STAGE).folder / "instances.h"
_TYPES = {"fp16": "__half", "bf16": "__nv_bfloat16"}
C = TypeVar("C")  # a configuration of either stage
LONGEST = 2**30  # rows that a problem may have


@dataclass(frozen=True)
class Choice:
    """The fastest configuration for lengths first to last (rows of Q) on a GPU that was tuned."""

    gpu: str  # as CUDA calls it, e.g. "NVIDIA H200"
    compute: int  # 90 for compute capability 9.0
    multiprocessors: int
    configuration: Configuration
    first: int = 1
    last: int = LONGEST


@dataclass(frozen=True)
class Built:
    """A library with the C ABI of stage 12 and one instance, for one element type and head dim."""

    configuration: Configuration
    library: Path

    def _number(self, pattern: str) -> int | None:
        found = re.search(pattern, self.library.with_suffix(".log").read_text())
        return int(found[1]) if found else None

    @property
    def registers(self) -> int | None:
        """A thread, as ptxas says; None where the library has no native code."""
        return self._number(r"Used (\d+) registers")

    @property
    def spill_bytes(self) -> int | None:
        """Bytes of local memory a thread: registers that ptxas spilled; None where there is no native code."""
        return self._number(r"(\d+) bytes stack frame")


def line(c) -> str:
    """The table's line that builds the instance of a configuration, of either stage."""
    return f'INSTANCE({_TYPES[c.dtype]}, {c.d_head}, "{c}", {c.cpp()[1:-1]})'


def table(configurations: Iterable[Configuration], choices: Iterable[Choice] = ()) -> str:
    """The text of instances.h: each configuration once, in the order given, and the choices."""
    lines = [
        "// Written by `make results` (flashladder/tuning/instances.py): what is built, and the fastest where tuned.",
        "// clang-format off",
    ]
    lines += [line(one) for one in dict.fromkeys(configurations)]
    lines += [
        f'CHOICE("{one.gpu}", {one.compute}, {one.multiprocessors}, FLASH_{one.configuration.dtype.upper()}, '
        f'{one.configuration.d_head}, {one.first}, {one.last}, "{one.configuration}")'
        for one in choices
    ]
    return "\n".join([*lines, "// clang-format on", ""])


def build(configuration: Configuration, compute: int | None = None) -> Built:
    """Compiles stage 12's kernel with this configuration alone, in the flags of the stage's own build.

    compute: 90 adds native code for compute capability 9.0, of which Built tells registers and spills (needs no GPU);
    None: PTX alone, which runs on the simulator. Cached by the content of all that goes into it; threads may
    call it at once. FlashLadderError has the compiler's words.
    """
    stage = stages.get(STAGE)
    return built(configuration, _source_with(configuration, stage.kernel), stage, compute)


def built(configuration, copy: Path, stage: stages.Kernel, compute: int | None) -> Built:
    """What a copy of either stage's kernel.cu is compiled into, with native code for compute where it is given."""
    native = native_options(stage.min_compute.native(compute)) if compute else []
    return Built(configuration, compile_kernel(copy, stage, *native, only=""))


def _source_with(configuration: Configuration, kernel: Path) -> Path:
    return place_beside("tuning", kernel, configuration, table([configuration]))


def place_beside(folder: str, kernel: Path, configuration, text: str) -> Path:
    """A copy of the kernel.cu with a table (its text) of this configuration alone beside it."""
    source = kernel.read_text()
    name = hashlib.sha256(f"{configuration}\n{source}".encode()).hexdigest()[:16]
    place(folder, name, TABLE.name, text)
    return place(folder, name, "kernel.cu", source)


def in_a_turn(configuration: Configuration, arch: str = machine_code.ARCH) -> dict[str, int]:
    """Machine instructions that a warp executes in a turn over a K/V tile, by class, and "registers" and "spill bytes";
    of bf16 alone. Needs nvcc and nvdisasm, and no GPU."""
    c = configuration
    found = machine_code.measure(_source_with(c, stages.get(STAGE).kernel), arch)[c.d_head]
    copies = 2 * c.Bc * c.d_head // 8 // (32 * c.warps)  # of 16 bytes that a thread makes in a turn
    counts = found["loop"].executed(copies)
    return counts | {"registers": found["registers"], "spill bytes": found["spill_bytes"]}


def kernel_hash() -> str:
    """sha256 of stage 12's kernel.cu without its table, which follows from what was recorded of the kernel."""
    return code_hash(stages.get(STAGE).kernel.read_bytes())


def defaults() -> list[Configuration]:
    """What is built where no GPU was tuned: the flags of stage 11, and for bf16 three that a reader can ask for and the
    tests run, since they take other ways through the kernel: those of stage 08, with one buffer for tiles; those of
    stage 05, which copies through registers; Q in registers, and K and V by one ldmatrix at a time, two ahead."""
    of_11 = [of_stage(11, dtype, d_head) for dtype in DTYPES for d_head in (64, 128)]
    one_by_one = (
        "(BF16, 64, 64, 128, 4): async+swizzled+load_0_1_1_tiles+Q_registers+fragment_buffers_2+opt_softmax+lean"
    )
    return [*of_11, of_stage(8, "bf16", 128), of_stage(5, "bf16", 64), parse(one_by_one)]


def stretches(rows: Iterable[dict], parsed: Callable[[str], C]) -> Iterator[tuple[C, int, int]]:
    """(configuration, first length, last length) from rows with Nq and configuration, by Nq: between two lengths that
    were timed the change comes at their geometric mean."""
    best = [(row["Nq"], parsed(row["configuration"])) for row in rows]
    edges = [math.isqrt(shorter * longer) for (shorter, _), (longer, _) in pairwise(best)]
    ranges = zip([0, *edges], [*edges, LONGEST], best, strict=True)
    for configuration, same in groupby(ranges, key=lambda one: one[2][1]):
        stretch = list(same)
        yield configuration, stretch[0][0] + 1, stretch[-1][1]


def choices(results: dict) -> list[Choice]:
    """What a record of `make tune` chose: a line for each type, head dim and stretch of lengths.

    results["chosen"] has rows with dtype, d_head, Nq and configuration, one for each length that was timed.
    """
    record = results["provenance"]
    gpu = record["device"], round(10 * record["compute_capability"]), results["multiprocessors"]
    rows = sorted(results["chosen"], key=lambda row: (row["dtype"], row["d_head"], row["Nq"]))
    found: list[Choice] = []
    for _, group in groupby(rows, key=lambda row: (row["dtype"], row["d_head"])):
        found += [Choice(*gpu, *stretch) for stretch in stretches(group, parse)]
    return found


def nearest(gpu: list[Choice], others: list[list[Choice]]) -> list[Choice]:
    """Of GPUs by their choices, the one that configured.h takes in place of a GPU that is none of them."""
    near = [one for one in others if one[0].compute // 10 == gpu[0].compute // 10]
    return min(near, key=lambda one: abs(one[0].multiprocessors - gpu[0].multiprocessors), default=[])


def needed(gpus: list[list[Choice]]) -> list[list[Choice]]:
    """Without the GPUs that chose what the nearest of those that are left chose: the table says the same without them,
    and what was measured with it is as good as before. The first one stays, and of others that could stand for each
    other the first."""

    def what(choices: list[Choice]) -> list[tuple]:
        return [(one.configuration, one.first, one.last) for one in choices]

    left = gpus
    for gpu in reversed(gpus[1:]):
        rest = [one for one in left if one is not gpu]
        if all(what(nearest(one, rest)) == what(one) for one in gpus if not any(one is kept for kept in rest)):
            left = rest
    return left


def shipped() -> str:
    """The text that instances.h should have: the defaults, then what the recorded GPUs chose."""
    gpus = [choices(results) for results in recorded.shipped(kind="tuning")]
    chosen = [one for gpu in needed([gpu for gpu in gpus if gpu]) for one in gpu]
    return table([*defaults(), *(one.configuration for one in chosen)], chosen)


def configurations_built() -> list[Configuration]:
    """Those of the committed table, in its order."""
    found = launches.instances(stages.get(STAGE))
    if not found:
        raise FlashLadderError(f"{TABLE} has no instances: `make results` writes it.")
    return [parse(one.configuration) for one in found]
