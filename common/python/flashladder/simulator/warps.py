"""When the warps of a stage do what, by the model of simulator/replay.py, in words of the source: the timeline that
plot.warps() draws. It is a model: no throughput comes from it."""

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import source, stages
from flashladder.simulator import clocks, replay, steps, trace

PROBLEM = Problem(B=1, Hq=2, Nq=512, d_head=128, dtype="bf16")
# What a warp does, then what goes on in the background: kind, and what it is called.
KINDS = {
    "product": "products (mma.sync)",
    "arithmetic": "arithmetic (softmax, addresses)",
    "copy": "loads, stores, asking for tiles",
    "wait": "waiting",
    "wgmma": "products on their way (wgmma)",
    "bytes": "bytes on their way",
}
BACKGROUND = ("wgmma", "bytes")
_INIT = re.compile(r"mbarrier_init\(\s*&?\s*([^,]+?)\s*,")
_PIPELINES = re.compile(r"^    Pipeline<[^>;]*> ([\w, ]+);", re.M)
_FUNCTION = re.compile(r"^( *)(?:template <[^>]*> )?__device__ [^;=]*?\b(\w+)\(")
# What functions of the kernels for Hopper are for, where their names do not say it.
_CALLED = {"issue_QK": "S = QKᵀ", "issue_next_S": "S = QKᵀ", "issue_PV": "O += PV"}
_CALLED |= {f"issue_{name}": name for name in ("S", "dP", "dV", "dK", "dQ")} | dict.fromkeys(
    ("exponentiate", "rescale_O", "round_P", "raise_shift", "finalize", "row_reduce_max", "row_reduce_sum", "row_any"),
    "softmax",
)
# Too small to be what a warp does at the time: whoever calls them is.
_HELPERS = {
    "accumulator_row", "accumulator_column", "advance", "consumer_release", "consumer_wait", "descriptor_offset",
    "init", "issue_gradient", "issue_scores", "next_barrier", "own_barrier", "producer_acquire", "tile_offset",
}  # fmt: skip


@dataclass(frozen=True)
class WarpSpan:
    warp: int  # its place in WarpTimeline.warps
    kind: str  # one of KINDS
    start: float  # clocks
    end: float
    label: str  # short: the source's phase, or what is waited for
    words: str  # a sentence, with the source line


@dataclass(frozen=True)
class TracedWarp:
    block: int
    number: int  # in its block
    scheduler: int

    def name(self, blocks: int) -> str:
        return f"block {self.block}, warp {self.number}" if blocks > 1 else f"warp {self.number}"


@dataclass(frozen=True)
class WarpTimeline:
    title: str
    kernel: str
    blocks: int  # that share the multiprocessor
    warps: tuple[TracedWarp, ...]
    spans: tuple[WarpSpan, ...]
    busy: dict[tuple[str, int], list[tuple[float, float]]]  # by unit and its number: from when to when
    end: float

    def of_scheduler(self, number: int) -> list[int]:
        """Places of the scheduler's warps that do more than to begin and end."""
        worked = defaultdict(float)
        for span in self.spans:
            worked[span.warp] = max(worked[span.warp], span.end)
        mine = [place for place, warp in enumerate(self.warps) if warp.scheduler == number]
        return [place for place in mine if worked[place] > 0.1 * self.end]

    def shares(self, warp: int) -> dict[str, float]:
        """Of the time from 0 to the end: what part the warp spends with each kind of what it does itself."""
        sums = dict.fromkeys((kind for kind in KINDS if kind not in BACKGROUND), 0.0)
        for span in self.spans:
            if span.warp == warp and span.kind in sums:
                sums[span.kind] += span.end - span.start
        return {kind: clocks / self.end if self.end else 0.0 for kind, clocks in sums.items()}

    def busy_share(self, unit: str, number: int = 0) -> float:
        return sum(end - start for start, end in self.busy.get((unit, number), [])) / self.end if self.end else 0.0


@cache
def _lines(file: str) -> tuple[str, ...]:
    return tuple(Path(file).read_text().splitlines()) if Path(file).is_file() else ()


