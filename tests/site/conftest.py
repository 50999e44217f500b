"""Puts the package on the path, and what lies beside the tests. Builds the site and the page, once for all tests."""

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "common/python"), str(HERE), str(HERE.parent / "exercises")]

import page_runs  # noqa: E402

from flashladder.building import build  # noqa: E402
from flashladder.commands import browser  # noqa: E402
from flashladder.core.paths import build_directory  # noqa: E402
from flashladder.site import run_page  # noqa: E402


@contextlib.contextmanager
def first_of_run(file: Path) -> Iterator[bool]:
    """Whether this worker of a run of pytest is to build for all of them; the others wait for it meanwhile."""
    this_run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
    with file.open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        first = not this_run or lock.read() != this_run
        yield first
        if first:
            lock.truncate(0)
            lock.write(this_run)


@pytest.fixture(scope="session")
def shipped() -> Path:
    """The page: who builds it again takes the files away that others read."""
    page_runs.need_emscripten()
    with first_of_run(build_directory() / "browser-page.lock") as first:
        if first:
            assert browser.run() == 0
            build.build(["browser_run"])
    return run_page.shipped()


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The folder of the built pages; the page that runs kernels is not among them."""
    from flashladder.commands import docs

    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "site"
    folder.mkdir(exist_ok=True)
    with first_of_run(folder / "built.lock") as first, pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLASHLADDER_BUILD", str(folder))
        # Nothing listens there: what asks the network fails.
        patch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
        patch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        assert not first or docs.run() == 0
    return folder / "site/html"
