"""The compiler is a program of the build."""

import pytest

from flashladder.building import build


@pytest.fixture(scope="session", autouse=True)
def built():
    build.build(["ir_to_ptx", "browser_run", "warpsim_cudart"])
