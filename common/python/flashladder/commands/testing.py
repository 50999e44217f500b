"""make test, make test-all and make stage-NN test: pytest on what this machine can run.

build/tests.json says which tests passed on which commit, by whole runs of `make test`, for `make release`.

And with which simulator its own tests passed. The long ones build it anew for other CPUs and with sanitizers, and fuzz
it; what they say depends on it and its tests alone. So `make test-simulator` runs all and writes
tests/simulator/passed.toml. As long as its hash holds, the long tests leave them out, and the quick ones try a few.
"""

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

from flashladder.building import build, toolchain
from flashladder.core.console import say
from flashladder.core.device import choose
from flashladder.core.environment import for_python, prepended
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory
from flashladder.core.toml import tomllib
from flashladder.ladder import stages

PARTS = {"quick": {"quick"}, "long": {"long"}, "all": {"quick", "long"}}


def git(root: Path, *words: str) -> str | None:
    """What git prints, without white space around it; None where it fails or is not there."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def commit_of(root: Path) -> str | None:
    """The commit of a folder without changes; None where there are changes, or no git."""
    return None if git(root, "status", "--porcelain") != "" else git(root, "rev-parse", "HEAD")


def _file() -> Path:
    return build_directory() / "tests.json"


def passed(root: Path = ROOT) -> set[str]:
    """Of "quick" and "long", which passed on the commit that is checked out, without changes."""
    try:
        state = json.loads(_file().read_text())
    except (OSError, ValueError):
        return set()
    return set(state["passed"]) if state.get("commit") and state["commit"] == commit_of(root) else set()


def remember(which: str, status: int, before: str | None, root: Path = ROOT) -> None:
    """After a run of a key of PARTS; before: commit_of() when it began. Changed meanwhile, it counts for nothing."""
    if before and before == commit_of(root):
        now = passed(root) | PARTS[which] if status == 0 else passed(root) - PARTS[which]
        _file().parent.mkdir(parents=True, exist_ok=True)
        _file().write_text(json.dumps({"commit": before, "passed": sorted(now)}) + "\n")


# ---- the simulator's tests ----

AGAIN = "FLASHLADDER_AGAIN"  # where it is set in the environment, they run in any case
PASSED = "tests/simulator/passed.toml"
OF_THE_SIMULATOR = ("tests/simulator", "tests/fuzz")
# What is built, the tests and programs that are run on it, and what they start.
COUNTS = (
    "common/simulator", "common/include/command_line.h", "common/include/json_writer.h", *OF_THE_SIMULATOR,
    "tests/conftest.py", "tests/shares.py", "tests/of_another_build", "common/python/flashladder/commands/fuzz.py",
)  # fmt: skip


def of_the_simulator(root: Path = ROOT) -> str:
    """A hash of all sources that these tests depend on; texts are none."""
    found = [file for one in COUNTS for file in ((root / one).rglob("*") if (root / one).is_dir() else [root / one])]
    digest = hashlib.sha256()
    for file in sorted(found):
        name = file.relative_to(root).as_posix()
        if file.is_file() and name != PASSED and file.suffix != ".md" and "__pycache__" not in file.parts:
            data = file.read_bytes()
            digest.update(f"{name} {len(data)} ".encode() + data)
    return digest.hexdigest()


def why_left_out(root: Path = ROOT) -> str:
    """Why these tests need not run: they passed with this very simulator. "" where they must."""
    try:
        same = tomllib.loads((root / PASSED).read_text())["sha256"] == of_the_simulator(root)
    except (OSError, ValueError, KeyError):
        return ""
    if not same or os.environ.get(AGAIN):
        return ""
    return f"passed with this simulator ({PASSED} has its hash); `make test-simulator` runs it again"


def remember_simulator(before: str, root: Path = ROOT) -> bool:
    """After all of them passed; before: of_the_simulator() when they began. False where it has changed meanwhile."""
    if before != of_the_simulator(root):
        return False
    (root / PASSED).write_text(
        "# With which simulator, and tests of it, these passed; written by `make test-simulator`.\n"
        f'sha256 = "{before}"\n'
    )
    return True


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
    "simulator": [*OF_THE_SIMULATOR],
}


OF_A_KNOWN_SIMULATOR = 8


def dealt(which: str) -> dict[str, str]:
    """FLASHLADDER_DEALT of tests/conftest.py: where the simulator is the one with which its tests passed, `make test`
    tries each of so many cases of them."""
    if which != "quick" or not why_left_out() or "FLASHLADDER_DEALT" in os.environ:
        return {}
    names = sorted(file.stem for folder in OF_THE_SIMULATOR for file in (ROOT / folder).glob("test_*.py"))
    return {"FLASHLADDER_DEALT": f"0/{OF_A_KNOWN_SIMULATOR} {' '.join(names)}"}


def run(which: str = "quick", extra: list[str] = (), stage: stages.Stage | None = None) -> int:
    """Builds, then runs the tests; returns pytest's status. Skipped tests are listed with their reasons.

    which: a key of PICKED. stage: its tests alone, of what is built already. Most that it skips are other stages'.
    """
    if not importlib.util.find_spec("pytest"):
        raise FlashLadderError(f"{sys.executable} has no pytest: pip install pytest pytest-xdist.")
    say(f"Device: {choose(stage.min_compute if stage else 0)}")
    if not stage:
        build.build()
    told = "-rfE" if stage else "-rsfE"
    command = [sys.executable, "-m", "pytest", "-q", told, "--durations=5", "--durations-min=10"]
    if importlib.util.find_spec("xdist"):
        command += ["-n", str(build.jobs()), "--dist", "worksteal"]
    command += PICKED[which]
    env = tool_environment() | ({} if stage or extra else dealt(which))
    if stage:
        env["FLASHLADDER_STAGE"] = stage.id
        command += stage.tests
    if which == "simulator":
        env[AGAIN] = "1"
    before, simulator = commit_of(ROOT), of_the_simulator()
    status = subprocess.run([*command, *extra], cwd=ROOT, env=env).returncode
    if stage and not extra:
        say("Skipped are tests of other stages, and those of a GPU where there is none: ARGS=-rs lists them.")
    if stage or extra:
        return status
    if which in PARTS:
        remember(which, status, before)
    elif status == 0 and remember_simulator(simulator):
        say(f"{PASSED} says so: the other tests run with few of them as long as the simulator stays as it is.")
    elif status == 0:
        say(f"The simulator or its tests changed meanwhile, so {PASSED} stays as it was: run them again.")
    return status
