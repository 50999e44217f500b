"""Sets up .venv: the package with its dependencies, and cmake, ninja, nvcc and nvdisasm where the machine has none.

    python3 bootstrap.py VENV [EXTRA ...]     e.g. bootstrap.py .venv test

Run by make with the system's python3, so: standard library only, and every failure says what to do.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from flashladder.building import toolchain  # noqa: E402
from flashladder.core.errors import FlashLadderError  # noqa: E402
from flashladder.core.paths import ROOT  # noqa: E402

FREE_BYTES_NEEDED = 2 << 30
UNWRITABLE = ("Errno 13", "Errno 28", "Errno 30")  # in what venv says: no right, no room, read-only
# What pip says when it cannot reach its index.
UNREACHABLE = ("connection", "Connection", "ProxyError", "timed out", "from versions: none")


def check_machine(venv: Path) -> None:
    if sys.version_info < (3, 10):  # noqa: UP036 (make runs this with whatever python3 there is)
        raise FlashLadderError(
            f"Python 3.10 or newer is needed; {sys.executable} is {platform.python_version()}. "
            "Name another one: `make SYSTEM_PYTHON=python3.12 demo`."
        )
    if platform.system() != "Linux":
        raise FlashLadderError("FlashLadder runs on Linux. On Windows use WSL 2; on a Mac use a Linux container.")
    toolchain.require_host_compiler()
    free = shutil.disk_usage(venv.parent).free
    if not venv.exists() and free < FREE_BYTES_NEEDED:
        raise FlashLadderError(
            f"{venv.parent} has {free / 2**30:.1f} GiB free and the set-up needs {FREE_BYTES_NEEDED >> 30}: "
            "make room, or clone to a larger disk."
        )


def stamp_of(venv: Path) -> Path:
    return venv / "flashladder-installed"


def create(venv: Path) -> Path:
    python = venv / "bin" / "python"
    if python.exists() and stamp_of(venv).exists():
        return python
    print(f"Creating the virtual environment {venv} ...", flush=True)
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", venv], capture_output=True, text=True)
    said = (made.stdout + made.stderr).strip()
    if made.returncode and any(sign in said for sign in UNWRITABLE):
        raise FlashLadderError(f"{venv} cannot be written: make room, or clone to a folder that is yours.\n{said}")
    if made.returncode:
        raise FlashLadderError(
            f"`{sys.executable} -m venv` failed: its venv module is missing or incomplete.\n"
            f"Install it, e.g. `sudo apt install python3-venv` (Debian, Ubuntu), or use an interpreter that has "
            f"numpy, matplotlib and pytest already: `make PYTHON=python3 demo`.\n{said}"
        )
    return python


def wanted_extras(asked: list[str]) -> list[str]:
    """What was asked for, and the tools that this machine lacks."""
    extras = list(asked)
    for tool in ("cmake", "ninja"):
        if not shutil.which(tool):
            extras.append(tool)
    if not toolchain.find_nvcc():
        extras.append("cuda")
    if not toolchain.find_nvdisasm():
        extras.append("nvdisasm")
    return sorted(set(extras))


def install(python: Path, venv: Path, extras: list[str]) -> None:
    """Installs once for a pyproject.toml and a set of extras; the stamp in the environment remembers which."""
    project = (ROOT / "pyproject.toml").read_bytes()
    stamp = stamp_of(venv)
    before = stamp.read_text().split() if stamp.exists() else []
    digest = hashlib.sha256(project).hexdigest()
    if before and before[0] == digest:
        if set(extras) <= set(before[1:]):
            return
        extras = sorted(set(extras) | set(before[1:]))
    new_cuda = "cuda" in extras and "cuda" not in before
    what = f"the packages{' and nvcc from pip wheels (about 250 MB)' if new_cuda else ''}"
    print(f"Installing {what} into {venv} ...", flush=True)
    # Python compiles what it imports, which is little of all these files.
    options = ["--quiet", "--no-compile", "--disable-pip-version-check", "--progress-bar", "off"]
    command = [python, "-m", "pip", "install", *options]
    project_with_extras = f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)
    done = subprocess.run([*command, "-e", project_with_extras], capture_output=True, text=True)
    if done.returncode:
        text = (done.stdout + done.stderr).strip()
        hint = "See pip's message below."
        if "No space left" in text:
            hint = "The disk is full: make room and run this again."
        elif any(sign in text for sign in UNREACHABLE):
            hint = (
                "The package index cannot be reached: check the network (or proxy: HTTPS_PROXY, pip config) and run "
                "this again. Offline: `make PYTHON=python3 demo` uses an interpreter that has what is needed."
            )
        raise FlashLadderError(f"pip could not install {what}. {hint}\n{text[-1500:]}")
    stamp.write_text("\n".join([digest, *extras]) + "\n")


def main() -> int:
    venv = Path(os.path.abspath(sys.argv[1]))
    try:
        check_machine(venv)
        python = create(venv)
        install(python, venv, wanted_extras(sys.argv[2:]))
    except FlashLadderError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: the set-up of {venv} failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
