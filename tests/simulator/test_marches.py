"""The simulator's tests once more, with the simulator built for other levels of x86-64 than this machine's own."""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import cudart
import pytest

pytestmark = [pytest.mark.simulator_only, pytest.mark.long]

SIMULATOR = cudart.REPOSITORY / "common" / "simulator"
HERE = Path(__file__).parent
LAUNCHER = HERE.parent / "of_another_build"
NEEDS = {"x86-64": set(), "x86-64-v3": {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}}
EXECUTE = "counters machine device_runtime scheduler instructions"  # the simulator's folders that execute instructions
# What runs instructions; the rest of the simulator has nothing to do with the CPU's level.
TESTS = [*sorted(path.name for path in HERE.glob("test_instructions_*.py")), "test_clean.py", "test_wgmma.py"]


def lacks(level):
    """The instructions of a level that this CPU does not have."""
    flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return sorted(NEEDS[level] - set(flags[1].split() if flags else ()))


@pytest.mark.parametrize("level", NEEDS)
def test_the_simulator_built_for(level):
    """Bit for bit the same expectations, whatever instructions the compiler may use. What executes instructions
    is compiled for the level; the rest is the build's own. The cases are dealt out over the levels: of the correct
    programs one runs the default order, the other the shuffled one."""
    if platform.machine() != "x86_64":
        pytest.skip(f"builds for {level}: this is {platform.machine()}")
    if missing := lacks(level):
        pytest.skip(f"builds for {level}: this CPU lacks {', '.join(missing)}")
    cmake = shutil.which("cmake")
    if not cmake:
        pytest.skip(f"builds the simulator for {level}: no cmake on PATH")
    folder = cudart.BUILD / f"march-{level}"
    own = {"COMPILED": EXECUTE, "BUILT": str(cudart.BUILD / "simulator")}
    for command in (
        [cmake, "-S", SIMULATOR, "-B", folder, f"-DWARPSIM_MARCH={level}", f"-DCMAKE_CXX_COMPILER_LAUNCHER={LAUNCHER}"],
        [cmake, "--build", folder, "--target", "warpsim_cudart", "-j", os.environ.get("FLASHLADDER_JOBS", "2")],
    ):
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | own)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    cudart.share_programs(folder)  # nvcc need not compile them again
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    dealt = f"{list(NEEDS).index(level)}/{len(NEEDS)} {' '.join(Path(name).stem for name in TESTS)}"
    environment |= {"WARPSIM_BUILD": str(folder), "FLASHLADDER_DEALT": dealt}
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not long", "-p", "no:cacheprovider", *TESTS]
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
