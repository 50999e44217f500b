"""make test, make test-all and make stage-NN test: pytest on what this machine can run."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from flashladder.building import build, toolchain
from flashladder.commands import tested
from flashladder.core.console import say
from flashladder.core.device import choose
from flashladder.core.environment import for_python, prepended
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory
from flashladder.ladder import stages


def tool_environment() -> dict[str, str]:
    """For tests, which find this package and call nvcc themselves: the nvcc of the build on PATH, its runtime where the
    linker looks."""
    env = for_python()
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes would compile the same modules anew
    nvcc = Path(build.info()["nvcc"])
    env["PATH"] = os.pathsep.join([str(nvcc.parent), str(toolchain.scripts_directory()), env.get("PATH", "")])
    env["CUDACXX"] = str(nvcc)
    env["CUDA_HOME"] = str(Path(build.info()["cudart_directory"]).parent)  # include/ lies beside lib/ in every layout
    env["WARPSIM_BUILD"] = env["FLASHLADDER_BUILD"] = str(build_directory())
    # What a reader has written and done is no test's.
    env["FLASHLADDER_WORK"] = str(build_directory() / "work-of-tests")
    links = build_directory() / "cudart-links"
    return prepended(env, LIBRARY_PATH=links) if links.exists() else env


# Which tests pytest picks, by the name of the command: `make test`, `test-long`, `test-all`, `test-simulator`.
PICKED = {
    "quick": ["-m", "not long"],
    "long": ["-m", "long"],
    "all": [],
    "simulator": [*tested.OF_THE_SIMULATOR],
}


OF_A_KNOWN_SIMULATOR = 8


def dealt(which: str) -> dict[str, str]:
    """FLASHLADDER_DEALT of tests/conftest.py: where the simulator is the one with which its tests passed, `make test`
    tries each of so many cases of them."""
    if which != "quick" or not tested.why_left_out() or "FLASHLADDER_DEALT" in os.environ:
        return {}
    names = sorted(file.stem for folder in tested.OF_THE_SIMULATOR for file in (ROOT / folder).glob("test_*.py"))
    return {"FLASHLADDER_DEALT": f"0/{OF_A_KNOWN_SIMULATOR} {' '.join(names)}"}


def run(which: str = "quick", extra: list[str] = (), stage: stages.Stage | None = None) -> int:
    """Builds, then runs the tests; returns pytest's status. Skipped tests are listed with their reasons.

    which: a key of PICKED. stage: its tests alone, of what is built already.
    """
    if not importlib.util.find_spec("pytest"):
        raise FlashLadderError(f"{sys.executable} has no pytest: pip install pytest pytest-xdist.")
    say(f"Device: {choose(stage.min_compute if stage else 0)}")
    if not stage:
        build.build()
    command = [sys.executable, "-m", "pytest", "-q", "-rsfE", "--durations=5", "--durations-min=10"]
    if importlib.util.find_spec("xdist"):
        command += ["-n", str(build.jobs()), "--dist", "worksteal"]
    command += PICKED[which]
    env = tool_environment() | ({} if stage or extra else dealt(which))
    if stage:
        env["FLASHLADDER_STAGE"] = stage.id
        command += stage.tests
    if which == "simulator":
        env[tested.AGAIN] = "1"
    before, simulator = tested.commit_of(ROOT), tested.of_the_simulator()
    status = subprocess.run([*command, *extra], cwd=ROOT, env=env).returncode
    if stage or extra:
        return status
    if which in tested.PARTS:
        tested.remember(which, status, before)
    elif status == 0 and tested.remember_simulator(simulator):
        say(f"{tested.PASSED} says so: the other tests run with few of them as long as the simulator stays as it is.")
    elif status == 0:
        say(f"The simulator or its tests changed meanwhile, so {tested.PASSED} stays as it was: run them again.")
    return status
