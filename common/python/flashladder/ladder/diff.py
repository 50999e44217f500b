"""What a stage's kernel adds to the one before: the diff in colour, and how many lines changed."""

import re
import subprocess

from flashladder.core.console import coloured, say
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import headers
from flashladder.ladder import stages

_INCLUDE = re.compile(r'^#include "([^"]+)"$', re.M)


def moved(old: stages.Stage, new: stages.Stage) -> list[str]:
    """Paragraphs of the old kernel that the new one includes instead, word for word, from headers of common/include."""
    text = old.kernel.read_text()
    added = set(_INCLUDE.findall(new.kernel.read_text())) - set(_INCLUDE.findall(text))
    found = []
    for header in headers():
        body = header.read_text().partition("#pragma once")[2] if header.name in added else ""
        paragraphs = (one.strip("\n") for one in re.split(r"\n[ ]*\n", body))
        found += [one for one in paragraphs if one.count("\n") and not one.startswith("#") and text.count(one) == 1]
    return found


def _diff(old: stages.Stage, new: stages.Stage, *options: str) -> list[str]:
    """Text that has moved into a header is no change: it is left out of the old kernel."""
    text = old.kernel.read_text()
    for paragraph in moved(old, new):
        text = text.replace(paragraph + "\n", "")
    try:
        done = subprocess.run(
            ["diff", "-wB", *options, "-", str(new.kernel)], input=text, capture_output=True, text=True
        )
    except FileNotFoundError as error:
        raise FlashLadderError("diff not found: install diffutils.") from error
    return done.stdout.splitlines()


def changed_lines(old: stages.Stage, new: stages.Stage) -> tuple[int, int]:
    """(lines added, lines removed), white space and empty lines apart. The size of a step is the larger one."""
    lines = _diff(old, new)
    return sum(line.startswith(">") for line in lines), sum(line.startswith("<") for line in lines)


def unified(before: stages.Stage, stage: stages.Stage, context: int = 3) -> list[str]:
    """The unified diff of two kernels, white space and empty lines apart."""
    labels = ("--label", f"{before.name}/kernel.cu", "--label", f"{stage.name}/kernel.cu")
    return _diff(before, stage, f"-U{context}", *labels)


def show(which: stages.Stage | str) -> None:
    stage = stages.get(which) if isinstance(which, str) else which
    before = stages.previous_of(stage)
    if not before:
        say(f"{stage.name} is the first of its line: there is no stage before it to compare with.")
        return
    for line in unified(before, stage):
        if line.startswith(("---", "+++")):
            say(coloured(line, "bold"))
        elif line.startswith("@@"):
            say(coloured(line, "cyan"))
        elif re.match(r"[+-]", line):
            say(coloured(line, "green" if line[0] == "+" else "red"))
        else:
            say(line)
    added, removed = changed_lines(before, stage)
    size = len(stage.kernel.read_text().splitlines())
    say(f"\n{stage.name}: {stage.technique}")
    say(f"{max(added, removed)} lines changed ({added} added, {removed} removed); the kernel has {size} lines.")
    lines = sum(one.count("\n") + 1 for one in moved(before, stage))
    if lines:
        say(f"{lines} more moved, unchanged, from {before.name} into headers of common/include.")
