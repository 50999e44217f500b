"""Fixtures of the package's tests: a stage and a CUDA runtime that live on the host, built with the C++ compiler."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hostcc import HERE, ROOT, compile_cpp  # also puts the package on the path

from flashladder.core import device as device_module
from flashladder.ladder import kernels
from flashladder.ladder.stages import Kernel
from flashladder.running import job


@pytest.fixture(scope="session")
def fake(tmp_path_factory):
    """fake(plant) -> the library of a stage with that planted error; fake.cudart is the runtime."""
    folder = tmp_path_factory.mktemp("fake")

    def library(plant: int = 0) -> Path:
        output = folder / f"libstage_{plant}.so"
        if not output.exists():
            compile_cpp(HERE / "fake/stage.cpp", output, "-shared", "-fPIC", f"-DPLANT={plant}")
        return output

    library.cudart = compile_cpp(HERE / "fake/cudart.cpp", folder / "libcudart.so.13", "-shared", "-fPIC")
    return library


@pytest.fixture
def fake_device(fake, monkeypatch):
    """Has the package run stages on the fake runtime, as if it were a GPU."""
    gpu = device_module.Gpu("Fake GPU", 90, "1.0", 1024)
    monkeypatch.setattr(job, "cudart", lambda device: fake.cudart)
    monkeypatch.setattr(kernels, "choose", lambda *arguments: device_module.Device("gpu", gpu))
    return gpu


@pytest.fixture
def fake_stage(tmp_path) -> Kernel:
    folder = tmp_path / "01_fake"
    folder.mkdir()
    (folder / "kernel.cu").write_text("// the kernel\n")
    return Kernel(1, "01_fake", "Fake", "nothing", 75, None, folder, {})


@pytest.fixture
def flashladder(tmp_path):
    """flashladder(words...) -> the finished command `python -m flashladder words...`."""

    def command(*words: str, **environment: str):
        env = os.environ | {"PYTHONPATH": str(ROOT / "common/python")} | environment
        return subprocess.run(
            [sys.executable, "-m", "flashladder", *words], capture_output=True, text=True, cwd=tmp_path, env=env
        )

    return command


@pytest.fixture
def make():
    """make(words...) -> the finished make with this interpreter, so that nothing is installed."""
    if not shutil.which("make"):
        pytest.skip("make is not installed")

    def command(*words: str, python: str | None = sys.executable, **environment: str):
        interpreter = [f"PYTHON={python}"] if python else []
        return subprocess.run(
            ["make", *interpreter, *words], capture_output=True, text=True, cwd=ROOT, env=os.environ | environment
        )

    return command
