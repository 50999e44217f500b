"""Timelines of copies and compute: from CUDA events, or from the simulator's report of what took effect when."""

from dataclasses import dataclass, field

from flashladder.core.errors import FlashLadderError

# "staged copy in": on its way from the driver's own buffer, after the call that read pageable memory has returned.
KINDS = ("copy in", "staged copy in", "compute", "copy out", "host")
_KIND_OF = {"memcpy_h2d": "copy in", "memcpy_d2h": "copy out", "kernel": "compute", "memset": "compute"}


@dataclass(frozen=True)
class Span:
    lane: str  # e.g. "stream 1" or "host"
    kind: str  # one of KINDS
    label: str
    start: float
    end: float


@dataclass
class Timeline:
    unit: str  # "ms", or "host calls": the number of the host's CUDA call, no time at all
    where: str  # e.g. "NVIDIA H200, 2026-11-21" or "simulator"
    title: str
    spans: list[Span] = field(default_factory=list)
    note: str = ""  # what the bars are, where they are not what unit says

    def lanes(self) -> list[str]:
        """The host first, then the others in order of their names."""
        return sorted({span.lane for span in self.spans}, key=lambda name: (name != "host", len(name), name))

    def check(self) -> "Timeline":
        """Itself; FlashLadderError where a span ends before it starts or has an unknown kind."""
        for span in self.spans:
            if span.kind not in KINDS or span.end < span.start:
                raise FlashLadderError(f"timeline '{self.title}': bad span {span}")
        return self


def from_events(run: dict, where: str) -> Timeline:
    """From what the program of stage 00 writes for one variant: spans in ms after its first event.

    An event marks when a stream comes to it, so a span also holds the wait for its engine.
    """
    spans = []
    for one in run["spans"]:
        lane = "default stream" if one["stream"] < 0 else f"stream {one['stream'] + 1}"
        spans.append(Span(lane, one["kind"], str(one["chunk"]), one["start_ms"], one["end_ms"]))
    return Timeline("ms", where, run["title"], spans).check()


def from_report(
    report: dict, title: str, last_call: int | None = None, together: dict[str, int] | None = None
) -> Timeline:
    """From warpsim's "host_calls" and "operations": a bar reaches from the call that queued an operation to the one
    in which it took effect. Of an asynchronous copy from pageable memory the "copy in" is its call, which reads the
    memory before it returns; the rest of the way is a "staged copy in". Events are left out, and calls after last_call.

    Labels number the work of a kind over all streams, in the order of the calls.
    together: how many operations of a kind belong to one piece of work, e.g. {"copy in": 3} for Q, K and V.
    """
    last = last_call if last_call is not None else len(report["host_calls"]) - 1
    spans = [
        Span("host", "host", _short(call["name"]), call["call"], call["call"] + 1)
        for call in report["host_calls"]
        if call["call"] <= last
    ]
    seen: dict[str, int] = {}
    for one in sorted(report["operations"], key=lambda one: one["queued"]):
        kind = _KIND_OF.get(one["kind"])
        if not kind or one["queued"] > last:
            continue
        label = str(seen.get(kind, 0) // (together or {}).get(kind, 1))
        seen[kind] = seen.get(kind, 0) + 1
        lane = f"stream {one['stream']}" if one["stream"] else "default stream"
        start, end = one["queued"], one["completed"] + 1
        staged = one["kind"] == "memcpy_h2d" and one["host_memory"] == "pageable" and end > start + 1
        spans.append(Span(lane, kind, label, start, start + 1 if staged else end))
        if staged:
            spans.append(Span(lane, "staged copy in", label, start + 1, end))
    return Timeline("host calls", "simulator", title, spans).check()


def _short(name: str) -> str:
    return (
        name.removeprefix("cuda").replace("Synchronize", "Sync").replace("Stream", "").replace("LaunchKernel", "Launch")
    )


def chrome_trace(timeline: Timeline) -> dict:
    """Trace Event Format, for https://ui.perfetto.dev or chrome://tracing. Times are microseconds there; for a timeline
    in host calls one call counts as one."""
    lanes = timeline.lanes()
    scale = 1e3 if timeline.unit == "ms" else 1.0
    events = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": number, "args": {"name": lane}}
        for number, lane in enumerate(lanes)
    ]
    events += [
        {
            "name": f"{span.kind} {span.label}",
            "cat": span.kind,
            "ph": "X",
            "pid": 1,
            "tid": lanes.index(span.lane),
            "ts": span.start * scale,
            "dur": (span.end - span.start) * scale,
        }
        for span in timeline.spans
    ]
    return {
        "traceEvents": events,
        "otherData": {"where": timeline.where, "title": timeline.title, "unit": timeline.unit},
    }
