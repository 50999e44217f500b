"""What a notebook's first cell calls: says in one line what will run where, or what is missing.

Standard library only until it is known that the packages are there.
"""

import importlib.util
import platform
import subprocess
import sys
from itertools import groupby

from flashladder.building import toolchain
from flashladder.core import device, project
from flashladder.core.errors import FlashLadderError

# Names of packages: what is imported, and what pyproject.toml requires.
PACKAGES = ("numpy", "matplotlib", "rich", *(["tomli"] if sys.version_info < (3, 11) else []))
# The package does without these, less comfortably: they are only installed where all has to be.
COMFORTS = ("ml_dtypes", "tqdm")
TOOLS = ("cmake", "ninja")


def missing(comforts: bool = False) -> list[str]:
    """What pip could install: packages, build tools and nvcc that this machine lacks."""
    packages = (*PACKAGES, *(COMFORTS if comforts else ()))
    wanted = [name for name in packages if not importlib.util.find_spec(name)]
    wanted += [name for name in TOOLS if not toolchain.find_program(name)]
    wanted += [] if toolchain.find_nvcc() else [toolchain.NVCC]
    return [project.requirement(name) for name in wanted]


def start(fetched: bool = False) -> None:
    """Checks Python, compiler, toolkit and device, and prints one line: what will run where.

    fetched: the first cell has just cloned the project onto a hosted machine: what is missing is installed into this
    interpreter. Elsewhere FlashLadderError says how to get it.
    """
    if platform.system() != "Linux":
        raise FlashLadderError("FlashLadder runs on Linux. On Windows use WSL 2; on a Mac use a Linux container.")
    toolchain.require_host_compiler()
    wanted = missing(comforts=fetched)
    if wanted and fetched:
        install(wanted)
    elif wanted:
        raise FlashLadderError(
            f"{sys.executable} lacks {', '.join(wanted)}. Open the notebooks with `make notebooks` (in the project's "
            f"folder; it installs everything into .venv), or: {sys.executable} -m pip install "
            + " ".join(f"'{one}'" for one in wanted)
        )
    print(summary())
    from flashladder.lessons import writing
    from flashladder.lessons.display import figures_show_themselves

    figures_show_themselves()
    writing.register()


def summary() -> str:
    """One line, such as: FlashLadder 0.1.0: stages 00 to 63 run on the simulator (...); nvcc 13.0, Python 3.11."""
    from flashladder.ladder import stages

    where: dict[str, list[str]] = {}
    # Of each device, the ranges of neighbouring stages that run there.
    for place, several in groupby(stages.all_parts(), lambda one: device.choose(one.min_compute).in_a_sentence):
        where.setdefault(place, []).append(_range([one.id for one in several]))
    parts = [f"stages {', '.join(ranges)} run on {place}" for place, ranges in where.items()]
    version = ".".join(str(part) for part in toolchain.nvcc_version(toolchain.require_nvcc()))
    return f"FlashLadder {project.version()}: {'; '.join(parts)}; nvcc {version}, Python {platform.python_version()}."


def _range(numbers: list[str]) -> str:
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 2 else ", ".join(numbers)


def install(wanted: list[str]) -> None:
    """pip, quietly, one after the other, in one line of progress."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for number, requirement in enumerate(wanted, 1):
        print(f"\rInstalling {number} of {len(wanted)}: {requirement} ...".ljust(90), end="", flush=True)
        done = subprocess.run([*command, requirement], capture_output=True, text=True)
        if done.returncode:
            raise FlashLadderError(f"\npip could not install {requirement}:\n{(done.stdout + done.stderr)[-1500:]}")
    print("\r" + " " * 90 + "\r", end="")
    importlib.invalidate_caches()
