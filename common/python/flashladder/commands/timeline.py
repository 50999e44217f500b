"""The timeline of a stage's warps: a table, a picture and a file for Perfetto. A model; nothing here is measured."""

import os
from dataclasses import dataclass
from pathlib import Path

from flashladder.building import build
from flashladder.core.console import say, table
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, results_directory
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.simulator import perfetto, warps

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
    written.append(perfetto.write(timeline, file))
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
