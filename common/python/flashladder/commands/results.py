"""Writes the recorded figures into README, docs and the stages' READMEs, between markers:

    <!-- results: throughput bf16 128 -->   ...   <!-- end results -->

What a marker can ask for: `ladder`, `throughput DTYPE D [causal]`, `gradients D [causal]`, `deterministic D [causal]`,
`decode`, `decode-caches`, `throughput-pictures DTYPE`, `resources`, `ablations [NN [D [causal]]]`, `counters`,
`machine-code D KERNEL ...`, `tuned TABLE [D [N]]`, `tuned-pictures`, `profiler TABLE [...]`, `profiler-picture NAME`,
`provenance`, `record KIND` (which run a kind's figures are of), `ring [causal]`, `ring-expected`, `ring-links`,
`ring-picture`, `timeline-clocks`, `timeline-errors D`, `timeline-beside`, `faults [list]`, `detections PART`,
`table NAME` (one that the text's figures.toml declares: commands/figure_lists.py).
What stands between the markers is replaced; running it twice changes nothing. The numbers that sentences quote:
flashladder.commands.figure_lists.
"""

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from flashladder.commands import (
    detections_page,
    faults_page,
    figure_lists,
    profiler_pages,
    result_pictures,
    ring_pages,
    timeline_pages,
)
from flashladder.commands.markdown import NOTHING, STALE_NOTE, is_causal, paragraphs
from flashladder.commands.markdown import caption as _caption
from flashladder.commands.markdown import table as _table
from flashladder.core.console import duration
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.ladder import ablations as variants
from flashladder.ladder import stages
from flashladder.lessons import notebook_format, sections
from flashladder.measuring import decode_bench, machine_code, peers, profile, recorded, stream_times
from flashladder.tuning import instances, shape_table
from flashladder.tuning import record as tuning
from flashladder.tuning import tables as tuning_tables
from warpsim import counters

_BLOCK = re.compile(r"(<!-- results: (?P<what>[^>]*?) -->\n)(?P<body>.*?)(<!-- end results -->)", re.S)


def _figure(row: dict | None) -> str:
    if row is None:
        return "-"
    mark = "\\*" if recorded.is_stale(row) else ""
    return f"{row['tflops']:.1f}{mark}"


def _setting(results: dict, text: str) -> str:
    settings = results["settings"]
    return f"{text}, {settings['heads']} heads, B·N = {settings['tokens']}, median"


def ladder() -> str:
    """The stages with their techniques, their place on the way up (a branch, a stop of the core path, the minutes of
    the lesson) and the throughput at N = 4096 of a GPU on which the last of the main line is recorded."""
    run = recorded.of(stages.main_line()[-1].name)
    run = run and recorded.together(run)
    rows = recorded.pick(run, dtype="bf16", d_head=128, causal=False, Nq=4096) if run else []
    by_name = {row["name"]: row for row in rows}
    head = ["stage", "technique", "way", "lesson", "needs"] + ["TFLOP/s"] * bool(rows)
    body = []
    for one in stages.every_stage():
        lesson = f"{one.minutes} min"
        line = [f"[{one.name}](stages/{one.name}/)", one.technique, one.way, lesson, f"sm_{one.min_compute}"]
        body.append(line + [_figure(by_name.get(one.name))] * bool(rows))
    body += [[name, "peer", "", "", "", _figure(row)] for name, row in by_name.items() if row["kind"] == "peer"]
    block = [_table(head, body), "", _ways()]
    if rows:
        block += ["", _caption(run, _setting(run, "TFLOP/s at N = 4096, bf16, d = 128"), rows), *_notes(rows)]
    return "\n".join(block)


def _ways() -> str:
    """What the column "way" means, and how long each way is."""
    core, main = stages.core_path(), stages.main_line()
    part, whole = duration(sum(minutes for _, minutes in core)), duration(sum(stage.minutes for stage in main))
    return (
        f"core: a stop of the core path, {len(core)} lessons in {part}. branch: "
        f"no later stage builds on it. The main line is all but the branches: {len(main)} lessons in {whole}."
    )


