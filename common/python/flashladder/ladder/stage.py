"""One rung of the ladder. What there is of it, and how it is built, run and judged, is said here and in its kind:
a kernel (ladder/kernels.py), kernels that compute gradients (ladder/backward.py), decode (ladder/decode.py), several
GPUs (ladder/ring.py) or stage 00 (ladder/host_streams.py)."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from flashladder.core import abi
from flashladder.core.device import Compute
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.core.toml import parsed, tomllib

LINES = ("main", "branch")
LESSON_MINUTES = 40


@dataclass(frozen=True)
class Verdict:
    """What came of running a changed source on the simulator."""

    caught: bool
    by: str  # "verification", a hazard's kind, or "" where nothing was found
    message: str
    problem: Problem | None = None
    inputs: dict | None = field(default=None, repr=False)
    output: np.ndarray | None = field(default=None, repr=False)  # bits of O; None where the launch failed

    def words(self, limit: int = 4) -> list[str]:
        """The first lines of what the simulator or the verification said."""
        lines = self.message.splitlines()
        return ([line for line in lines if not line.startswith("stage ")] or lines)[:limit]


@dataclass(frozen=True)
class Stage:
    number: int  # its place in the order, which the folder's name alone says
    name: str  # folder name, e.g. 02_online_softmax
    title: str
    technique: str
    min_compute: Compute  # 80 for compute capability 8.0
    previous: str | None  # the slug of the stage that this one changes
    folder: Path
    data: dict = field(repr=False, compare=False)  # all of stage.toml

    @property
    def id(self) -> str:
        return f"{self.number:02d}"

    @property
    def slug(self) -> str:
        """What a stage is called wherever it stands in the order, e.g. online_softmax."""
        return self.name[3:]

    @property
    def line(self) -> str:
        """ "main", or "branch" for a stage that no later one builds on."""
        return self.data.get("line", LINES[0])

    @property
    def is_branch(self) -> bool:
        return self.line == "branch"

    @property
    def core(self) -> bool:
        """Whether it is a stop of the core path, for who has not the time for all of it."""
        return self.data.get("core", False)

    @property
    def way(self) -> str:
        """A word for tables: "branch", "core", or "" of the main line's other stages."""
        return "branch" if self.is_branch else "core" if self.core else ""

    @property
    def minutes(self) -> int:
        """What the core path of its lesson takes."""
        return self.data.get("minutes", LESSON_MINUTES)

    @property
    def hopper(self) -> bool:
        """Whether it needs Hopper: TMA, and what came with it."""
        return self.min_compute >= 90

    @property
    def dtypes(self) -> tuple[str, ...]:
        """What Q, K and V may be: fp16 and bf16, unless stage.toml says otherwise."""
        return tuple(self.data.get("dtypes", abi.DTYPES))

    @property
    def measured_dtype(self) -> str:
        """The type whose figures stand for the stage: bf16, or what it takes in its place."""
        return "bf16" if "bf16" in self.dtypes else self.dtypes[0]

    def own(self, problem: Problem) -> Problem:
        """The problem as it is if the stage takes its type, else of the first type that it does take."""
        return problem if problem.dtype in self.dtypes else replace(problem, dtype=self.dtypes[0])

    @property
    def source(self) -> Path:
        """The file that the lesson is about, that mistakes are planted in."""
        raise NotImplementedError

    @property
    def targets(self) -> list[str]:
        """What a run needs, as targets of the build."""
        raise NotImplementedError

    @property
    def product(self) -> Path:
        """What the source is linked into, below the build folder."""
        raise NotImplementedError

    @property
    def libraries(self) -> list[str]:
        """What the product loads besides, as patterns below the build folder."""
        raise NotImplementedError

    @property
    def tests(self) -> list[str]:
        """What pytest is given to test this stage alone."""
        raise NotImplementedError

    def compiled(self, source: Path) -> Path:
        """What a changed copy of the source goes into: another build of the product."""
        raise NotImplementedError

    def judge(self, source: Path) -> Verdict:
        """Builds a changed copy of the source and runs it on the simulator: who objects, and in which words."""
        raise NotImplementedError


def read(folder: Path, kind: type[Stage], others: dict[str, type[Stage]] | None = None) -> Stage:
    """The stage of a folder with a stage.toml; of one of the others' kinds if that says `NAME = true` with its name.
    FlashLadderError says what is wrong with the file."""
    file = folder / "stage.toml"
    try:
        data = parsed(file.read_text())
        kind = next((other for name, other in (others or {}).items() if data.get(name)), kind)
        stage = kind(
            number=int(folder.name[:2]),
            name=folder.name,
            title=data["title"],
            technique=data["technique"],
            min_compute=Compute(data["min_compute"], data.get("specific", False)),
            previous=data.get("previous"),
            folder=folder,
            data=data,
        )
        if stage.line not in LINES:
            raise ValueError(f"line is {' or '.join(LINES)}, and not {stage.line!r}")
        if stage.core and stage.is_branch:
            raise ValueError("a branch is no stop of the core path")
    except (OSError, tomllib.TOMLDecodeError, KeyError, ValueError) as error:
        raise FlashLadderError(f"{file} is not a valid stage description: {error!r}") from error
    return stage
