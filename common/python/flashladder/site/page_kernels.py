"""The kernels that the page of the browser offers: each stage, its variants and its planted mistakes, and the problems
for each, as requests (common/browser/request.h).

A launch is the one that the library's own host code makes: it is run once on the simulator of this machine, with a
budget of one instruction, and the report says what was launched. The rows of a TMA box are those of the tile that the
library describes for the problem. Of stages with several kernels stage.toml says what is launched.
"""

import ctypes
import math
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from flashladder.classroom import device_code
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import build_directory, stage_library
from flashladder.core.problem import Problem
from flashladder.ladder import ablations, mistakes, stages
from flashladder.ladder.change import Change
from flashladder.ladder.kernels import Kernel, WithKernel, compile_kernel
from flashladder.ladder.launches import launches, workspace_bytes
from flashladder.running.job import Options, StageError, run_library

# Swizzle and buffers on and off, by stage. All variants and mistakes would take a quarter of an hour to compile.
VARIANTS = {"swizzle": ("padding", "rotation"), "double_buffering": ("no_swizzle", "kv_stages_1", "no_eager")}


@dataclass(frozen=True)
class Offered:
    """A kernel on the page, before anything of it is built."""

    id: str  # "05", "05-padding"
    stage: Kernel
    kind: str  # "stage", "variant" or "mistake"
    title: str
    cause: Change | None = None

    def source(self) -> Path:
        return self.cause.source() if self.cause else self.stage.kernel

    def library(self) -> Path:
        """Of a stage as it was built; of the others what break builds, here."""
        if not self.cause:
            return stage_library(self.stage.number)
        return compile_kernel(self.source(), self.stage)

    def problems(self) -> list[tuple[Problem, str | None]]:
        """What the page offers to run it on, and by which configuration (None: the library chooses): what a changed
        kernel of the stage is judged by, in that order, and of all but mistakes some other sizes."""
        judged = self.stage.judged_by()
        if self.kind == "mistake":
            return judged
        found = [Problem(Hq=1, Nq=rows, d_head=128) for rows in (256, 128, 512)]
        if self.kind == "stage":
            found.append(Problem(Hq=1, Nq=256, d_head=64))
            if "fp16" in self.stage.dtypes:
                found.append(Problem(Hq=1, Nq=256, d_head=128, dtype="fp16"))
        if self.stage.data.get("masks"):
            found += [
                Problem(Hq=1, Nq=256, d_head=128, causal=True),
                Problem(Hq=4, Hkv=2, Nq=150, Nkv=230, d_head=128, causal=True),
            ]
        known = [problem for problem, _ in judged]
        return judged + [(one, None) for one in map(self.stage.own, found) if one not in known]


def offered() -> list[Offered]:
    """All of them, by stage: the stage, its variants, its mistakes."""
    found, variants = [], ablations.ablations()
    for stage in stages.all_stages():
        found.append(Offered(stage.id, stage, "stage", f"Stage {stage.id}: {stage.title}"))
        of_stage = [one for one in variants if one.stage.number == stage.number]
        changed = [one for one in of_stage if one.name in VARIANTS.get(stage.slug, ())]
        found += [Offered(f"{stage.id}-{one.name}", stage, "variant", one.title, one) for one in changed]
        found += [Offered(one.id, stage, "mistake", one.mistake, one) for one in _mistakes(stage)]
    return found


def _mistakes(stage: Kernel) -> list[mistakes.Mistake]:
    """The stage's first mistake that the verification catches, and the first that the simulator does."""
    found = mistakes.of_lesson(stage)
    wrong = [one for one in found if one.caught_by == "verification"]
    return wrong[:1] + [one for one in found if one not in wrong][:1]