@cache
def phases(file: Path) -> tuple[source.Part, ...]:
    """The parts of a source file that marks such as `// ---- load ----` name; none of a file that is not there."""
    lines = _lines(str(file))
    return tuple(part for part in source.parts(file) if "----" in lines[part.first - 1]) if lines else ()


@cache
def functions(file: Path) -> tuple[source.Part, ...]:
    """The __device__ functions of a kernel, and of a header whose text a stage teaches, those of a struct, too; none of
    a header with a function for each instruction."""
    lines, found = _lines(str(file)), []
    if file.suffix != ".cu" and not (lines and lines[0].startswith("// Stage ")):
        return ()
    for first, line in enumerate(lines, 1):
        match = _FUNCTION.match(line)
        if not match or match[2] in _HELPERS:
            continue
        one_line = line.endswith("}")
        last = first if one_line else _closed(lines, first, match[1])
        found.append(source.Part(_CALLED.get(match[2], match[2].replace("_", " ")), file, first, last, (0, 0)))
    return tuple(found)


def named(file: Path) -> tuple[source.Part, ...]:
    """What the lines of a file can be a part of: its phases, and its functions."""
    return (*phases(file), *functions(file))


def _closed(lines: tuple[str, ...], first: int, margin: str) -> int:
    """The line of the brace that ends what begins in `first`."""
    return next((at for at, line in enumerate(lines[first:], first + 1) if line.startswith(f"{margin}}}")), first)


def phase_of(file: str, line: int) -> str:
    """What the line is a part of, in a word or two: the innermost of the marks such as `// ---- load ----` and of the
    functions; empty where there is none."""
    found = [part for part in named(Path(file)) if part.first <= line <= part.last]
    return min(found, key=lambda part: part.last - part.first).name if found else ""


def mbarrier_names(launch: trace.Launch, block: trace.Block) -> list[str]:
    """By number: "K_full[0]" as the source calls it where it is initialised, else its address. Those of a struct
    Pipeline are called after the one that they belong to: of K_pipeline."""
    by_line: dict[tuple[str, int], list[trace.Mbarrier]] = defaultdict(list)
    for one in block.mbarriers:
        op = launch.ops[one.op]
        by_line[op.file, op.line].append(one)
    names, in_pipelines = [], _in_pipelines(launch, block)
    for one in block.mbarriers:
        op = launch.ops[one.op]
        calls = _INIT.findall(_line(op))
        addresses = sorted({same.address for same in by_line[op.file, op.line]})
        if one.address in in_pipelines:
            names.append(in_pipelines[one.address])
        elif len(calls) != 1:
            names.append(f"at shared 0x{one.address:x}")
        else:
            name = re.split(r"\.|->", re.sub(r"\s*(\[.*|\+.*)$", "", calls[0]))[-1]
            names.append(f"{name}[{addresses.index(one.address)}]" if len(addresses) > 1 or "[" in calls[0] else name)
    return names


def _line(op: trace.Op) -> str:
    lines = _lines(op.file)
    return lines[op.line - 1] if 0 < op.line <= len(lines) else ""


def _in_pipelines(launch: trace.Launch, block: trace.Block) -> dict[int, str]:
    """The mbarriers of the kernel's pipelines, by address. In memory they follow one another as they are declared, each
    with its barriers `full` and then `empty`."""
    kernels = sorted({op.file for op in launch.ops.values() if op.file.endswith(".cu")})
    declared = [
        name.strip().removesuffix("_pipeline")
        for kernel in kernels
        for names in _PIPELINES.findall("\n".join(_lines(kernel)))
        for name in names.split(",")
    ]
    kinds = {}
    for one in block.mbarriers:
        calls = _INIT.findall(_line(launch.ops[one.op]))
        if len(calls) == 1 and re.fullmatch(r"(full|empty)\[\w+\]", calls[0]):
            kinds[one.address] = calls[0].split("[")[0]
    runs: list[tuple[str, list[int]]] = []
    for address in sorted(kinds):
        if not runs or runs[-1][0] != kinds[address]:
            runs.append((kinds[address], []))
        runs[-1][1].append(address)
    if len(runs) != 2 * len(declared):
        return {}
    return {
        address: f"{declared[place // 2]}_{kind}" + (f"[{number}]" if len(addresses) > 1 else "")
        for place, (kind, addresses) in enumerate(runs)
        for number, address in enumerate(addresses)
    }


