"""The few CUDA runtime calls that the package needs, by ctypes on a chosen libcudart.so.13."""

import ctypes
from ctypes import byref, c_float, c_int, c_size_t, c_void_p

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3
NON_BLOCKING = 1  # cudaStreamNonBlocking: a stream that the default stream does not join
BLOCKING = 4  # cudaDeviceScheduleBlockingSync: who waits for the device sleeps
MULTIPROCESSORS, L2_BYTES = 16, 38  # cudaDeviceAttr


class CudaError(Exception):
    pass


class Cudart:
    def __init__(self, path="libcudart.so.13"):
        # Global, so that a stage loaded later resolves its own need of libcudart.so.13 to this one.
        self._library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        self._library.cudaGetErrorString.restype = ctypes.c_char_p
        self._library.cudaGetErrorString.argtypes = [c_int]

    def call(self, name: str, *arguments) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            text = self._library.cudaGetErrorString(status).decode()
            raise CudaError(f"{name}: {text} (cudaError {status})")

    def malloc(self, size: int) -> int:
        pointer = c_void_p()
        self.call("cudaMalloc", byref(pointer), c_size_t(size))
        return pointer.value

    def free(self, pointer: int) -> None:
        self.call("cudaFree", c_void_p(pointer))

    def upload(self, pointer: int, array) -> None:
        self.call("cudaMemcpy", c_void_p(pointer), c_void_p(array.ctypes.data), c_size_t(array.nbytes), HOST_TO_DEVICE)

    def download(self, array, pointer: int) -> None:
        self.call("cudaMemcpy", c_void_p(array.ctypes.data), c_void_p(pointer), c_size_t(array.nbytes), DEVICE_TO_HOST)

    def fill(self, pointer: int, byte: int, size: int, stream: c_void_p | None = None) -> None:
        self.call("cudaMemsetAsync", c_void_p(pointer), byte, c_size_t(size), stream)

    def copy_on_device(self, to: int, source: int, size: int, stream: c_void_p | None = None) -> None:
        self.call("cudaMemcpyAsync", c_void_p(to), c_void_p(source), c_size_t(size), DEVICE_TO_DEVICE, stream)

    def synchronize(self) -> None:
        self.call("cudaDeviceSynchronize")

    def memory(self) -> tuple[int, int]:
        """(free, total) bytes of device memory."""
        free, total = c_size_t(), c_size_t()
        self.call("cudaMemGetInfo", byref(free), byref(total))
        return free.value, total.value

    def attribute(self, which: int) -> int:
        value = c_int()
        self.call("cudaDeviceGetAttribute", byref(value), which, 0)
        return value.value

    def version(self) -> str:
        value = c_int()
        self.call("cudaRuntimeGetVersion", byref(value))
        return f"{value.value // 1000}.{value.value % 1000 // 10}"

    def devices(self) -> int:
        """How many there are."""
        value = c_int()
        self.call("cudaGetDeviceCount", byref(value))
        return value.value

    def stream(self, flags: int = 0) -> c_void_p:
        stream = c_void_p()
        self.call("cudaStreamCreateWithFlags", byref(stream), flags)
        return stream

    def event(self) -> c_void_p:
        event = c_void_p()
        self.call("cudaEventCreate", byref(event))
        return event

    def record(self, event: c_void_p, stream: c_void_p | None = None) -> None:
        self.call("cudaEventRecord", event, stream)

    def wait(self, event: c_void_p) -> None:
        self.call("cudaEventSynchronize", event)

    def elapsed_ms(self, start: c_void_p, stop: c_void_p) -> float:
        value = c_float()
        self.call("cudaEventElapsedTime", byref(value), start, stop)
        return value.value
