"""The simulator's tests need a build of it (build/ or $WARPSIM_BUILD), or a GPU with FLASHLADDER_DEVICE=gpu."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import cudart

from flashladder.commands import tested


def pytest_configure(config):
    config.addinivalue_line("markers", "simulator_only: needs what only the simulator reports")
    config.addinivalue_line("markers", "not_on_gpu(reason): CUDA 13.0's own compiler does something else with this PTX")


def pytest_collection_modifyitems(items):
    """Long tests run where the simulator, or one of its tests, is not as it was when they passed."""
    if reason := tested.why_left_out():
        for item in items:
            if item.get_closest_marker("long") and item.path.is_relative_to(Path(__file__).parent):
                item.add_marker(pytest.mark.skip(reason=reason))


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
