"""The simulator's tests need a build of it (build/ or $WARPSIM_BUILD), or a GPU with FLASHLADDER_DEVICE=gpu."""

import collections
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import cudart
from shares import drawn

QUICK = 6  # of a test's cases one of so many is among the quick ones

# nvcc takes seconds for the programs of these files, and for these cases of the others: none of them is quick.
SLOW_FILES = (
    "test_arrivals", "test_device_launches", "test_devices", "test_driver_api", "test_hazard_table", "test_host_async",
    "test_host_idle", "test_launch_order", "test_recorded_faults", "test_reserved_shared", "test_texture_api",
    "test_turns",
)  # fmt: skip
SLOW_CASES = (
    "atomics", "blocks_together", "cpp_features", "histogram", "iterators", "libcudacxx", "pointer_attributes", "sort",
    "stencil", "thrust", "wmma",
)  # fmt: skip


def _slow(item) -> bool:
    return item.path.stem in SLOW_FILES or any(word in item.name for word in SLOW_CASES)


@pytest.hookimpl(tryfirst=True)  # before those of another length are left out
def pytest_collection_modifyitems(items):
    """The other cases are long: `make test-simulator` runs them, and `make test-long` after a change of the simulator.
    A test draws by its own name, so that it draws the same in each process."""
    cases = collections.defaultdict(list)
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and not item.get_closest_marker("long"):
            cases[item.path, item.originalname].append(item)
    for (_, name), own in cases.items():
        swift = [item for item in own if not _slow(item)]
        quick = drawn(name, swift, QUICK)
        for item in own:
            if id(item) not in quick:
                item.add_marker(pytest.mark.long)


def pytest_configure(config):
    config.addinivalue_line("markers", "simulator_only: needs what only the simulator reports")
    config.addinivalue_line("markers", "not_on_gpu(reason): CUDA 13.0's own compiler does something else with this PTX")


@pytest.fixture(autouse=True)
def runtime(request):
    """Fails where the runtime library to test is missing: a skip would hide that nothing was tested."""
    if cudart.ON_GPU:
        if request.node.get_closest_marker("simulator_only"):
            pytest.skip("hazards and counters are the simulator's; FLASHLADDER_DEVICE=gpu runs on a GPU")
        if mark := request.node.get_closest_marker("not_on_gpu"):
            pytest.skip(mark.args[0])
    elif not cudart.LIBRARY.exists():
        pytest.fail(f"no simulator at {cudart.LIBRARY}: run `make build` or set WARPSIM_BUILD", pytrace=False)
