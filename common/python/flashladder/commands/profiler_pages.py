"""What `make results` writes into docs/profiler.md: tables and pictures of what Nsight Compute recorded.

Before there is a record, and where it lacks what is asked for, they say so in its place.
"""

from flashladder.commands.markdown import NOTHING, STALE_NOTE, caption, table
from flashladder.ladder import stages
from flashladder.measuring import profiler_tables, recorded

_TABLES = {
    "stalls": profiler_tables.stalls,
    "samples": profiler_tables.samples,
    "hottest": profiler_tables.hottest,
    "section": profiler_tables.section,
    "advice": profiler_tables.advice,
}
# Name -> what draws it, given flashladder.plot (slow to load); what it needs of the record; in words.
PICTURES = {
    "profiler-stalls": (
        lambda plot: plot.profiler_stalls,
        "stalls",
        "Cycles that a warp spends for an instruction, by why it did not issue",
    ),
    "profiler-samples": (
        lambda plot: plot.profiler_samples,
        "samples",
        "At which machine instructions the warps of each kernel were found",
    ),
    "profiler-wavefronts": (
        lambda plot: plot.profiler_wavefronts,
        "figures",
        "Wavefronts of shared memory of each kernel, by what asked for them",
    ),
}


def _record(hopper: bool) -> dict | None:
    """The first GPU's; of kernels for Hopper the first that has them."""
    if hopper:
        for one in recorded.shipped(kind="profiler"):
            if any(stages.get(kernel["name"][:2]).hopper for kernel in one["kernels"]):
                return one
    return recorded.first("profiler")


def page(what: str, *more: str) -> str:
    """A table of measuring/profiler_tables.py, of the first GPU: stalls [hopper], samples [hopper], hottest STAGE,
    advice STAGE, section WORDS STAGE ..., or one of its lines (first, swizzle, copies, warps, hopper)."""
    made = _record("hopper" in (what, *more))
    if not made:
        return NOTHING
    try:
        head, body = _TABLES[what](made, *more) if what in _TABLES else profiler_tables.lines(made, what)
    except profiler_tables.NotThereError as error:
        return f"Not recorded: {error}."
    stale = f"\n\n{STALE_NOTE}" if any("\\*" in column for column in head) else ""
    return caption(made, f"Nsight Compute, {made['problem']}") + f"\n\n{table(head, body)}{stale}"


def pictures() -> list[str]:
    """Names of those that can be drawn from the record."""
    made = recorded.first("profiler")
    there = made["kernels"] if made else []
    return [name for name, (_, needed, _) in PICTURES.items() if any(one[needed] for one in there)]


def picture(name: str) -> str:
    """One of PICTURES, for a document beside the folder results."""
    return f"![{PICTURES[name][2]}](results/{name}.png)" if name in pictures() else NOTHING
