"""Results as files: those just measured (build/results) and those that ship (docs/results)."""

import json
from functools import lru_cache
from pathlib import Path

from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import RECORDED, results_directory
from flashladder.ladder import stages


def load(file: Path) -> dict:
    try:
        results = json.loads(file.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise FlashLadderError(f"{file} cannot be read: {error}") from error
    if results.get("version") != 1 or "provenance" not in results:
        raise FlashLadderError(f"{file} is no result of `make bench` (version 1).")
    return results


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


# What sentences and tables of one GPU are about, however many others are recorded beside it.
MAIN = "NVIDIA H200"

KINDS = (
    "counters", "ablations", "roofline", "host-streams", "machine-code", "tuning", "registers", "profiler", "inputs",
    "outputs", "shapes", "fp8-errors", "sums", "faults", "beside-products",
    "query-tile-clocks", "power",
)  # fmt: skip


def shipped(folder: Path = RECORDED, kind: str = "") -> list[dict]:
    """What is recorded for each GPU, MAIN's first, then in the order of their names: docs/results/GPU.json, the
    throughput.

    kind, one of KINDS: "counters", the simulator beside Nsight Compute; "ablations", kernels with one idea changed at
    a time; "roofline", bytes of memory traffic; "host-streams", stage 00; "machine-code", of the loops over K and V;
    "tuning", the fastest configurations; "shapes", those of stage 28; "profiler", what Nsight Compute says of some
    kernels; "inputs", times on inputs that hurt; "outputs", how far the simulator's lie from the GPU's; "fp8-errors",
    what e4m3 costs in accuracy, of the simulator; "sums", bits of tensor cores' sums; "faults", what comes of mistakes
    that the simulator names; "beside-products", clocks of instructions while the tensor cores multiply;
    "query-tile-clocks", those of a change of query tile; "power", each kernel's clock and watts. They lie in
    GPU-KIND.json, the machine code in e.g. sm_90-machine-code.json. To be read alone, as to_read() says.
    """
    found = []
    for file in sorted(folder.glob("*.json")):
        if kind == next((one for one in KINDS if file.stem.endswith(f"-{one}")), ""):
            found.append(to_read(file))
    return sorted(found, key=lambda one: one["provenance"].get("device") != MAIN)


def latest_live() -> dict | None:
    """The newest results below build/results, None where there are none."""
    files = [file for file in results_directory().glob("*.json") if file.is_file()]
    for file in sorted(files, key=lambda file: file.stat().st_mtime, reverse=True):
        results = load(file)
        if "measurements" in results:
            return results
    return None


def first(kind: str = "", gpu: str = "") -> dict | None:
    """Of shipped(), that of the GPU MAIN, else of the first one; gpu: words in its name, such as "H100", for another.
    None where there is none."""
    return next((one for one in shipped(kind=kind) if gpu in one.get("provenance", {}).get("device", "")), None)


def shown(live: dict | None = None) -> list[tuple[dict, bool]]:
    """What pictures of the throughput take: (results, whether measured here) of a run that is live, if there is one,
    and of each GPU that ships."""
    return ([(live, True)] if live else []) + [(one, False) for one in shipped()]


def is_stale(measurement: dict) -> bool:
    """True where a stage's kernel.cu is no longer the one that was measured. A variant of a stage changes with it."""
    if measurement.get("kind") != "stage":
        return False
    stage = next((one for one in stages.all_stages() if one.id == measurement["name"][:2]), None)
    return stage is None or measurement.get("kernel_sha256") != stage.kernel_hash()


def label(results: dict) -> str:
    """NVIDIA H200, 2026-01-31, commit 0123456789ab; "with changes" where the tree was not that commit's."""
    record = results["provenance"]
    changed = " with changes" if record.get("uncommitted_changes") else ""
    return f"{record['device']}, {record['date'].split()[0]}, commit {record['commit']}{changed}"


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
    rows = [row for row in results["measurements"] if row["kind"] != "ceiling"]
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def picture(dtype: str, d: int, causal: bool) -> str:
    """The file name of a picture of the throughput, beside the records."""
    return f"throughput-{'' if dtype == 'bf16' else f'{dtype}-'}d{d}{'-causal' if causal else ''}.png"


def ceiling(results: dict, dtype: str) -> dict | None:
    rows = results["measurements"]
    return next((row for row in rows if row["kind"] == "ceiling" and row["dtype"] == dtype), None)
