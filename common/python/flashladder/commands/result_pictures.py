"""The pictures of docs/results, and where `make results` shows those of the throughput and of the tuner."""

import itertools
from pathlib import Path

from flashladder.commands import profiler_pages, ring_pages, timeline_pages
from flashladder.commands.markdown import NOTHING
from flashladder.ladder import stages
from flashladder.measuring import recorded, stream_times
from flashladder.tuning import record as tuning

BOTH_PARTS = "throughput-both-d128.png"  # README's: attention and its gradients on one GPU
_PICTURES = {
    "flags": "More time than the winner takes without each flag",
    "lengths": "What each flag is worth at each length",
    "predicted": "Measured time over the least by the model",
}


def throughput(dtype: str) -> str:
    """What the tables of throughput have, as pictures, for a page in docs/results; none before there is a record."""
    files = [
        f"![{dtype}, d = {d}{', causal' if causal else ''}]({recorded.picture(dtype, d, causal)})"
        for d, causal in itertools.product((128, 64), (False, True))
        if any(recorded.pick(one, dtype=dtype, d_head=d, causal=causal) for one in recorded.shipped())
    ]
    return "\n\n".join(files) or NOTHING


def tuned() -> str:
    """The tuner's pictures, for a page in docs/results; nothing is shown before there is a record."""
    made = recorded.shipped(kind="tuning")
    shown = {}
    for d in tuning.head_dims(made):
        shown |= {f"tuning-{name}-d{d}.png": f"{words}, d = {d}" for name, words in _PICTURES.items()}
    shown |= {"tuning-tiles.png": "The fastest configuration with each tile"} if shown else {}
    return "\n\n".join(f"![{words}]({file})" for file, words in shown.items()) or NOTHING


def draw(folder: Path) -> list[Path]:
    """Draws the plots and the stages' pictures anew; returns those that changed."""
    from flashladder import plot  # matplotlib is slow to load, and not everyone has it

    shipped = recorded.shown()
    wanted = {recorded.picture("bf16", d, False): lambda d=d: plot.throughput(shipped, "bf16", d) for d in (64, 128)}
    both = [(one, False) for kind in ("", "backward") for one in recorded.shipped(kind=kind)[:1]]
    wanted[BOTH_PARTS] = lambda: plot.throughput(both, "bf16", 128)
    for what in itertools.product(("e4m3",), (64, 128), (False, True)):
        dtype, d, causal = what
        if any(recorded.pick(one, dtype=dtype, d_head=d, causal=causal) for one, _ in shipped):
            wanted[recorded.picture(*what)] = lambda what=what: plot.throughput(shipped, *what)
    top = recorded.of(stages.main_line()[-1].name)
    if top:
        wanted["climb.svg"] = lambda: plot.front_picture(top, 8.4, 3.5)  # the first screen of README and site
    if recorded.shipped(kind="ablations"):
        wanted["ablations.png"] = lambda: plot.ablations(recorded.shipped(kind="ablations"))
    if recorded.shipped(kind="roofline"):
        wanted["roofline.png"] = lambda: plot.roofline(recorded.shipped(kind="roofline"))
    if recorded.shipped(kind="decode"):
        wanted["decode-roofline.png"] = plot.decode_roofline
    if recorded.shipped(kind="host-streams"):
        record = recorded.first("host-streams")
        wanted["host-streams.png"] = lambda: plot.transfers(record)
        wanted["host-streams-timeline.png"] = lambda: plot.timeline(stream_times.recorded_timelines(record))
    if recorded.shipped(kind="ring"):
        wanted[ring_pages.PICTURE] = lambda: plot.ring(recorded.shipped(kind="ring"))
    for stage in timeline_pages.PICTURES:
        wanted[f"warps-{stage}.png"] = lambda stage=stage: timeline_pages.picture(plot, stage)
    for name in profiler_pages.pictures():
        wanted[f"{name}.png"] = lambda draw=profiler_pages.PICTURES[name][0]: draw(plot)(recorded.first("profiler"))
    made = recorded.shipped(kind="tuning")
    for d in tuning.head_dims(made):
        wanted[f"tuning-flags-d{d}.png"] = lambda d=d: plot.tuning_flags(made, d=d)
        wanted[f"tuning-lengths-d{d}.png"] = lambda d=d: plot.tuning_lengths(made, d=d)
        wanted[f"tuning-predicted-d{d}.png"] = lambda d=d: plot.tuning_predicted(made, d=d)
        wanted["tuning-tiles.png"] = lambda: plot.tuning_tiles(made)
    changed = []
    for name, drawn in wanted.items():
        file = folder / name
        before = file.read_bytes() if file.exists() else b""
        if shipped and plot.save(drawn(), file).read_bytes() != before:
            changed.append(file)
    return [*changed, *plot.cards.write_all()]
