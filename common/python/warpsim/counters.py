"""warpsim's report (WARPSIM_REPORT) as totals and as lines of a stage's kernel."""

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

SHARED_KINDS = ("load", "store", "ldmatrix", "stmatrix", "cp_async", "atomic")
GLOBAL_KINDS = ("load", "store", "cp_async", "atomic")
# Of lines; the last five stand in a report where they are not 0.
SUMMED = ("instructions", "shared_wavefronts", "global_sectors", "global_ideal", "bulk_bytes", "tensor_sectors",
          "mbarrier_waits", "mbarrier_waited", "wgmma_wavefronts")  # fmt: skip
# Copies by the asynchronous proxy: (member of the report, name, fields).
BULK = (("bulk", "bulk", ("copies", "bytes")), ("tensor_copies", "TMA", ("copies", "bytes", "sectors")))
BULK_KINDS = ("load", "store", "reduce", "prefetch")


@dataclass
class Line:
    file: str
    line: int
    instructions: int
    shared_wavefronts: int
    shared_ideal: int | None
    global_sectors: int
    global_ideal: int
    bulk_bytes: int = 0  # of bulk copies and of boxes
    tensor_sectors: int = 0  # of global memory, by boxes of tensors
    mbarrier_waits: int = 0
    mbarrier_waited: int = 0  # of them those that found the phase open
    wgmma_wavefronts: int = 0  # of the shared operands of wgmma
    # Of a header's line: the ways that lead there, each its calls from the innermost on ({"file", "line", "function"}).
    inlined: list[list[dict]] = dataclasses.field(default_factory=list)

    @property
    def where(self) -> str:
        """ "kernel.cu:88", of a header's line with the innermost call: "tile.cuh:12, called at kernel.cu:88"."""
        name = f"{Path(self.file).name}:{self.line}"
        calls = sorted({(Path(way[0]["file"]).name, way[0]["line"]) for way in self.inlined})
        if not calls:
            return name
        more = f" and at {len(calls) - 1} more" if len(calls) > 1 else ""
        return f"{name}, called at {calls[0][0]}:{calls[0][1]}{more}"

    def line_in(self, name: str) -> int:
        """The line of the file with this name that it belongs to, as place_in()."""
        calls = [call for way in self.inlined for call in way]
        return place_in({"file": self.file, "line": self.line, "inlined": calls}, name)

    @property
    def shared_excess(self) -> int:
        return self.shared_wavefronts - (self.shared_ideal if self.shared_ideal is not None else self.shared_wavefronts)

    @property
    def global_excess(self) -> int:
        return self.global_sectors - self.global_ideal


def totals(report: dict) -> dict[str, float | None]:
    """Sums over all launches of a report, by the names that tables use."""
    launches = report["launches"]
    sums: dict[str, float | None] = {
        "launches": len(launches),
        "instructions": sum(launch["instructions"]["total"] for launch in launches),
    }
    for kind in SHARED_KINDS:
        entries = [launch["shared"][kind] for launch in launches if kind in launch["shared"]]
        sums[f"shared {kind} wavefronts"] = sum(entry["wavefronts"] for entry in entries)
        entries = [entry for entry in entries if entry["wavefronts"]]
        known = all(entry["ideal"] is not None for entry in entries)
        excess = sum(entry["wavefronts"] - entry["ideal"] for entry in entries) if known else None
        sums[f"shared {kind} excess"] = excess
    for kind in GLOBAL_KINDS:
        entries = [launch["global"][kind] for launch in launches if kind in launch["global"]]
        for field in ("sectors", "ideal", "bytes"):
            sums[f"global {kind} {field}"] = sum(entry[field] for entry in entries)
    for member, name, fields in BULK:
        for kind in BULK_KINDS:
            for field in fields:
                entries = [launch.get(member, {}).get(kind, {}) for launch in launches]
                sums[f"{name} {kind} {field}"] = sum(entry.get(field, 0) for entry in entries)
    for field in ("waits", "waited"):
        sums[f"mbarrier {field}"] = sum(launch.get("mbarriers", {}).get(field, 0) for launch in launches)
    sums["barriers"] = sum(launch["barriers"] for launch in launches)
    sums["divergent branches"] = sum(launch["divergent_branches"] for launch in launches)
    return sums


def summary(sums: dict[str, float | None]) -> dict[str, float | None]:
    """What fits into one row of a table: totals() folded over the kinds of access."""
    excess = [sums[f"shared {kind} excess"] for kind in SHARED_KINDS]
    accessed = sum(sums[f"global {kind} sectors"] for kind in GLOBAL_KINDS)
    return {
        "PTX instr.": sums["instructions"],
        "wavefronts": sum(sums[f"shared {kind} wavefronts"] for kind in SHARED_KINDS),
        "bank conflicts": None if None in excess else sum(excess),
        "sectors": accessed + sum(sums[f"TMA {kind} sectors"] for kind in ("load", "store", "reduce")),
        "excess": accessed - sum(sums[f"global {kind} ideal"] for kind in GLOBAL_KINDS),  # a box's rows have none
        "barriers": sums["barriers"],
    }


def classes(report: dict) -> dict[str, int]:
    """Warp instructions by class, summed over the launches, the largest first."""
    sums: dict[str, int] = {}
    for launch in report["launches"]:
        for name, number in launch["instructions"]["by_class"].items():
            sums[name] = sums.get(name, 0) + number
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def by_name(report: dict) -> dict[str, float | None]:
    """totals(), and the instructions by class as "tensor instructions"."""
    return totals(report) | {f"{name} instructions": count for name, count in classes(report).items()}


def lines(report: dict) -> list[Line]:
    """Source lines summed over the launches, in the order of the file."""
    found: dict[tuple[str, int], Line] = {}
    for launch in report["launches"]:
        for entry in launch["lines"]:
            key = (entry["file"], entry["line"])
            way = entry.get("inlined")
            if key not in found:
                found[key] = Line(**entry | {"inlined": [way] if way else []})
                continue
            line = found[key]
            if way and way not in line.inlined:
                line.inlined.append(way)
            for name in SUMMED:
                setattr(line, name, getattr(line, name) + entry.get(name, 0))
            if line.shared_ideal is None or entry["shared_ideal"] is None:
                line.shared_ideal = None
            else:
                line.shared_ideal += entry["shared_ideal"]
    return [found[key] for key in sorted(found)]


def place_in(entry: dict, name: str) -> int:
    """The line of the file with this name that an entry of a report (a line, a hazard, an access) belongs to.

    It is the entry's own, or of a header's code that of the innermost call in that file; 0 where there is none."""
    ways = [entry, *entry.get("inlined", [])]
    return next((one["line"] for one in ways if Path(one["file"] or "").name == name), 0)


def executed(report: dict, name: str, numbers: Collection[int]) -> int:
    """PTX instructions, by warp, at these lines of the file with this name, and in what they call of headers."""
    counted = [line for launch in report["launches"] for line in launch["lines"]]
    return sum(line["instructions"] for line in counted if place_in(line, name) in numbers)


def hazards(report: dict) -> list[dict]:
    return [hazard for launch in report["launches"] for hazard in launch["hazards"]]


def notes(report: dict) -> list[dict]:
    """What the toolchain repairs, marked as "note"; a launch reports it beside its hazards."""
    return [note | {"note": True} for launch in report["launches"] for note in launch.get("notes", [])]
