"""Builds with CMake and shows one line of progress; the full log is build/build.log."""

import fcntl
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flashladder.building import toolchain
from flashladder.core.console import say
from flashladder.core.device import find_gpu
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory


def jobs() -> int:
    told = os.environ.get("FLASHLADDER_JOBS") or str(len(os.sched_getaffinity(0)))
    if not told.isdecimal() or int(told) == 0:
        raise FlashLadderError(f"FLASHLADDER_JOBS={told}: a whole number above 0 is wanted.")
    return int(told)


def _environment() -> dict[str, str]:
    env = dict(os.environ)
    env["PATH"] = f"{toolchain.scripts_directory()}{os.pathsep}{env.get('PATH', '')}"
    env["CUDACXX"] = str(toolchain.require_nvcc())
    return env


def _fail(step: str, text: str) -> None:
    log = build_directory() / "build.log"
    if "No space left on device" in text:
        raise FlashLadderError(f"{step} failed: the disk is full. Make room and run this again.")
    # Ninja repeats whole commands, thousands of characters long: the compiler's own lines are what helps.
    lines = [line for line in text.strip().splitlines() if len(line) < 400]
    marked = (i for i, line in enumerate(lines) if re.search(r"FAILED:|error:|error #|: undefined", line))
    first = next(marked, max(0, len(lines) - 30))
    raise FlashLadderError(f"{step} failed; the whole log is {log}.\n" + "\n".join(lines[first : first + 30]))


def _lacks_code_for_gpu() -> bool:
    """True for a build that was configured where there was no GPU, or another one."""
    gpu = find_gpu()
    return bool(gpu) and (build_directory() / "build-info.json").exists() and str(gpu.compute) not in info()["native"]


def _nvcc_to_leave() -> str:
    """The nvcc that the build was configured with, where it has gone (a new .venv, say) or CUDACXX names another one;
    "" where it serves. CMake itself keeps to it."""
    configured = info()["nvcc"] if (build_directory() / "build-info.json").exists() else ""
    if not configured or not os.path.exists(configured):
        return configured
    named = os.environ.get("CUDACXX") and toolchain.require_nvcc()
    return configured if named and os.path.realpath(named) != os.path.realpath(configured) else ""


def configure(extra: list[str] = ()) -> None:
    """Runs CMake where there is no configured build yet, or where FLASHLADDER_ARCHS or CUDACXX asks for something
    else."""
    build = build_directory()
    archs = os.environ.get("FLASHLADDER_ARCHS")
    if archs:
        extra = [*extra, f"-DFLASHLADDER_ARCHS={archs.replace(',', ';')}"]
    elif _lacks_code_for_gpu():
        extra = [*extra, "-DFLASHLADDER_ARCHS=auto"]  # has CMake look for GPUs again
    if left := _nvcc_to_leave():
        say(f"Configured anew: {toolchain.require_nvcc()} in place of {left}.")
        extra = [f"-DCMAKE_BUILD_TYPE={info()['build_type']}", *extra]
        (build / "CMakeCache.txt").unlink(missing_ok=True)
    elif (build / "build.ninja").exists() and not extra:
        return
    cmake = toolchain.require("cmake", "Install it (3.24 or newer), e.g. `pip install cmake`.")
    ninja = toolchain.require("ninja", "Install it, e.g. `pip install ninja`.")
    toolchain.require_host_compiler()
    build.mkdir(parents=True, exist_ok=True)
    env = _environment()
    named = os.environ.get("CUDACXX")
    if named and os.path.realpath(shutil.which(named)) != os.path.realpath(env["CUDACXX"]):
        say(f"CUDACXX={named} is no nvcc of CUDA 13 or newer: {env['CUDACXX']} is taken.")
    command = [cmake, "-S", str(ROOT), "-B", str(build), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", *extra]
    done = subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    (build / "build.log").write_text(done.stdout)
    if done.returncode:
        _fail("Configuring", done.stdout)


LOCK = "building.lock"


@contextmanager
def _alone() -> Iterator[None]:
    """Others that build in this folder wait meanwhile: CMake and Ninja expect to be alone there."""
    build_directory().mkdir(parents=True, exist_ok=True)
    with open(build_directory() / LOCK, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another command is building here; this one goes on after it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(targets: list[str] = (), extra: list[str] = ()) -> None:
    """Builds the targets (all where none is named); FlashLadderError with the compiler's message if it fails."""
    with _alone():
        _build(targets, extra)


def _build(targets: list[str], extra: list[str]) -> None:
    configure(extra)
    cmake = toolchain.require("cmake", "Install it (3.24 or newer), e.g. `pip install cmake`.")
    command = [cmake, "--build", str(build_directory()), "-j", str(jobs())]
    if targets:
        command += ["--target", *targets]
    env = _environment() | {"NINJA_STATUS": "[%f/%t] "}
    running = subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    log, shown, terminal = [], 0, sys.stdout.isatty()
    for line in running.stdout:
        log.append(line)
        step = re.match(r"\[(\d+)/(\d+)\] (.*)", line)
        if not step:
            continue
        finished, total = int(step[1]), int(step[2])
        if terminal:
            print(f"\r\033[KBuilding {finished}/{total}: {step[3].split()[-1][:70]}", end="", flush=True)
        elif finished * 5 // total > shown:  # a log wants few lines
            shown = finished * 5 // total
            print(f"Building {finished}/{total}", flush=True)
    if terminal and log:
        print("\r\033[K", end="", flush=True)
    text = "".join(log)
    with open(build_directory() / "build.log", "a") as file:
        file.write(text)
    if running.wait():
        _fail("The build", text)


def info() -> dict:
    """What CMake recorded of this build: build_type, nvcc, nvcc_version, native, host_compiler."""
    file = build_directory() / "build-info.json"
    if not file.exists():
        raise FlashLadderError("Nothing is built yet: run `make build`.")
    return json.loads(file.read_text())


def compile_command(source: Path) -> list[str]:
    """What CMake calls to compile one source file of the project, configured first where it is not; word by word."""
    file = build_directory() / "compile_commands.json"
    if not file.exists():
        configure()
    for entry in json.loads(file.read_text()):
        if Path(entry["file"]).resolve() == source.resolve():
            return shlex.split(entry["command"])
    raise FlashLadderError(f"{source} is not part of the build in {build_directory()}: run `make build`.")
