"""Puts the package on the path, and what lies beside the tests. Builds the site, once for all that look at it."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "common/python"), str(Path(__file__).parent)]


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
