"""What a kernel is tried with, and what comes of it: classes of sizes, another order of blocks, the technique."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from flashladder.classroom import device_code
from flashladder.classroom.assignment import Assignment
from flashladder.classroom.cases import draw
from flashladder.classroom.device_code import Built, Outcome, Sandbox
from flashladder.core.device import Device
from flashladder.core.problem import GAPS, Problem
from flashladder.ladder import technique
from flashladder.ladder.kernels import Kernel
from flashladder.ladder.launches import configurations, launches
from flashladder.running.verify import Comparison, check
from flashladder.simulator import accesses

TECHNIQUE_SEED = 20  # no seed that technique.judge() draws, with which students see their counters
TIMED = Problem(B=2, Hq=16, Nq=2048, d_head=128)  # keeps all of a GPU busy, and has a reference within seconds
NOT_RUN = "not run after"  # what ran out of its budget before
ANOTHER_ORDER = 1  # WARPSIM_SCHEDULE: the last block first, and other orders of warps


@dataclass(frozen=True)
class Trial:
    sizes: str  # the class of sizes
    public: bool
    problem: Problem
    inputs: str
    seed: int
    configuration: str | None = None  # of the instance that runs it, where a stage has several

    def __str__(self) -> str:
        return f"{self.problem}{f', {self.configuration}' if self.configuration else ''}"

    def arrays(self) -> dict[str, np.ndarray]:
        return draw(self.problem, self.inputs, self.seed)


@dataclass(frozen=True)
class Tried:
    trial: Trial
    outcome: Outcome = field(repr=False)
    comparison: Comparison | None = field(repr=False)  # None where there is no output

    @property
    def right(self) -> bool:
        return bool(self.comparison)

    @property
    def words(self) -> str:
        return self.outcome.words if self.comparison is None else self.comparison.message


def trials(assignment: Assignment, stage: Kernel) -> list[Trial]:
    """Every problem of the assignment, as the stage takes it, with each of the stage's instances for it and each hidden
    seed: what students can see of a public class is its sizes."""
    return [
        Trial(sizes.name, sizes.public, problem, sizes.inputs, seed, configuration)
        for sizes in assignment.sizes
        for problem in map(stage.own, sizes.problems)
        for configuration in configurations(stage, problem)
        for seed in assignment.hidden_seeds
    ]


@dataclass(frozen=True)
class Judgement:
    """What a whole source came to."""

    built: Built = field(repr=False)
    tried: tuple[Tried, ...] = ()
    order: str = ""  # words where another order of blocks gives another result
    technique: tuple[str, ...] = ()  # words for each expectation that is not met
    speed: float | None = None  # on a GPU: throughput over the solution's in the same run
    cause: str = ""  # what all wrong problems have in common, and no right one

    def right_in(self, sizes: str) -> bool:
        of_class = [one for one in self.tried if one.trial.sizes == sizes]
        return bool(of_class) and all(one.right for one in of_class)

    @property
    def first_wrong(self) -> Tried | None:
        return next((one for one in self.tried if not one.right), None)

    @property
    def right_in_public(self) -> bool:
        public = [one for one in self.tried if one.trial.public]
        return bool(public) and all(one.right for one in public)

    @property
    def flawless(self) -> bool:
        faults = (self.first_wrong, self.hazards, self.order, self.technique)
        return self.built.ok and not any(faults)

    @property
    def hazards(self) -> list[dict]:
        """Each hazard once: the simulator's records, by kind, file and line."""
        found = {}
        for one in self.tried:
            for hazard in one.outcome.hazards:
                if hazard["kind"] != "budget":
                    found.setdefault((hazard["kind"], hazard["file"], hazard["line"]), hazard)
        return list(found.values())

    @property
    def instructions(self) -> int:
        return sum(one.outcome.instructions for one in self.tried)


