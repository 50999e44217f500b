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
from flashladder.classroom.judge import Finding, Judgement, Lines
from flashladder.core.device import choose
from flashladder.core.paths import PACKAGE, ROOT, STAGES, build_directory, place, simulator_library

FOLDER = "exercises"
_VARIABLES = ("WARPSIM_", "FLASHLADDER_DEVICE", "CUDA_VISIBLE_DEVICES", "NVCC_")


def key(exercise: Exercise | Mend, text: str, line: Lines) -> str:
    """Of a judgement of this text in the state that everything is in; what the build makes is brought up to date.

    line: words for a line of the text, which a judgement repeats."""
    build.build(["warpsim_cudart"])
    words = [exercise.stage.id, exercise.name, list(exercise.checks), text, line(1), np.__version__]
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
    file = build_directory() / FOLDER / "judgements" / f"{name}.json"
    try:
        kept = json.loads(file.read_text())
        findings = tuple(Finding(one["check"], one["passed"], tuple(one["words"])) for one in kept)
    except (OSError, ValueError, TypeError, KeyError):
        return None  # none, or one of another version: it is judged again
    return Judgement(findings)


def keep(name: str, found: Judgement) -> None:
    """But for a wrong result, whose map of errors wants the numbers: that is computed again."""
    if found.written and found.wrong is None:
        place(FOLDER, "judgements", f"{name}.json", json.dumps([asdict(one) for one in found.findings]))
