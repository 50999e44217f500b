"""make tune: the configurations of stage 12 filtered, built, verified, timed and remembered; the best by shape."""

import os
from dataclasses import dataclass
from pathlib import Path

from flashladder.building import build
from flashladder.commands import explain
from flashladder.core.console import coloured, say, table
from flashladder.core.device import Device, choose
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import RECORDED, ROOT, results_directory
from flashladder.ladder import stages
from flashladder.measuring import bench, recorded
from flashladder.tuning import gpu_times, instances, model, record, rules, space, tables
from flashladder.tuning.configuration import Configuration
from flashladder.tuning.store import Place, Store, default_file
from flashladder.tuning.tune import Known, Plan, Tuner

SIMULATED = 1  # configuration of each type and head dim that run where there is no GPU
LISTED = 12  # configurations of a table, the best of many
FASTEST = 16  # configurations of each length of another GPU's record, unless --limit says another number


@dataclass(frozen=True)
class Options:
    dtypes: tuple[str, ...] = ("bf16",)
    head_dims: tuple[int, ...] = (64, 128)
    full: bool = False
    configurations: Path | None = None  # a file of short forms, in place of a space
    fastest_of: Path | None = None  # a record of another GPU, in place of a space: the fastest of each of its lengths
    limit: int = 0  # configurations of each type and head dim, evenly over the space; 0: all. Of a record: see below
    tokens: int = Plan.tokens  # B * N
    heads: int = Plan.heads
    lengths: tuple[int, ...] = Plan.lengths
    short_list: tuple[int, ...] = Plan.short_list
    stages: tuple[int, ...] = Plan.stages
    best: int = Plan.best
    store: Path | None = None
    out: Path | None = None  # of the record
    again: bool = False  # what failed is tried again

    @property
    def of_all(self) -> bool:
        """Whether what is tuned is what a record that ships should be of."""
        ours, shipped = ((o.tokens, o.heads, o.lengths, o.short_list, o.stages) for o in (self, Plan))
        return not (self.configurations or self.fastest_of or self.limit) and ours == shipped

    @property
    def of_each_length(self) -> int:
        """Of fastest_of: how many."""
        return self.limit or FASTEST

    @property
    def space(self) -> str:
        """What is looked at, in words for a record; "" for the space that is tuned unless told otherwise."""
        if self.configurations:
            return f"the configurations of a file, {self.configurations.name}"
        if self.fastest_of:
            other = recorded.load(self.fastest_of)
            lengths = " and ".join(map(str, other["settings"]["short_list"]))
            return f"the {self.of_each_length} fastest at N = {lengths} of those timed on {recorded.label(other)}"
        few = f", {self.limit} of each type and head dim" if self.limit else ""
        return f"the larger space{few}" if self.full else few[2:]


def run(options: Options, device: Device | None = None) -> int:
    """Tunes, on the simulator without times; 1 where a configuration that no rule refuses failed."""
    stage = stages.get(instances.STAGE)
    device = device or choose(stage.min_compute)
    spaces = _spaces(options)
    build.build([*stage.targets, *(f"stage_{number:02d}" for number in options.stages)])
    if device.kind != "gpu":
        return _without_times(options, spaces, device)
    bench.check_build(device)
    say(f"Tuning on {device}")
    timer = gpu_times.GpuTimer(device, (*options.stages, stage.number))
    refused = _filtered(options, spaces, timer.limits())
    candidates = tuple(one for several in refused.values() for one in several.admitted)
    names = ("tokens", "heads", "lengths", "short_list", "stages", "best")
    plan = Plan(candidates, **{name: getattr(options, name) for name in names})
    store = open_store(options, device, instances.kernel_hash())
    say(
        f"What is measured is remembered in {os.path.relpath(store.file)}: a tuner that was stopped goes on from there."
    )
    outcome = Tuner(plan, store, gpu_times.DeviceWorkshop(device), timer).run()
    made = record.make(outcome, plan, refused, device, timer.multiprocessors, options.space)
    folder = RECORDED if options.of_all else results_directory()
    file = recorded.write(made, options.out or folder / record.file_name(device))
    for one in record.tuned(made):
        _show(one)
    say(f"\nWritten: {os.path.relpath(file, ROOT)}. `make results` draws the pictures and the tables of what lies in "
        "docs/results, and has stage 12 choose by it.")  # fmt: skip
    return report_failures(outcome.failures)


def _show(one: record.Tuned) -> None:
    for title, (head, rows) in (
        ("TFLOP/s by length, and of the peers in the same heat", tables.chosen(one)),
        ("How many times as long the winner takes", tables.worth(one)),
        ("Stage 12 with a stage's flags, times that stage's throughput", tables.stages(one)),
    ):
        if rows:
            table(f"{title}: {one}", head, rows, right=range(1, len(head)))
    say(f"winner over all lengths: {one.winner}")


