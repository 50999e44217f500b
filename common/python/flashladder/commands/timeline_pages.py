"""What `make results` writes about the timeline's model: its numbers, its errors, and the pictures of some stages."""

from collections.abc import Iterator

from flashladder.commands.markdown import STALE_NOTE, caption, paragraphs, table
from flashladder.measuring import model_clocks, recorded
from flashladder.simulator import clocks, warps

# Stage whose picture a text has -> clocks that it shows: some turns in the middle.
PICTURES = {
    "warp_specialization": (4_000, 13_000),
    "fp8": (4_000, 13_000),
    "backward_wgmma": (9_000, 17_500),
    "dQ_one_tile_late": (9_000, 17_500),
    "waits_apart": (5_000, 13_500),
}


def clocks_table() -> str:
    rows = [[name, f"{row['value']:g}", row["from"], row["why"]] for name, row in clocks.table().items()]
    return table(["name", "clocks", "from", "of what"], rows)


@paragraphs
def errors_table(d: str) -> Iterator[str]:
    """The model's clocks of a turn beside those that were measured, for each recorded stage with tensor cores; first
    which is the farthest off."""
    found = model_clocks.all_steps(int(d))
    if not found:
        return
    rows = [
        [
            step.stage.name,
            f"{step.blocks} x {step.tile[0]} x {step.tile[1]}",
            f"{step.floor:,.0f}",
            f"{step.model:,.0f}",
            f"{step.measured:,.0f}" + "\\*" * step.stale,
            f"{100 * step.error:+.1f}%",
        ]
        for step in found
    ]
    hopper = model_clocks.for_hopper(found)
    earlier = tuple(step for step in found if step not in hopper)
    said = f"Largest deviation of the stages for Hopper, from {hopper[0].stage.name} on: {_worst(hopper)}."
    head = [f"d = {d}", "blocks x tile", "tensor cores alone", "model", "measured", "model over measured"]
    text = f"Clocks of a turn, d = {d}, no mask, bf16 (fp8: e4m3)"
    yield f"{said} Of those before: {_worst(earlier)}." if earlier else said
    measured = [step.row for step in found]
    yield caption(recorded.first(), text, measured)
    yield table(head, rows)
    if any(step.stale for step in found):
        yield STALE_NOTE
    if note := recorded.earlier(measured):
        yield f"{note} It is taken to have had the same clock."


def _worst(found: tuple[model_clocks.Step, ...]) -> str:
    step = model_clocks.worst(found)
    return f"{100 * step.error:+.1f} percent, {step.stage.name}"


@paragraphs
def beside_table() -> Iterator[str]:
    """What instructions take beside products and without them, and what products take beside them: the model's figure
    before the recorded one."""
    found = {(row.instruction, row.products): row for row in model_clocks.rows()}
    if not found:
        return
    rows = []
    for name in dict.fromkeys(name for name, _ in found):
        cells = [(name, False, "clocks"), (name, True, "clocks"), (name, True, "clocks_of_a_product")]
        rows.append(
            [name or "no instruction", *(_both(found.get((which, beside)), key) for which, beside, key in cells)]
        )
    head = ["instruction", "clocks", "clocks beside products", "clocks of a product beside it"]
    yield caption(recorded.first("beside"), "The model's clocks, then the recorded ones, of a warp's instruction")
    yield table(head, rows)


def _both(row: model_clocks.Row | None, key: str) -> str:
    return f"{row.model[key]:.2f} : {row.recorded[key]:.2f}" if row and key in row.recorded else ""


def picture(plot, stage: str):
    return plot.warps(warps.of(stage), *PICTURES[stage])
