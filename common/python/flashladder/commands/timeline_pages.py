"""What `make results` writes about the timeline's model: its numbers, its errors, and the pictures of some stages."""

from flashladder.commands.markdown import NOTHING, STALE_NOTE, table
from flashladder.measuring import step_clocks
from flashladder.simulator import clocks, warps

# Stage -> clocks that its picture shows: some turns in the middle.
PICTURES = {
    "masking": (9_000, 25_000),
    "tma": (9_000, 25_000),
    "wgmma": (4_000, 13_000),
    "warp_specialization": (4_000, 13_000),
    "tile_scheduler": (4_000, 17_000),
    "tma_store": (4_000, 17_000),
    "ping_pong": (4_000, 13_000),
    "overlap": (4_000, 13_000),
    "optimistic_max": (4_000, 13_000),
    "no_gap": (9_000, 21_000),  # a change of query tiles
    "shapes": (4_000, 13_000),
    "fp8": (4_000, 13_000),
}


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


def picture(plot, stage: str):
    return plot.warps(warps.of(stage), *PICTURES[stage])
