"""The stages with a kernel: stages/NN_name/kernel.cu, built into libstage_NN.so. Kernel: those that compute attention;
what they share with those that compute gradients (ladder/backward.py), those of decode (ladder/decode.py) and those
for several GPUs (ladder/ring.py) is in WithKernel. All are tested, run, timed, broken and written alike; blank pages
and assignments are of stages that compute attention."""

import functools
import hashlib
import re
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from flashladder.building import build, toolchain
from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.device import Device, choose, cudart
from flashladder.core.environment import prepended
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory, headers, stage_library, whole, write
from flashladder.core.problem import Problem
from flashladder.ladder.stage import Stage, Verdict
from flashladder.running.job import Job, Options, Result, StageError, run_library
from flashladder.running.verify import Comparison, Wanted

_COMMENT = re.compile(rb"//[^\n]*")
# Of common/host.
LAUNCHER = ("launch.cpp", "launch_backward.cpp", "launch_decode.cpp", "launch_ring.cpp", "tensor_maps.cpp")
ONLY = "-DFLASH_ONLY_"  # and which instances alone are built
MULTIPROCESSORS = 132  # of an H100 or H200: what a small problem is made as wide as, where it runs on a GPU
TABLE = "instances.h"  # beside the kernel of a stage that has many: which are built, and which of them runs what


def code_hash(*texts: bytes) -> str:
    """sha256 of sources without comments and with one blank for each space: another comment makes no other kernel."""
    bare = (b" ".join(_COMMENT.sub(b"", text).split()) for text in texts)
    return hashlib.sha256(b"\n".join(bare)).hexdigest()


@functools.lru_cache
def _read(file: Path, changed: int) -> tuple[bool, list[str]]:
    """Whether a stage teaches what is in a header or kernel, and what it includes; changed: the file's st_mtime_ns."""
    text = file.read_text()
    return text.startswith("// Stage "), re.findall(r'^#include "(\w+\.cuh)"', text, re.M)


