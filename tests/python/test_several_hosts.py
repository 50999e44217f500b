"""The example of docs/several_hosts.md does what the page says."""

import importlib.util
import os
import socket
import subprocess
import sys

import pytest

from flashladder.core.paths import ROOT

EXAMPLE = ROOT / "docs/examples/ring_over_hosts.py"


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="PyTorch is not installed: pip install torch")
@pytest.mark.parametrize("ranks", (1, 2, 4))
def test_every_rank_of_the_example_is_right(ranks):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    env = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    command = [sys.executable, str(EXAMPLE), str(ranks)]
    done = subprocess.run(command, env=env | {"MASTER_PORT": port}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} of {ranks}: right" for rank in range(ranks)]


def test_the_page_names_the_example_s_functions():
    page, code = (ROOT / "docs/several_hosts.md").read_text(), EXAMPLE.read_text()
    assert "examples/ring_over_hosts.py" in page
    for name in ("attend", "merge", "rows_of"):
        assert f"`{name}`" in page and f"def {name}(" in code