def _where(place: steps.Place | None) -> str:
    return f", {Path(place.file).name}:{place.line}" if place and place.line else ""


_GROUPS = {"cp.async": "groups of cp.async", "wgmma": "groups of wgmma", "bulk": "groups of bulk stores"}


def _said(span: replay.Span, names: list[list[str]]) -> tuple[str, str]:
    """The label and the words of a span."""
    step, where = span.step, _where(span.place)
    if isinstance(step, replay.WaitPhase):
        _, block, number, phase = step.key
        name = names[block][number]
        return name, f"waits for mbarrier {name}, phase {phase}{where}"
    if isinstance(step, replay.Barrier):
        return f"barrier {step.key[2]}", f"waits at barrier {step.key[2]}, its use {step.key[3]}{where}"
    if isinstance(step, replay.WaitGroups):
        most = f"at most {step.most}" if step.most else "none"
        return step.queue, f"waits until {most} of its {_GROUPS[step.queue]} {'are' if step.most else 'is'} left{where}"
    if isinstance(step, replay.Load):
        return "load", f"waits for what it loads from global memory{where}"
    if isinstance(step, replay.Copy):
        _, block, number, phase = step.key
        name = names[block][number]
        return name, f"{step.bytes:,.0f} bytes on their way to mbarrier {name}, phase {phase}{where}"
    ways = ((span.place.file, span.place.line), *span.place.calls) if span.place else ()
    phase = next(filter(None, (phase_of(*way) for way in ways)), "")
    what = f"{KINDS[span.kind]}: {phase}" if phase else KINDS[span.kind]
    return phase, what + where


def of_launch(launch: trace.Launch, title: str) -> WarpTimeline:
    """The timeline of a trace's blocks, as if they shared a multiprocessor."""
    numbers = clocks.load()
    programs = steps.programs(launch, numbers)
    done = replay.replay(programs, numbers)
    names = [mbarrier_names(launch, block) for block in launch.blocks]
    spans = [WarpSpan(one.warp, one.kind, one.start, one.end, *_said(one, names)) for one in done.spans]
    warps = tuple(
        TracedWarp(warp.block, warp.number, replay.scheduler_of(place, numbers)) for place, warp in enumerate(programs)
    )
    return WarpTimeline(title, launch.kernel, len(launch.blocks), warps, _joined(spans), done.busy, done.end)


def _joined(spans: list[WarpSpan]) -> tuple[WarpSpan, ...]:
    """In order of their starts; those of a warp, kind and phase that follow one another at once are one."""
    joined: list[WarpSpan] = []
    last: dict[tuple[int, str], int] = {}  # place of the last span of a warp and kind
    for one in sorted(spans, key=lambda span: (span.start, span.end)):
        place = last.get((one.warp, one.kind))
        before = joined[place] if place is not None else None
        if (
            before
            and one.kind not in ("wait", "bytes")
            and before.label == one.label
            and one.start <= before.end + 1e-6
        ):
            joined[place] = replace(before, end=max(before.end, one.end))
            continue
        last[one.warp, one.kind] = len(joined)
        joined.append(one)
    return tuple(joined)


def of(stage: stages.Stage | int | str, problem: Problem | None = None, blocks: int = 0) -> WarpTimeline:
    """The timeline of a stage, run on the simulator. blocks: that share the multiprocessor; 0: as many as the stage
    says are resident. A launch that has fewer has them all there."""
    stage = stages.with_timeline(stage)
    problem = stage.own(problem or PROBLEM)
    if stage.number == 0:
        raise FlashLadderError("Stage 00 is about streams: `make stage-00 profile` shows their order.")
    launch = trace.of(stage, problem, blocks or resident_blocks(stage, problem))
    return of_launch(launch, f"{stage.name}, {problem}")


def resident_blocks(stage: stages.Stage, problem: Problem) -> int:
    """Of the stage on a multiprocessor, as it describes itself."""
    description = stage.describe(problem, "sim")
    return max(1, min(description.get("resident_blocks") or 1, trace.MOST_BLOCKS))
