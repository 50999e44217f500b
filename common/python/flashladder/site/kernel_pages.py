"""A page for each stage's source: what it adds to the stage before, then the whole file with its line numbers."""

import re

from flashladder.core.paths import ROOT
from flashladder.ladder import diff, stages
from flashladder.ladder.stage import Stage

NAME = "kernel.md"


def _fenced(text: str, language: str, *options: str) -> list[str]:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{{code-block}} {language}", *options, "", text.rstrip("\n"), fence, ""]


def pages() -> dict[str, str]:
    """By place. A stage without its README yet has none: it would stand below it."""
    written = [stage for stage in stages.all_parts() if (stage.folder / "README.md").exists()]
    return {f"stages/{stage.name}/{NAME}": page(stage) for stage in written}


def lesson(stage: Stage) -> str:
    """A stage's notebook, from the project's folder; "" where it is not written yet."""
    place = f"notebooks/{stage.name}.ipynb"
    return place if (ROOT / place).exists() else ""


def told_at() -> dict[str, str]:
    """By stage's name, the built page from the site's front that a figure of the stage leads to: its lesson, else its
    README."""
    found = {}
    for stage in stages.all_parts():
        if lesson(stage) or (stage.folder / "README.md").exists():
            place = lesson(stage) or f"stages/{stage.name}/README.md"
            found[stage.name] = f"{place.rpartition('.')[0]}.html"
    return found


def page(stage: Stage) -> str:
    source = stage.source
    lines = ["---", "hide-toc: true", "---", "", f"# {stage.id} {stage.title}: {source.name}", ""]
    told = (
        f"[the lesson](../../{lesson(stage)}), or [its text](README.md)" if lesson(stage) else "[its text](README.md)"
    )
    lines += [f"{stage.technique[0].upper()}{stage.technique[1:]}. See {told}.", ""]
    before = stages.previous_of(stage)
    if before:
        added, removed = diff.changed_lines(before, stage)
        lines += [f"## What it adds to {before.name}", ""]
        lines += [f"{added} lines added, {removed} removed (`make stage-{stage.id} diff`); white space apart.", ""]
        lines += _fenced("\n".join(diff.unified(before, stage)), "diff")
    lines += ["## The whole file", "", f"`stages/{stage.name}/{source.name}`", ""]
    lines += _fenced(source.read_text(), "cuda" if source.suffix == ".cu" else "cpp", ":linenos:")
    return "\n".join(lines)


def below(text: str) -> str:
    """A stage's README, with its source's page behind it in the order of the pages."""
    return f"{text.rstrip()}\n\n```{{toctree}}\n:hidden:\n\n{NAME.removesuffix('.md')}\n```\n"