def judge(
    stage: Kernel,
    source: str,
    assignment: Assignment,
    sandbox: Sandbox,
    technique_names: list[str] | None = (),
    diagnose: bool = True,
) -> Judgement:
    """Builds a whole source and tries it. technique_names: expectations of stage.toml, None for all of them."""
    built = device_code.compile_kernel(stage, source, sandbox)
    slowest = None if sandbox.device.kind == "sim" else 0.0
    if not built.ok:
        return Judgement(built, speed=slowest)

    simulator = replace(sandbox, device=Device("sim", None))

    def attempt(trial: Trial) -> Tried:
        """On the simulator; what is right there and has no hazard, on the GPU as well, if there is one."""
        simulated = _attempt(stage, built, trial, simulator)
        if sandbox.device.kind == "sim" or not simulated.right or simulated.outcome.hazards:
            return simulated
        real = _attempt(stage, built, trial, sandbox)
        return simulated if real.right else real

    tried, spent = [], None
    for trial in trials(assignment, stage):
        if spent:  # what ran out of its budget once does so again, at the others' expense
            words = f"{NOT_RUN} {spent.trial}, where {spent.outcome.words}"
            tried.append(Tried(trial, Outcome("budget", words), None))
            continue
        tried.append(attempt(trial))
        spent = tried[-1] if tried[-1].outcome.failure == "budget" else None
    found = Judgement(built, tuple(tried), speed=slowest)
    if found.first_wrong:
        return replace(
            found,
            cause=""
            if spent or not diagnose
            else cause(stage, attempt, found.first_wrong.trial) or _in_instances(tried),
        )
    return replace(
        found,
        order=_order_words(stage, built, tried, simulator),
        technique=tuple(_technique_words(stage, built, technique_names, simulator)),
        speed=slowest if slowest is None else _speed(stage, built, sandbox),
    )


def _attempt(stage: Kernel, built: Built, trial: Trial, sandbox: Sandbox, order: int = 0) -> Tried:
    inputs, how = trial.arrays(), {"order": order, "configuration": trial.configuration}
    outcome = device_code.run(stage, built, trial.problem, inputs, sandbox, **how)
    if outcome.output is None:
        return Tried(trial, outcome, None)
    return Tried(trial, outcome, check(trial.problem, inputs, outcome.output, outcome.log_sum_exp))


def _order_words(stage: Kernel, built: Built, tried: list[Tried], simulator: Sandbox) -> str:
    """Blocks have no order: a kernel that is right where the first block comes first, and not where it comes last, has
    blocks that write each other's rows."""

    def blocks(trial: Trial) -> int:
        return np.prod(launches(stage, trial.problem, configuration=trial.configuration)[-1].grid)

    largest = max((one.trial for one in tried), key=blocks)
    again = _attempt(stage, built, largest, simulator, ANOTHER_ORDER)
    if again.right:
        return ""
    return (
        f"the result depends on the order of blocks, which has none (do they write each other's rows?): {again.words}"
    )


TECHNIQUE_RUNS = ((128, "bf16"), (64, "fp16"))  # a kernel may be naive for one of them alone


def _technique_words(stage: Kernel, built: Built, names: list[str] | None, simulator: Sandbox) -> Iterator[str]:
    """By the simulator's counters, wherever else the kernel ran: one sentence for each expectation that is not met. The
    run that is counted has to be right, too."""
    reports = []
    asked = [run for kind in TECHNIQUE_RUNS for run in technique.runs(stage, names, *kind)] if names != [] else []
    for run in dict.fromkeys(asked):
        if run.own_choice:  # the launcher, which chooses, is the grader's
            continue
        inputs = run.arrays(TECHNIQUE_SEED)
        outcome = device_code.run(stage, built, run.problem, inputs, simulator, traced=run.traced)
        if outcome.output is None or not check(run.problem, inputs, outcome.output, outcome.log_sum_exp):
            yield f"not in the run whose counters show the technique: {run.problem}: {outcome.words or 'wrong'}"
            return
        reports.append((run, outcome.report or {"launches": []}))
    yield from technique.all_failures(stage, reports, names)


