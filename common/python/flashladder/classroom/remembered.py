"""Judgements, remembered in build/exercises by the hash of all that they follow from: the answer, the stages, what is
compiled with it, the simulator and the judge. A second check without a change compiles nothing and runs nothing."""

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np

from flashladder.building import build
from flashladder.classroom.exercise import Exercise, Mend
from flashladder.classroom.judge import Finding, Judgement, Lines, Wrong
from flashladder.core.device import choose
from flashladder.core.paths import PACKAGE, ROOT, STAGES, build_directory, place, simulator_library, whole
from flashladder.core.problem import Problem
from flashladder.ladder.stage import Stage

FOLDER = "exercises"
_VARIABLES = ("WARPSIM_", "FLASHLADDER_DEVICE", "CUDA_VISIBLE_DEVICES", "NVCC_")


def key(exercise: Exercise | Mend, text: str, line: Lines, shipped: Lines | None = None) -> str:
    """Of a judgement of this text in the state that everything is in; what the build makes is brought up to date.

    line: words for a line of the text, which a judgement repeats; shipped: for a line of the source around it."""
    build.build(["warpsim_cudart"])
    words = [exercise.stage.id, exercise.name, list(exercise.checks), text, line(1), np.__version__]
    if shipped:
        words += [shipped(number + 1) for number in range(exercise.stage.source.read_text().count("\n"))]
    words += [build.info(), str(choose(exercise.stage.min_compute))]
    words += sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(_VARIABLES))
    digest = hashlib.sha256(json.dumps(words).encode())
    for file in _files(exercise):
        content = file.read_bytes()
        digest.update(f"\0{file}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _files(exercise: Exercise | Mend) -> list[Path]:
    """What a judgement may depend on besides the text. Other stages have expectations that are kept."""
    found = [simulator_library(), ROOT / "common/cmake/stage.map", *STAGES.glob("*/stage.toml")]
    for folder, patterns in (
        (ROOT / "common/include", ("*",)),
        (ROOT / "common/host", ("*",)),
        (exercise.stage.folder, ("*",)),
        (PACKAGE, ("**/*.py", "**/*.toml")),
    ):
        found += [file for pattern in patterns for file in folder.glob(pattern)]
    return sorted({file for file in found if file.is_file()})


def recall(name: str) -> Judgement | None:
    """The judgement that was kept under this key."""
    folder = build_directory() / FOLDER / "judgements"
    try:
        kept = json.loads((folder / f"{name}.json").read_text())
        findings = tuple(Finding(one["check"], one["passed"], tuple(one["words"])) for one in kept["findings"])
        wrong = _wrong(folder / f"{name}.npz", Problem(**kept["wrong"])) if kept["wrong"] else None
    except (OSError, ValueError, TypeError, KeyError):
        return None  # none, or one of another version: it is judged again
    return Judgement(findings, wrong=wrong)


def _wrong(file: Path, problem: Problem) -> Wrong:
    with np.load(file) as arrays:
        inputs = {name: arrays[name] for name in arrays.files if name != "output"}
        return Wrong(problem, inputs, arrays["output"])


def keep(name: str, found: Judgement) -> None:
    """A wrong result with its numbers, for the map of its errors."""
    if not found.written:
        return
    if found.wrong:
        with whole(build_directory() / FOLDER / "judgements" / f"{name}.npz") as partial:
            np.savez_compressed(partial, output=found.wrong.output, **found.wrong.inputs)
    problem = asdict(found.wrong.problem) if found.wrong else None
    told = {"findings": [asdict(one) for one in found.findings], "wrong": problem}
    place(FOLDER, "judgements", f"{name}.json", json.dumps(told))


def took(stage: Stage, seconds: float) -> None:
    """How long the last judgement of an answer to this stage took that was compiled and run."""
    place(FOLDER, "seconds", stage.id, f"{seconds:.0f}")


def expected_time(stage: Stage) -> str:
    """Words for how long a judgement will take, by the last one of the stage on this machine."""
    try:
        return f"it takes about {max(1, int((build_directory() / FOLDER / 'seconds' / stage.id).read_text()))} s"
    except (OSError, ValueError):
        return "it takes some 10 s to a minute, and the next time it will be known"