class WithKernel(Stage):
    """Its kind says what it reads, and what is right."""

    KIND: ClassVar[str]  # of running.job.KINDS
    WHAT: ClassVar[str]  # what such a stage does, after its number
    LESSON: ClassVar[str] = "Lesson"  # of flashladder.lessons
    RUNS: ClassVar[int] = 2  # of a changed kernel on one workspace: what one leaves in it shows in the next

    def random_inputs(self, problem: Problem, seed: int = 0) -> dict[str, np.ndarray]:
        """Bit patterns and arrays by name, all that a run needs."""
        return problem.random(seed)

    def compared(self, problem: Problem, inputs: dict[str, np.ndarray], result: Result) -> Comparison:
        """A run's outputs with the reference."""
        return self.compared_with(problem, self.wanted(problem, inputs), result)

    def wanted(self, problem: Problem, inputs: dict[str, np.ndarray]) -> object:
        """What compared_with() compares runs with: for several runs of a problem it is computed once."""
        raise NotImplementedError

    def compared_with(self, problem: Problem, wanted: object, result: Result) -> Comparison:
        raise NotImplementedError

    def run(
        self,
        problem: Problem,
        inputs: dict[str, np.ndarray] | None = None,
        device: str | None = None,
        library: Path | None = None,
        **options,
    ) -> Result:
        """Runs the stage on inputs as random_inputs() gives them, which it takes where none are given.

        device: auto, gpu or sim, FLASHLADDER_DEVICE by default. library: another build of the stage, e.g. a patched
        one. options: fields of running.job.Options, e.g. environment={"WARPSIM_SCHEDULE": "1"}. Raises StageError with
        the stage's or the simulator's own message.
        """
        inputs = self.random_inputs(problem) if inputs is None else inputs
        return self._work(problem, inputs, device, library, Options(**options))

    def describe(self, problem: Problem | None = None, device: str | None = None, **options) -> dict:
        """What the stage would do with the problem: tiles, threads, shared memory, registers where a GPU tells."""
        return self._work(problem or self.own(Problem()), None, device, None, Options(**options)).description

    def _work(self, problem: Problem, inputs: dict | None, device: str | None, library: Path | None, options: Options):
        library = library or stage_library(self.number)
        if not library.exists():
            raise FlashLadderError(f"{library} does not exist: run `make stage-{self.id}`.")
        options = self._own_options(problem, replace(options, kind=self.KIND))
        where = choose(self.min_compute, device)
        return run_library(f"stage {self.id}", library, problem, inputs, where, options)

    def _own_options(self, problem: Problem, options: Options) -> Options:
        """With what the stage's runs have besides, behind what a user says."""
        return replace(options, environment=self.simulated | options.environment)

    def judged_by(self) -> list[tuple[Problem, str | None]]:
        """What a changed kernel is judged by, each with the configuration that runs it: problem_for(), and stage.toml's
        `[[judged_by]]`, fields of a Problem and a `configuration`, for what that does not show. bf16 with d_head 128
        (or the stage's own type), as the changed kernel is built; of a stage with `judged_build = "BF16"` an entry may
        have another d_head."""
        plain = problem_for(self)
        found = [(plain, self.configuration(plain))]
        for entry in self.data.get("judged_by", []):
            fields = {name: value for name, value in entry.items() if name != "configuration"}
            problem = self.own(Problem(**{"d_head": 128} | fields))
            found.append((problem, entry.get("configuration", self.configuration(problem))))
        return found

    @property
    def judged_options(self) -> dict:
        """More of running.job.Options for those runs."""
        return {}

    def judged_jobs(self, library: Path, where: Device, wide: bool = True) -> list[Job]:
        """Those runs for a process on a device (running/worker.py). A GPU is so wide that each block of a persistent
        kernel would have one tile of a small problem, or none: there the batch grows as the multiprocessors do. Where
        it is not to be `wide` the kernel has as few blocks as on the simulator: that takes fewer() besides."""
        jobs = []
        for problem, configuration in self.judged_by():
            few = self.data.get("simulated_multiprocessors")
            if few and where.kind == "gpu" and wide:
                problem = _times(problem, -(-MULTIPROCESSORS // few))
            options = Options(kind=self.KIND, repeat=self.RUNS, configuration=configuration, **self.judged_options)
            options = self._own_options(problem, options)
            jobs.append(Job(str(cudart(where)), str(library), problem, options=options))
        return jobs

    @property
    def fewer(self) -> dict[str, str]:
        """Variables that have a persistent kernel be launched on a GPU with as many blocks as on the simulator
        (common/host/launch.cpp)."""
        few = self.data.get("simulated_multiprocessors")
        return {"FLASHLADDER_MULTIPROCESSORS": str(few)} if few else {}

    def compiled(self, source: Path) -> Path:
        return compile_kernel(source, self, only="")

    def judge(self, source: Path) -> Verdict:
        return judge(self, compile_kernel(source, self))

    @property
    def kernel(self) -> Path:
        return self.folder / "kernel.cu"

    @property
    def source(self) -> Path:
        return self.kernel

    def own_headers(self) -> list[Path]:
        """What is the kernel's besides kernel.cu: headers beside it, and those of earlier stages' text that it includes
        ("// Stage NAME teaches ..."). What no stage teaches, such as one function per instruction, is none of it."""
        taught, left = {}, [self.kernel]
        while left:
            file = left.pop()
            for name in _read(file, file.stat().st_mtime_ns)[1]:
                header = ROOT / "common/include" / name
                if name not in taught and header.exists() and _read(header, header.stat().st_mtime_ns)[0]:
                    taught[name] = header
                    left.append(header)
        return [*sorted(self.folder.glob("*.h")), *(taught[name] for name in sorted(taught))]

    def kernel_hash(self, kernel: bytes | None = None) -> str:
        """code_hash() of kernel.cu (or of a changed one) and of own_headers(): a recorded figure is stale when it no
        longer matches."""
        return code_hash(kernel or self.kernel.read_bytes(), *(header.read_bytes() for header in self.own_headers()))

    @property
    def simulated(self) -> dict[str, str]:
        """What the simulator is told, as variables of the environment, besides what a user says. A persistent kernel
        has one block for each multiprocessor: on a device with few, a small problem gives each several turns, too."""
        few = self.data.get("simulated_multiprocessors")
        return {"WARPSIM_MULTIPROCESSORS": str(few)} if few else {}

    @property
    def targets(self) -> list[str]:
        """Its library and the simulator."""
        return [f"stage_{self.id}", "warpsim_cudart"]

    @property
    def product(self) -> Path:
        return Path(f"lib/libstage_{self.id}.so")

    @property
    def libraries(self) -> list[str]:
        return []

    @property
    def tests(self) -> list[str]:
        return [f"tests/stages/test_{self.KIND}.py"]

    @property
    def main_launch(self) -> int:
        """Which of stage.toml's launches the stage is described by: the last, unless another says `main = true`."""
        marked = [number for number, launch in enumerate(self.data["launch"]) if launch.get("main")]
        return marked[0] if marked else len(self.data["launch"]) - 1

    @property
    def launch(self) -> dict:
        return self.data["launch"][self.main_launch]

    def configuration(self, problem: Problem) -> str | None:
        """The short form of the instance that stage.toml's launch is about; None of a stage with one kernel."""
        launch = self.launch
        if "configuration" not in launch:
            return None
        tile = f"{launch['Br']}, {launch['Bc']}, {launch['threads'] // 32}"
        return f"({problem.dtype.upper()}, {problem.d_head}, {tile}): {launch['configuration']}"


class Kernel(WithKernel):
    KIND = "forward"
    WHAT = "computes attention"
    RUNS = 1

    def wanted(self, problem: Problem, inputs: dict[str, np.ndarray]) -> Wanted:
        return Wanted(problem, inputs)

    def compared_with(self, problem: Problem, wanted: Wanted, result: Result) -> Comparison:
        return wanted.check(result.bits, result.log_sum_exp)

    @property
    def targets(self) -> list[str]:
        """Its runner besides."""
        return [*super().targets, f"stage_{self.id}_runner"]

    @property
    def tests(self) -> list[str]:
        return ["tests/stages", "--ignore=tests/stages/test_host_streams.py"]


class CompileError(FlashLadderError):
    """A changed kernel.cu does not compile; `said`: all that the compiler said."""

    def __init__(self, kernel: Path, said: str):
        super().__init__(f"{kernel} does not compile:\n{said[-3000:]}")
        self.said = said


def stage_flags(stage: WithKernel) -> list[str]:
    """nvcc and the options that the stage's own build compiles kernel.cu with, but for native code: PTX alone."""
    words = build.compile_command(stage.folder / "kernel.cu")  # also of a copy with another tile (tiles.py)
    first = next(number for number, word in enumerate(words) if Path(word).name.startswith("nvcc"))
    flags, skip = [], False
    for word in words[first:]:
        takes_next = word in ("-c", "-o", "-x", "-MF", "-MT")
        if not (skip or takes_next or word == "-MD" or "_EXPORTS" in word or "code=[sm_" in word):
            flags.append(word)
        skip = takes_next
    return flags


def _compiled(product: Path, command: list[str], sources: list[Path]) -> None:
    """Compiles `sources` into `product`, which appears whole or not at all; CompileError names the first of them."""
    env = prepended(LIBRARY_PATH=build_directory() / "cudart-links")
    with whole(product) as partial:
        words = [*command, "-o", str(partial.absolute()), *(str(one.absolute()) for one in sources)]
        done = subprocess.run(words, env=env, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            toolchain.refuse_ended(done)
            raise CompileError(sources[0], done.stdout + done.stderr)
        write(product.with_suffix(".log"), done.stdout + done.stderr)


def _name(command: list[str], files: list[Path]) -> str:
    """A file name for what the command makes of the files, by their contents."""
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files))
    digest.update(repr((command, build.info()["nvcc_version"])).encode())
    return digest.hexdigest()[:16]


_LAUNCHER_IS_BUILT = threading.Lock()  # kernels that are compiled at once need the same objects


def _launcher(flags: list[str], sources: list[Path], included: list[Path]) -> list[Path]:
    """The objects of the launcher, which no kernel.cu changes, in build/launcher. Cached by content: they have no code
    for a GPU, and launch.cpp alone asks which instances are built."""
    folder = build_directory() / "launcher"
    folder.mkdir(parents=True, exist_ok=True)
    host = [word for word in flags if not word.startswith("--generate-code")]
    plain = [word for word in host if not word.startswith(ONLY)]
    objects = []
    with _LAUNCHER_IS_BUILT:
        for source in sources:
            command = [*(host if ONLY[2:] in source.read_text() else plain), "-c"]
            objects.append(folder / f"{source.stem}.{_name(command, [source, *included])}.o")
            if not objects[-1].exists():
                _compiled(objects[-1], command, [source])
    return objects


def native_options(arch: str) -> list[str]:
    """Options of nvcc for machine code of an architecture, such as "90a", and for all that ptxas has to say."""
    return ["-gencode", f"arch=compute_{arch},code=sm_{arch}", "-Xptxas", "-v"]


def compile_kernel(kernel: Path, stage: WithKernel, *options: str, only: str | None = None, ptx: bool = True) -> Path:
    """The stage's library from another kernel.cu, with bf16 and d_head 128 alone: the stage's own flags, PTX only.

    options: more for nvcc, such as native_options(); ptx = False: then there is no PTX besides. only: "BF16" for both
    head dims, "" for every instance; None: bf16 with d_head 128, or what stage.toml's `judged_build` says in its place.
    Cached by content. What the compiler said lies beside the library as .log, or is in CompileError.
    """
    only = stage.data.get("judged_build", "BF16_128") if only is None else only
    launcher = [ROOT / "common/host" / name for name in LAUNCHER]
    exports = ROOT / "common/cmake/stage.map"
    common = headers()
    included = sorted([*common, *headers(stage.folder), *headers(kernel.parent)])
    flags = [*stage_flags(stage), *([f"{ONLY}{only}"] if only else [])]
    command = [*(word for word in flags if ptx or "code=[compute_" not in word), "-cudart", "shared", "-shared"]
    command += [f"-Xlinker=--version-script={exports.relative_to(ROOT)}"]  # nvcc takes such a word apart at a space
    command += [f"-I{stage.folder}", *options]
    library = kernel.parent / f"{_name(command, [kernel, *launcher, exports, *included])}.so"
    if not library.exists():
        _compiled(library, command, [kernel, *_launcher(flags, launcher, common)])
    return library


def table_of(stage: Kernel, configurations: set[str]) -> str:
    """The stage's table of instances without those whose short form is not asked for: beside another kernel.cu it is
    the one that is compiled. Choices of what is not built do not count (configured.h)."""
    lines = (stage.folder / TABLE).read_text().splitlines(keepends=True)
    return "".join(
        line for line in lines if not line.startswith("INSTANCE(") or any(f'"{one}"' in line for one in configurations)
    )


def _times(problem: Problem, factor: int) -> Problem:
    """The problem with so many times as many sequences."""
    more = {"lengths": problem.lengths * factor} if isinstance(problem, DecodeProblem) else {}
    return replace(problem, B=problem.B * factor, **more)


def problem_for(stage: WithKernel) -> Problem:
    """Small, but with several heads, several tiles and an odd number of K/V tiles: enough to show every mistake."""
    launch = stage.launch
    return stage.own(Problem(B=1, Hq=2, Nq=launch.get("Br", 64), Nkv=3 * launch.get("Bc", 64), d_head=128))


def problems_for(stage: Kernel) -> list[Problem]:
    """The problems of its judged_by()."""
    return [problem for problem, _ in stage.judged_by()]


def judge(stage: WithKernel, library: Path) -> Verdict:
    """Runs another build of a stage on the simulator: does the simulator or the verification object? The verdict is
    that of the first problem at which one does, else of the last."""
    for problem, configuration in stage.judged_by():
        verdict = _judge(stage, library, problem, configuration)
        if verdict.caught:
            break
    return verdict


def _judge(stage: WithKernel, library: Path, problem: Problem, configuration: str | None) -> Verdict:
    inputs = stage.random_inputs(problem, 1)
    strict = {"WARPSIM_HAZARDS": "strict"}  # what ptxas would repair is a mistake, too
    options = {"environment": strict, "timeout": 300, "repeat": stage.RUNS, "configuration": configuration}
    options |= stage.judged_options
    try:
        result = stage.run(problem, inputs, "sim", library, **options)
    except StageError as error:
        hazards = [hazard for launch in (error.report or {"launches": []})["launches"] for hazard in launch["hazards"]]
        kind = hazards[0]["kind"] if hazards else "error"
        return Verdict(True, kind, str(error), problem, inputs)
    comparison = stage.compared(problem, inputs, result)
    caught_by = "" if comparison else "verification"
    output = result.bits if isinstance(stage, Kernel) else None
    return Verdict(not comparison, caught_by, comparison.message, problem, inputs, output)
