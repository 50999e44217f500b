"""What `make results` writes about clocks and power."""

from flashladder.commands.markdown import NOTHING, STALE_NOTE, caption, is_causal, table
from flashladder.core.errors import FlashLadderError
from flashladder.measuring import power, recorded


def _page(what: str, wanted: dict, cell, keep=lambda row: True) -> str:
    """A table for each GPU: a line for each kernel, a column for each length; cell(row, multiprocessors) is text."""
    parts = []
    for record in recorded.shipped(kind="power"):
        rows = [row for row in recorded.pick(record, **wanted) if keep(row)]
        if not rows:
            continue
        lengths = sorted({row["Nq"] for row in rows})
        by_key = {(row["name"], row["Nq"]): row for row in rows}
        body = []
        for name in dict.fromkeys(row["name"] for row in rows):
            own = [by_key.get((name, length)) for length in lengths]
            star = "\\*" if any(row and recorded.is_stale(row) for row in own) else ""
            body.append([f"{name}{star}", *(cell(row, record["multiprocessors"]) if row else "-" for row in own)])
        stale = f"\n\n{STALE_NOTE}" if any(recorded.is_stale(row) for row in rows) else ""
        head = ["", *(f"N = {length}" for length in lengths)]
        parts.append(f"{caption(record, what)}\n\n{table(head, body)}{stale}")
    return "\n\n".join(parts) or NOTHING


def _problem(d: str, mask: str) -> tuple[dict, str]:
    """What to pick, and words for a caption."""
    causal = is_causal(mask)
    return {"dtype": "bf16", "d_head": int(d), "causal": causal}, f"bf16, d = {d}{', causal' if causal else ''}"


def steps(d: str, mask: str = "") -> str:
    """In turn with each other: clocks of a step, and MHz."""
    wanted, words = _problem(d, mask)
    text = (
        f"Clocks that a multiprocessor has for 128 rows of Q and of K, and MHz, {words}, each in turn with the others"
    )

    def cell(row: dict, multiprocessors: int) -> str:
        return f"{power.clocks_a_step(row, multiprocessors):,.0f} at {row['mhz']['median']:,}"

    return _page(text, wanted | {"inputs": "normal"}, cell)


def alone(d: str, mask: str = "", inputs: str = "normal") -> str:
    """One launch behind the other: TFLOP/s, MHz and watts."""
    if mask in power.KINDS:
        mask, inputs = "", mask
    if inputs not in power.KINDS:
        raise FlashLadderError(f"a marker's inputs are {' or '.join(power.KINDS)}, not '{inputs}'")
    wanted, words = _problem(d, mask)
    numbers = "" if inputs == "normal" else f", {power.KINDS[inputs]}"
    text = f"TFLOP/s, MHz and watts of each kernel alone, launch behind launch, {words}{numbers}"

    def cell(row: dict, _) -> str:
        watts = f", {row['alone']['watts']} W" if "watts" in row["alone"] else ""
        return f"{power.alone_tflops(row):.0f} at {row['alone']['mhz']:,}{watts}"

    return _page(text, wanted | {"inputs": inputs}, cell, keep=lambda row: "alone" in row)
