"""What a stage's kernel adds to the one before: the diff in colour, and how many lines changed."""

import re
import subprocess

from flashladder.core.console import coloured, say
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages


def _diff(old, new, *options: str) -> list[str]:
    try:
        done = subprocess.run(
            ["diff", "-wB", *options, str(old.kernel), str(new.kernel)], capture_output=True, text=True
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


def show(stage: stages.Stage) -> None:
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
