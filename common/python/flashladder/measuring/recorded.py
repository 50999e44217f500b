"""Results as files: those just measured (build/results) and those that ship (docs/results).

A file names stages without their numbers, "swizzle", and variants "swizzle: padding": a record stays right when a stage
gets another place on the ladder. In memory they are called as the folders are, "05_swizzle" and "05 padding". What a
file has of a stage that there is not (any more) is left out.
"""

import datetime
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from flashladder.core import paths
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import RECORDED, results_directory
from flashladder.ladder import stages

# What sentences and tables of one GPU are about, however many others are recorded beside it; of a stage that is not
# recorded there, the first other GPU where it is (of()).
MAIN = "NVIDIA H200"

# GPU.json is the throughput; GPU-KIND.json holds
#   ablations     kernels with one idea changed at a time; inside: inputs, times on inputs that hurt
#   backward      the throughput of the stages that compute gradients
#   counters      Nsight Compute's beside warpsim's; inside: roofline, bytes of memory traffic, profiler, what it says
#                 of a few kernels, beside, what instructions take while the tensor cores multiply, and clocks, at how
#                 many MHz the peers ran: the timeline's model is held to these two
#   decode        microseconds of the decode stages, and of reading K and V alone
#   faults        what comes of the mistakes that warpsim names; inside: detections, which tool notices the stages'
#                 planted mistakes
#   host-streams  stage 00
#   ring          the stages for several GPUs and their peers; links: what copies between GPUs reach
#   machine-code  of the loops over K and V (of an architecture: sm_90-machine-code.json); inside: registers, of a
#                 sample of configurations, ptxas, what it says of planted mistakes, and judged, what warpsim says of
#                 those that no lesson shows
#   tuning        the fastest configurations of autotune; inside: shapes, those of that stage
KINDS = ("ablations", "backward", "counters", "decode", "faults", "host-streams", "machine-code", "ring", "tuning")
# A record inside another: what it is called there, and the kind of the file.
INSIDE = {
    "beside": "counters",
    "clocks": "counters",
    "detections": "faults",
    "inputs": "ablations",
    "judged": "machine-code",
    "profiler": "counters",
    "ptxas": "machine-code",
    "roofline": "counters",
    "registers": "machine-code",
    "shapes": "tuning",
}
# Without these a record does not ship. uncommitted_changes: null where nobody knows.
PROVENANCE = ("device", "driver", "toolkit", "commit", "date", "uncommitted_changes")
# The lists of a record whose entries are of stages.
_LISTS = (
    "measurements", "together", "other_caches", "rows", "counters", "kernels", "stages", "hard", "planted", "verified",
)  # fmt: skip


