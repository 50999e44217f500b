"""For the tests of the package `warpsim`: of this repository, or of an installed wheel (then without flashladder).

python -m pytest -c /dev/null --rootdir . --confcutdir tests/warpsim tests/warpsim
"""

import shutil
import subprocess
from pathlib import Path

import pytest
from warpsim_places import EXAMPLES


def pytest_configure(config):
    config.addinivalue_line("markers", "long: minutes, not seconds")


@pytest.fixture(scope="session")
def examples(tmp_path_factory) -> Path:
    """A folder with the examples compiled, each with its mistake and mended."""
    if not shutil.which("nvcc") or not shutil.which("make"):
        pytest.skip("compiles CUDA programs: nvcc and make must be on PATH")
    folder = tmp_path_factory.mktemp("examples")
    for file in EXAMPLES.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    done = subprocess.run(["make", "-C", folder, "all"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder
