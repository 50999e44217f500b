"""Where kernels run: the GPU, or warpsim on the CPU. FLASHLADDER_DEVICE=auto|gpu|sim."""

import functools
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from flashladder.core.environment import prepended
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import build_directory, simulator_directory, simulator_library

CHOICES = ("auto", "gpu", "sim")
OLDEST_GPU = 75  # that nvcc 13 has code for
OLDEST_DRIVER = 580  # that runs what CUDA 13 has built


class Compute(int):
    """The compute capability that a stage needs, 90 for 9.0: that or a newer one, or that and no other where it is
    `specific`. As a string it is what nvcc's architectures are called: 90, 90a."""

    specific: bool

    def __new__(cls, number: int, specific: bool = False):
        self = super().__new__(cls, number)
        self.specific = specific
        return self

    def __str__(self) -> str:
        return f"{int(self)}{'a' if self.specific else ''}"

    def native(self, compute: int) -> str:
        """How nvcc calls the native code of such a stage for a GPU of this compute capability."""
        return str(self) if self == compute else str(compute)


@dataclass(frozen=True)
class Gpu:
    name: str
    compute: int  # 90 for compute capability 9.0
    driver: str
    memory_mib: int


@dataclass(frozen=True)
class Device:
    kind: str  # "gpu" or "sim"
    gpu: Gpu | None
    reason: str = ""  # why not what one might expect

    def __str__(self) -> str:
        if self.kind == "gpu":
            return self.gpu.name
        return f"simulator (warpsim, on the CPU{f'; {self.reason}' if self.reason else ''})"

    @property
    def in_a_sentence(self) -> str:
        return str(self) if self.kind == "gpu" else f"the {self}"

    @property
    def short(self) -> str:
        return self.gpu.name if self.kind == "gpu" else "simulator"


@functools.cache
def find_gpu() -> Gpu | None:
    """The first GPU that nvidia-smi lists; None where there is none."""
    smi = shutil.which("nvidia-smi")
    if not smi:
        return None
    query = "name,compute_cap,driver_version,memory.total"
    try:
        done = subprocess.run(
            [smi, f"--query-gpu={query}", "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=60
        )
        name, compute, driver, memory = (part.strip() for part in done.stdout.splitlines()[0].rsplit(",", 3))
        return Gpu(name, int(compute.replace(".", "")), driver, int(float(memory)))
    except (OSError, subprocess.TimeoutExpired, IndexError, ValueError):
        return None


@functools.cache
def gpus() -> list[str]:
    """What CUDA_VISIBLE_DEVICES calls each GPU that a program here can use: of those that it names, or of all."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [one for one in named.split(",") if one]
    smi = shutil.which("nvidia-smi")
    listed = subprocess.run([smi, "-L"], capture_output=True, text=True).stdout if smi else ""
    return [str(number) for number, _ in enumerate(re.findall(r"^GPU \d+:", listed, re.M))]


def requested() -> str:
    choice = os.environ.get("FLASHLADDER_DEVICE") or "auto"
    if choice not in CHOICES:
        raise FlashLadderError(f"FLASHLADDER_DEVICE={choice}: choose one of {', '.join(CHOICES)}.")
    return choice


def unfit(gpu: Gpu, min_compute: int) -> str:
    """Why the GPU cannot run a stage that needs min_compute; "" where it can."""
    if gpu.compute < OLDEST_GPU:
        return f"{gpu.name} has compute capability {gpu.compute / 10}, CUDA 13 needs {OLDEST_GPU / 10}"
    driver = gpu.driver.split(".")[0]
    if driver.isdigit() and int(driver) < OLDEST_DRIVER:
        return (
            f"{gpu.name} has driver {gpu.driver}, CUDA 13 needs {OLDEST_DRIVER} or newer: update the driver, "
            "https://www.nvidia.com/drivers"
        )
    if gpu.compute < min_compute:
        return f"{gpu.name} has compute capability {gpu.compute / 10}, this needs {min_compute / 10}"
    if getattr(min_compute, "specific", False) and gpu.compute != min_compute:
        return f"{gpu.name} has compute capability {gpu.compute / 10}, this needs {min_compute / 10} and no other"
    return ""


def choose(min_compute: int = 0, choice: str | None = None) -> Device:
    """The device for a stage that needs compute capability min_compute (80 for 8.0, or a Compute)."""
    choice = choice or requested()
    if choice not in CHOICES:
        raise FlashLadderError(f"device '{choice}': choose one of {', '.join(CHOICES)}.")
    if choice == "sim":
        return Device("sim", None)
    gpu = find_gpu()
    if not gpu:
        if choice == "gpu":
            raise FlashLadderError(
                "FLASHLADDER_DEVICE=gpu, but nvidia-smi finds no NVIDIA GPU here. "
                "Use FLASHLADDER_DEVICE=sim (or auto) to run on the simulator."
            )
        return Device("sim", None, "no NVIDIA GPU here")
    limit = unfit(gpu, min_compute)
    if limit:
        if choice == "gpu":
            raise FlashLadderError(f"FLASHLADDER_DEVICE=gpu, but {limit}. Use FLASHLADDER_DEVICE=auto or sim.")
        return Device("sim", None, limit)
    return Device("gpu", gpu)


def real_cudart() -> Path:
    """libcudart.so.13 of the toolkit that the stages were built with."""
    info = build_directory() / "build-info.json"
    if not info.exists():
        raise FlashLadderError("Nothing is built yet: run `make build`.")
    return Path(json.loads(info.read_text())["cudart_directory"]) / "libcudart.so.13"


def cudart(device: Device) -> Path:
    library = simulator_library() if device.kind == "sim" else real_cudart()
    if not library.exists():
        raise FlashLadderError(f"{library} does not exist: run `make build`.")
    return library


def environment(device: Device) -> dict[str, str]:
    """The environment for a program that is to run on the device: which libcudart.so.13 the loader finds first."""
    return prepended(LD_LIBRARY_PATH=simulator_directory()) if device.kind == "sim" else dict(os.environ)