def _notes(rows: list[dict]) -> list[str]:
    """What stands below a table of these measurements."""
    stale = [STALE_NOTE] if any(recorded.is_stale(row) for row in rows) else []
    return [line for note in [*stale, recorded.earlier(rows)] if note for line in ("", note)]


def _causal(mask: str) -> tuple[bool, str]:
    """The word of a marker as what to pick, and as words for a caption."""
    return (True, ", causal (half the FLOPs counted)") if is_causal(mask) else (False, "")


@paragraphs
def ablations(which: str = "all", d: str = "128", mask: str = "") -> Iterator[str]:
    """Kernels with one idea changed at a time, each below the one that it is taken from, in bf16; which: of one stage,
    in its type."""
    causal, masked = _causal(mask)
    only = None if which == "all" else stages.get(which)
    dtype = only.measured_dtype if only else "bf16"
    for results in recorded.shipped(kind="ablations"):
        rows = recorded.pick(results, dtype=dtype, d_head=int(d), causal=causal)
        if not rows:
            continue
        lengths = sorted({row["Nq"] for row in rows})
        by_key = {(row["name"], row["Nq"]): row for row in rows}
        middle = 4096 if 4096 in lengths else lengths[-1]
        body, shown = [], []
        for kernel, changed in recorded.variants([row for row in rows if row["Nq"] == middle]):
            if only and kernel["name"] != only.name:
                continue
            for row in (kernel, *changed):
                name = f"**{row['name']}**, the kernel itself" if row is kernel else row["name"]
                cells = [_figure(by_key.get((row["name"], n))) for n in lengths]
                body.append([name, *cells, f"{100 * row['tflops'] / kernel['tflops']:.1f}%"])
                shown.append(row)
        if not body:
            continue
        shown += [row for row in rows if row["kind"] == "peer"]
        peers = dict.fromkeys(row["name"] for row in rows if row["kind"] == "peer")
        body += [[name, *(_figure(by_key.get((name, n))) for n in lengths), ""] for name in peers]
        text = _setting(results, f"TFLOP/s, {dtype}, d = {d}{masked}")
        head = [f"{dtype}, d = {d}", *(f"N = {n}" for n in lengths), f"of its kernel, N = {middle}"]
        block = [_caption(results, text, shown), "", _table(head, body), *_notes(shown)]
        yield "\n".join(block)


@paragraphs
def throughput(dtype: str, d: str, mask: str = "") -> Iterator[str]:
    for results in recorded.shipped():
        yield from _by_length(results, dtype, d, mask)


@paragraphs
def gradients(d: str, mask: str = "") -> Iterator[str]:
    """The same of the stages that compute gradients, in bf16."""
    for results in recorded.shipped(kind="backward"):
        yield from _by_length(results, "bf16", d, mask, lambda row: not row["name"].endswith(peers.DETERMINISTIC))


@paragraphs
def deterministic(d: str, mask: str = "") -> Iterator[str]:
    """Of gradients those that have the same bits in each run: a stage, and peers that were asked for it."""
    for results in recorded.shipped(kind="backward"):
        yield from _by_length(results, "bf16", d, mask, lambda row: row["name"].endswith("deterministic"))


