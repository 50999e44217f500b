"""What a warp computes while its wgmma are under way, and how often it waits at a barrier: counted in the trace of a
launch's first block (WARPSIM_TRACE), for the expectations of stages whose idea it is. The format:
common/simulator/README.md, "Traces"."""

import json
from pathlib import Path

NAMES = ("special_during_wgmma", "barrier_waits")  # as order.NAME in stage.toml; what report["overlap"] has
FILE = "trace.json"


def variables(folder: Path) -> dict[str, str]:
    """What the simulator is told, so that it leaves a trace in the folder."""
    return {"WARPSIM_TRACE": str(folder / FILE), "WARPSIM_TRACE_BLOCKS": "1"}


def complete(report: dict, folder: Path) -> None:
    """Adds what the trace in the folder shows to the report of the same run."""
    report["overlap"] = of_trace(json.loads((folder / FILE).read_text()))


def of_trace(trace: dict) -> dict[str, int]:
    """By NAMES."""
    launches = trace["launches"]
    return dict(zip(NAMES, (sum(map(count, launches)) for count in (special_during_wgmma, barrier_waits))))


def barrier_waits(launch: dict) -> int:
    """How often a warp of a traced launch waits at a barrier of its block (bar.sync, not bar.arrive)."""
    return sum(event[0] == "sync" for block in launch["traced"] for warp in block["warps"] for event in warp)


def special_during_wgmma(launch: dict) -> int:
    """Exponentials and the like (instructions of the special function unit, by warp) of a traced launch that a warp
    executes while a wgmma of its own is in flight: asked for, and not yet waited for."""
    ops = {number: (cls, text, groups) for number, cls, text, _, _, groups, *_ in launch["ops"]}
    return sum(_of_warp(block["pieces"], warp, ops) for block in launch["traced"] for warp in block["warps"])


def _of_warp(pieces: list, events: list, ops: dict[int, tuple[str, str, int]]) -> int:
    found, asked, in_flight = 0, False, 0  # wgmma of no group yet; groups that no wait has covered
    for kind, which, *_ in events:
        if kind == "warpgroup":
            asked = asked or "wgmma" in ops[which][1]
        for number in range(pieces[which][0], pieces[which][1] + 1) if kind == "run" else ():
            cls, text, groups = ops.get(number, ("", "", 0))
            if "wgmma.commit_group" in text:
                in_flight, asked = in_flight + asked, False
            elif "wgmma.wait_group" in text:
                in_flight = min(in_flight, groups)
            elif cls == "special_function":
                found += asked or in_flight > 0
    return found
