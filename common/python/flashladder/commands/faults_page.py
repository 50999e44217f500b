"""What a GPU made of the faulty kernels that warpsim names with their lines, as tables of docs/mistakes_on_a_gpu.md."""

from collections.abc import Iterator

from flashladder.commands.markdown import caption, paragraphs, table
from flashladder.core.errors import FlashLadderError
from flashladder.measuring import recorded

# Columns of the summary; "now and then": in some launches of those that were made.
OUTCOMES = ("right numbers", "wrong now and then", "wrong each time", "an error", "never ends")


def kind(row: dict) -> str:
    """What warpsim calls a fault; a note, of what ptxas repairs, is named so."""
    said = row["warpsim"]
    if not said:
        return "nothing"
    return said["kind"] + (" (note)" if said["as"] == "note" else "")


def outcome(row: dict) -> str:
    """One of OUTCOMES, or what else the record says."""
    gpu = row["gpu"]
    if gpu["outcome"] == "wrong numbers":
        return "wrong each time" if gpu["wrong launches"] == gpu["launches"] else "wrong now and then"
    return {"error": "an error", "hang": "never ends"}.get(gpu["outcome"], gpu["outcome"])


def details(row: dict) -> str:
    gpu, found = row["gpu"], outcome(row)
    if found.startswith("wrong"):
        return f"{found}: {gpu['wrong launches']} of {gpu['launches']}, {gpu['fewest wrong words']} words or more"
    if found == "an error":
        return f"`{gpu['error']}`" + (f", after {gpu['launches']} launches" if gpu["launches"] else "")
    return found


def twins(record: dict) -> str:
    """A sentence about the mended kernels."""
    rows = record["faults"]
    right = [row for row in rows if row["gpu mended"]["outcome"] == "right numbers"]
    same = sum(row["gpu mended"]["expected"] == row["warpsim expected"] for row in right)
    clean = sum(row["warpsim mended"] is None for row in rows)
    return (
        f"Of the {len(rows)} mended kernels {len(right)} gave the same numbers in each of {record['launches']} launches"
        f" on the GPU, {same} of them warpsim's to the bit; warpsim has nothing to say to {clean} of them."
    )


@paragraphs
def page(what: str = "kinds") -> Iterator[str]:
    """what: "kinds", a line for each kind of hazard; "list", one for each fault."""
    for record in recorded.shipped(kind="faults"):
        if "faults" not in record:  # of a GPU that only stages' mistakes met
            continue
        rows = record["faults"]
        if what == "kinds":
            others = sorted({outcome(row) for row in rows} - set(OUTCOMES))
            columns = [*OUTCOMES, *others]
            body = []
            for name in sorted({kind(row) for row in rows}):
                found = [outcome(row) for row in rows if kind(row) == name]
                body.append([name, str(len(found)), *(str(found.count(one) or "") for one in columns)])
            total = [outcome(row) for row in rows]
            body.append(["all", str(len(rows)), *(str(total.count(one) or "") for one in columns)])
            text = f"{caption(record, 'Kernels by what warpsim calls the mistake, and by what the GPU made of it')}"
            yield f"{text} {twins(record)}\n\n{table(['', 'kernels', *columns], body)}"
        elif what == "list":
            body = [
                [
                    f"`{row['fault']}`",
                    row["program"],
                    str((row["warpsim"] or {}).get("line", "")),
                    kind(row),
                    details(row),
                ]
                for row in rows
            ]
            yield table(["mistake", "in", "line", "warpsim", "GPU"], body)
        else:
            raise FlashLadderError(f"a marker 'faults' takes kinds or list, not '{what}'")