def _by_length(
    results: dict, dtype: str, d: str, mask: str, shown: Callable[[dict], bool] = lambda row: True
) -> Iterator[str]:
    """Stages and peers with their throughput at each length; nothing where it is not recorded."""
    causal, masked = _causal(mask)
    rows = list(filter(shown, recorded.pick(results, dtype=dtype, d_head=int(d), causal=causal)))
    if not rows:
        return
    lengths = sorted({row["Nq"] for row in rows})
    by_key = {(row["name"], row["Nq"]): row for row in rows}
    names = dict.fromkeys(row["name"] for row in rows)
    body = [[name, *(_figure(by_key.get((name, n))) for n in lengths)] for name in names]
    text = _setting(results, f"TFLOP/s, {dtype}, d = {d}{masked}")
    head = [f"{dtype}, d = {d}", *(f"N = {n}" for n in lengths)]
    block = [_caption(results, text, rows), "", _table(head, body)]
    ceiling = recorded.ceiling(results, dtype)
    if ceiling:
        same = "the same" if recorded.run_of(rows) == ceiling.get("run", "") else "another"
        block += ["", f"cuBLAS matrix product of the same type in {same} run: {ceiling['tflops']:.0f} TFLOP/s."]
    yield "\n".join([*block, *_notes(rows)])


@paragraphs
def errors(dtype: str) -> Iterator[str]:
    """How far stages and peers are from the float64 reference, on the main GPU."""
    results = recorded.first()
    rows = [row for row in recorded.pick(results, dtype=dtype) if "relative_error" in row] if results else []
    if not rows:
        return
    lengths = sorted({row["Nq"] for row in rows})
    found: dict[tuple, dict[int, str]] = {}
    for row in rows:
        key = -row["d_head"], row["causal"], row["name"]
        found.setdefault(key, {})[row["Nq"]] = f"{100 * row['relative_error']:.2f}%"
    body = [
        [f"d = {-d}, {'causal' if causal else 'full'}", name, *(own.get(n, "-") for n in lengths)]
        for (d, causal, name), own in sorted(found.items())
    ]
    head = [dtype, "", *(f"N = {n}" for n in lengths)]
    text = f"Error of O relative to the float64 reference, {dtype}"
    yield "\n".join([_caption(results, text, rows), "", _table(head, body), *_notes(rows)])


@paragraphs
def decode() -> Iterator[str]:
    """Microseconds of the decode stages and their peers, with the part of them that reading K and V alone takes."""
    pairs = ((results, d) for results in recorded.shipped(kind="decode") for d in (128, 64))
    for results, d in pairs:
        rows = [row for row in results["measurements"] if row["d_head"] == d]
        if not rows:
            continue
        names, lines = recorded.by_shape(rows, lambda row: (row["Hq"], row["Hkv"], row["B"], row["Nkv"]), _microseconds)
        body = [[f"{Hq} / {Hkv}", str(B), f"{Nkv:,}", *cells] for Hq, Hkv, B, Nkv, *cells in lines]
        text = (
            f"Microseconds, and in brackets the part of them that reading takes; bf16, d = {d}, one query row, median"
        )
        head = ["heads of Q / of K and V", "B", "N", *names]
        yield "\n".join([_caption(results, text, rows), "", _table(head, body), *_notes(rows)])


@paragraphs
def decode_caches() -> Iterator[str]:
    """The same of unequal lengths and of pages, beside equal lengths in one piece."""
    pairs = ((results, d) for results in recorded.shipped(kind="decode") for d in (128, 64))
    for results, d in pairs:
        head, body = decode_bench.beside_equal(results, d)
        if not body:
            continue
        rows = [row for row in results["other_caches"] if row["d_head"] == d]
        stale = {row["name"] for row in rows if recorded.is_stale(row)}
        head = [f"{name}\\*" if name in stale else name for name in head]
        text = f"Microseconds, and in brackets times those of equal lengths in one piece; bf16, d = {d}, median"
        yield "\n".join([_caption(results, text, rows), "", _table(head, body), *_notes(rows)])


def _microseconds(row: dict) -> str:
    part = "" if row["kind"] == "ceiling" else f" ({row['of_reading']:.2f})"
    return f"{row['us']['median']:.1f}" + "\\*" * recorded.is_stale(row) + part


def record(kind: str) -> str:
    """Which run the figures of a kind are of, for tables that do not say so themselves."""
    made = recorded.first(kind)
    return f"Recorded: {recorded.label(made)}." if made else NOTHING


