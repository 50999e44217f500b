"""What NVIDIA's management library says of the first GPU: the energy that it has taken, by ctypes."""

import ctypes
from ctypes import byref, c_ulonglong, c_void_p

from flashladder.core.errors import FlashLadderError

LIBRARY = "libnvidia-ml.so.1"  # of the driver


class Nvml:
    """FlashLadderError where there is no such library, no GPU that it knows, or one whose energy it does not count."""

    def __init__(self):
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise FlashLadderError(f"{LIBRARY}, a part of the driver, is not there: {error}") from error
        self._gpu = c_void_p()
        self._call("nvmlInit_v2")
        self._call("nvmlDeviceGetHandleByIndex_v2", 0, byref(self._gpu))
        self.joules()

    def _call(self, name: str, *arguments) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise FlashLadderError(f"{name}: NVML's error {status}")

    def joules(self) -> float:
        """Energy taken since the driver was loaded. The counter moves on every few tens of milliseconds."""
        millijoules = c_ulonglong()
        self._call("nvmlDeviceGetTotalEnergyConsumption", self._gpu, byref(millijoules))
        return millijoules.value / 1e3
