"""What a compiler and a GPU's tools are asked about: the stages' planted mistakes (ladder/mistakes.py), and the stages
as they are, on which a tool should find nothing. In which order they are asked about, what they are built with, and
what nvcc and ptxas said meanwhile."""

import collections
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory, place
from flashladder.ladder import kernels, mistakes
from flashladder.ladder.host_streams import HostStreams
from flashladder.ladder.stage import Stage

# A note or warning of ptxas with its number, one without, and a warning of nvcc's other parts.
_NOTES = (r"\((C\d+)\)", r"ptxas (?:warning|error) *: (?!\(C)([^\n]{1,80})", r"(?:warning|error) #(\d+(?:-D)?)\b")


@dataclass(frozen=True)
class Subject:
    """A stage with one mistake, or as it is."""

    stage: Stage
    mistake: mistakes.Mistake | None = None

    @property
    def name(self) -> str:
        """The mistake's; "" of a stage as it is."""
        return self.mistake.name if self.mistake else ""

    @property
    def key(self) -> tuple[str, str]:
        return self.stage.name, self.name

    def text(self) -> str:
        return self.mistake.text() if self.mistake else self.stage.source.read_text()

    def source(self) -> Path:
        file = self.stage.source.name
        return self.mistake.source() if self.mistake else place("break", f"{self.stage.id}-as_it_is", file, self.text())

    def digest(self) -> str:
        """Of the source and the headers that are the stage's: a row of a record is stale when it no longer matches."""
        text = self.text().encode()
        with_kernel = isinstance(self.stage, kernels.WithKernel)
        return (self.stage.kernel_hash(text) if with_kernel else kernels.code_hash(text))[:16]


def in_order(which: Iterable[Stage], names: Iterable[str] = ()) -> list[Subject]:
    """The stages' mistakes, in rounds: of each stage one mistake, those of the lessons first, and of these one of each
    kind of verdict before a second of the same. Before a stage's first mistake comes the stage as it is.

    names: of some mistakes alone; FlashLadderError for one that there is not."""
    which, names = list(which), set(names)
    piles = [[one for one in _by_verdict(stage) if not names or one.name in names] for stage in which]
    unknown = names - {one.name for pile in piles for one in pile}
    if unknown:
        raise FlashLadderError(f"These stages have no mistake '{min(unknown)}'.")
    rounds = [pile[at] for at in range(max(map(len, piles), default=0)) for pile in piles if at < len(pile)]
    found = []
    for one in rounds:
        found += [Subject(one.stage)] * (Subject(one.stage) not in found) + [Subject(one.stage, one)]
    return found


def by_stage(subjects: list[Subject], most: int) -> list[list[Subject]]:
    """The same, up to so many of a stage together: of each stage some before more of it. A program has each alone."""
    piles: dict[str, list[list[Subject]]] = {}
    for one in subjects:
        pile = piles.setdefault(one.stage.name, [])
        if not pile or len(pile[-1]) == most or not isinstance(one.stage, kernels.WithKernel):
            pile.append([])
        pile[-1].append(one)
    return [
        pile[at] for at in range(max(map(len, piles.values()), default=0)) for pile in piles.values() if at < len(pile)
    ]


def first(subjects: list[Subject], most: int) -> list[Subject]:
    """Those up to so many mistakes; 0: all."""
    places = [at for at, one in enumerate(subjects, 1) if one.mistake][: most or None]
    return subjects[: places[-1] if most and places else None]


def _by_verdict(stage: Stage) -> list[mistakes.Mistake]:
    """A stage's mistakes, those of the lesson first: of each verdict one, then of each a second one."""
    seen = collections.Counter()

    def turn(one: mistakes.Mistake) -> tuple[bool, int]:
        seen[one.caught_by] += 1
        return not one.caught_by, seen[one.caught_by]

    return sorted(mistakes.mistakes(stage), key=turn)


# ---- what the compiler says ----


def notes(said: str) -> list[str]:
    """The numbers of the notes and warnings in what nvcc printed, or the words of those without a number."""
    return sorted({found.strip() for pattern in _NOTES for found in re.findall(pattern, said)})


def native(compute: int) -> list[str]:
    """Options for machine code of a GPU's compute capability; of 9.0 with what that one alone has, for all stages."""
    return kernels.native_options(f"{compute}a" if compute == 90 else str(compute))


def built(subject: Subject, compute: int) -> tuple[Path | None, list[str]]:
    """The library or program with machine code for the GPU (None where it does not compile), and notes()."""
    stage, source = subject.stage, subject.source()
    try:
        if not isinstance(stage, kernels.WithKernel):
            return stage.compiled(source), []
        library = kernels.compile_kernel(source, stage, *native(compute), ptx=False)
    except FlashLadderError as error:
        return None, notes(str(error))
    return library, notes(library.with_suffix(".log").read_text())


def machine_code_notes(subject: Subject) -> list[str]:
    """notes() of the same kernels' machine code for Hopper, without a library around them: where there is no GPU."""
    stage = subject.stage
    flags = [word for word in kernels.stage_flags(stage) if "code=[compute_" not in word]
    only = stage.data.get("judged_build", "BF16_128")
    cubin = build_directory() / "break" / f"{stage.id}-{subject.name or 'as_it_is'}.cubin"
    command = [*flags, f"-DFLASH_ONLY_{only}", f"-I{stage.folder}", *native(90), "-cubin", "-o", str(cubin)]
    done = subprocess.run([*command, str(subject.source())], cwd=ROOT, capture_output=True, text=True)
    cubin.unlink(missing_ok=True)
    found = notes(done.stdout + done.stderr)
    if done.returncode and not found:
        raise FlashLadderError(f"{subject.source()} does not compile:\n{(done.stdout + done.stderr)[-2000:]}")
    return found


# ---- what the simulator says ----


def judged(subject: Subject) -> dict[str, str]:
    """What notices it (Verdict.by) on the problems by which the lessons' mistakes are judged; and its first words. Of
    streams' mistakes what the simulator names comes before wrong numbers, which their lesson is about."""
    stage, source = subject.stage, subject.source()
    if isinstance(stage, HostStreams) and (hazard := stage.first_hazard(source)):
        return {"by": hazard["kind"], "said": hazard["message"][:160]}
    verdict = stage.judge(source)
    return {"by": verdict.by} | ({"said": verdict.words(1)[0][:160]} if verdict.caught else {})