def _facts(rows: list[dict], pair: list[stages.Stage]) -> str:
    keys, body = profile.RESOURCES, []
    for one in pair:
        for d in sorted({row["d_head"] for row in rows}):
            row = next((row for row in rows if row["name"] == one.name and row["d_head"] == d), None)
            if row:
                body.append([f"{one.name}, d = {d}", *(str(row[key]) for key in keys)])
    return _table(["of the (last) kernel", *keys.values()], body)


@paragraphs
def resources() -> Iterator[str]:
    """Registers, spills, shared memory and resident blocks of all stages."""
    for results in recorded.shipped():
        types = {one.name: one.measured_dtype for one in stages.all_stages()}
        rows = [row for row in recorded.pick(results, causal=False) if row["dtype"] == types.get(row["name"])]
        names = {row["name"] for row in rows}
        measured = [one for one in stages.all_stages() if one.name in names]
        other = sorted({dtype for name, dtype in types.items() if name in names} - {"bf16"})
        what = ", ".join(["bf16", *(f"where a stage does not take it {dtype}" for dtype in other), "native code"])
        yield f"{_caption(results, what)}\n\n{_facts(rows, measured)}"


@paragraphs
def counters_table() -> Iterator[str]:
    """The simulator's wavefronts and sectors beside Nsight Compute's, for the same problem."""
    for record in recorded.shipped(kind="counters"):
        entries = record.get("counters")
        if not entries:  # what the profiler says of a few kernels, and no more
            continue
        found = {entry["stage"]: compare_counters(entry) for entry in entries}
        names = list(dict.fromkeys(name for pairs in found.values() for name, *_ in pairs))
        body = []
        for stage, pairs in found.items():
            cells = {name: _beside(simulated, measured) for name, simulated, measured in pairs}
            body.append([stage, *(cells.get(name, "") for name in names)])
        others = {one.slug: one.measured_dtype for one in stages.all_stages() if one.name in found}
        others = {name: dtype for name, dtype in others.items() if not record["problem"].startswith(dtype)}
        in_words = "".join(f" ({name}: {dtype})" for name, dtype in others.items())
        text = f"{_caption(record, record['problem'] + in_words, entries)} {_agreement(found)}"
        note = recorded.earlier(entries)
        yield f"{text}\n\n{_table(['', *names], body)}" + (f"\n\n{note}" if note else "")


def _beside(simulated: int, measured: int) -> str:
    return f"{simulated:,}" if simulated == measured else f"**{simulated:,}** : {measured:,}"


def _agreement(found: dict[str, list[tuple[str, int, int]]]) -> str:
    """How many figures are equal, and where they differ the most."""
    every = [(stage, *pair) for stage, pairs in found.items() for pair in pairs]
    equal = sum(simulated == measured for *_, simulated, measured in every)
    says = f"{equal} of {len(every)} figures are equal"
    if equal == len(every):
        return f"{says}."
    stage, name, simulated, measured = max(every, key=lambda row: abs(row[2] / row[3] - 1) if row[3] else math.inf)
    by = f"{100 * (simulated / measured - 1):+.0f} percent" if measured else "where Nsight Compute has none"
    return (
        f"{says}. Where they are not, warpsim's stands first, in bold. The largest deviation: {by}, {name} of {stage}."
    )


def compare_counters(entry: dict) -> list[tuple[str, int, int]]:
    """(name, warpsim's figure, Nsight Compute's) for what both count and either saw."""
    simulated = entry["warpsim"]
    measured: dict[str, float] = {}
    for kernel in entry["ncu"]:
        for name, value in kernel.items():
            if isinstance(value, (int, float)):
                measured[name] = measured.get(name, 0) + value
    # Nsight Compute counts sectors of asynchronous copies as loads, too.
    simulated = simulated | {
        "global load sectors": (simulated.get("global load sectors") or 0)
        + (simulated.get("global cp_async sectors") or 0)
    }
    names = [f"shared {kind} wavefronts" for kind in counters.SHARED_KINDS]
    names += [f"global {kind} sectors" for kind in counters.GLOBAL_KINDS if kind != "cp_async"]
    pairs = [(name, int(simulated.get(name) or 0), int(measured[name])) for name in names if name in measured]
    return [(name, left, right) for name, left, right in pairs if left or right]


