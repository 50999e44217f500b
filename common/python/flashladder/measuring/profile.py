"""Counters of a stage by source line on the simulator, beside the stage before; Nsight Compute's where it is there."""

from pathlib import Path

from flashladder.core.console import count, say, table
from flashladder.core.device import choose, find_gpu
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.core.problem import Problem
from flashladder.ladder import stages, technique
from flashladder.ladder.kernels import WithKernel
from flashladder.measuring import ncu, recorded
from flashladder.running.job import Result
from warpsim import counters

PROBLEM = Problem(B=1, Hq=2, Nq=256, d_head=128, dtype="bf16")
MOST_LINES = 12


def _source(line: counters.Line) -> str:
    file = Path(line.file)
    try:
        text = (file if file.is_absolute() else ROOT / file).read_text().splitlines()[line.line - 1].strip()
    except (OSError, IndexError):
        return ""
    return text if len(text) <= 64 else text[:61] + "..."


def waste(report: dict) -> tuple[int, int]:
    """(wavefronts, sectors) beyond what the same bytes must cost, summed over the lines."""
    lines = counters.lines(report)
    return sum(line.shared_excess for line in lines), sum(max(line.global_excess, 0) for line in lines)


LINE_COLUMNS = ("line", "PTX instr.", "share", "wavefronts", "conflicts", "sectors", "excess", "source")


def by_line(report: dict, limit: int = MOST_LINES) -> list[tuple[str, ...]]:
    """The lines with the most waste, then the most work, as LINE_COLUMNS says."""
    lines = counters.lines(report)
    total = sum(line.instructions for line in lines) or 1
    # Waste first, then work: the lines worth a look are those that cost more than they must.
    lines.sort(key=lambda line: (-(line.shared_excess + max(line.global_excess, 0)), -line.instructions))
    return [
        (
            line.where,
            count(line.instructions),
            f"{100 * line.instructions / total:.1f}%",
            count(line.shared_wavefronts) if line.shared_wavefronts else "",
            count(line.shared_excess) if line.shared_excess else "",
            count(line.global_sectors) if line.global_sectors else "",
            count(line.global_excess) if line.global_excess > 0 else "",
            _source(line),
        )
        for line in lines[:limit]
    ]


ASYNCHRONOUS_COLUMNS = ("line", "bytes copied", "TMA sectors", "waits", "phase open", "source")


def asynchronous_by_line(report: dict) -> list[tuple[str, ...]]:
    """The lines that copy in bulk (boxes of tensors too) or wait for mbarriers, in the order of the file."""
    return [
        (
            line.where,
            count(line.bulk_bytes) if line.bulk_bytes else "",
            count(line.tensor_sectors) if line.tensor_sectors else "",
            count(line.mbarrier_waits) if line.mbarrier_waits else "",
            count(line.mbarrier_waited) if line.mbarrier_waits else "",
            _source(line),
        )
        for line in counters.lines(report)
        if line.bulk_bytes or line.mbarrier_waits
    ]


def totals(results: dict[str, Result], classes: bool = True) -> list[list[str]]:
    """Rows of a name and its figure for each of the results; what is 0 everywhere is left out.

    classes: also the instructions by class.
    """
    sums = {name: counters.totals(result.report) for name, result in results.items()}
    keys = [key for key in next(iter(sums.values())) if any(values[key] for values in sums.values())]
    rows = [[key, *(count(values[key]) for values in sums.values())] for key in keys]
    names = dict.fromkeys(name for result in results.values() for name in counters.classes(result.report))
    for name in names if classes else ():
        rows.append(
            [f"  {name} instructions", *(count(counters.classes(r.report).get(name, 0)) for r in results.values())]
        )
    return rows


def measure(pair: list[WithKernel], problem: Problem = PROBLEM) -> dict[str, Result]:
    """Runs the stages on the simulator, by name. FlashLadderError where it left no report."""
    results = {one.name: one.run(one.own(problem), device="sim") for one in pair}
    for name, result in results.items():
        if not result.report or not result.report["launches"]:
            raise FlashLadderError(f"The simulator left no report for {name}: rebuild with `make build`.")
    return results


