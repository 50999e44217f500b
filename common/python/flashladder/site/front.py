"""The front page: docs/site/index.md with the climb as a picture, and the order of all pages behind it.

The picture is HTML of its own: a bar for each stage, as wide as its throughput, that leads to its lesson. So it
follows the page's colours and width, and can be read without seeing it.
"""

from html import escape
from pathlib import PurePosixPath

from flashladder.core.console import duration
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.ladder.stage import Stage
from flashladder.measuring import recorded
from flashladder.site import kernel_pages, run_page

CLIMB, SECTIONS, RUN = "<!-- site: climb -->", "<!-- site: pages -->", "<!-- site: run -->"
LENGTH = 4096


def page(template: str, sections: list[tuple[str, list[PurePosixPath]]], runs: bool) -> str:
    """runs: the site has the page that runs kernels."""
    for mark in (CLIMB, SECTIONS, RUN):
        if template.count(mark) != 1:
            raise FlashLadderError(f"docs/site/index.md must have the line {mark} once.")
    template = template.replace(RUN, run_page.DOOR if runs else "")
    return template.replace(CLIMB, climb(recorded.of(stages.main_line()[-1].name))).replace(
        SECTIONS, contents(sections)
    )


def contents(sections: list[tuple[str, list[PurePosixPath]]]) -> str:
    """Sphinx's tables of contents, hidden: the sidebar shows them."""
    parts = []
    for caption, pages in sections:
        names = [f"/{page.with_suffix('')}" for page in pages]
        parts.append("\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```"]))
    return "\n\n".join(parts)


def climb(results: dict | None) -> str:
    """The stages of a run in the ladder's order, bf16, d = 128, one bar each, with the factor over the stage that it
    changes; the peers below. Stops of the core path and branches are marked, and say how long their lesson takes."""
    results = results and recorded.together(results)
    rows = recorded.pick(results, dtype="bf16", d_head=128, causal=False, Nq=LENGTH) if results else []
    if not rows:
        return "No throughput is recorded yet: `make bench` on a GPU does it."
    ladder = {stage.name: stage for stage in stages.all_stages()}
    order = list(ladder)
    # A stage that was measured once, and is gone, is left out.
    rows = [row for row in rows if row["kind"] != "stage" or row["name"] in ladder]
    rows.sort(key=lambda row: order.index(row["name"]) if row["kind"] == "stage" else len(order))
    measured = {row["name"]: row["tflops"] for row in rows}
    told_at = kernel_pages.told_at()
    top = max(row["tflops"] for row in rows)
    lines = []
    for row in rows:
        stage = ladder.get(row["name"]) if row["kind"] == "stage" else None
        before = stages.previous_of(stage) if stage else None
        than = measured.get(before.name) if before else None
        factor = f"×{row['tflops'] / than:.2f}" if than else ""
        name = f"{stage.id} {stage.title}" if stage else row["name"]
        stale = "*" if recorded.is_stale(row) else ""
        inner = (
            f'<span class="climb-name">{escape(name)}</span><span class="climb-way">{_way(stage)}</span>'
            f'<span class="climb-track"><span class="climb-bar" style="width:{100 * row["tflops"] / top:.1f}%"></span>'
            f'</span><span class="climb-figure">{row["tflops"]:.1f}{stale}</span>'
            f'<span class="climb-factor">{factor}</span>'
        )
        peer = " climb-peer" * (stage is None)
        if row["name"] in told_at:
            lines.append(f'<a class="climb-row" href="{told_at[row["name"]]}">{inner}</a>')
        else:
            lines.append(f'<span class="climb-row{peer}">{inner}</span>')
    what = f"TFLOP/s, bf16, d = 128, N = {LENGTH}, and the factor over the stage that it changes"
    core = stages.core_path()
    time = duration(sum(minutes for _, minutes in core))
    caption = (
        f"{what}. Recorded: {recorded.label(results)}. core: a stop of the core path, {len(core)} lessons in "
        f"{time}. branch: no later stage builds on it."
    )
    if any(recorded.is_stale(row) for row in rows):
        caption += " A star: the kernel has changed since."
    body = "\n".join(lines)
    return (
        f'```{{raw}} html\n<figure class="climb">\n{body}\n<figcaption>{escape(caption)}</figcaption>\n</figure>\n```'
    )


def _way(stage: Stage | None) -> str:
    """ "core, 40 min", "branch, 40 min", "40 min"; "" of a peer."""
    if stage is None:
        return ""
    return ", ".join(word for word in (stage.way, f"{stage.minutes} min") if word)
