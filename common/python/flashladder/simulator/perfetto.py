"""A timeline of warps as Chrome's trace events, which https://ui.perfetto.dev and chrome://tracing open. A clock is
written as a microsecond, since the format knows nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path

from flashladder.simulator.warps import BACKGROUND, KINDS, WarpTimeline

NOTE = "A model, not a measurement: 1 us stands for 1 clock of a multiprocessor."
_LANES = 100  # of what goes on at the same time in the background of a warp, at most
_UNIT_PROCESS = 1000


def events(timeline: WarpTimeline) -> Iterator[dict]:
    """Names of processes (blocks) and threads (warps, and what goes on behind each), then a complete event ("X") for
    each span. Events of one thread never overlap."""
    for block in range(timeline.blocks):
        yield _name("process_name", block, None, f"block {block}")
    threads = {}
    for place, warp in enumerate(timeline.warps):
        threads[place] = warp.number * 2 * _LANES
        yield _name("thread_name", warp.block, threads[place], f"warp {warp.number}, scheduler {warp.scheduler}")
    ends: dict[tuple[int, str], list[float]] = {}  # by warp and kind: ends of its background's lanes
    for span in timeline.spans:
        warp, thread = timeline.warps[span.warp], threads[span.warp]
        if span.kind in BACKGROUND:
            lanes = ends.setdefault((span.warp, span.kind), [])
            lane = next((one for one, end in enumerate(lanes) if end <= span.start), len(lanes))
            thread += 1 + lane + BACKGROUND.index(span.kind) * _LANES
            if lane == len(lanes):
                lanes.append(0.0)
                yield _name("thread_name", warp.block, thread, f"warp {warp.number}: {KINDS[span.kind]}")
            lanes[lane] = span.end
        yield _complete(span.label or KINDS[span.kind], span.kind, span.start, span.end, warp.block, thread) | {
            "args": {"what": span.words}
        }
    yield _name("process_name", _UNIT_PROCESS, None, "units")
    for thread, ((unit, number), bars) in enumerate(sorted(timeline.busy.items())):
        yield _name("thread_name", _UNIT_PROCESS, thread, f"{unit} {number}")
        for start, end in bars:
            yield _complete("busy", unit, start, end, _UNIT_PROCESS, thread)


def _name(what: str, process: int, thread: int | None, name: str) -> dict:
    own = {} if thread is None else {"tid": thread}
    return {"ph": "M", "name": what, "pid": process, "args": {"name": name}} | own


def _complete(name: str, kind: str, start: float, end: float, process: int, thread: int) -> dict:
    return {"ph": "X", "name": name, "cat": kind, "ts": start, "dur": end - start, "pid": process, "tid": thread}


def write(timeline: WarpTimeline, file: Path) -> Path:
    data = {
        "traceEvents": list(events(timeline)),
        "displayTimeUnit": "ns",
        "otherData": {"title": timeline.title, "kernel": timeline.kernel, "note": NOTE},
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data) + "\n")
    return file
