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
        rows = [row for row in record["measurements"] if row["causal"] == causal]
        if not rows:
            continue
        names, lines = recorded.by_shape(rows, lambda row: (row["ranks"], row["Hq"], row["Hkv"], row["N"]), _cell)
        lines.sort(key=lambda line: (line[0], line[1], line[3]))
        body = [[str(ranks), f"{Hq} / {Hkv}", f"{N:,}", *cells] for ranks, Hq, Hkv, N, *cells in lines]
        head = ["GPUs", "heads of Q / of K and V", "N", *names]
        masked = "causal (half the FLOPs counted)" if causal else "no mask"
        text = f"TFLOP/s of each GPU, and in brackets the part of the ideal; bf16, d = 128, B = 1, {masked}, median"
        notes = ["", STALE_NOTE] if any(recorded.is_stale(row) for row in rows) else []
        yield "\n".join([caption(record, text), "", table(head, body), *notes, *_missing(record, causal)])


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
        rates: dict[str, dict[int, float]] = {}
        for row in record["links"]:
            rates.setdefault(row["pattern"], {})[row["bytes"]] = row["gb_per_s"]
        body = [[name, *(f"{of[size]:.0f}" if size in of else "-" for size in sizes)] for name, of in rates.items()]
        head = ["a copy of", *(f"{size >> 20} MiB" if size >> 20 else f"{size >> 10} KiB" for size in sizes)]
        text = f"GB/s that a GPU receives, best of three, {record['links'][0]['ranks']} GPUs"
        yield "\n".join([caption(record, text), "", table(head, body)])


def picture() -> str:
    """What page() has, as a picture, for a page in docs/results."""
    if not recorded.shipped(kind="ring"):
        return NOTHING
    return f"![TFLOP/s of each GPU by the length of the sequence, stages and peers]({PICTURE})"
