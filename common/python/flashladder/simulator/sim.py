"""Runs any CUDA program on the simulator: python -m flashladder sim -- ./program arguments"""

import os
import shutil
import sys

from flashladder.core.device import Device, environment
from flashladder.core.environment import prepended
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import simulator_library


def run(command: list[str]) -> int:
    """Replaces this process by the program, with warpsim as its CUDA runtime."""
    if not command:
        raise FlashLadderError("Name the program: python -m flashladder sim -- ./program arguments")
    if not simulator_library().exists():
        raise FlashLadderError(f"{simulator_library()} does not exist: run `make build`.")
    program = shutil.which(command[0])
    if not program:
        raise FlashLadderError(f"{command[0]}: no such program.")
    env = environment(Device("sim", None))
    # A program that names its library folder by RPATH would pass LD_LIBRARY_PATH by.
    sys.stdout.flush()
    libraries = [simulator_library(), simulator_library().with_name("libcuda.so.1")]
    preload = os.pathsep.join(str(library) for library in libraries if library.exists())
    os.execve(program, command, prepended(env, LD_PRELOAD=preload))
