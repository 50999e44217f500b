"""The simulator's own code under ThreadSanitizer: blocks on several host threads, streams, reports."""

import os
import shutil
import subprocess
from pathlib import Path

import cudart
import pytest
from cudart import build_program

pytestmark = [pytest.mark.simulator_only, pytest.mark.long]

SIMULATOR = cudart.REPOSITORY / "common" / "simulator"
CLEAN = Path(__file__).parent / "programs" / "clean"
PROGRAMS = ["atomics", "grid_sync", "reductions", "sgemm_tiled", "softmax", "sort", "streams", "transpose"]


@pytest.fixture(scope="module")
def library():
    cmake = shutil.which("cmake")
    if not cmake:
        pytest.skip("builds the simulator with ThreadSanitizer: no cmake on PATH")
    folder = cudart.BUILD / "sanitize-thread"
    for command in (
        [cmake, "-S", SIMULATOR, "-B", folder, "-DWARPSIM_SANITIZE=thread", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"],
        [cmake, "--build", folder, "--target", "warpsim_cudart", "-j", str(os.cpu_count())],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "simulator"


@pytest.fixture(scope="module")
def preload():
    found = subprocess.run(["g++", "-print-file-name=libtsan.so"], capture_output=True, text=True).stdout.strip()
    if not os.path.isabs(found):
        pytest.skip("g++ has no libtsan here")
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_data_race_in_the_simulator(library, preload, name):
    program = build_program(CLEAN / f"{name}.cu")
    environment = cudart.simulator_environment({"WARPSIM_THREADS": 4, "LD_PRELOAD": preload})
    environment["LD_LIBRARY_PATH"] = str(library)
    environment["TSAN_OPTIONS"] = "exitcode=66"
    # Its shadow memory needs the address space laid out the same in every run.
    command = [*(["setarch", "-R"] if shutil.which("setarch") else []), program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert "WARNING: ThreadSanitizer" not in done.stderr, done.stderr[:6000]
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