def _speed(stage: Kernel, built: Built, sandbox: Sandbox) -> float:
    """On a GPU, at the size TIMED; 0.0 for a kernel that is not right there, or ends otherwise."""
    solution = device_code.compile_kernel(stage, stage.kernel.read_text(), sandbox)
    timed = stage.own(TIMED)
    inputs = timed.random(TECHNIQUE_SEED)
    outcome = device_code.run(stage, built, timed, inputs, sandbox, rival=solution)
    if outcome.output is None or not check(timed, inputs, outcome.output, outcome.log_sum_exp):
        return 0.0
    return outcome.speed


UNEQUAL = "with strides of which no two are equal"


# What a problem may have that the plain one has not: words, and the fields that change. `inputs` is of the trial. A
# group of heads has more than one head of K and V, or any head of them would be the right one; a causal mask is tried
# with and without as many rows as keys, since the diagonal moves between the two.
def _changes(stage: Kernel, Br: int, Bc: int) -> dict[str, dict]:
    changes = {
        "with d_head = 64": {"d_head": 64},
        "with fp16": {"dtype": "fp16"},
        "with B > 1": {"B": 2},
        "with an odd number of K/V tiles": {"Nkv": 3 * Bc},
        "in the layout (B,N,H,d)": {"layout": "bnhd"},
        UNEQUAL: {"layout": GAPS},
        "with several blocks of queries": {"Nq": 3 * Br},
        "with many K/V tiles": {"Nkv": 6 * Bc},
        "with large logits": {"inputs": "large"},
    }
    if stage.data.get("masks"):
        changes |= {
            "with a causal mask": {"causal": True, "Nq": Br + Bc, "Nkv": Br + Bc},
            "with a causal mask and more keys than rows": {"causal": True, "Nq": Br + 9, "Nkv": Br + 2 * Bc},
            "with a causal mask and rows that see no key": {"causal": True, "Nq": Br + 2 * Bc, "Nkv": Bc},
            "with grouped heads": {"Hq": 4, "Hkv": 2},
            "with one head of K and V for all of Q's": {"Hq": 4, "Hkv": 1},
            "with lengths that are no multiple of the tile": {"Nq": Br - 9, "Nkv": 2 * Bc - 9},
        }
    if "fp16" not in stage.dtypes:
        del changes["with fp16"]
    return changes


# Wrong with the second, and of course with the first: not told, nor tried.
_TOLD_BY = {
    "with a causal mask and more keys than rows": "with a causal mask",
    "with a causal mask and rows that see no key": "with a causal mask",
    "with one head of K and V for all of Q's": "with grouped heads",
}


def cause(stage: Kernel, attempt: Callable[[Trial], Tried], failed: Trial | None = None) -> str:
    """What the wrong results have in common: one plain problem, and others that differ from it in one thing each. Where
    none of these is wrong, failed, which is, less one thing at a time."""
    launch = stage.data["launch"][-1]
    Br, Bc = launch.get("Br", 32), launch.get("Bc", 32)
    plain = Trial("", True, stage.own(Problem(B=1, Hq=2, Nq=Br, Nkv=2 * Bc, d_head=128)), "normal", 1)
    if not attempt(plain).right:
        opposite = {
            "with d_head = 128": {"d_head": 64},
            "with bf16": {"dtype": "fp16"},
            "with an even number of K/V tiles": {"Nkv": 3 * Bc},
            "in the layout (B,H,N,d)": {"layout": "bnhd"},
            "with several heads": {"Hq": 1},
            "with more than one K/V tile": {"Nkv": Bc},
        }
        if "fp16" not in stage.dtypes:
            del opposite["with bf16"]
        right = [words for words, change in opposite.items() if attempt(_changed(plain, change)).right]
        return f"wrong only {' and '.join(right)}" if right else "wrong in every problem that was tried"
    wrong: list[str] = []
    for words, change in _changes(stage, Br, Bc).items():
        if _TOLD_BY.get(words) not in wrong and not attempt(_changed(plain, change)).right:
            wrong.append(words)
    if wrong:
        return f"wrong only {', or '.join(wrong)}"
    together = _together(stage, attempt, failed, plain) if failed else []
    return f"wrong only {' and '.join(together)} together" if len(together) > 1 else ""


