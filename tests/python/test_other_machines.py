"""The package's tests once more as they would run elsewhere: other kernels of the BLAS, one thread, another language.

OpenBLAS takes another kernel where OPENBLAS_CORETYPE names one: its sums then differ in the last bits.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostcc import HERE, ROOT
from shares import WHOLE

# What a CPU must have for OpenBLAS' kernels of that name, as /proc/cpuinfo calls it; without it they are illegal
# instructions.
NEEDS = {
    "Prescott": {"pni"},
    "Haswell": {"avx2", "fma"},
    "SkylakeX": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"},
}
# Each with another language, number format and time zone. (A locale that is not installed acts as C.)
ELSEWHERE = {
    "Prescott": {"OPENBLAS_NUM_THREADS": "1", "LC_ALL": "C", "TZ": "Pacific/Kiritimati"},
    "Haswell": {"OPENBLAS_NUM_THREADS": "1", "LC_ALL": "tr_TR.UTF-8", "TZ": "America/St_Johns"},
    "SkylakeX": {"OPENBLAS_NUM_THREADS": "2", "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Kathmandu"},
}


def flags() -> set[str]:
    """What this CPU can do, as Linux names it; nothing where there is no /proc/cpuinfo or it is no x86."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    return next((set(line.split(":", 1)[1].split()) for line in text.splitlines() if line.startswith("flags")), set())


@pytest.mark.long
@pytest.mark.parametrize("core", NEEDS)
def test_the_packages_tests_pass(core):
    """The quick tests of the package, dealt out over the machines; of each machine's every sixth, but for
    FLASHLADDER_WHOLE=1."""
    missing = NEEDS[core] - flags()
    if missing:
        pytest.skip(f"this CPU cannot execute OpenBLAS' kernels for {core}: it has no {', '.join(sorted(missing))}")
    able = [core for core in NEEDS if NEEDS[core] <= flags()]
    files = sorted(path.stem for path in HERE.glob("test_*.py") if path != Path(__file__))
    hands = len(able) * (1 if WHOLE else 6)
    dealt = {"FLASHLADDER_DEALT": f"{able.index(core)}/{hands} {' '.join(files)}"}
    env = os.environ | ELSEWHERE[core] | {"OPENBLAS_CORETYPE": core} | dealt
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not long", str(HERE)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    settings = " ".join(f"{name}={value}" for name, value in (ELSEWHERE[core] | {"OPENBLAS_CORETYPE": core}).items())
    assert done.returncode == 0, f"with {settings} the tests of {HERE.name} fail:\n{done.stdout[-4000:]}{done.stderr}"
