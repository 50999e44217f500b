"""What `make results` writes into docs/results/ring.md: several GPUs of one host."""

from collections.abc import Iterator

from flashladder.commands.markdown import NOTHING, STALE_NOTE, caption, is_causal, paragraphs, table
from flashladder.core.ring_problem import RingProblem
from flashladder.measuring import recorded, ring_model

# What the model has, by the name in a record.
EXPECTED = {"62_zigzag": "zigzag", "63_one_launch": "one_launch", "63 heads first": "heads_first"}
EXPECTED_LENGTHS = (16384, 65536)
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
def expected() -> Iterator[str]:
    """Parts of the ideal: by two rates alone, by the model with costs, and as recorded; of eight GPUs, too, where none
    are recorded."""
    for record in recorded.shipped(kind="ring"):
        measured = {(row["ranks"], _shape(row), row["name"]): row["of_ideal"] for row in record["measurements"]}
        ranks = {row["ranks"] for row in record["measurements"]}
        shapes = sorted({_shape(row) for row in record["measurements"] if row["N"] in EXPECTED_LENGTHS})
        body = []
        for number, shape in ((number, shape) for number in sorted(ranks | {8}) for shape in shapes):
            (Hq, Hkv, causal, N), cells = shape, []
            problem = RingProblem(Hq=Hq, Hkv=Hkv, Nq=N, Nkv=N, d_head=128, causal=causal, ranks=number)
            for name, slug in EXPECTED.items():
                rates = (ring_model.MEASURED, ring_model.COSTS)
                cells += [f"{ring_model.of_ideal(slug, problem, one):.2f}" for one in rates]
                found = measured.get((number, shape, name))
                cells.append(f"{found:.2f}" if found else "-")
            least = ring_model.least_length(number, Hq, Hkv, causal)
            mask = "causal" if causal else "full"
            body.append([str(number), f"{Hq} / {Hkv}", mask, f"{N:,}", f"{N / least:.1f}", *cells])
        words = ("two rates", "with costs", "measured")
        names = [f"{name}: {words[0]}" if not n else words[n] for name in EXPECTED for n in range(3)]
        head = ["GPUs", "heads of Q / of K and V", "", "N", "N / the rule's N", *names]
        text = "Parts of the ideal, expected and measured; bf16, d = 128, B = 1"
        yield "\n".join([_caption(record, record["measurements"], text), "", table(head, body)])


def _shape(row: dict) -> tuple[int, int, bool, int]:
    return row["Hq"], row["Hkv"], row["causal"], row["N"]


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
