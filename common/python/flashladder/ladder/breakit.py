"""Classic mistakes as patches: stages/NN_name/break/NAME.patch, described in break/break.toml.

run() builds a patched copy of a kernel (bf16 with d_head 128 alone) and runs it on the simulator.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from flashladder.building import build
from flashladder.core.console import coloured, say
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory
from flashladder.core.problem import Problem
from flashladder.core.toml import tomllib
from flashladder.ladder import stages
from flashladder.ladder.run import StageError, run_problem
from flashladder.running.verify import check


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


@dataclass(frozen=True)
class Verdict:
    caught: bool
    by: str  # "verification", a hazard's kind, or "" where nothing was found
    message: str
    problem: Problem | None = None
    inputs: dict | None = field(default=None, repr=False)
    output: np.ndarray | None = field(default=None, repr=False)  # bits of O; None where the launch failed

    def words(self, most: int = 4) -> list[str]:
        """The first lines of what the simulator or the verification said."""
        lines = self.message.splitlines()
        return ([line for line in lines if not line.startswith("stage ")] or lines)[:most]


def breaks(stage: stages.Stage | int | str) -> list[Break]:
    """The stage's mistakes, in the order of break.toml."""
    stage = stage if isinstance(stage, stages.Stage) else stages.entry(stage)
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
    one = stage if isinstance(stage, stages.Stage) else stages.entry(stage)
    raise FlashLadderError(f"There is no mistake '{name}' for stage {one.name}. There are: {names}.")


def patched_kernel(mistake: Break) -> Path:
    """A copy of the kernel.cu (of stage 00: host_streams.cpp) with the mistake. Raises where the patch does not fit."""
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
        return place(mistake.id, source.name, (scratch / source.name).read_text())


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


def place(folder_name: str, file_name: str, text: str) -> Path:
    """Writes text to build/break/folder_name/file_name, whole or not at all: several processes may do the same."""
    file = build_directory() / "break" / folder_name / file_name
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{os.getpid()}.{file_name}")
    partial.write_text(text)
    os.replace(partial, file)
    return file


def stage_flags(stage: stages.Stage) -> list[str]:
    """nvcc and the options that the stage's own build compiles kernel.cu with, but for native code: PTX alone."""
    words = build.compile_command(stage.kernel)
    first = next(number for number, word in enumerate(words) if Path(word).name.startswith("nvcc"))
    flags, skip = [], False
    for word in words[first:]:
        takes_next = word in ("-c", "-o", "-x", "-MF", "-MT")
        if not (skip or takes_next or word == "-MD" or "_EXPORTS" in word or "code=[sm_" in word):
            flags.append(word)
        skip = takes_next
    return flags


def compile_kernel(kernel: Path, stage: stages.Stage, *options: str) -> Path:
    """The stage's library from another kernel.cu, with bf16 and d_head 128 alone: the stage's own flags, PTX only.

    options: more for nvcc. Cached by content.
    """
    launcher = ROOT / "common/host/launch.cpp"
    exports = ROOT / "common/cmake/stage.map"
    headers = sorted((ROOT / "common/include").iterdir())
    command = [*stage_flags(stage), "-cudart", "shared", "-shared", f"-Xlinker=--version-script={exports}"]
    command += ["-DFLASH_ONLY_BF16_128", *options]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in (kernel, launcher, exports, *headers)))
    digest.update(repr((command, build.info()["nvcc_version"])).encode())
    library = kernel.parent / f"{digest.hexdigest()[:16]}.so"
    if library.exists():
        return library
    partial = library.with_name(f".{os.getpid()}.{library.name}")
    command += ["-o", str(partial), str(kernel), str(launcher)]
    env = dict(os.environ)
    links = build_directory() / "cudart-links"
    env["LIBRARY_PATH"] = os.pathsep.join([str(links), *filter(None, [env.get("LIBRARY_PATH")])])
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise FlashLadderError(f"{kernel} does not compile:\n{(done.stdout + done.stderr)[-3000:]}")
    os.replace(partial, library)
    return library


def problem_for(stage: stages.Stage) -> Problem:
    """Small, but with several heads, several tiles and an odd number of K/V tiles: enough to show every mistake."""
    launch = stage.data["launch"][-1]
    return Problem(B=1, Hq=2, Nq=launch.get("Br", 64), Nkv=3 * launch.get("Bc", 64), d_head=128)


def run(mistake: Break) -> Verdict:
    """Builds and runs the mistake on the simulator: who catches it, and in which words."""
    if mistake.stage.is_program:
        return _run_program(mistake)
    return judge(mistake.stage, compile_kernel(patched_kernel(mistake), mistake.stage))


def judge(stage: stages.Stage, library: Path) -> Verdict:
    """Runs another build of a stage on the simulator: does the simulator or the verification object?"""
    problem = problem_for(stage)
    inputs = problem.random(1)
    try:
        result = run_problem(stage, problem, inputs, device="sim", library=library, timeout=300)
    except StageError as error:
        hazards = [hazard for launch in (error.report or {"launches": []})["launches"] for hazard in launch["hazards"]]
        kind = hazards[0]["kind"] if hazards else "error"
        return Verdict(True, kind, str(error), problem, inputs)
    comparison = check(problem, inputs, result.bits)
    caught_by = "" if comparison else "verification"
    return Verdict(not comparison, caught_by, comparison.message, problem, inputs, result.bits)


def _run_program(mistake: Break) -> Verdict:
    from flashladder.measuring import host_streams

    executable = host_streams.compile_program(patched_kernel(mistake), mistake.name)
    variants, small = ("async", "streams", "engines"), {"batch": 4, "heads": 1}
    for schedule, result in host_streams.explore(variants, 4, (1, 2), executable=executable, **small):
        wrong = [line.strip() for line in result.message.splitlines() if "WRONG" in line]
        if wrong:
            order = [f"in the order of WARPSIM_SCHEDULE={schedule}"] if schedule != "0" else []
            return Verdict(True, "verification", "\n".join([*wrong, *order]))
    return Verdict(False, "", "")


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
