"""What Nsight Compute says of a few kernels of the ladder: the record for docs/profiler.md.

collect(device) runs ncu once for each of KERNELS and reads three pages of its report: the metrics (FIGURES, STALLS),
the sections as ncu prints them, with its advice, and the samples of machine instructions. figure() and kernel() read
the record. A metric that a GPU or a version of ncu does not have is None in it.
"""

import csv
import io
import math
import re
import subprocess
import time
from pathlib import Path

from flashladder.core.console import progress
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import ablations, stages
from flashladder.measuring import machine_code, ncu, provenance
from flashladder.measuring.ncu import PROBLEM

# Stages by name, a variant by its id: double_buffering with the overlap of copies and products taken out.
KERNELS = (
    "tensor_cores", "swizzle", "cp_async", "09_no_eager", "double_buffering", "autotune",
    "wgmma", "warp_specialization", "ping_pong", "shapes",
)  # fmt: skip
SECTIONS = (
    "SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables",
    "SchedulerStats", "WarpStateStats", "Occupancy", "LaunchStats", "SourceCounters",
)  # fmt: skip

# Name here -> the metric, or several of which the first that the GPU has counts.
FIGURES: dict[str, tuple[str, ...]] = {
    "cycles": ("sm__cycles_active.avg", "sm__cycles_elapsed.max"),
    "SM throughput": ("sm__throughput.avg.pct_of_peak_sustained_elapsed",),
    "memory throughput": ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",),
    "DRAM throughput": (
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    "L1 throughput": ("l1tex__throughput.avg.pct_of_peak_sustained_active",),
    "L2 throughput": ("lts__throughput.avg.pct_of_peak_sustained_elapsed",),
    "shared memory pipe": (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed",
        "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    ),
    "tensor pipe": (
        "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active",
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    ),
    "special function pipe": ("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",),
    "warp instructions": ("sm__inst_executed.sum",),
    "L2 sectors": ("lts__t_sectors.sum",),
    "issue slots": (
        "smsp__issue_active.avg.pct_of_peak_sustained_active", "sm__inst_issued.avg.pct_of_peak_sustained_active",
    ),
    "tensor instructions": (
        "sm__inst_executed_pipe_tensor_op_hmma.sum", "smsp__inst_executed_pipe_tensor_op_hmma.sum",
        "sm__inst_executed_pipe_tensor.sum",
    ),
    "ldmatrix instructions": ("smsp__inst_executed_op_ldsm.sum", "smsp__sass_inst_executed_op_ldsm.sum"),
    "cp.async instructions": ("smsp__inst_executed_op_ldgsts.sum", "smsp__sass_inst_executed_op_ldgsts.sum"),
    "cp.async past L1": (
        "smsp__inst_executed_op_ldgsts_cache_bypass.sum", "smsp__sass_inst_executed_op_ldgsts_cache_bypass.sum",
    ),
    "global load instructions": ("smsp__inst_executed_op_global_ld.sum", "smsp__sass_inst_executed_op_global_ld.sum"),
    "shared store instructions": ("smsp__inst_executed_op_shared_st.sum", "smsp__sass_inst_executed_op_shared_st.sum"),
    "plain conflicts of loads": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",),
    "plain conflicts of stores": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",),
    "local store sectors": ("l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",),
    "occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active",),
    "most occupancy": ("sm__maximum_warps_per_active_cycle_pct",),
    "blocks by registers": ("launch__occupancy_limit_registers",),
    "blocks by shared memory": ("launch__occupancy_limit_shared_mem",),
    "warps of a scheduler": ("smsp__warps_active.avg.per_cycle_active",),
    "warps that could issue": ("smsp__warps_eligible.avg.per_cycle_active",),
    "cycles for an instruction": ("smsp__average_warp_latency_per_inst_issued.ratio",),
} | {name: (metric,) for name, metric in ncu.METRICS.items()}  # fmt: skip

# Why a warp did not issue, in ncu's words: cycles of a warp for each instruction that it issued.
STALLS = (
    "selected", "not_selected", "wait", "math_pipe_throttle", "short_scoreboard", "long_scoreboard", "barrier",
    "mio_throttle", "lg_throttle", "tex_throttle", "dispatch_stall", "no_instruction", "branch_resolving", "imc_miss",
    "membar", "drain", "sleeping", "misc", "gmma", "warpgroup_arrive",
)  # fmt: skip
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
# Groups of the samples, by the classes of measuring/machine_code.py.
SAMPLED = {
    "mma": ("mma", "wgmma"),
    "ldmatrix": ("ldmatrix",),
    "wait for cp.async": ("commit, wait",),
    "wait for wgmma": ("wgmma's fence, commit, wait",),
    "barrier": ("barrier", "mbarrier"),
    "copies": ("cp.async", "TMA", "global load, store", "shared load, store"),
    "softmax": (
        "ex2", "other MUFU", "FP32 multiply", "FP32 add", "FP32 maximum", "FP32 compare", "shuffle", "vote",
        "conversion",
    ),
    "spills": ("spill load, store",),
    "the rest": ("move", "branch", "nothing", "integer, address"),
}  # fmt: skip
HOTTEST = 8  # instructions that the record keeps of each kernel


def longest_launch(printed: str) -> dict[str, str]:
    """Of `--page raw --csv --print-units base`, the launch that took longest: its metrics and "Kernel Name"."""
    rows = ncu.rows(printed)
    if not rows:
        raise FlashLadderError(f"ncu's report has no kernel in it:\n{printed.strip()[-600:]}")
    return max(rows, key=lambda row: ncu.number(row.get("gpu__time_duration.sum")) or 0)


def figures(row: dict[str, str]) -> dict[str, float | int | None]:
    """FIGURES of a row of metrics: of several metrics the first that has a number."""
    values = {name: [ncu.number(row.get(metric)) for metric in several] for name, several in FIGURES.items()}
    return {name: next((one for one in found if one is not None), None) for name, found in values.items()}


def metrics_used(row: dict[str, str]) -> dict[str, str | None]:
    """By name, which of its metrics a row has; None: none of them."""
    return {
        name: next((metric for metric in several if ncu.number(row.get(metric)) is not None), None)
        for name, several in FIGURES.items()
    }


def stalls(row: dict[str, str]) -> dict[str, float]:
    """By reason, those that a row of metrics has."""
    found = {reason: ncu.number(row.get(_STALL.format(reason))) for reason in STALLS}
    return {reason: value for reason, value in found.items() if value is not None}


def details(printed: str, launch: str) -> tuple[list[dict], list[dict]]:
    """Of `--page details --csv`, for the launch with this ID: the lines of the sections as ncu prints them (section,
    name, unit, value), and its advice (section, text)."""
    lines, advice = [], []
    for row in ncu.rows(printed):
        if row["ID"] != launch:
            continue
        section = row.get("Section Name") or ""
        if row.get("Metric Name"):
            unit, value = row.get("Metric Unit") or "", row.get("Metric Value") or ""
            lines.append({"section": section, "name": row["Metric Name"], "unit": unit, "value": value})
        elif row.get("Rule Type") in ("OPT", "WRN") and row.get("Rule Description"):
            advice.append({"section": section, "text": " ".join(row["Rule Description"].split())})
    return lines, advice


def class_of(instruction: str) -> str:
    """The group of SAMPLED that a machine instruction such as "@!P0 LDSM.16.M88.4 R4, [R2]" belongs to."""
    found = re.match(r"\s*(?:(?P<predicate>@!?U?P\w+)\s+)?(?P<opcode>[A-Z][\w.]*)", instruction)
    try:
        letter = machine_code.letter_of(found["opcode"], found["predicate"] or "") if found else "i"
    except FlashLadderError:  # outside the loop over K and V there are others, which have no class
        letter = "i"
    own = "integer, address" if letter == "i" else machine_code.CLASS[letter]
    return next(group for group, classes in SAMPLED.items() if own in classes)


def samples(printed: str) -> dict | None:
    """Of `--page source --csv`, for the kernel with the most samples: how many found a warp at the instructions of each
    group, and the instructions with the most. None where there are no samples.

    A warp that waits is found at the instruction that it cannot issue yet, which is behind what it waits for.
    """
    kernels: list[list[dict]] = [[]]
    header: list[str] = []
    for row in csv.reader(io.StringIO(printed)):
        if row and row[0] == "Kernel Name":
            kernels.append([])
            header = []
        elif "Source" in row:
            header = row
        elif header and len(row) == len(header):
            # Some versions have two columns of a name; the first is of all samples.
            cells = dict(zip(reversed(header), reversed(row), strict=True))
            count = ncu.number(cells.get("Warp Stall Sampling (All Samples)", cells.get("# Samples")))
            entry = {"at": len(kernels[-1]), "instruction": " ".join(cells["Source"].split()), "samples": count or 0}
            kernels[-1].append(entry | {"reasons": _reasons(cells)})
    rows = max(kernels, key=lambda rows: sum(row["samples"] for row in rows))
    total = sum(row["samples"] for row in rows)
    if not total:
        return None
    by_class = dict.fromkeys(SAMPLED, 0)
    for row in rows:
        by_class[class_of(row["instruction"])] += row["samples"]
    hottest = sorted(rows, key=lambda row: (-row["samples"], row["at"]))[:HOTTEST]
    hottest = [row for row in hottest if row["samples"]]
    return {"total": total, "by_class": by_class, "instructions": len(rows), "hottest": hottest}


def _reasons(cells: dict[str, str]) -> dict[str, int]:
    """Of a row of the source page, the two reasons with the most samples: stall_barrier, stall_long_sb, ... Each column
    has a twin, "stall_barrier (Not Issued)" or "stall_barrier_not_issued": samples of it at which no warp issued."""
    columns = {name.removeprefix("stall_"): value for name, value in cells.items() if name.startswith("stall_")}
    counted = {name: int(ncu.number(value) or 0) for name, value in columns.items() if "not" not in name.lower()}
    largest = sorted(counted.items(), key=lambda pair: -pair[1])[:2]
    return {name: count for name, count in largest if count}


def from_pages(raw: str, details_page: str, source: str) -> dict:
    """What an entry of the record has of ncu's pages "raw" (--print-units base), "details" and "source", as CSV."""
    launch = longest_launch(raw)
    lines, advice = details(details_page, launch["ID"])
    return {
        "kernel": launch["Kernel Name"],
        "figures": figures(launch),
        "metrics": metrics_used(launch),
        "stalls": stalls(launch),
        "samples": samples(source),
        "details": lines,
        "advice": advice,
    }


def _asked() -> list[str]:
    """By name, the metrics that this GPU says it has; the sections bring others besides, such as those of a launch."""
    wanted = [metric for several in FIGURES.values() for metric in several]
    wanted += [_STALL.format(reason) for reason in STALLS]
    proven, there = ncu.metrics().values(), ncu.known()
    return [one for one in dict.fromkeys(wanted) if one in proven or one.partition(".")[0] in there]


def _profile(stage: stages.Stage, device: Device, target: Path, library: Path | None) -> None:
    """Runs ncu on the stage and leaves its report at target, with an ending of ncu's."""
    options = [word for section in SECTIONS for word in ("--section", section)]
    options += ["--force-overwrite", "--export", str(target)]
    asked = _asked()
    while True:
        try:
            ncu.run(stage, PROBLEM, device, [*options, *(["--metrics", ",".join(asked)] if asked else [])], library)
            return
        except FlashLadderError as error:
            if "metric" not in str(error).lower() or not asked:
                raise
            # Listed and then refused, which versions of ncu do: without those that it names, or without any.
            left = [one for one in asked if one.partition(".")[0] not in str(error)]
            asked = left if len(left) < len(asked) else []


def _page(report: Path, *options: str) -> str:
    """A page of a report as CSV, written beside it, too; empty where this version of ncu has no such page."""
    done = subprocess.run(["ncu", "--import", str(report), "--csv", *options], capture_output=True, text=True)
    page = done.stdout if not done.returncode else ""
    report.with_name(f"{report.stem}-{options[1]}.csv").write_text(page)
    return page


def _variant(which: str) -> ablations.Ablation | None:
    return next((one for one in ablations.ablations() if one.id == which), None)


def _stage(which: str) -> stages.Kernel:
    variant = _variant(which)
    return variant.stage if variant else stages.get(which)


def measure(which: str, device: Device, folder: Path) -> dict:
    """One of KERNELS under ncu: an entry of the record's "kernels". The report and its pages are left in the folder."""
    library, variant, stage = None, _variant(which), _stage(which)
    name = stage.name
    if variant:
        name = f"{stage.id} {variant.title}"
        library = ablations.library(variant, device.gpu.compute if device.gpu else None)
    target = folder / (which if variant else name)
    _profile(stage, device, target, library)
    report = next(folder.glob(f"{target.name}.ncu-rep*"), None)
    if not report:
        raise FlashLadderError(f"ncu wrote no report of {name}.")
    raw, details_page = _page(report, "--page", "raw", "--print-units", "base"), _page(report, "--page", "details")
    source = _page(report, "--page", "source", "--print-source", "sass") or _page(report, "--page", "source")
    entry = {"name": name, "kind": "stage", "kernel_sha256": stage.kernel_hash()}
    entry["configuration"] = None if library else stage.describe(PROBLEM, "gpu").get("configuration")
    return entry | from_pages(raw, details_page, source)


def collect(
    device: Device, folder: Path, numbers: tuple[int, ...] = (), ends: float = math.inf
) -> tuple[dict | None, list[str]]:
    """The record, and a line for each kernel that ncu gave nothing for. ncu's reports are left in the folder.

    numbers: of the kernels of these stages alone; where there are none the record is None. ends: of time.monotonic(),
    after which no further kernel is begun. FlashLadderError where ncu gave nothing at all.
    """
    if not ncu.available():
        raise FlashLadderError("ncu not found: install Nsight Compute and put it on PATH.")
    folder.mkdir(parents=True, exist_ok=True)
    entries, notes = [], []
    wanted = [one for one in KERNELS if not numbers or _stage(one).number in numbers]
    if not wanted:
        return None, []
    for which in progress(wanted, "ncu", total=len(wanted)):
        if entries and time.monotonic() > ends:
            notes.append(f"profiler: no time was left for {which}")
            continue
        try:
            entries.append(measure(which, device, folder))
        except FlashLadderError as error:
            notes.append(f"profiler: {which}: {str(error)[:600]}")
            if any(words in str(error) for words in ncu.REFUSALS.values()):
                break  # and so it is for all others
    if not entries:
        raise FlashLadderError("\n".join(notes))
    version = subprocess.run(["ncu", "--version"], capture_output=True, text=True).stdout.strip().splitlines()
    used = [entry.pop("metrics") for entry in entries]
    record = {
        "provenance": provenance.collect(device) | {"ncu": version[-1] if version else None},
        "problem": str(PROBLEM),
        "sections": list(SECTIONS),
        "metrics": {name: next((one[name] for one in used if one[name]), None) for name in FIGURES},
        "kernels": entries,
    }
    return record, notes


def kernel(record: dict | None, which: int | str) -> dict | None:
    """The entry of a stage (number) or of a variant (its name there); None where it is not in the record."""
    name = stages.get(which).name if isinstance(which, int) else which
    return next((one for one in record["kernels"] if one["name"] == name), None) if record else None


def names() -> list[str]:
    """What figure() knows."""
    return [*FIGURES, *(f"stall {reason}" for reason in STALLS), *(f"samples {group}" for group in SAMPLED)]


def figure(record: dict | None, which: int | str, name: str) -> float | int | None:
    """One of names(): "stall barrier" in cycles for each instruction, "samples barrier" as a share of all samples.

    None where it is not recorded; FlashLadderError for a name that there is not.
    """
    if name not in names():
        raise FlashLadderError(f'There is no figure "{name}" of the profiler. There are: {", ".join(names())}.')
    entry = kernel(record, which)
    if not entry:
        return None
    kind, _, rest = name.partition(" ")
    if name in FIGURES:
        return entry["figures"].get(name)
    if kind == "stall":
        return entry["stalls"].get(rest)
    return share(entry, rest) if entry["samples"] else None


def share(entry: dict, group: str) -> float:
    """Of an entry's samples, what part is in a group of SAMPLED: none in one that its record does not know."""
    return entry["samples"]["by_class"].get(group, 0) / entry["samples"]["total"]
