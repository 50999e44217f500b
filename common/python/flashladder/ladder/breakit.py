"""Classic mistakes as patches: stages/NN_name/break/NAME.patch, described in break/break.toml.

run() builds a patched copy of the stage's source and runs it on the simulator; of a kernel, bf16 with d_head 128 alone.
"""

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from flashladder.core.console import coloured, say
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, place
from flashladder.core.toml import tomllib
from flashladder.ladder import stages
from flashladder.ladder.stage import Verdict


@dataclass(frozen=True)
class Break:
    """One mistake. caught_by: "verification", or the simulator's name of the hazard, e.g. "shared_race"."""

    stage: stages.Stage
    name: str
    mistake: str  # what was done wrong, one sentence
    caught_by: str
    message: str  # words that the message must contain

    @property
    def id(self) -> str:
        return f"{self.stage.id}_{self.name}"

    @property
    def patch(self) -> Path:
        return self.stage.folder / "break" / f"{self.name}.patch"


def breaks(stage: stages.Stage | int | str) -> list[Break]:
    """The stage's mistakes, in the order of break.toml."""
    stage = stages.entry(stage)
    file = stage.folder / "break" / "break.toml"
    if not file.exists():
        return []
    entries = tomllib.loads(file.read_text())
    return [Break(stage, name, **entry) for name, entry in entries.items()]


def get(stage: stages.Stage | int | str, name: str) -> Break:
    found = breaks(stage)
    for mistake in found:
        if mistake.name == name:
            return mistake
    names = ", ".join(mistake.name for mistake in found) or "none"
    one = stages.entry(stage)
    raise FlashLadderError(f"There is no mistake '{name}' for stage {one.name}. There are: {names}.")


def patched_source(mistake: Break) -> Path:
    """A copy of the stage's source with the mistake. Raises where the patch does not fit."""
    source = mistake.stage.source
    with tempfile.TemporaryDirectory(prefix="flashladder-break-") as name:
        scratch = Path(name)
        shutil.copy(source, scratch)
        # Outside of any repository, so that git takes the paths as they are.
        env = os.environ | {"GIT_CEILING_DIRECTORIES": str(scratch.parent), "GIT_DIR": "/nonexistent"}
        try:
            command = ["git", "apply", "-p1", str(mistake.patch)]
            done = subprocess.run(command, cwd=scratch, env=env, capture_output=True, text=True)
        except FileNotFoundError as error:
            raise FlashLadderError("git not found: install git (patches are applied with it).") from error
        if done.returncode:
            raise FlashLadderError(_does_not_fit(mistake.patch, source, done.stderr))
        return place("break", mistake.id, source.name, (scratch / source.name).read_text())


def _does_not_fit(patch: Path, source: Path, said: str) -> str:
    """Which hunk of which file git refuses, and the two ways out."""
    patch, source = (file.relative_to(ROOT) if file.is_relative_to(ROOT) else file for file in (patch, source))
    failed = re.search(r"patch failed: \S+:(\d+)", said)
    if not failed:
        return f"{patch} is no patch that git can read: {said.strip()}"
    text = (ROOT / patch).read_text()
    hunk = re.search(rf"^@@ -{failed[1]}[, ].*?(?=^@@ |\Z)", text, re.M | re.S)
    wanted = [line for line in hunk[0].splitlines()[1:] if not line.startswith("+")] if hunk else []
    return (
        f"{patch} does not fit {source} any more. Its hunk at line {failed[1]} wants these lines there:\n"
        + "\n".join(f"    {line[1:]}" for line in wanted)
        + f"\nIf you have changed {source.name}: `git checkout {source}` takes the change back (keep a copy first). "
        f"If the change is meant to stay, the patch has to follow: make the mistake in a copy, and write "
        f"`diff -u --label a/{source.name} --label b/{source.name} {source.name} COPY` to {patch}."
    )


def run(mistake: Break) -> Verdict:
    """Builds and runs the mistake on the simulator: who catches it, and in which words."""
    return mistake.stage.judge(patched_source(mistake))


def show(stage: stages.Stage) -> int:
    """Runs all of the stage's mistakes and says who caught them and how; 1 if one went unnoticed."""
    mistakes = breaks(stage)
    if not mistakes:
        say(f"{stage.name} has no mistakes to plant.")
    unnoticed = 0
    for mistake in mistakes:
        verdict = run(mistake)
        unnoticed += not verdict.caught
        say(coloured(f"{mistake.name}: {mistake.mistake}", "bold"))
        say(f"  caught by {verdict.by}:" if verdict.caught else coloured("  NOT NOTICED:", "red"))
        say("\n".join(f"  {line}" for line in verdict.words()) + "\n")
    return 1 if unnoticed else 0