def technique_of(stage: stages.Stage, report: dict, problem: Problem) -> list[list[str]]:
    """Rows of what the stage's technique must show in this run: in words, what is, what must be, and "yes" or "NO"."""
    return [
        [one.expectation.says, f"{one.left:,}", f"{one.expectation.relation} {one.right:,}", "yes" if one.met else "NO"]
        for one in technique.outcomes(stage, report, technique.Run(problem))
    ]


def show(stage: stages.Stage, problem: Problem = PROBLEM) -> None:
    """Prints totals of the stage beside those of the one before, what its technique must show, and its lines."""
    before = stages.previous_of(stage)
    pair = [one for one in (before, stage) if one]
    results = measure(pair, problem)
    say("Device for the counters by line: simulator (warpsim)")
    title = f"Simulator, {problem}; instructions are PTX's, by warp"
    table(title, ["", *results], totals(results), right=range(1, len(results) + 1))
    expected = technique_of(stage, results[stage.name].report, problem)
    table(f"{stage.name}: what its technique must show", ["", "is", "must be", "met"], expected, right=(1, 2))
    for one in pair:
        title = f"{one.name}: the lines with the most waste, then the most work"
        table(title, LINE_COLUMNS, by_line(results[one.name].report), right=range(1, 7))
        if asynchronous := asynchronous_by_line(results[one.name].report):
            title = f"{one.name}: bulk copies, and waits for mbarriers"
            table(title, ASYNCHRONOUS_COLUMNS, asynchronous, right=range(1, 5))
    for hazard in counters.hazards(results[stage.name].report):
        say(f"hazard: {hazard['message']}")
    if not find_gpu():
        _show_recorded(pair)
        return
    _show_gpu(pair, problem)


RESOURCES = {"threads": "threads", "shared_bytes": "shared bytes", "registers": "registers",
             "spill_bytes": "spill bytes", "resident_blocks": "resident blocks"}  # fmt: skip


def recorded_resources(several: list[stages.Stage]) -> tuple[str, list[list]]:
    """Registers and spills are the machine code's; without a GPU, those of a recorded run: (where, rows)."""
    run = recorded.of(several[-1].name)
    if run:
        rows = recorded.pick(run, dtype="bf16", d_head=128, causal=False)
        found = {row["name"]: row for row in rows}
        body = [[one.name, *(found[one.name][key] for key in RESOURCES)] for one in several if one.name in found]
        stale = any(recorded.is_stale(found[row[0]]) for row in body)
        return f"{recorded.label(run)}{' (stale: the kernel has changed since)' if stale else ''}", body
    return "", []


def _show_recorded(pair: list[stages.Stage]) -> None:
    where, body = recorded_resources(pair)
    if body:
        title = f"Recorded on {where}; there is no GPU here"
        table(title, ["stage", *RESOURCES.values()], body, right=range(1, 6))


def _show_gpu(pair: list[stages.Stage], problem: Problem) -> None:
    rows, counted = [], {}
    for one in pair:
        where = choose(one.min_compute, "auto")
        if where.kind != "gpu":
            say(f"{one.name}: {where.reason}; no figures of a GPU.")
            continue
        facts = one.describe(problem, "gpu")
        rows.append([one.name, *(facts[key] for key in RESOURCES)])
        if ncu.available():
            try:
                counted[one.name] = ncu.measure(one, problem, where)
            except FlashLadderError as error:
                say(str(error))
    if rows:
        table(f"On {find_gpu().name}", ["stage", *RESOURCES.values()], rows, right=range(1, 6))
    if not ncu.available():
        say("ncu is not on PATH: no figures of Nsight Compute.")
    if counted:
        names = [
            name for name in ncu.METRICS if any(name in kernel for kernels in counted.values() for kernel in kernels)
        ]
        body = [
            [name, *(count(sum(k.get(name, 0) for k in kernels)) for kernels in counted.values())] for name in names
        ]
        table(f"Nsight Compute, {problem}", ["", *counted], body, right=range(1, len(counted) + 1))
