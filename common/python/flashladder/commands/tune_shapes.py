"""make tune ARGS="--stage shapes": the stage's configurations filtered, built, verified, timed; what runs where. And
one of them explained."""

import os
from dataclasses import dataclass, fields
from pathlib import Path

from flashladder.building import build
from flashladder.commands.explain import show_broken
from flashladder.commands.tune import open_store, report_failures, show_refusals
from flashladder.core.console import say, table
from flashladder.core.device import Device, choose
from flashladder.core.paths import RECORDED, ROOT, results_directory
from flashladder.ladder import stages
from flashladder.measuring import bench, recorded
from flashladder.tuning import gpu_times, record, shape_table, shape_tuner, shapes, space
from flashladder.tuning.rules import Device as Limits
from flashladder.tuning.shape_tuner import Plan
from flashladder.tuning.tune import Tried

SIMULATED = 2  # configurations of each head dim that run where there is no GPU


@dataclass(frozen=True)
class Options:
    dtypes: tuple[str, ...] = ("bf16",)
    head_dims: tuple[int, ...] = (64, 128)
    tokens: int = Plan.tokens  # B * N
    heads: int = Plan.heads
    lengths: tuple[int, ...] = Plan.lengths
    store: Path | None = None
    out: Path | None = None  # of the record
    again: bool = False  # what failed is tried again

    @property
    def of_all(self) -> bool:
        """Whether what is tuned is what a record that ships should be of."""
        return (self.dtypes, self.head_dims, self.tokens, self.heads, self.lengths) == (
            Options.dtypes, Options.head_dims, Plan.tokens, Plan.heads, Plan.lengths,
        )  # fmt: skip


def run(options: Options, device: Device | None = None) -> int:
    """Tunes, on the simulator without times; 1 where a configuration that no rule refuses failed."""
    stage = stages.get(shape_table.STAGE)
    device = device or choose(stage.min_compute)
    beside = [stages.get(name) for name in shape_tuner.BESIDE]
    build.build([target for one in (stage, *beside) for target in one.targets])
    everything = [one for dtype in options.dtypes for d in options.head_dims for one in shapes.space(dtype, d)]
    if device.kind != "gpu":
        return _without_times(everything, device)
    bench.check_build(device)
    say(f"Tuning on {device}")
    timer = gpu_times.GpuTimer(device, tuple(one.number for one in (*beside, stage)), shape_table)
    limits = timer.limits()
    plan = Plan(_filtered(everything, limits), options.lengths, options.tokens, options.heads)
    store = open_store(options, device, shape_table.kernel_hash())
    outcome = shape_tuner.run(plan, store, gpu_times.DeviceWorkshop(device, shape_table), timer)
    made = shape_tuner.make_record(outcome, plan, device, timer.multiprocessors)
    folder = RECORDED if options.of_all else results_directory()
    file = options.out or folder / record.file_name(device)
    recorded.write(recorded.inside("shapes", made), file)
    _show(made)
    say(
        f"\nWritten: {os.path.relpath(file, ROOT)}. `make results` has stage {stage.id} choose by what lies in "
        "docs/results."
    )
    return report_failures(outcome.failures)


def _filtered(everything: list[shapes.Configuration], limits: Limits) -> tuple[shapes.Configuration, ...]:
    """What the rules leave; prints how many each refused."""
    refused = space.admitted(everything, limits, shapes.RULES)
    show_refusals({"": refused}, shapes.RULES)
    return refused.admitted


def explain(words: list[str]) -> int:
    """make stage-shapes explain CONFIG="...": its fields, the rules that refuse it, and where none does what ptxas
    makes of it for compute capability 9.0. Without a configuration: what runs at N = 4096, bf16, d = 64, full."""
    text = " ".join(words).strip() or str(shape_table.chosen("bf16", 64, "full", 4096).configuration)
    one = shapes.parse(text)
    facts = [(field.name, getattr(one, field.name)) for field in fields(one)]
    facts += [(name, getattr(one, name)) for name in ("consumers", "threads", "launch_registers", "accumulators")]
    table(str(one), ["", ""], [*facts, ("shared bytes", one.shared_bytes)], right=(1,))
    if show_broken(shapes.refusals(one)):
        return 1
    build.build(stages.get(shape_table.STAGE).targets)
    built = shape_table.build(one, 90)
    say(f"No rule refuses it. ptxas, sm_90a: {built.registers} registers a thread at the launch, {built.spill_bytes} "
        "bytes of spills.")  # fmt: skip
    return 0


def _show(made: dict) -> None:
    rows = [
        (f"{row['dtype']}, d = {row['d_head']}, {'causal' if row['causal'] else 'full'}", row["Nq"], row["tflops"],
         row["configuration"])
        for row in made["chosen"]
    ]  # fmt: skip
    table("What runs where", ["", "N", "TFLOP/s", "configuration"], rows, right=(1, 2))


def _without_times(everything: list[shapes.Configuration], device: Device) -> int:
    """The rules for all; a few are built and verified on the simulator."""
    say(f"Device: {device}. It has no time to measure, and none is measured: this is what rules and simulator say.")
    left, tried = _filtered(everything, Limits()), Tried()
    for d in dict.fromkeys(one.d_head for one in left):
        few = [one for one in left if one.d_head == d][:: max(1, sum(one.d_head == d for one in left) // SIMULATED)]
        for one, known in gpu_times.DeviceWorkshop(device, shape_table).prepare(few[:SIMULATED]):
            tried.known[one] = known
            say(f"{'FAILED' if known.failed else 'verified on the simulator'}: {one}")
    say("\nNo time was measured. On a machine with a Hopper GPU this times them.")
    return report_failures(tried.failures)
