"""What `make results` writes into docs/results/ring.md: several GPUs of one host."""

from collections.abc import Iterator

from flashladder.commands.markdown import NOTHING, STALE_NOTE, caption, is_causal, paragraphs, table
from flashladder.measuring import recorded

PICTURE = "ring.png"


@paragraphs
def page(mask: str = "") -> Iterator[str]:
    """TFLOP/s of each GPU and the part of the ideal, by problem and name."""
    causal = is_causal(mask)
    for record in recorded.shipped(kind="ring"):
        rows = sorted((row for row in record["measurements"] if row["causal"] == causal), key=_column)
        if not rows:
            continue
        names, lines = recorded.by_shape(rows, lambda row: (row["ranks"], row["Hq"], row["Hkv"], row["N"]), _cell)
        body = [[str(ranks), f"{Hq} / {Hkv}", f"{N:,}", *cells] for ranks, Hq, Hkv, N, *cells in sorted(lines)]
        head = ["GPUs", "heads of Q / of K and V", "N", *names]
        masked = "causal (half the FLOPs counted)" if causal else "no mask"
        text = f"TFLOP/s of each GPU, and in brackets the part of the ideal; bf16, d = 128, B = 1, {masked}, median"
        notes = ["", STALE_NOTE] if any(recorded.is_stale(row) for row in rows) else []
        yield "\n".join([_caption(record, rows, text), "", table(head, body), *notes, *_missing(record, causal)])


def _column(row: dict) -> tuple:
    """The ideal, then the stages with what else is of them, then peers."""
    return {"ideal": 0, "peer": 2}.get(row["kind"], 1), row["name"][:2] if row["kind"] in ("stage", "variant") else ""


def _caption(record: dict, rows: list[dict], text: str) -> str:
    """With the run of each number of GPUs."""
    runs = {row["ranks"]: row.get("run", recorded.label(record)) for row in rows}
    if len(set(runs.values())) < 2:
        return caption(record, text)
    return f"{text}. Recorded: {'; '.join(f'{ranks} GPUs, {runs[ranks]}' for ranks in sorted(runs))}."


def _cell(row: dict) -> str:
    told = f"{row['tflops_per_gpu']:.0f}" + "\\*" * recorded.is_stale(row)
    return told + (f" ({row['of_ideal']:.2f})" if "of_ideal" in row and row["kind"] != "ideal" else "")


def _missing(record: dict, causal: bool) -> list[str]:
    """What was not timed, and why, each reason once."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in record["skipped"]:
        if row.get("causal", causal) == causal:
            place = f"{row['Hq']}/{row['Hkv']} at N = {row['N']:,}" if "N" in row else ""
            reasons.setdefault((row["name"], row["reason"]), []).append(place)
    lines = []
    for (name, reason), places in reasons.items():
        named = ", ".join(place for place in places if place)
        lines.append(f"- {name}{f', {named}' if named else ''}: {reason}")
    return ["", "Not timed:", "", *lines] if lines else []


@paragraphs
def links() -> Iterator[str]:
    """Gigabytes a second and direction of copy engines, by the bytes of a copy."""
    for record in recorded.shipped(kind="ring"):
        sizes = sorted({row["bytes"] for row in record["links"]})
        if not sizes:
            continue
        rates: dict[tuple[int, str], dict[int, dict]] = {}
        for row in record["links"]:
            rates.setdefault((row["ranks"], row["pattern"]), {})[row["bytes"]] = row
        body = [
            [str(ranks), name, *(_rate(of[size]) if size in of else "-" for size in sizes)]
            for (ranks, name), of in rates.items()
        ]
        sizes_said = (f"{size >> 20} MiB" if size >> 20 else f"{size >> 10} KiB" for size in sizes)
        text = "GB/s that a GPU receives, best of three; where there are several ways, of the slowest to the fastest"
        yield "\n".join([
            _caption(record, record["links"], text), "", table(["GPUs", "a copy of", *sizes_said], body)
        ])  # fmt: skip


def _rate(row: dict) -> str:
    low, high = f"{row['gb_per_s']:.0f}", f"{row.get('fastest', row['gb_per_s']):.0f}"
    return low if low == high else f"{low} to {high}"


def picture() -> str:
    """What page() has, as a picture, for a page in docs/results."""
    if not recorded.shipped(kind="ring"):
        return NOTHING
    return f"![TFLOP/s of each GPU by the length of the sequence, stages and peers]({PICTURE})"
