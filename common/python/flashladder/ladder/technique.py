"""Is a stage's idea really used? stage.toml's `[[expected]]` says what the simulator's counters show if it is.

The same expectations judge the stages (tests/stages/test_technique.py), mutants, exercises and submissions. Each
compares two expressions (core/expression.py) over the names of namespace(): counters of a run, sizes of the problem.
"""

import math
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from flashladder.core.errors import FlashLadderError
from flashladder.core.expression import RELATIONS, evaluate, is_counted
from flashladder.core.problem import Problem
from flashladder.ladder import overlap, stages
from flashladder.ladder.kernels import problem_for
from flashladder.ladder.launches import for_problem, launches, own_names

SIZES = ("B", "Hq", "Hkv", "Nq", "Nkv", "d_head", "causal")
INPUTS = ("random", "largest_first", "largest_last", "within_margin")
GROWTH = {"fp16": 16.5, "bf16": 80.0}  # of within_margin's largest score, as a power of 2


@dataclass(frozen=True)
class Expectation:
    """One entry of `[[expected]]`: left relation right, in each run of the stage for which `when` holds."""

    name: str
    says: str  # what is expected, e.g. "ldmatrix without bank conflicts"
    left: str
    relation: str
    right: str
    failure: str  # words for who has not used the technique; {left} and {right} are the two values
    when: str = ""  # of the problem alone, e.g. "causal"; "": always
    inputs: str = ""  # one of INPUTS, where the counters depend on the numbers; "": any
    problem: dict = field(default_factory=dict, hash=False)  # fields of the Problem that shows it, besides the usual
    own_choice: bool = False  # in runs whose configuration the kernel chooses; else where it is stage.toml's

    @property
    def traced(self) -> bool:
        """Whether it is about what a trace shows, and so of runs that leave one."""
        return any(f"order.{name}" in self.left + self.right for name in overlap.NAMES)

    def holds_for(self, names: dict[str, int], inputs: str, own_choice: bool = False) -> bool:
        alike = self.own_choice == own_choice and self.inputs in ("", inputs)
        return alike and (not self.when or bool(evaluate(self.when, names)))