def machine_code_table(d: str, *kernels: str) -> str:
    """Machine instructions in a turn. kernels: stages, and ids of ablations such as 09_kv_stages_1; of those that are
    recorded."""
    titles = {one.id: f"{one.stage.id} {one.title}" for one in variants.ablations()}
    wanted = [titles.get(kernel) or stages.get(kernel).name for kernel in kernels]
    there = {row["name"] for row in machine_code.recorded_rows(d=int(d), kinds=("stage", "variant"))}
    which = [name for name in wanted if name in there]
    if not which:
        return NOTHING
    columns, body = machine_code.in_a_turn(*which, d=int(d))
    block = [f"{machine_code.label().capitalize()}, bf16, d = {d}.", "", _table(columns, body)]
    if any(column.endswith("*") for column in columns):
        block += ["", STALE_NOTE]
    return "\n".join(block)


@paragraphs
def roofline() -> Iterator[str]:
    """Bytes that the stages move, in DRAM and in the L2 cache."""
    for record in recorded.shipped(kind="roofline"):
        body = [
            [
                row["name"] + ("*" if recorded.is_stale(row) else ""),
                f"{row['dram_read'] / 1e6:.0f}",
                f"{row['dram_written'] / 1e6:.0f}",
                f"{row['l2_bytes'] / 1e9:.1f}",
                f"{row['flops'] / row['dram_bytes']:.0f}",
                _figure(row if row["tflops"] else None),
            ]
            for row in record["rows"]
        ]
        head = ["", "DRAM read, MB", "DRAM written, MB", "L2, GB", "FLOP per DRAM byte", "TFLOP/s"]
        text = f"{record['problem']}; a copy moves {record['bandwidth_gb_s']:.0f} GB/s (read and written)"
        yield f"{_caption(record, text)}\n\n{_table(head, body)}"


@paragraphs
def inputs(length: str = "16384", d: str = "128") -> Iterator[str]:
    """Throughput on inputs that hurt."""
    for record in recorded.shipped(kind="inputs"):
        kinds = list(record["inputs"])
        rows = [row for row in record["measurements"] if row["Nq"] == int(length) and row["d_head"] == int(d)]
        names = list(dict.fromkeys(row["name"] for row in rows))
        by_key = {(row["name"], row["inputs"]): row for row in rows}
        body = [
            [
                name + ("*" if recorded.is_stale(by_key[name, kinds[0]]) else ""),
                *(f"{by_key[name, kind]['tflops']:.1f}" if (name, kind) in by_key else "-" for kind in kinds),
            ]
            for name in names
        ]
        caption = _caption(record, f"TFLOP/s, bf16, d = {d}, N = {length}, by inputs", rows)
        yield "\n".join([caption, "", _table(["", *kinds], body), *_notes(rows)])


@paragraphs
def beside_the_best(stage: str) -> Iterator[str]:
    """A stage's throughput on inputs that hurt, in percent of the fastest peer's on the same."""
    name = stages.get(stage).name
    for record in recorded.shipped(kind="inputs"):
        own, peers = {}, {}
        for row in record["measurements"]:
            key = (row["d_head"], row["Nq"], row["inputs"])
            if row["name"] == name:
                own[key] = row
            elif row["kind"] == "peer":
                peers[key] = max(peers.get(key, row), row, key=lambda one: one["tflops"])
        body = []
        for d, length in dict.fromkeys((d, length) for d, length, _ in own):
            keys = [(d, length, kind) for kind in record["inputs"]]
            mark = "*" if recorded.is_stale(own[keys[0]]) else ""
            cells = [f"{100 * own[k]['tflops'] / peers[k]['tflops']:.0f}" for k in keys]
            body.append([f"d = {d}, N = {length}{mark}", *cells])
        rows, text = [*own.values(), *peers.values()], f"{name} in percent of the fastest peer's throughput"
        caption = _caption(record, f"{text}, bf16, full, by inputs", rows)
        yield "\n".join([caption, "", _table(["", *record["inputs"]], body), *_notes(rows)])