def _together(stage: Kernel, attempt: Callable[[Trial], Tried], failed: Trial, plain: Trial) -> list[str]:
    """What a wrong problem cannot lack and still be wrong."""
    own, usual, Br = failed.problem, plain.problem, stage.data["launch"][-1].get("Br", 32)
    less = {
        "d_head = 64": {"d_head": usual.d_head} if own.d_head != usual.d_head else {},
        "fp16": {"dtype": usual.dtype} if own.dtype != usual.dtype else {},
        "B > 1": {"B": 1} if own.B > 1 else {},
        "the layout (B,N,H,d)": {"layout": usual.layout} if own.layout == "bnhd" else {},
        UNEQUAL.removeprefix("with "): {"layout": usual.layout} if own.layout == GAPS else {},
        "a causal mask": {"causal": False} if own.causal else {},
        "grouped heads": {"Hkv": own.Hq} if own.Hkv != own.Hq else {},
        "several blocks of queries": {"Nq": Br} if own.Nq > Br else {},
        f"{failed.inputs.replace('_', '-')} inputs": {"inputs": "normal"} if failed.inputs != "normal" else {},
    }
    trial = replace(failed, configuration=None)
    if attempt(trial).right:  # it is wrong by its instance alone
        return []
    found = [words for words, change in less.items() if change and attempt(_changed(trial, change)).right]
    return [f"with {words}" if number == 0 else words for number, words in enumerate(found)]


def _in_instances(tried: list[Tried]) -> str:
    """Which of a stage's instances were wrong wherever they were tried, and are not all of them."""
    right = {one.trial.configuration for one in tried if one.right}
    wrong = dict.fromkeys(one.trial.configuration for one in tried if one.trial.configuration not in right)
    return f"wrong only as {', or as '.join(wrong)}" if right and None not in wrong and wrong else ""


def _changed(trial: Trial, change: dict) -> Trial:
    inputs = change.get("inputs", trial.inputs)
    fields = asdict(trial.problem) | {"scale": 0.0, "Hkv": 0} | {k: v for k, v in change.items() if k != "inputs"}
    return replace(trial, problem=Problem(**fields), inputs=inputs)


def leave_accesses(folder: Path, stage: Kernel, source: str, built: Built, sandbox: Sandbox) -> None:
    """Writes the access to shared memory with the most bank conflicts to folder/accesses.json, for a picture of it.
    Source lines are those of the source that was judged: a report names whatever file a kernel says that it is from."""
    lines = source.splitlines()

    def text(file: str, line: int) -> str:
        return lines[line - 1].strip() if Path(file).name == "kernel.cu" and 0 < line <= len(lines) else ""

    problem = stage.own(Problem(Hq=1, Nq=accesses.PROBLEM.Nq, d_head=128))
    outcome = device_code.run(
        stage, built, problem, problem.random(1), replace(sandbox, device=Device("sim", None)), accesses=1
    )
    found = accesses.in_report(outcome.report or {"launches": []}, stage.name, text)
    excess = [one for one in found if one.space == "shared" and one.ideal is not None and one.cost > one.ideal]
    if excess:
        worst = max(excess, key=lambda one: one.cost - one.ideal)
        (folder / "accesses.json").write_text(json.dumps([asdict(worst)]))


def leave_errors(folder: Path, tried: Tried) -> None:
    """Writes what a map of errors needs to folder/wrong.npz."""
    if tried.outcome.output is None:
        return
    problem = json.dumps(asdict(tried.trial.problem))
    np.savez(folder / "wrong.npz", problem=problem, O=tried.outcome.output, **tried.trial.arrays())
