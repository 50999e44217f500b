"""The timeline of a stage's warps: a table, a picture and a file of Chrome's trace events, which https://ui.perfetto.dev
and chrome://tracing open. A model; nothing here is measured.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flashladder.building import build
from flashladder.core.console import say, simulating, table
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, results_directory
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.simulator import warps
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


_OWN = tuple(kind for kind in warps.KINDS if kind not in warps.BACKGROUND)


@dataclass(frozen=True)
class Options:
    problem: Problem = warps.PROBLEM
    blocks: int = 0  # that share the multiprocessor; 0: as many as are resident
    start: float = 0  # clocks that the picture shows
    end: float = 0  # 0: to the end
    picture: Path | None = None  # None: into build/results
    perfetto: Path | None = None


def command(words, problem: Problem) -> int:
    """words: of the command line, as commands/cli.py has them."""
    stage = stages.with_timeline(words.stage)
    build.build(stage.targets)
    show(stage, Options(problem, words.blocks, words.start, words.end, words.out, words.perfetto))
    return 0


def show(stage: stages.Stage, options: Options | None = None) -> None:
    options = options or Options()
    with simulating():
        timeline = warps.of(stage, options.problem, options.blocks)
    rows = []
    for place in timeline.of_scheduler(0):
        shares = timeline.shares(place)
        cells = [f"{100 * shares[kind]:.0f}%" if shares[kind] else "" for kind in _OWN]
        rows.append((timeline.warps[place].name(timeline.blocks), *cells, *_longest_wait(timeline, place)))
    several = "s" if timeline.blocks > 1 else ""
    say(
        f"{timeline.title}: {timeline.end:,.0f} clocks for {timeline.blocks} resident block{several}. "
        "A MODEL, not a measurement: docs/timeline.md says how far it is off."
    )
    table("What the warps of scheduler 0 do", ["warp", *_OWN, "clocks", "waits longest for"], rows)
    busy = ", ".join(f"{unit} {100 * timeline.busy_share(unit):.0f}%" for unit, number in timeline.busy if number == 0)
    say(f"Units busy: {busy}")
    written = [_draw(timeline, stage, options)]
    file = options.perfetto or results_directory() / f"timeline-{stage.id}.json"
    written.append(write(timeline, file))
    for file in filter(None, written):
        say(f"Written: {os.path.relpath(file, ROOT)}")
    say("The JSON file opens in https://ui.perfetto.dev; a clock is a microsecond there.")


def _longest_wait(timeline: warps.WarpTimeline, place: int) -> tuple[str, str]:
    """What the warp waits for longest, summed over its times."""
    sums: dict[str, float] = {}
    for span in timeline.spans:
        if span.warp == place and span.kind == "wait":
            sums[span.label] = sums.get(span.label, 0.0) + span.end - span.start
    if not sums:
        return "", ""
    label = max(sums, key=lambda name: sums[name])
    return f"{sums[label]:,.0f}", label


def _draw(timeline: warps.WarpTimeline, stage: stages.Stage, options: Options) -> Path | None:
    try:
        from flashladder import plot  # matplotlib is slow to load, and not everyone has it
    except ImportError as error:
        if options.picture:
            raise FlashLadderError(f"--out needs Matplotlib: {error}") from error
        return None
    file = options.picture or results_directory() / f"timeline-{stage.id}.png"
    if file.suffix not in (".png", ".svg"):
        raise FlashLadderError(f"--out {file}: a picture is a .png or an .svg")
    return plot.save(plot.warps(timeline, options.start, options.end), file)