@paragraphs
def streams() -> Iterator[str]:
    """Stage 00: bandwidth of copies, and times of the batches."""
    for record in recorded.shipped(kind="host-streams"):
        by_key = {(row["memory"], row["direction"]): f"{row['gb_s']:.1f}" for row in record["bandwidth"]}
        body = [[memory, *(by_key[memory, way] for way in ("h2d", "d2h", "both"))] for memory in ("pageable", "pinned")]
        copies = _table(["GB/s", "host to device", "device to host", "both at once"], body)
        head = [name or "milliseconds" for name in stream_times.SUMMARY_COLUMNS]
        batches = _table(head, stream_times.summary_rows(record))
        caption = _caption(record, "Copies of 256 MiB, and the three batches; medians of five runs")
        yield f"{caption}\n\n{copies}\n\n{batches}"


@paragraphs
def tuned(what: str, d: str = "128", length: str = "4096") -> Iterator[str]:
    """A table of tuning/tables.py for each GPU, bf16: chosen, worth, stages, advice, fastest or refused."""
    for made in recorded.shipped(kind="tuning"):
        groups = tuning.of_head_dim([made], int(d))
        if what == "refused":
            text, (head, body) = "Configurations that each rule refuses", tuning_tables.refused(made)
        elif not groups:
            continue
        elif what == "fastest":
            text = f"First heats, {groups[0]}, N = {length}"
            head, body = tuning_tables.fastest(groups[0], int(length))
        elif what in _OF_TUNING:
            text, table = _OF_TUNING[what]
            (head, body), text = table(groups[0]), f"{text}, {groups[0]}"
        else:
            raise FlashLadderError(f"a marker's table is {', '.join(_OF_TUNING)}, fastest or refused, not '{what}'")
        if not body:  # the stages, where the tuner was told to leave them out
            continue
        looked_at = f", of {made['space']}" if made.get("space") else ""
        stale = f"\n\n{STALE_NOTE}" if tuning.is_stale(made) else ""
        if stale:
            head = [f"{column}\\*" if column else column for column in head]
        yield f"{_caption(made, text + looked_at)}\n\n{_table(head, body)}{stale}"


_OF_TUNING = {
    "chosen": ("Chosen by length", tuning_tables.chosen),
    "worth": ("Times as long as the winner", tuning_tables.worth),
    "stages": ("Stage 12 with a stage's flags, times that stage's throughput", tuning_tables.stages),
    "advice": ("Flags that do not pay", tuning_tables.advice),
}


@paragraphs
def provenance() -> Iterator[str]:
    for results in recorded.shipped():
        record = results["provenance"]
        keys = ("device", "driver", "toolkit", "runtime", "torch", "cudnn", "cudnn_frontend", *peers.PACKAGES)
        keys = (*keys, "commit", "date")
        body = [[key, str(record[key])] for key in keys if record.get(key)]
        clocks = sorted({row["sm_mhz"] for row in results["measurements"] if row.get("sm_mhz")})
        if clocks:
            body.append(["SM clock seen", f"{clocks[0]} to {clocks[-1]} MHz"])
        yield _table(["recorded with", ""], body)


