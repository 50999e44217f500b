"""What `make results` writes about the timeline's model: its numbers, its errors, and the pictures of some stages."""

from flashladder.commands.markdown import NOTHING, STALE_NOTE, table
from flashladder.measuring import step_clocks
from flashladder.simulator import clocks, warps

# Stage -> clocks that its picture shows: some turns in the middle.
PICTURES = {
    13: (9_000, 25_000), 14: (9_000, 25_000), 15: (4_000, 13_000), 16: (4_000, 13_000),
    17: (4_000, 17_000), 18: (4_000, 13_000), 19: (4_000, 13_000), 20: (4_000, 13_000),
    21: (4_000, 13_000), 22: (4_000, 13_000), 23: (4_000, 13_000),
    24: (9_000, 21_000), 25: (9_000, 21_000),  # a change of query tiles
    28: (4_000, 13_000), 29: (4_000, 13_000),
    30: (4_000, 13_000),
}  # fmt: skip


def clocks_table() -> str:
    rows = [[name, f"{row['value']:g}", row["from"], row["why"]] for name, row in clocks.table().items()]
    return table(["name", "clocks", "from", "of what"], rows)


def errors_table(d: str) -> str:
    """The model's clocks of a turn beside those that were measured, for each recorded stage with tensor cores."""
    found = step_clocks.all_steps(int(d))
    if not found:
        return NOTHING
    rows = [
        [
            step.stage.name,
            f"{step.blocks} x {step.tile[0]} x {step.tile[1]}",
            f"{step.floor:,.0f}",
            f"{step.model:,.0f}",
            f"{step.measured:,.0f}" + "\\*" * step.stale,
            f"{100 * step.error:+.0f}%",
        ]
        for step in found
    ]
    head = [f"bf16, d = {d}", "blocks x tile", "tensor cores alone", "model", "measured", "error"]
    text = f"{table(head, rows)}\n\nRoot mean square of the errors: {100 * step_clocks.deviation(found):.0f} percent."
    return f"{text}\n\n{STALE_NOTE}" if any(step.stale for step in found) else text


def picture(plot, number: int):
    return plot.warps(warps.of(number), *PICTURES[number])