def ptx_of(library: Path) -> str:
    """The PTX of a stage's library, with the names of its files without their folders."""
    command = [build_directory() / "bin/warpsim-inspect", library, "--ptx"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise FlashLadderError(f"{library} has no PTX to show: {done.stderr.strip()}")
    return done.stdout


def _letters(escaped: re.Match) -> str:
    """What nvcc writes as bytes by three octal digits: all that is no ASCII."""
    return bytes(int(digits, 8) for digits in escaped[0].split("\\")[1:]).decode(errors="replace")


def without_folders(ptx: str) -> tuple[str, dict[str, str]]:
    """The PTX with the names of its source files alone, and where each of them lay."""
    places: dict[str, str] = {}

    def shortened(found: re.Match) -> str:
        place = re.sub(r"(?:\\[0-7]{3})+", _letters, found[2])
        name = Path(place).name
        if places.setdefault(name, place) != place:
            raise FlashLadderError(f"{places[name]} and {place} are in the same PTX: the page cannot tell them apart.")
        return f'{found[1]}"{name}"'

    return re.sub(r'^(\s*\.file\s+\d+\s+)"([^"]*)"', shortened, ptx, flags=re.M), places


def launched(requests: list[str]) -> set[str]:
    """The symbols of the kernels that the requests launch."""
    return {symbol for one in requests for symbol in re.findall(r"^launch (\w+) ", one, re.M)}


def of_these(ptx: str, requests: list[str]) -> str:
    """The PTX without the kernels that none of the requests launches: the page has no use for them. Empty lines are in
    their place: reports name PTX by its line."""
    wanted = launched(requests)
    # Inline assembly has lines with a brace alone, too: a kernel's last one is followed by what is no kernel's.
    kernel = r"^\.visible \.entry (\w+)\([\s\S]*?^\}\n(?=\s*(?:\.visible \.entry|\.file|\.section|\Z))"
    return re.sub(
        kernel, lambda found: found[0] if found[1] in wanted else "\n" * found[0].count("\n"), ptx, flags=re.M
    )


def demangle(symbol: str) -> str:
    """As the simulator's reports name a kernel."""
    library = ctypes.CDLL("libstdc++.so.6")
    library.__cxa_demangle.restype = ctypes.c_char_p
    return (library.__cxa_demangle(symbol.encode(), None, None, None) or symbol.encode()).decode()


def instances(stage: WithKernel) -> list[tuple[str, str]]:
    """Every instance of the stage's kernels: (as C++ declares it, as PTX names it)."""
    if isinstance(stage, Kernel):
        return device_code.instances(stage)
    symbols = re.findall(r"\.entry\s+(\w+)", ptx_of(stage_library(stage.number)))
    return [(declared(symbol), symbol) for symbol in symbols]


def declared(symbol: str) -> str:
    """A kernel as C++ declares it, by its symbol: name and parameters. Tensor maps are where the launch puts them."""
    plain = demangle(symbol)
    name = plain.removeprefix("void ") if "<" in plain else plain
    return re.sub(r"\b(\w+Maps)\b", r"const __grid_constant__ \1", name)


def static_shared(ptx: str) -> int:
    """Bytes of shared memory that the PTX itself declares."""
    found = re.findall(r"^\s*\.shared\s+\.align\s+\d+\s+\.b8\s+\w+\[(\d+)\]", ptx, re.M)
    return sum(map(int, found))


def observed_launch(
    stage: Kernel, library: Path, ptx: str, problem: Problem, configuration: str | None
) -> tuple[str, list[int], int, int]:
    """The one launch that the library makes for the problem: symbol, grid, threads, bytes of dynamic shared memory."""
    budget = stage.simulated | {"WARPSIM_MAX_INSTRUCTIONS": "1", "WARPSIM_THREADS": "1"}
    options = Options(environment=budget, timeout=60, configuration=configuration)
    try:
        run_library(str(library), library, problem, problem.random(), Device("sim", None), options)
    except StageError as error:
        seen = (error.report or {}).get("launches", [])
        if len(seen) != 1:
            raise FlashLadderError(f"{library} launches nothing for {problem}: {error}") from error
    launch = seen[0]
    symbols = [name for name in re.findall(r"\.entry\s+(\w+)", ptx) if demangle(name).startswith(launch["kernel"])]
    if len(symbols) != 1:
        raise FlashLadderError(f"{library} has {len(symbols)} kernels that may be {launch['kernel']}")
    total, static = launch["shared_bytes"], static_shared(ptx)
    if static and static != total:
        raise FlashLadderError(f"{library} has static and dynamic shared memory: the page knows one of them alone.")
    return symbols[0], launch["grid"], launch["block"][0], 0 if static else total


def observed_tile(stage: Kernel, library: Path, problem: Problem, configuration: str | None) -> tuple[int, int]:
    """Rows of Q and of K/V that a block works on at a time, of the instance that the library runs the problem with."""
    options = Options(environment=stage.simulated, timeout=60, configuration=configuration)
    found = run_library(str(library), library, problem, None, Device("sim", None), options)
    return found.description["Br"], found.description["Bc"]


def request(one: Offered, library: Path, ptx: str, problem: Problem, configuration: str | None) -> str:
    """What the page asks for to run the problem (common/browser/request.h)."""
    stage = one.stage
    sizes = [problem.B, problem.Hq, problem.Hkv, problem.Nq, problem.Nkv, problem.d_head]
    lines = [f"problem {' '.join(map(str, sizes))} {problem.dtype}{' causal' if problem.causal else ''}"]
    if problem.scale != 1 / math.sqrt(problem.d_head):
        lines.append(f"scale {problem.scale!r}")
    if stage.data.get("log_sum_exp"):
        lines.append("log_sum_exp")
    if workspace_bytes(stage, problem):
        lines.append(f"workspace {workspace_bytes(stage, problem)}")
    if launches(stage, problem)[-1].boxes:
        lines.append(f"boxes {' '.join(map(str, observed_tile(stage, library, problem, configuration)))}")
    if len(stage.data["launch"]) > 1:
        planned = launches(stage, problem)
        seen = [(p.symbol(problem.dtype, problem.d_head), p.grid, p.threads, p.shared_bytes) for p in planned]
    else:
        seen = [observed_launch(stage, library, ptx, problem, configuration)]
    for symbol, grid, threads, shared_bytes in seen:
        lines.append(f"launch {symbol} {' '.join(map(str, grid))} {threads} {shared_bytes}")
    lines += [f"{name} {value}" for name, value in stage.simulated.items()]
    return "\n".join(lines) + "\n"
