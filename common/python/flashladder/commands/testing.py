"""make test, make test-all and make stage-NN test: pytest on what this machine can run."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from flashladder.building import build, toolchain
from flashladder.core.console import say
from flashladder.core.device import choose
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory
from flashladder.ladder import stages


def tool_environment() -> dict[str, str]:
    """For tests that call nvcc themselves: the nvcc of the build on PATH, with its runtime where the linker looks."""
    env = dict(os.environ)
    nvcc = Path(build.info()["nvcc"])
    env["PATH"] = os.pathsep.join([str(nvcc.parent), str(toolchain.scripts_directory()), env.get("PATH", "")])
    env["CUDACXX"] = str(nvcc)
    env["CUDA_HOME"] = str(Path(build.info()["cudart_directory"]).parent)  # include/ lies beside lib/ in every layout
    env["WARPSIM_BUILD"] = env["FLASHLADDER_BUILD"] = str(build_directory())
    links = build_directory() / "cudart-links"
    if links.exists():
        env["LIBRARY_PATH"] = os.pathsep.join([str(links), *filter(None, [env.get("LIBRARY_PATH")])])
    return env


# Which tests pytest picks, by the name of the command: `make test`, `make test-long`, `make test-all`.
PICKED = {"quick": ["-m", "not long"], "long": ["-m", "long"], "all": []}


def run(which: str = "quick", stage: stages.Stage | None = None, extra: list[str] = (), only: list[str] = ()) -> int:
    """Builds, then runs the tests; returns pytest's status. Skipped tests are listed with their reasons.

    which: a key of PICKED. only: files to test, of something that is built already.
    """
    if not importlib.util.find_spec("pytest"):
        raise FlashLadderError(f"{sys.executable} has no pytest: pip install pytest pytest-xdist.")
    say(f"Device: {choose(stage.min_compute if stage else 0)}")
    if not only:
        build.build(build.stage_targets(stage.number) if stage else [])
    command = [sys.executable, "-m", "pytest", "-q", "-rsfE", "--durations=5", "--durations-min=10"]
    if importlib.util.find_spec("xdist"):
        command += ["-n", str(build.jobs()), "--dist", "worksteal"]
    command += PICKED[which]
    env = tool_environment()
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "common/python"), *filter(None, [env.get("PYTHONPATH")])])
    if stage:
        env["FLASHLADDER_STAGE"] = stage.id
        command.append("tests/stages")
    return subprocess.run([*command, *only, *extra], cwd=ROOT, env=env).returncode