def load(file: Path) -> dict:
    try:
        results = json.loads(file.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise FlashLadderError(f"{file} cannot be read: {error}") from error
    if not isinstance(results, dict) or results.get("version") != 1 or "provenance" not in results:
        raise FlashLadderError(f"{file} is no result of `make bench` (version 1).")
    return from_file(results)


def to_read(file: Path) -> dict:
    """As load(), and parsed once for as long as the file stays the same: a document asks for hundreds of figures of
    the same records. Whoever asks next gets the same object, so nobody may change it."""
    if not file.exists():
        return load(file)  # which says so
    status = file.stat()
    return _parsed(file, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _parsed(file: Path, mtime_ns: int, size: int) -> dict:
    return load(file)


# ---- names ----


def from_file(record: dict) -> dict:
    """A record with its stages called as their folders are; without what it has of others."""
    names = {stage.slug: stage for stage in stages.all_parts()}

    def name_of(text: str) -> str | None:
        slug, _, variant = text.partition(": ")
        stage = names.get(slug)
        return stage and (f"{stage.id} {variant}" if variant else stage.name)

    return _renamed(record, name_of)


def for_file(record: dict) -> dict:
    """The opposite of from_file()."""
    slugs = {stage.id: stage.slug for stage in stages.all_parts()}

    def slug_of(name: str) -> str | None:
        slug = slugs.get(name[:2])
        return slug and (slug if name[2:3] == "_" else f"{slug}: {name[3:]}")

    return _renamed(record, slug_of)


def _renamed(record: dict, new_name) -> dict:
    made = dict(record)
    for key, value in record.items():
        if key in INSIDE and isinstance(value, dict):
            made[key] = _renamed(value, new_name)
        elif key == "provenance" and isinstance(value.get("kernels"), dict):
            kernels = {new_name(name): digest for name, digest in value["kernels"].items()}
            made[key] = value | {"kernels": {name: digest for name, digest in kernels.items() if name}}
        elif key in _LISTS and isinstance(value, list):
            rows = (_row(row, new_name) if isinstance(row, dict) else row for row in value)
            made[key] = [row for row in rows if row is not None]
    return made


def _row(row: dict, new_name) -> dict | None:
    """An entry under its new name; None where it is of a stage that there is not."""
    key = "name" if row.get("kind") in ("stage", "variant") else "stage"
    if not isinstance(row.get(key), str):
        return row
    name = new_name(row[key])
    return row | {key: name} if name else None


# ---- what ships ----


def kind_of(stem: str) -> str:
    """ "counters" of H200-counters, "" of H200."""
    return next((one for one in KINDS if stem.endswith(f"-{one}")), "")


def shipped(folder: Path = RECORDED, kind: str = "") -> list[dict]:
    """What is recorded for each GPU, MAIN's first, then in the order of their names: of a kind of KINDS or INSIDE,
    "" for the throughput. To be read alone, as to_read() says."""
    if kind in INSIDE:
        return [record[kind] for record in shipped(folder, INSIDE[kind]) if kind in record]
    found = [to_read(file) for file in sorted(folder.glob("*.json")) if kind_of(file.stem) == kind]
    return sorted(found, key=lambda one: one["provenance"].get("device") != MAIN)


def lacking(record: dict) -> list[str]:
    """What of PROVENANCE a record of a GPU does not say, or one inside it: "date", "roofline: date"."""
    found = []
    for kind in ("", *(one for one in INSIDE if one in record)):
        one = record[kind] if kind else record
        origin = one.get("provenance") if isinstance(one, dict) else None
        origin = origin if isinstance(origin, dict) else {}
        said = {key for key in origin if origin[key] not in ("", "unknown", None) or key == "uncommitted_changes"}
        found += [f"{kind}: {key}" if kind else key for key in PROVENANCE if key not in said]
    return found


def inside(kind: str, record: dict) -> dict:
    """A record of INSIDE as one that can be written: what it is inside of has nothing else, and write() adds that."""
    version = {"version": record.get("version", 1)}
    return version | {"provenance": record["provenance"], kind: {k: v for k, v in record.items() if k != "version"}}


def write(record: dict, file: Path) -> Path:
    """Has a record lie in the file. What the file has inside stays, unless the new one has it, too; and a record of
    inside() replaces nothing else."""
    file.parent.mkdir(parents=True, exist_ok=True)
    before = load(file) if file.exists() else {}
    if before and record.keys() <= {"version", "provenance", *INSIDE}:
        made = before | {key: record[key] for key in record if key in INSIDE}
    else:
        made = {key: before[key] for key in INSIDE if key in before} | record
    ordered = {key: made[key] for key in sorted(made, key=lambda key: key in INSIDE)}
    return paths.write(file, to_text(ordered))


def named(name: str, folder: Path = RECORDED) -> dict:
    """A record by its file's name; of one inside another, "H200-roofline.json", as if it had a file of its own."""
    device, _, kind = name.removesuffix(".json").rpartition("-")
    if kind not in INSIDE:
        return to_read(folder / name)
    record = to_read(folder / f"{device}-{INSIDE[kind]}.json")
    if kind not in record:
        raise FlashLadderError(f"{device}-{INSIDE[kind]}.json has no {kind} inside.")
    return record[kind]


def take(file: Path, folder: Path = RECORDED) -> Path:
    """Has a record that was just measured ship. What the one before has of stages and types that the new one is not of
    stays, and says in `run` when it was measured."""
    fresh, place = load(file), folder / file.name
    if place.exists() and kind_of(place.stem) == "ring":
        fresh = _with_other_ranks(fresh, load(place))
    elif place.exists() and kind_of(place.stem) in ("", "ablations", "backward", "counters", "decode", "faults"):
        fresh = _with_earlier(fresh, load(place))
    elif place.exists() and "shapes" in fresh:
        fresh = fresh | {"shapes": _with_other_head_dims(fresh["shapes"], load(place).get("shapes", {}))}
    return write(fresh, place)


def _with_earlier(fresh: dict, before: dict) -> dict:
    made = dict(fresh)
    for key, value in fresh.items():
        if key in INSIDE and key in before:
            made[key] = _with_earlier(value, before[key])
        elif key in _LISTS and isinstance(value, list) and isinstance(before.get(key), list):
            made[key] = _joined(value, before[key], label(before).split(", ", 1)[1])
        elif key == "runs":  # what rows say by the date of their run
            made[key] = before.get(key, {}) | value
    return made


def _with_other_ranks(fresh: dict, before: dict) -> dict:
    """With what the record before has of another number of GPUs, which comes first and says in `run` when it was
    measured."""
    made = dict(fresh)
    known = {row["ranks"] for row in fresh["measurements"] + fresh.get("links", [])}
    for key, value in before.items():
        if isinstance(value, list) and isinstance(fresh.get(key, []), list):
            kept = [{"run": label(before)} | row for row in value if row.get("ranks", 0) not in {0} | known]
            made[key] = kept + fresh.get(key, [])
    return made


def _with_other_head_dims(fresh: dict, before: dict) -> dict:
    """With what the record before has of types and head dims that the new one is not of."""
    known = {(row["dtype"], row["d_head"]) for row in fresh["chosen"]}
    made = dict(fresh)
    for key, rows in before.items():
        if isinstance(rows, list):
            run = label(before).split(", ", 1)[1]
            kept = [{"run": run} | row for row in rows if (row["dtype"], row["d_head"]) not in known]
            made[key] = kept + fresh[key]
    return made


def _joined(fresh: list[dict], before: list[dict], run: str) -> list[dict]:
    """Entries of both; of what the new ones are of, the new ones alone. In the ladder's order, peers behind."""
    known = {_name_in(row) for row in fresh}
    kept = [{"run": run} | row for row in before if _name_in(row) not in known]
    ladder = (*stages.every_stage(), *stages.other_parts())
    order = {stage.id: place for place, stage in enumerate(ladder)}
    order |= {"ceiling": -1}

    def place(row: dict) -> tuple[int, bool]:
        at = order.get("ceiling" if row.get("kind") == "ceiling" else str(_name_in(row)[0])[:2], len(order))
        return at, at == len(order) and "run" in row  # peers of the new run before those of another

    return sorted([*kept, *fresh], key=place)


def _name_in(row: dict) -> tuple[str | None, ...]:
    """The name of what a row is of, its type, and the mistake that is planted in it."""
    return row.get("name", row.get("stage")), row.get("dtype"), row.get("mistake")


def run_of(rows: list[dict]) -> str:
    """The earlier run that all of these rows are of; "" where they are of several, or of the record's own."""
    runs = {row.get("run", "") for row in rows}
    return runs.pop() if len(runs) == 1 else ""


def earlier(rows: list[dict]) -> str:
    """A sentence for a caption about rows of an earlier run; "" where all are of one, which label() names then."""
    runs: dict[str, dict[str, None]] = {}
    for row in rows if not run_of(rows) else ():
        if "run" in row:
            runs.setdefault(row["run"], {})[str(_name_in(row)[0])] = None
    return " ".join(f"{in_short(list(names))}: of another run, {run}." for run, names in runs.items())


def in_short(names: list[str]) -> str:
    """Stages that follow one another on the ladder as "01_naive to 13_masking", then the peers; variants as a word
    behind their stages."""
    order = [stage.name for stage in stages.all_parts()]
    stage_of = {name[:2]: name for name in order}
    whole = dict.fromkeys(stage_of.get(name[:2], name) if name[2:3] == " " else name for name in names)
    groups: list[list[str]] = []
    for name in sorted(whole, key=lambda name: order.index(name) if name in order else len(order)):
        follows = groups and {name, groups[-1][-1]} <= {*order} and order.index(name) == order.index(groups[-1][-1]) + 1
        groups[-1].append(name) if follows else groups.append([name])
    said = ", ".join(group[0] if len(group) == 1 else f"{group[0]} to {group[-1]}" for group in groups)
    return said + (" with variants" if any(name[2:3] == " " for name in names) else "")


def to_text(results: dict) -> str:
    """JSON with one measurement a line: small diffs where results are committed."""
    return "{\n" + _members(for_file(results), "  ") + "\n}\n"


def _members(values: dict, margin: str) -> str:
    parts = []
    for key, value in values.items():
        if isinstance(value, list) and value:
            lines = ",\n".join(f"{margin}  " + json.dumps(item, ensure_ascii=False) for item in value)
            text = f"[\n{lines}\n{margin}]"
        elif key in INSIDE and isinstance(value, dict):
            text = "{\n" + _members(value, margin + "  ") + f"\n{margin}}}"
        else:
            text = json.dumps(value, indent=2, ensure_ascii=False).replace("\n", f"\n{margin}")
        parts.append(f"{margin}{json.dumps(key)}: {text}")
    return ",\n".join(parts)


def write_live(results: dict, name: str) -> Path:
    """What was just measured here: build/results/NAME-TIME.json."""
    file = results_directory() / f"{name}-{datetime.datetime.now(datetime.timezone.utc):%Y%m%d-%H%M%S}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(to_text(results))
    return file


def latest_live() -> dict | None:
    """The newest results below build/results, None where there are none; those of a backward pass and of several GPUs
    apart."""
    files = [file for file in results_directory().glob("*.json") if file.is_file()]
    for file in sorted(files, key=lambda file: file.stat().st_mtime, reverse=True):
        results = load(file)
        if "measurements" in results and not {"pass", "links"} & results.keys():
            return results
    return None


def first(kind: str = "", gpu: str = "") -> dict | None:
    """Of shipped(), that of the GPU MAIN, else of the first one; gpu: words in its name, such as "H100", for another.
    None where there is none."""
    return next((one for one in shipped(kind=kind) if gpu in one.get("provenance", {}).get("device", "")), None)


def of(stage: str) -> dict | None:
    """The throughput of the GPU that texts about a stage quote, by its name such as "19_ping_pong": MAIN's, else the
    first other that has the stage. MAIN's where none has it."""
    return next((one for one in shipped() if pick(one, name=stage)), None) or first()


def gpu_of(stage: str) -> str:
    """The name of that GPU, "" where nothing is recorded."""
    results = of(stage)
    return results["provenance"]["device"] if results else ""


def together(results: dict) -> dict:
    """The run in which all stages were timed in turn at one length: `together` of a record whose other measurements
    are of several runs, else the record itself. Only of one run can any two stages be compared to the percent."""
    return results | {"measurements": results["together"]} if "together" in results else results


def shown(live: dict | None = None) -> list[tuple[dict, bool]]:
    """What pictures of the whole way up take: (results, whether measured here) of a run that is live, if there is one,
    and of each GPU on which the last stage of the main line is recorded; where there is none, of all that ship."""
    last = stages.main_line()[-1].name
    whole = [one for one in shipped() if pick(one, name=last)]
    return ([(live, True)] if live else []) + [(one, False) for one in whole or shipped()]


def is_stale(measurement: dict) -> bool:
    """True where a stage's kernel.cu is no longer the one that was measured, or the file of another way beside it. Any
    other variant of a stage changes with it."""
    way = measurement.get("way")
    if measurement.get("kind") != "stage" and not way:
        return False
    stage = next((one for one in stages.with_kernel() if one.id == measurement["name"][:2]), None)
    if stage and way:
        return way not in stage.ways or measurement["kernel_sha256"] != stage.way_hash(way)
    return stage is None or measurement.get("kernel_sha256") != stage.kernel_hash()


def label(results: dict, rows: list[dict] = ()) -> str:
    """NVIDIA H200, 2026-01-31, commit 0123456789ab; "with changes" where the tree was not that commit's. rows: that the
    words are about, where all of them may be of an earlier run."""
    record = results["provenance"]
    changed = " with changes" if record.get("uncommitted_changes") else ""
    run = run_of(rows) or f"{record['date'].split()[0]}, commit {record['commit']}{changed}"
    return f"{record['device']}, {run}"


def variants(rows: list[dict]) -> list[tuple[dict, list[dict]]]:
    """Ablations by the kernel that they are taken from: (its row, those of its variants, the fastest first).

    rows: of one length, head dim and type. "09 kv_stages 1" is taken from "09_double_buffering". A kernel with no
    variant, and a variant whose kernel was not measured in the same run, are left out.
    """
    found = []
    for kernel in rows:
        own = [row for row in rows if row["kind"] == "stage" and row["name"].startswith(f"{kernel['name'][:2]} ")]
        if kernel["kind"] == "stage" and kernel["name"][2] == "_" and own:
            found.append((kernel, sorted(own, key=lambda row: -row["tflops"])))
    return sorted(found, key=lambda pair: pair[0]["name"])


def pick(results: dict, **wanted) -> list[dict]:
    """Measurements whose fields have the wanted values; ceilings are never among them."""
    rows = results["measurements"]
    for key, value in wanted.items():  # one after the other: after the first, few rows are left
        rows = [row for row in rows if row.get(key) == value]
    return [row for row in rows if row["kind"] != "ceiling"]


def by_shape(rows: list[dict], shape: Callable[[dict], tuple], cell: Callable[[dict], str]) -> tuple[list[str], list]:
    """A table of measurements: the names, which are its columns, and a line for each shape (the words for it) with a
    cell for each name, "-" where it has none."""
    names = list(dict.fromkeys(row["name"] for row in rows))
    lines: dict[tuple, dict[str, str]] = {}
    for row in rows:
        lines.setdefault(shape(row), {})[row["name"]] = cell(row)
    return names, [[*words, *(found.get(name, "-") for name in names)] for words, found in lines.items()]


def picture(dtype: str, d: int, causal: bool) -> str:
    """The file name of a picture of the throughput, beside the records."""
    return f"throughput-{'' if dtype == 'bf16' else f'{dtype}-'}d{d}{'-causal' if causal else ''}.png"


def ceiling(results: dict, dtype: str) -> dict | None:
    rows = results["measurements"]
    return next((row for row in rows if row["kind"] == "ceiling" and row["dtype"] == dtype), None)