def open_store(options, device: Device, kernel: str) -> Store:
    """What the options of either stage name; kernel: its hash."""
    place = Place(device.gpu.name, device.gpu.driver, str(build.info()["nvcc_version"]), kernel)
    store = Store(options.store or default_file(), place)
    if options.again:
        store.forget_failures()
    return store


def report_failures(failures: dict) -> int:
    """Of Tried.failures, of either stage."""
    if not failures:
        return 0
    rows = [(str(one), known.failed, (known.message.splitlines() or [""])[0][:200]) for one, known in failures.items()]
    table(coloured(f"{len(rows)} configurations that no rule refuses failed; none of them is chosen", "red"),
          ["configuration", "when", "what was said"], rows)  # fmt: skip
    return 1


Spaces = dict[tuple[str, int], list[Configuration]]  # by type and head dim


def _spaces(options: Options) -> Spaces:
    """What is to be looked at, before the rules."""
    if options.configurations:
        listed = space.from_file(options.configurations)
        groups = dict.fromkeys((one.dtype, one.d_head) for one in listed)
        return {group: [one for one in listed if (one.dtype, one.d_head) == group] for group in groups}
    if options.fastest_of:
        return _fastest(options)
    enumerate_space = space.full if options.full else space.bounded
    return {(dtype, d): list(enumerate_space(dtype, d)) for dtype in options.dtypes for d in options.head_dims}


def _fastest(options: Options) -> Spaces:
    other = recorded.load(options.fastest_of)
    if "configurations" not in other:
        raise FlashLadderError(f"{options.fastest_of} is no record of `make tune`.")
    wanted = [(dtype, d) for dtype in options.dtypes for d in options.head_dims]
    found = {group: record.Tuned(other, *group).fastest(options.of_each_length) for group in wanted}
    for dtype, d in wanted:
        if not found[dtype, d]:
            raise FlashLadderError(f"{options.fastest_of} has no times for {dtype}, d = {d}.")
    return found


def _filtered(options: Options, spaces: Spaces, limits: rules.Device) -> dict[tuple[str, int], space.Refusals]:
    """What the rules leave; prints how many each refused."""
    refused = {group: space.admitted(several, limits) for group, several in spaces.items()}
    show_refusals({f"{dtype}, d = {d}": one for (dtype, d), one in refused.items()}, rules.RULES)
    if options.limit and not options.fastest_of:
        refused = {group: one.thinned(options.limit) for group, one in refused.items()}
        say(f"Of these, {sum(len(one.admitted) for one in refused.values())}, evenly over the space (--limit).")
    if not any(one.admitted for one in refused.values()):
        raise FlashLadderError("The rules refuse every configuration; `make stage-12 explain CONFIG=...` says why.")
    return refused


def show_refusals(refused: dict[str, space.Refusals], among: tuple[rules.Rule, ...]) -> None:
    rows = [
        (rule.name, *(one.by_rule[rule.name] for one in refused.values()), rule.reason)
        for rule in among
        if any(one.by_rule[rule.name] for one in refused.values())
    ]
    counts = [("enumerated", *(one.enumerated for one in refused.values()), "")]
    left = [("left", *(len(one.admitted) for one in refused.values()), "")]
    table("Configurations that each rule refuses (one can break several)", ["rule", *refused, "reason"],
          [*counts, *rows, *left], right=range(1, len(refused) + 1))  # fmt: skip


def _without_times(options: Options, spaces: Spaces, device: Device) -> int:
    """Rules and model for all; a few are built and verified on the simulator, and stand beside the model."""
    say(f"Device: {device}. It has no time to measure, and none is measured: this is what rules, model and simulator "
        "say.")  # fmt: skip
    failures: dict[Configuration, Known] = {}
    for (dtype, d), one in _filtered(options, spaces, space.DEVICE).items():
        ranked = sorted(one.admitted, key=lambda c: model.bound(c)[1] / (c.Br * c.Bc))
        rows = [(str(c), *_predicted(c)) for c in ranked[:LISTED]]
        head = ["configuration", "registers", "blocks", "busiest unit", "FLOP a clock at most"]
        title = (
            f"{dtype}, d = {d}: the {len(rows)} that the model bounds least, on a multiprocessor of sm_{explain.ARCH}"
        )
        table(title, head, rows, right=(1, 2, 4))
        for c, known in gpu_times.DeviceWorkshop(device).prepare(ranked[:SIMULATED]):
            if known.failed:
                failures[c] = known
                continue
            say(f"\nverified on the simulator: {c}")
            explain.show_resources(c)
    say("\nNo time was measured. On a machine with a GPU `make tune` times them; recorded: docs/results.")
    return report_failures(failures)


def _predicted(c: Configuration) -> tuple[str, ...]:
    unit, clocks = model.bound(c, explain.ARCH)
    registers = model.registers(c)
    flops = 4 * c.Br * c.Bc * c.d_head / clocks
    return (str(registers), str(model.resident_blocks(c, registers)), unit, f"{flops:,.0f}")
