"""Tests whose cases differ in little: some of them are tried, drawn at random; FLASHLADDER_WHOLE=1 tries all."""

import functools
import hashlib
import os
import random
from pathlib import Path

STAGES = Path(__file__).resolve().parents[1] / "stages"
WHOLE = bool(os.environ.get("FLASHLADDER_WHOLE"))


@functools.cache
def kernels() -> str:
    """A hash of all kernels. Where it is part of a seed, others are drawn after a change of a kernel, so that each
    case comes to be tried in its time."""
    digest = hashlib.sha256()
    for file in sorted(STAGES.glob("*/kernel.cu")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def drawn(seed: str, items: list, of: int) -> set[int]:
    """The id() of each of-th item, rounded up; the same ones for the same seed, in whatever process."""
    return {id(item) for item in random.Random(seed).sample(items, -(-len(items) // of))}


def share(cases: list, of: int) -> list:
    """Of the cases (pytest.param, each with an id) that are marked long each of-th, and all that are not."""
    long = [case for case in cases if any(mark.name == "long" for mark in case.marks)]
    tried = drawn(kernels() + " ".join(case.id for case in long), long, 1 if WHOLE else of)
    return [case for case in cases if id(case) in tried or not any(case is one for one in long)]
