"""Puts the package on the path, and what lies beside the tests. Builds the site and the page, once for all tests."""

import fcntl
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "common/python"), str(HERE), str(HERE.parent / "exercises")]

import page_runs  # noqa: E402

from flashladder.building import build  # noqa: E402
from flashladder.commands import browser  # noqa: E402
from flashladder.core.paths import build_directory  # noqa: E402
from flashladder.site import run_page  # noqa: E402


@pytest.fixture(scope="session")
def shipped() -> Path:
    """The page, built once for all workers of a run of pytest: who builds it takes the files away that others read."""
    page_runs.need_emscripten()
    this_run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
    with (build_directory() / "browser-page.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        if not this_run or lock.read() != this_run:
            assert browser.run() == 0
            build.build(["browser_run"])
            lock.truncate(0)
            lock.write(this_run)
    return run_page.shipped()


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The folder of the built pages; the page that runs kernels is not among them."""
    from flashladder.commands import docs

    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLASHLADDER_BUILD", str(folder))
        # Nothing listens there: what asks the network fails.
        patch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
        patch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        assert docs.run() == 0
    return folder / "site/html"