@dataclass(frozen=True)
class Run:
    """A run that a stage's technique is judged by."""

    problem: Problem
    inputs: str = "random"  # one of INPUTS
    own_choice: bool = False  # the kernel chooses its configuration
    traced: bool = False  # it has to leave a trace

    def configuration(self, stage: stages.Stage) -> str | None:
        """In the short form; None where the kernel chooses, or has none."""
        return None if self.own_choice else stage.configuration(self.problem)

    def arrays(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Q, K and V as bit patterns. largest_first: the first 64 keys have by far the largest score of every row, so a
        kernel that begins there meets no larger one; largest_last: the last 64 keys. within_margin: the first key's
        score is above all others, which are 0, by so much that P keeps its old reference if that has a margin alone."""
        p = self.problem
        if self.inputs == "random":
            return p.random(seed)
        generator = np.random.default_rng(seed)
        values = {name: generator.standard_normal(p.shape(name), np.float32) for name in "QKV"}
        queries, keys = p.to_bhnd(values["Q"]), p.to_bhnd(values["K"])  # views
        if self.inputs == "within_margin":
            queries[...], keys[...] = 0, 0
            keys[:, :, 0, 0] = GROWTH[p.dtype] / (8 * p.scale * math.log2(math.e))
        else:
            keys[..., 0] = 0
            keys[:, :, slice(None, 64) if self.inputs == "largest_first" else slice(-64, None), 0] = 200
        queries[..., 0] = 8
        return p.rounded(values)


def expectations(stage: stages.Stage | int | str) -> list[Expectation]:
    """The stage's own and those that it keeps (`keeps = ["swizzle.no_ldmatrix_conflicts"]`).

    FlashLadderError says what is wrong with an entry.
    """
    stage = stages.entry(stage)
    kept = []
    for name in stage.data.get("keeps", []):
        slug, _, wanted = name.partition(".")
        earlier = stages.get(slug)
        found = [one for one in _own(earlier) if one.name == wanted]
        if not found or earlier.number >= stage.number:
            raise FlashLadderError(f"{stage.folder / 'stage.toml'} keeps '{name}', which no earlier stage expects.")
        kept += found
    return _own(stage) + kept


def _own(stage: stages.Stage) -> list[Expectation]:
    return [_read(stage, entry) for entry in stage.data.get("expected", [])]


def _read(stage: stages.Stage, entry: dict) -> Expectation:
    where = f"{stage.folder / 'stage.toml'}, expected '{entry.get('name', '?')}'"
    known = {one.name for one in fields(Expectation)}
    needed = {"name", "says", "left", "relation", "right", "failure"}
    if set(entry) - known or needed - set(entry):
        raise FlashLadderError(
            f"{where}: an entry has {', '.join(sorted(needed))} and perhaps {', '.join(sorted(known - needed))}."
        )
    if entry["relation"] not in RELATIONS or entry.get("inputs", "random") not in INPUTS:
        raise FlashLadderError(f"{where}: relation is one of {', '.join(RELATIONS)}; inputs of {', '.join(INPUTS)}.")
    return Expectation(**entry)


def namespace(stage: stages.Stage, problem: Problem, report: dict | None = None) -> dict[str, int]:
    """What expressions speak of: the problem's sizes; Br, Bc and threads of stage.toml's main launch for it;
    `blocks` and `warps` of its grid; what [names] has; `query_tiles`, Br rows of one head each; `whole`: all tiles are,
    and nothing is masked. With a report, of all its launches together:

    launches, instructions.total, instructions.CLASS; shared.KIND.wavefronts, .ideal; global.KIND.sectors, .ideal,
    .bytes; bulk.KIND.copies, .bytes; tensor_copies.KIND.copies, .bytes, .sectors; mbarriers.waits, .waited; barriers,
    divergent_branches; order.tensor_during_copies, order.ldmatrix_in_a_row (the most of any launch); of the last launch
    order.first_block, order.last_block; of a run that left a trace order.special_during_wgmma and order.barrier_waits,
    of its first block. A class or kind that the report does not have counts 0.
    """
    launch = for_problem(stage.launch, problem)
    found = {name: int(getattr(problem, name)) for name in SIZES}
    found |= {name: launch[name] for name in ("Br", "Bc", "threads") if name in launch}
    found["blocks"] = math.prod(launches(stage, problem)[stage.main_launch].grid)
    found["warps"] = found["blocks"] * launch["threads"] // 32
    found |= own_names(stage, problem)
    found["query_tiles"] = problem.B * problem.Hq * -(-problem.Nq // launch.get("Br", 1))
    ragged = problem.Nq % launch.get("Br", 1) or problem.Nkv % launch.get("Bc", 1)
    found["whole"] = int(not (ragged or problem.causal))
    if report is None:
        return found
    traced = {f"order.{name}": count for name, count in report.get("overlap", {}).items()}
    return _Counters(found | _counted(report["launches"]) | traced)


def counted(report: dict) -> dict[str, int]:
    """The counters of a report, whatever kernel it is of, by the names of namespace()."""
    return _Counters(_counted(report["launches"]))


class _Counters(dict):
    def __missing__(self, name: str) -> int:
        if name.split(".")[0] not in ("instructions", "shared", "global", "bulk", "tensor_copies", "mbarriers"):
            raise KeyError(name)
        return 0


def _counted(counted: list[dict]) -> dict[str, int]:
    sums: dict[str, int] = defaultdict(int, {"launches": len(counted)})
    for launch in counted:
        sums["instructions.total"] += launch["instructions"]["total"]
        for name, count in launch["instructions"]["by_class"].items():
            sums[f"instructions.{name}"] += count
        for space in ("shared", "global", "bulk", "tensor_copies"):
            for kind, counts in launch.get(space, {}).items():
                for name, count in counts.items():
                    sums[f"{space}.{kind}.{name}"] += count or 0
        for name, count in launch.get("mbarriers", {}).items():
            sums[f"mbarriers.{name}"] += count
        for name in ("barriers", "divergent_branches"):
            sums[name] += launch[name]
        order = launch["order"]
        sums["order.tensor_during_copies"] += order["tensor_during_copies"]
        sums["order.ldmatrix_in_a_row"] = max(sums["order.ldmatrix_in_a_row"], order["ldmatrix_in_a_row"])
        sums["order.first_block"], sums["order.last_block"] = order["first_block"], order["last_block"]
    return dict(sums)


def chosen(stage: stages.Stage | int | str, names: Collection[str] | None = None) -> list[Expectation]:
    """The stage's expectations of those names, all where none are given. FlashLadderError where there is no such."""
    known = expectations(stage)
    unknown = set(names or ()) - {one.name for one in known}
    if unknown:
        there = ", ".join(one.name for one in known) or "none"
        raise FlashLadderError(f"Stage {stages.entry(stage).id} has no technique '{sorted(unknown)[0]}': {there}.")
    return [one for one in known if names is None or one.name in names]


@dataclass(frozen=True)
class Outcome:
    """What an expectation came to in a run."""

    expectation: Expectation
    left: int
    right: int

    @property
    def met(self) -> bool:
        return RELATIONS[self.expectation.relation](self.left, self.right)

    @property
    def shown(self) -> bool:
        """Whether the run says anything of it. Where a counter is compared with another one, or with sizes, and both
        sides are 0, nothing happened that could have been done in another way."""
        return bool(self.left or self.right) or not is_counted(self.expectation.right)

    @property
    def words(self) -> str:
        """For who has not met it."""
        return self.expectation.failure.format(left=f"{self.left:,}", right=f"{self.right:,}")


def outcomes(
    stage: stages.Stage | int | str,
    report: dict,
    run: Run,
    names: Collection[str] | None = None,
) -> list[Outcome]:
    """Of the expectations that hold for a run, by its report (warpsim's JSON). names: all by default."""
    stage = stages.entry(stage)
    counted = namespace(stage, run.problem, report)
    known = [one for one in chosen(stage, names) if "overlap" in report or not one.traced]
    asked = [one for one in known if one.holds_for(counted, run.inputs, run.own_choice)]
    return [Outcome(one, evaluate(one.left, counted), evaluate(one.right, counted)) for one in asked]


def runs(
    stage: stages.Stage | int | str, names: Collection[str] | None = None, d_head: int = 128, dtype: str = "bf16"
) -> list[Run]:
    """The runs that show all of the expectations: a small problem, and those that the expectations themselves name."""
    stage = stages.entry(stage)
    found: dict[tuple, Run] = {}
    for one in chosen(stage, names):
        problem = _problem(stage, {"d_head": d_head, "dtype": dtype, **one.problem})
        run = Run(problem, one.inputs or "random", one.own_choice, one.traced)
        key = (run.problem, run.inputs, run.own_choice)
        if key not in found or run.traced:
            found[key] = run
    return list(found.values())


def _problem(stage: stages.Stage, fields: dict) -> Problem:
    """A small problem with these fields."""
    if isinstance(stage, stages.Decode):
        return stage.usual(**fields)
    usual = problem_for(stage)
    fields = fields | {"dtype": stage.own(Problem(dtype=fields["dtype"])).dtype}
    return Problem(**{"B": usual.B, "Hq": usual.Hq, "Nq": 2 * usual.Nq, "Nkv": usual.Nkv} | fields)


def judge(
    stage: stages.Stage | int | str,
    library: Path | None = None,
    names: Collection[str] | None = None,
    d_head: int = 128,
    dtype: str = "bf16",
    built_from: stages.Stage | None = None,
) -> list[str]:
    """Runs the stage (or another build of it) on the simulator, by runs(), and collects what all_failures() says.
    built_from: whose kernel the library has, if it is another stage's, which may have no configurations. Raises
    StageError where a run fails."""
    stage = stages.entry(stage)
    built_from = built_from or stage

    def counted(run: Run) -> dict:
        configuration = run.configuration(built_from)
        with tempfile.TemporaryDirectory(prefix="flashladder-") as name:
            options = {
                "environment": overlap.variables(Path(name)) if run.traced else {},
                "configuration": configuration,
            }
            inputs = run.arrays() if isinstance(stage, stages.Kernel) else None
            report = stage.run(run.problem, inputs, "sim", library, **options).report
            if run.traced:
                overlap.complete(report, Path(name))
        return report

    return all_failures(stage, ((run, counted(run)) for run in runs(stage, names, d_head, dtype)), names)


def all_failures(
    stage: stages.Stage | int | str, reports: Iterable[tuple[Run, dict]], names: Collection[str] | None = None
) -> list[str]:
    """By the reports of runs(): one sentence for each expectation that a run does not meet, or that no run shows. What
    the runs that are given do not ask for is left out."""
    stage = stages.entry(stage)
    failed: dict[str, str] = {}
    unseen: dict[str, Expectation] = {}
    shown: set[str] = set()
    for run, report in reports:
        for one in outcomes(stage, report, run, names):
            name = one.expectation.name
            if not one.met:
                failed.setdefault(name, one.words)
            elif one.shown:
                shown.add(name)
            else:
                unseen[name] = one.expectation
    silent = [one for name, one in unseen.items() if name not in shown and name not in failed]
    return [*failed.values(), *map(unshown, silent)]


def unshown(one: Expectation) -> str:
    """Words for one that holds because nothing happened."""
    return f"nothing shows this: {one.says} ({one.left} and {one.right} are both 0)"