_KINDS = {
    "ladder": ladder,
    "throughput": throughput,
    "gradients": gradients,
    "deterministic": deterministic,
    "errors": errors,
    "decode": decode,
    "decode-caches": decode_caches,
    "record": record,
    "throughput-pictures": result_pictures.throughput,
    "resources": resources,
    "ablations": ablations,
    "counters": counters_table,
    "machine-code": machine_code_table,
    "profiler": profiler_pages.page,
    "profiler-picture": profiler_pages.picture,
    "provenance": provenance,
    "ring": ring_pages.page,
    "ring-expected": ring_pages.expected,
    "ring-links": ring_pages.links,
    "ring-picture": ring_pages.picture,
    "roofline": roofline,
    "faults": faults_page.page,
    "detections": detections_page.page,
    "inputs": inputs,
    "beside-the-best": beside_the_best,
    "streams": streams,
    "timeline-clocks": timeline_pages.clocks_table,
    "timeline-beside": timeline_pages.beside_table,
    "timeline-errors": timeline_pages.errors_table,
    "tuned": tuned,
    "tuned-pictures": result_pictures.tuned,
}


def fill(text: str, file: Path) -> str:
    """The text with everything between its markers generated anew."""

    def block(match: re.Match) -> str:
        kind, *arguments = match["what"].split()
        if kind != "table" and kind not in _KINDS:
            known = ", ".join((*_KINDS, "table"))
            raise FlashLadderError(f"{file}: unknown marker 'results: {match['what']}'; known: {known}")
        try:
            if kind == "table":
                (name,) = arguments
                body = figure_lists.page(figure_lists.table(file, name), figure_lists.gpu_of(file))
            else:
                body = _KINDS[kind](*arguments)
        except (TypeError, ValueError) as error:
            raise FlashLadderError(f"{file}: marker 'results: {match['what']}' has the wrong words after it") from error
        return f"{match[1]}{body}\n{match[4]}"

    return _BLOCK.sub(block, text)


def parts_of(file: Path) -> list[str]:
    """A document's text; a notebook's cells of text."""
    if file.suffix != ".ipynb":
        return [file.read_text()]
    return [sections.text_of(cell) for cell in _text_cells(notebook_format.load(file))]


def _text_cells(notebook: dict) -> list[dict]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]


def refilled(file: Path) -> str:
    """A document or notebook with its blocks, and the numbers that its sentences quote, as the records have them."""
    before = parts_of(file)
    after = figure_lists.fill([fill(part, file) for part in before], file)
    if file.suffix != ".ipynb":
        return after[0]
    if after == before:
        return file.read_text()
    notebook = notebook_format.load(file)
    for cell, text in zip(_text_cells(notebook), after, strict=True):
        cell["source"] = text
    return notebook_format.to_text(notebook_format.canonical(notebook, file))


def documents() -> list[Path]:
    texts = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("stages/*/README.md"))]
    return [*texts, *notebook_format.files()]


def regenerate() -> list[Path]:
    """Fills in every document, draws the plots of docs/results and writes the tables of instances of autotune and
    shapes; returns the files that changed. A document that asks for what there is not keeps no other one back: the
    FlashLadderError at the end names each."""
    changed, wrong = _write_instances(), []
    for file in documents():
        if not file.exists():
            continue
        before = file.read_text()
        try:
            after = refilled(file)
        except FlashLadderError as error:
            wrong.append(str(error) if str(file) in str(error) else f"{file}: {error}")
            continue
        if after != before:
            file.write_text(after)
            changed.append(file)
    changed += result_pictures.draw(ROOT / "docs" / "results")
    if wrong:
        raise FlashLadderError("All is written but these:\n" + "\n".join(wrong))
    return changed


def _write_instances() -> list[Path]:
    """The tables that autotune and shapes choose from, as the tuned GPUs have it; those that changed."""
    wanted = {instances.TABLE: instances.shipped(), shape_table.TABLE: shape_table.shipped()}
    changed = [file for file, text in wanted.items() if file.read_text() != text]
    for file in changed:
        file.write_text(wanted[file])
    return changed
