"""What `make results` writes into docs/profiler.md: tables and pictures of what Nsight Compute recorded.

Each function of a table returns (head, rows) of text; "-" is what ncu gave no figure for, * a kernel that has changed
since. Before there is a record, and where it lacks what is asked for, the page says so in its place.
"""

from collections.abc import Callable

from flashladder.commands.markdown import NOTHING, STALE_NOTE, caption, table
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.measuring import profiler, recorded

Table = tuple[list[str], list[list[str]]]


class NotThereError(FlashLadderError):
    """The record lacks what the table is of: a kernel that ncu failed for, a page that this version does not print."""


_whole, _two, _percent = "{:,.0f}".format, "{:.2f}".format, "{:.1f}%".format


def _micro(nanoseconds: float) -> str:
    return f"{nanoseconds / 1000:,.0f} µs"


def _millions(count: float) -> str:
    return f"{count / 1e6:,.1f}"


# Table -> its lines: in words, the figure of the profiler, how it is printed.
_LINES: dict[str, tuple[tuple[str, str, Callable[[float], str]], ...]] = {
    "first": (
        ("time under the profiler", "nanoseconds", _micro),
        ("Compute (SM) Throughput", "SM throughput", _percent),
        ("Memory Throughput", "memory throughput", _percent),
        ("DRAM Throughput", "DRAM throughput", _percent),
        ("of the time that the shared memory pipe could pass wavefronts", "shared memory pipe", _percent),
        ("of the cycles the tensor cores' pipe is active", "tensor pipe", _percent),
        ("of the issue slots used", "issue slots", _percent),
    ),
    "swizzle": (
        ("ldmatrix: instructions", "ldmatrix instructions", _whole),
        ("ldmatrix: wavefronts", "shared ldmatrix wavefronts", _whole),
        ("ldmatrix: conflicts", "shared ldmatrix conflicts", _whole),
        ("stores: wavefronts", "shared store wavefronts", _whole),
        ("loads: wavefronts", "shared load wavefronts", _whole),
        ("cp.async: wavefronts", "shared cp_async wavefronts", _whole),
        ("conflicts of loads, the plain counter", "plain conflicts of loads", _whole),
        ("conflicts of stores, the plain counter", "plain conflicts of stores", _whole),
    ),
    "copies": (
        ("cp.async instructions (LDGSTS)", "cp.async instructions", _whole),
        ("of these past L1", "cp.async past L1", _whole),
        ("global load instructions", "global load instructions", _whole),
        ("shared store instructions", "shared store instructions", _whole),
        ("global load sectors", "global load sectors", _whole),
        ("of these by cp.async", "global cp_async sectors", _whole),
    ),
    "warps": (
        ("registers of a thread", "registers", _whole),
        ("blocks that registers allow", "blocks by registers", _whole),
        ("blocks that shared memory allows", "blocks by shared memory", _whole),
        ("occupancy, at most", "most occupancy", _percent),
        ("occupancy, achieved", "occupancy", _percent),
        ("warps that a scheduler has", "warps of a scheduler", _two),
        ("of these, that could issue", "warps that could issue", _two),
        ("cycles of a warp for an instruction", "cycles for an instruction", _two),
        ("sectors of spilled registers loaded", "local load sectors", _whole),
    ),
    "hopper": (
        ("time under the profiler", "nanoseconds", _micro),
        ("Compute (SM) Throughput", "SM throughput", _percent),
        ("Memory Throughput", "memory throughput", _percent),
        ("of the cycles the tensor cores' pipe is active, with wgmma", "tensor pipe", _percent),
        ("of the issue slots used", "issue slots", _percent),
        ("of the rate of the special functions' pipe (`ex2`)", "special function pipe", _percent),
        ("millions of warp instructions", "warp instructions", _millions),
        ("millions of sectors through L2", "L2 sectors", _millions),
        ("registers of a thread", "registers", _whole),
        ("warps that a scheduler has", "warps of a scheduler", _two),
        ("of these, that could issue", "warps that could issue", _two),
        ("cycles of a warp for an instruction", "cycles for an instruction", _two),
    ),
}
_TOO_SMALL = 0.01  # of a kernel's cycles: reasons below it in all kernels are no line of a table


def _title(entry: dict) -> str:
    return entry["name"] + ("\\*" if recorded.is_stale(entry) else "")


def kernels(record: dict, family: str = "") -> list[dict]:
    """Those with instructions of Hopper ("hopper"), or those without ("")."""
    if family not in ("", "hopper"):
        raise FlashLadderError(f"kernels of the profiler are those of 'hopper' or nothing, not of '{family}'")
    first = stages.get("tma").id
    found = [one for one in record["kernels"] if (one["name"][:2] >= first) == (family == "hopper")]
    if not found:
        raise NotThereError(f"no kernel {'for' if family else 'before'} Hopper is recorded")
    return found


def lines(record: dict, which: str) -> Table:
    """One of "first", "swizzle", "copies", "warps" and "hopper", a column for each kernel."""
    if which not in _LINES:
        raise FlashLadderError(f"the profiler's table is {', '.join(_LINES)}, not '{which}'")
    body, entries = [], kernels(record, which if which == "hopper" else "")
    for words, name, text in _LINES[which]:
        values = [entry["figures"].get(name) for entry in entries]
        if which == "hopper" and not any(values):
            continue  # a record of a few counters has no dashes for all others
        body.append([words, *("-" if value is None else text(value) for value in values)])
    return ["", *map(_title, entries)], body


