"""What instructions take beside products of the tensor cores: as recorded on a GPU, and as the timeline's model has it.

The program that was measured: one warpgroup issues eight wgmma (m64n128k16), waits for them and looks at a flag in
shared memory, over and over; the other repeats one instruction, 32 of them on as many registers and then a branch. So
a scheduler has one warp of each. Here the model replays the same.
"""

from dataclasses import dataclass

from flashladder.measuring import recorded
from flashladder.simulator import clocks, replay, steps

_BATCH, _INSTRUCTIONS, _BRANCH_CLOCKS = 8, 32, 8.0  # wgmma before a wait; of a round; until a branch is taken
_BATCHES = 60
_WGMMA = "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"
_ALU = ("max.f32", "max3.s32", "cvt.bf16x2")


@dataclass(frozen=True)
class Row:
    instruction: str  # "" for none
    products: bool
    recorded: dict[str, float]  # "clocks" of an instruction, "clocks_of_a_product"
    model: dict[str, float]


def rows() -> list[Row]:
    """Of the instructions whose costs the model has; empty where nothing is recorded."""
    record = recorded.first("beside")
    found = []
    for row in record["rows"] if record else []:
        name, products = row["instruction"], row["products"] == "bf16"
        if row["products"] != "e4m3" and name != "cvt.e4m3x2":
            said = {key: value for key, value in row.items() if key.startswith("clocks")}
            found.append(Row(name, products, said, replayed(name, products)))
    return found


def replayed(instruction: str, products: bool) -> dict[str, float]:
    """Clocks of an instruction and of a product, by the model."""
    numbers = clocks.load()
    batches = _batches(numbers) if products else ()
    rounds = _rounds(instruction, numbers) if instruction else ()
    warps = [replay.Warp(0, number, batches if number < replay.WARPGROUP else rounds) for number in range(8)]
    done = replay.replay(warps, numbers)
    # For as long as both are there.
    until = min(end for end in (done.ends[0], done.ends[replay.WARPGROUP]) if end)
    found = {}
    if instruction:
        ends = [span.end for span in done.spans if span.warp == replay.WARPGROUP and span.end <= until]
        found["clocks"] = ends[-1] / len(ends) / _INSTRUCTIONS
    if products:
        ends = [span.end for span in done.spans if (span.warp, span.kind) == (0, "wait") and span.end <= until]
        found["clocks_of_a_product"] = ends[-1] / len(ends) / _BATCH
    return found


def _batches(numbers: clocks.Clocks) -> tuple:
    look = replay.Stretch("arithmetic", {"issue": 5 * numbers.issue, "alu": 3 * numbers.alu},
                          5 * numbers.arithmetic_pace, numbers.shared_latency)  # fmt: skip
    product = replay.Together(steps.wgmma_clocks(_WGMMA, numbers))
    wait = (replay.Commit("wgmma"), replay.WaitGroups("wgmma", 0))
    return (look, replay.Together(), *[product] * _BATCH, *wait) * _BATCHES


def _rounds(instruction: str, numbers: clocks.Clocks) -> tuple:
    """Enough to last as long as the batches do. Nothing waits for anything but the branch."""
    units = {"issue": (_INSTRUCTIONS + 3) * numbers.issue, "alu": 2 * numbers.alu}
    if instruction in _ALU:
        units["alu"] += _INSTRUCTIONS * numbers.alu
    if instruction == "ex2.f32":
        units["special"] = _INSTRUCTIONS * numbers.special
    fp32 = _INSTRUCTIONS if instruction in ("fma.f32", "add.f32") else 0
    one = replay.Stretch("arithmetic", units, 0.0, _BRANCH_CLOCKS, fp32)
    return (one,) * (1100 if fp32 else 150 if instruction == "ex2.f32" else 450)
