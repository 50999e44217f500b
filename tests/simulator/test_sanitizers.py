"""The simulator's own code under sanitizers: data races of its host threads, and undefined behaviour and bad accesses of
all that its tests reach."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import cudart
import pytest
from cudart import build_program
from families import CLEAN, LAMBDAS
from fault_marks import HOPPER_A

from flashladder.commands import fuzz

pytestmark = [pytest.mark.simulator_only, pytest.mark.long]

SIMULATOR = cudart.REPOSITORY / "common" / "simulator"
HERE = Path(__file__).parent
PROGRAMS = [
    "atomics", "blocks_together", "flags", "grid_sync", "locks", "own_updates", "reductions", "scan", "sgemm_tiled",
    "softmax", "sort", "streams", "transpose",
]  # fmt: skip
# Folders of `programs`: mbarriers, boxes of tensors, wgmma and clusters, all small.
HOPPER_PROGRAMS = [
    "arrivals/pipelines", "clusters/boxes", "clusters/kernels", "tensor_maps/pipeline", "wgmma/gemm", "wgmma/pipelines",
]  # fmt: skip
# Each reaches code that the others do not; those that run longest and whole programs' lessons are left out.
MEMORY_TESTS = [
    *sorted(path.name for path in HERE.glob("test_instructions_*.py")),
    "test_accesses.py", "test_addresses.py", "test_counters.py", "test_execution.py",
    "test_execution_barriers.py", "test_execution_calls.py", "test_hazards.py",
    "test_arrivals.py", "test_clusters.py", "test_hostile_kernels.py", "test_loading.py", "test_report.py",
    "test_tensor_maps.py", "test_wgmma.py", "test_wgmma_hazards.py", "test_wgmma_warpgroups.py",
]  # fmt: skip
# Millions of the same hazard, every hazard of 57 blocks 14 times, a million copies: too slow here.
LEFT_OUT = [
    "test_a_report_does_not_depend_on_the_number_of_threads", "test_copies_that_are_never_waited_for_do_not_pile_up",
    "test_hazards_that_repeat_are_counted",
]  # fmt: skip
# Their cases differ in numbers alone, or run a fault under three schedules or beside its mended twin: of these each
# third is run. Of the last, each type with its own flags: each seventh.
DEALT = [
    "1/3", "test_fault_and_mended_twin", "test_global_sectors", "test_global_sectors_of_some_lanes", "test_layouts",
    "test_ldmatrix_wavefronts", "test_mended_twin", "test_random_global_accesses", "test_random_shared_accesses",
    "test_shared_wavefronts", "test_shared_wavefronts_of_some_lanes", "test_verdict_does_not_depend_on_the_schedule",
    "test_wrong_addresses_are_named", "0/7", "test_types",
]  # fmt: skip


def build_for_threads():
    """The folder of the simulator's library, built with ThreadSanitizer."""
    cmake = shutil.which("cmake")
    if not cmake:
        pytest.skip("builds the simulator with -fsanitize=thread: no cmake on PATH")
    folder = cudart.BUILD / "sanitize-thread"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two workers of pytest must not build it at once
        # Without optimisation: compiling takes longest here, and every copy is seen, those of whole vectors, too.
        for command in (
            [cmake, "-S", SIMULATOR, "-B", folder, "-DWARPSIM_SANITIZE=thread", "-DCMAKE_CXX_FLAGS_RELEASE=-O0"],
            [cmake, "--build", folder, "--target", "warpsim_cudart", "-j", os.environ.get("FLASHLADDER_JOBS", "2")],
        ):
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder


def preload(*names):
    """LD_PRELOAD with libraries of the compiler: a program that was built without a sanitizer must load it first."""
    found = []
    for name in names:
        asked = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True)
        found.append(asked.stdout.strip())
        if not os.path.isabs(found[-1]):
            pytest.skip(f"g++ has no {name} here")
    return " ".join(found)


@pytest.fixture(scope="module")
def thread_library():
    return build_for_threads() / "simulator", preload("libtsan.so")


@pytest.mark.parametrize("name", [*PROGRAMS, *HOPPER_PROGRAMS])
def test_no_data_race_in_the_simulator(thread_library, name):
    if name in HOPPER_PROGRAMS:
        program = build_program(cudart.PROGRAMS / f"{name}.cu", architecture=HOPPER_A)
    else:
        program = build_program(CLEAN[name], flags=LAMBDAS)
    library, tsan = thread_library
    environment = cudart.simulator_environment({"WARPSIM_THREADS": 4, "LD_PRELOAD": tsan})
    environment["LD_LIBRARY_PATH"] = str(library)
    environment["TSAN_OPTIONS"] = "exitcode=66"
    # Its shadow memory needs the address space laid out the same in every run.
    command = [*(["setarch", "-R"] if shutil.which("setarch") else []), program, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert "WARNING: ThreadSanitizer" not in done.stderr, done.stderr[:6000]
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_no_undefined_behaviour_in_the_simulator(tmp_path):
    """The simulator's quick tests against a library built with AddressSanitizer and UndefinedBehaviorSanitizer: the
    fuzzer's build. All tests of MEMORY_TESTS but LEFT_OUT, and of each family of DEALT a share: each fault once,
    under another schedule than the usual one, each type of wgmma once."""
    fuzz.build_fuzzer()
    folder = fuzz.folder()
    # Python has no C++ library of its own, and the sanitizer looks for `throw` when it starts.
    asan = preload("libasan.so", "libstdc++.so.6")
    cudart.share_programs(folder)  # nvcc need not compile them again
    log = tmp_path / "finding"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | {
        "WARPSIM_BUILD": str(folder),
        "WARPSIM_TEST_PRELOAD": asan,
        "FLASHLADDER_DEALT": " ".join(DEALT),
        # What lives until the process ends is no leak; exhausted memory is the tests' business.
        "ASAN_OPTIONS": f"detect_leaks=0:allocator_may_return_null=1:log_path={log}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={log}",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "not long",
        "-k",
        f"not ({' or '.join(LEFT_OUT)})",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run([*command, *MEMORY_TESTS], cwd=HERE, env=environment, capture_output=True, text=True)
    findings = "\n".join(path.read_text()[:3000] for path in sorted(tmp_path.glob("finding*"))[:5])
    assert not findings, findings
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