def stalls(record: dict, family: str = "") -> Table:
    """Cycles that a warp spends for each instruction, by what it waited for."""
    entries = kernels(record, family)
    sums = [sum(entry["stalls"].values()) or 1 for entry in entries]
    body = []
    for reason in profiler.STALLS:
        values = [entry["stalls"].get(reason) for entry in entries]
        if any(value and value / total >= _TOO_SMALL for value, total in zip(values, sums, strict=True)):
            body.append([reason.replace("_", " "), *("-" if value is None else _two(value) for value in values)])
    if all("selected" in entry["stalls"] for entry in entries if entry["stalls"]):  # else some reasons alone
        body.append(["all", *(_two(sum(entry["stalls"].values())) if entry["stalls"] else "-" for entry in entries)])
    return ["cycles", *map(_title, entries)], body


def samples(record: dict, family: str = "") -> Table:
    """In percent of the samples of a kernel, at which instructions its warps were found."""
    entries = kernels(record, family)
    body = []
    for group in profiler.SAMPLED:
        shares = [100 * profiler.share(one, group) if one["samples"] else None for one in entries]
        if any(shares):
            body.append([group, *("-" if share is None else _percent(share) for share in shares)])
    body.append(["samples", *(_whole(one["samples"]["total"]) if one["samples"] else "-" for one in entries)])
    return ["found at", *map(_title, entries)], body


def hottest(record: dict, stage: str) -> Table:
    """The machine instructions of a stage with the most samples, and ncu's words for what the warps waited for."""
    entry = profiler.kernel(record, stages.get(stage).number)
    if not entry or not entry["samples"]:
        raise NotThereError(f"no samples of stage {stage} are recorded")
    total = entry["samples"]["total"]
    body = [
        [
            f"{row['at']:,}",
            f"`{row['instruction']}`",
            _percent(100 * row["samples"] / total),
            ", ".join(f"{name} {_percent(100 * count / total)}" for name, count in row["reasons"].items()),
        ]
        for row in entry["samples"]["hottest"]
    ]
    return ["place", f"{_title(entry)}, of {entry['samples']['instructions']:,} instructions", "samples", "why"], body


def section(record: dict, words: str, *which: str) -> Table:
    """A section as `ncu` prints it, for some stages; words: of its name, with dashes (speed-of-light)."""
    entries = [one for one in (profiler.kernel(record, stages.get(stage).number) for stage in which) if one]
    wanted = words.replace("-", " ").lower()
    found = [{line["name"]: line for line in one["details"] if wanted in line["section"].lower()} for one in entries]
    names = dict.fromkeys(name for lines in found for name in lines)
    if not names:
        raise NotThereError(f"no section '{wanted}' of these stages is recorded")
    body = [
        [name, *(f"{lines[name]['value']} {lines[name]['unit']}".strip() if name in lines else "-" for lines in found)]
        for name in names
    ]
    return ["Metric Name", *map(_title, entries)], body


def advice(record: dict, stage: str) -> Table:
    """What ncu advises for a stage, in its own words."""
    entry = profiler.kernel(record, stages.get(stage).number)
    if not entry or not entry["advice"]:
        raise NotThereError(f"no advice for stage {stage} is recorded")
    return ["section", f"{_title(entry)}: ncu's advice"], [
        [one["section"], one["text"].replace("|", "\\|")] for one in entry["advice"]
    ]


_TABLES = {
    "stalls": stalls,
    "samples": samples,
    "hottest": hottest,
    "section": section,
    "advice": advice,
}
# Name -> what draws it, given flashladder.plot (slow to load); what it needs of the record; in words.
PICTURES = {
    "profiler-stalls": (
        lambda plot: plot.profiler_stalls,
        "stalls",
        "Cycles that a warp spends for an instruction, by why it did not issue",
    ),
    "profiler-samples": (
        lambda plot: plot.profiler_samples,
        "samples",
        "At which machine instructions the warps of each kernel were found",
    ),
    "profiler-wavefronts": (
        lambda plot: plot.profiler_wavefronts,
        "figures",
        "Wavefronts of shared memory of each kernel, by what asked for them",
    ),
}


def _record(hopper: bool) -> dict | None:
    """The first GPU's; of kernels for Hopper the first that has them."""
    if hopper:
        for one in recorded.shipped(kind="profiler"):
            if any(stages.get(kernel["name"][:2]).hopper for kernel in one["kernels"]):
                return one
    return recorded.first("profiler")


def page(what: str, *more: str) -> str:
    """A table of the first GPU: stalls [hopper], samples [hopper], hottest STAGE,
    advice STAGE, section WORDS STAGE ..., or one of its lines (first, swizzle, copies, warps, hopper)."""
    made = _record("hopper" in (what, *more))
    if not made:
        return NOTHING
    try:
        head, body = _TABLES[what](made, *more) if what in _TABLES else lines(made, what)
    except NotThereError as error:
        return f"Not recorded: {error}."
    stale = f"\n\n{STALE_NOTE}" if any("\\*" in column for column in head) else ""
    return caption(made, f"Nsight Compute, {made['problem']}") + f"\n\n{table(head, body)}{stale}"


def pictures() -> list[str]:
    """Names of those that can be drawn from the record."""
    made = recorded.first("profiler")
    there = made["kernels"] if made else []
    return [name for name, (_, needed, _) in PICTURES.items() if any(one[needed] for one in there)]


def picture(name: str) -> str:
    """One of PICTURES, for a document beside the folder results."""
    return f"![{PICTURES[name][2]}](results/{name}.png)" if name in pictures() else NOTHING
