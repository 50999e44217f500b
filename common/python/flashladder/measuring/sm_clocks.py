"""At how many MHz the multiprocessors run while a kernel does.

What the driver says (nvidia-smi) is the clock at a moment between kernels, and near the power limit it is another.
Here a small kernel (sm_clocks.cu) reads two counters of each multiprocessor before and after: clocks, which the
hardware counts on from kernel to kernel, and nanoseconds. It works for any kernel, those of libraries included.
"""

import ctypes
import tempfile
from pathlib import Path

import numpy as np

from flashladder.core.errors import FlashLadderError
from flashladder.measuring import programs
from flashladder.running.cudart import MULTIPROCESSORS, CudaError, Cudart

SOURCE = Path(__file__).with_suffix(".cu")
MOST = 1024  # multiprocessors of a GPU, and their numbers


def library(folder: Path, compute: int) -> Path:
    """The kernel as a shared library: native code for a compute capability (90 for 9.0), and PTX."""
    both = f"arch=compute_{compute},code=[sm_{compute},compute_{compute}]"
    return programs.compiled(SOURCE, folder, "-shared", "-Xcompiler", "-fPIC", "-cudart", "shared", "-gencode", both)


class SmClocks:
    """Readings around what is launched in the default stream: before(), the launches, after(), and then mhz()."""

    def __init__(self, cudart: Cudart, compute: int):
        with tempfile.TemporaryDirectory(prefix="flashladder-clocks-") as folder:
            self._library = ctypes.CDLL(str(library(Path(folder), compute)))
        self._library.read_sm_clocks.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self._cudart, self._count = cudart, cudart.attribute(MULTIPROCESSORS)
        nothing = np.zeros((2, MOST, 2), np.uint64)
        self._readings = cudart.malloc(nothing.nbytes)
        cudart.upload(self._readings, nothing)

    def _read(self, which: int) -> None:
        status = self._library.read_sm_clocks(self._readings + which * MOST * 16, self._count)
        if status:
            raise CudaError(f"read_sm_clocks: cudaError {status}")

    def before(self) -> None:
        self._read(0)

    def after(self) -> None:
        self._read(1)

    def readings(self) -> np.ndarray:
        """uint64 [before, after][multiprocessor][clocks, nanoseconds], 0 of those that there are not; waits."""
        found = np.empty((2, MOST, 2), np.uint64)
        self._cudart.synchronize()
        self._cudart.download(found, self._readings)
        return found

    def mhz(self) -> float:
        """Of the median multiprocessor, between the two readings."""
        return mhz(self.readings())


def mhz(readings: np.ndarray) -> float:
    """readings: as SmClocks.readings() gives them. FlashLadderError where no multiprocessor has two."""
    there = (readings[..., 1] > 0).all(axis=0) & (readings[1, :, 1] > readings[0, :, 1])
    if not there.any():
        raise FlashLadderError("No multiprocessor's clock was read twice.")
    clocks, nanoseconds = (readings[1, there] - readings[0, there]).astype(np.float64).T
    return float(np.median(clocks / nanoseconds)) * 1e3
