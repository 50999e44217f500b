"""make fuzz: damaged PTX, damaged fat binaries, hostile tensor maps and random kernels against the simulator, built
with sanitizers."""

import fcntl
import os
import re
import subprocess
import tempfile
from pathlib import Path

from flashladder.building import build, toolchain
from flashladder.core.console import say
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory

SOURCE = ROOT / "tests" / "fuzz"
TARGETS = ("ptx", "fatbin", "kernels", "maps")


def folder() -> Path:
    return build_directory() / "fuzz"


def build_fuzzer() -> Path:
    """The fuzzer with sanitizers and coverage, and below folder() the simulator's library made of the same objects, in
    a build of their own; FlashLadderError names the log of a build that failed."""
    compiler = toolchain.require_host_compiler()
    cmake = toolchain.require("cmake", "Install it (3.24 or newer), e.g. `pip install cmake`.")
    ninja = toolchain.require("ninja", "Install it, e.g. `pip install ninja`.")
    headers = toolchain.require_nvcc().resolve().parents[1]
    folder().mkdir(parents=True, exist_ok=True)
    log = folder() / "build.log"
    say(f"Building the simulator with AddressSanitizer and UBSan into {os.path.relpath(folder(), ROOT)} ...")
    with open(log, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # two workers of pytest must not build it at once
        file.truncate(0)
        for command in (
            [cmake, "-S", SOURCE, "-B", folder(), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
            + [f"-DCMAKE_CXX_COMPILER={compiler}"],
            [cmake, "--build", folder(), "--target", "warpsim-fuzz", "warpsim_cudart", "-j", str(build.jobs())],
        ):
            env = os.environ | {"CUDA_HOME": str(headers)}
            if subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, env=env).returncode:
                raise FlashLadderError(
                    f"The fuzzer's build failed; the log is {log}. It needs g++ with its sanitizers."
                )
    return folder() / "bin" / "warpsim-fuzz"


def corpus(target: str, place: Path) -> Path | None:
    """The folder of the inputs that a target begins with; None of one that needs none. Those of corpus/TARGET.txt, each
    below a line `//// NAME`, are written into `place`."""
    inputs = SOURCE / "corpus" / target
    if not inputs.with_suffix(".txt").exists():
        return inputs if inputs.is_dir() else None
    _, *parts = re.split(r"^//// (\S+)\n", inputs.with_suffix(".txt").read_text(), flags=re.M)
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        (place / name).write_text(text.removesuffix("\n"))  # an empty line stands before the next name
    return place


def run_target(program: Path, target: str, seed: int, seconds: float, count: int | None = None) -> int:
    """Fuzzes one target; 0: nothing found, 1: inputs that do harm lie in build/fuzz/findings."""
    command = [program, target, "--seed", str(seed), "--seconds", f"{seconds:g}", "--findings", folder() / "findings"]
    if count is not None:
        command += ["--count", str(count)]
    with tempfile.TemporaryDirectory(prefix="flashladder-fuzz-") as place:
        inputs = corpus(target, Path(place))
        running = subprocess.Popen([*command, "--corpus", inputs] if inputs else command)
        try:
            return running.wait()
        except KeyboardInterrupt:  # Ctrl-C reaches the fuzzer too, which sums up and ends
            running.wait()
            raise


def run(minutes: float, seed: int, target: str | None = None, count: int | None = None) -> int:
    """Fuzzes one target or each in turn, `minutes` together; 1 if anything was found. FlashLadderError for numbers that
    make no sense."""
    if not 0 < minutes < float("inf"):
        raise FlashLadderError(f"MINUTES={minutes:g}: a number above 0 is wanted.")
    if count is not None and count < 1:
        raise FlashLadderError(f"COUNT={count}: a number above 0 is wanted.")
    if not 0 <= seed < 2**64:
        raise FlashLadderError(f"SEED={seed}: a number from 0 to {2**64 - 1} is wanted.")
    chosen = [target] if target else list(TARGETS)
    program = build_fuzzer()
    say(f"Fuzzing {', '.join(chosen)} for {minutes:g} minutes, seed {seed}.")
    found = [name for name in chosen if run_target(program, name, seed, 60 * minutes / len(chosen), count)]
    where = os.path.relpath(folder() / "findings", ROOT)
    say(f"Found something in {', '.join(found)}: see {where}." if found else "Nothing found.")
    return 1 if found else 0
