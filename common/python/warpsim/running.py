"""Runs a program with warpsim as its CUDA runtime."""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from warpsim.report import Report, read

PACKAGE = Path(__file__).resolve().parent
# Variables WARPSIM_NAME of the simulator that run() takes by name; common/simulator/README.md says what they mean.
SETTINGS = (
    "device", "devices", "multiprocessors", "threads", "hazards", "schedule", "wrappers", "max_instructions",
    "timeout_s", "max_memory",
)  # fmt: skip
_LAUNCHER_STATUS = (125, 126, 127)  # a mistake in the options, a program that cannot run, none of that name


class WarpsimError(RuntimeError):
    """The program could not be run on the simulator at all; the text says why, and what to do."""


def home() -> Path:
    """The folder with bin/warpsim: WARPSIM_HOME, else the wheel's, else that of a build of this repository."""
    named = os.environ.get("WARPSIM_HOME")
    candidates = [Path(named)] if named else [PACKAGE, PACKAGE.parents[2] / "build"]
    for folder in candidates:
        if (folder / "bin/warpsim").is_file():
            return folder
    raise WarpsimError(
        f"no bin/warpsim in {' or '.join(map(str, candidates))}: set WARPSIM_HOME to the folder of a build of warpsim"
    )


def launcher(name: str = "warpsim") -> Path:
    return home() / "bin" / name


def environment(report: Path | str = "", **settings: object) -> dict[str, str]:
    """This process's environment with the settings as WARPSIM_NAME; report: the file that WARPSIM_REPORT names."""
    unknown = sorted(settings.keys() - set(SETTINGS))
    if unknown:
        raise TypeError(f"unknown settings: {', '.join(unknown)}; there are {', '.join(SETTINGS)}")
    chosen = {f"WARPSIM_{name.upper()}": str(value) for name, value in settings.items() if value is not None}
    return os.environ | chosen | ({"WARPSIM_REPORT": str(report)} if report else {})


def run(
    command: Sequence[str | Path] | str | Path,
    *,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    **settings: object,
) -> Report:
    """Runs a program (or a command that starts some) on the CPU, and returns what warpsim has to say.

    command: the program and its arguments; a string or a path is a program without arguments.
    env: added to this process's environment. timeout: seconds for the whole command.
    settings: SETTINGS, e.g. device="sm_80", schedule=3. hazards is "warn" unless it is given: a hazard is reported and
    the program goes on, so that all of them are found, and kernels have counters.

    WarpsimError where the program cannot run on the simulator; subprocess.TimeoutExpired after the timeout.
    """
    __tracebackhide__ = True  # pytest shows who called it
    words = [str(command)] if isinstance(command, (str, Path)) else [str(word) for word in command]
    with tempfile.TemporaryDirectory(prefix="warpsim-") as folder:
        variables = environment(Path(folder) / "%p.json", **{"hazards": "warn"} | settings) | dict(env or {})
        done = subprocess.run(
            [str(launcher()), "--", *words],
            cwd=cwd,
            env=variables,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        report = read(Path(folder), returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)
    if done.returncode in _LAUNCHER_STATUS and not report.launches and done.stderr.startswith("warpsim: "):
        raise WarpsimError(done.stderr.strip())
    return report
