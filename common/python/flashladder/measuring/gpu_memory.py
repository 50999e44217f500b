"""Device memory for benchmarks: PyTorch's where it is installed (the peers need its tensors), else the runtime's."""

import re
from pathlib import Path

import numpy as np

from flashladder.core.dtypes import OUTPUT, to_bits
from flashladder.core.problem import Problem
from flashladder.running.cudart import Cudart

try:
    import torch
except ImportError:
    torch = None


def torch_with_cuda():
    """The torch module where it is installed and sees a GPU, else None."""
    return torch if torch is not None and torch.cuda.is_available() else None


def loaded_cudart() -> str | None:
    """The libcudart.so.13 that this process has already (PyTorch brings its own)."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        match = re.search(r"(/\S*libcudart\.so\.13\S*)", line)
        if match:
            return match[1]
    return None


def torch_type(dtype: str):
    """PyTorch's type of that name: bf16, fp16 or e4m3."""
    return {"bf16": torch.bfloat16, "fp16": torch.float16, "e4m3": torch.float8_e4m3fn}[dtype]


FORWARD = (("Q", "K", "V"), ("O",))  # what is read, and what is written and so poisoned
BACKWARD = (("Q", "K", "V", "dO"), ("dQ", "dK", "dV"))


class TorchMemory:
    """Tensors of PyTorch; `tensors` maps the names of `which`, Q, K, V and O, to them, and of e4m3 Q_scales and its
    like, which are 1."""

    def __init__(self, problem: Problem, seed: int, which: tuple[tuple[str, ...], tuple[str, ...]] = FORWARD):
        self.problem, (inputs, self._outputs) = problem, which
        generator = torch.Generator(device="cuda").manual_seed(seed)
        kind = torch_type(problem.dtype)
        self.tensors = {
            name: torch.randn(problem.shape(name), generator=generator, device="cuda").to(kind) for name in inputs
        }
        for name in self._outputs:
            made = torch.empty(problem.shape(name), dtype=torch_type(OUTPUT[problem.dtype]), device="cuda")
            self.tensors[name] = made
        for name, scales in problem.scales({}).items():
            self.tensors[name] = torch.ones(scales.shape, dtype=torch.float32, device="cuda")
        self._scratches = {}

    def pointers(self) -> dict[str, int]:
        return {name: tensor.data_ptr() for name, tensor in self.tensors.items()}

    def scratch(self, stage: str, size: int, zeroed: bool = False) -> int:
        """The stage's own, 0 where it wants none, made when it is first asked for: it may be gigabytes."""
        if size and stage not in self._scratches:
            torch.cuda.empty_cache()
            self._scratches[stage] = (torch.zeros if zeroed else torch.empty)(size, dtype=torch.uint8, device="cuda")
        return self._scratches[stage].data_ptr() if size else 0

    def poison(self) -> None:
        for name in self._outputs:
            self.tensors[name].view(torch.int16).fill_(-1)

    def bits(self, name: str) -> np.ndarray:
        return host_bits(self.tensors[name])

    def release(self) -> None:
        self.tensors, self._scratches = {}, {}
        torch.cuda.empty_cache()


def host_bits(tensor) -> np.ndarray:
    """A tensor of PyTorch as patterns on the host: uint16 of types of two bytes, uint8 of one."""
    if tensor.element_size() == 1:
        return tensor.contiguous().view(torch.uint8).cpu().numpy()
    return tensor.contiguous().view(torch.int16).cpu().numpy().view(np.uint16)


class PlainMemory:
    """The same by cudaMalloc, for machines without PyTorch."""

    def __init__(self, problem: Problem, seed: int, cudart: Cudart, which=FORWARD):
        self.problem, self._cudart, self._scratches = problem, cudart, {}
        inputs, self._outputs = which
        self._pointers = {name: cudart.malloc(problem.bytes(name)) for name in (*inputs, *self._outputs)}
        # Normal numbers are slow to draw: a block of them, repeated at an odd stride, is random enough to time with.
        block = to_bits(np.random.default_rng(seed).standard_normal(3_000_017, np.float32), problem.dtype)
        for index, name in enumerate(inputs):
            values = np.resize(np.roll(block, 1_000_003 * index), problem.shape(name))
            cudart.upload(self._pointers[name], values)
        for name, scales in problem.scales({}).items():
            self._pointers[name] = cudart.malloc(scales.nbytes)
            cudart.upload(self._pointers[name], scales)

    def pointers(self) -> dict[str, int]:
        return dict(self._pointers)

    def scratch(self, stage: str, size: int, zeroed: bool = False) -> int:
        if size and stage not in self._scratches:
            self._scratches[stage] = self._cudart.malloc(size)
            if zeroed:
                self._cudart.fill(self._scratches[stage], 0, size)
        return self._scratches[stage] if size else 0

    def poison(self) -> None:
        for name in self._outputs:
            self._cudart.fill(self._pointers[name], 0xFF, self.problem.bytes(name))

    def bits(self, name: str) -> np.ndarray:
        array = np.empty(self.problem.shape(name), self.problem.bits_type(name))
        self._cudart.download(array, self._pointers[name])
        return array

    def release(self) -> None:
        for pointer in (*self._pointers.values(), *self._scratches.values()):
            self._cudart.free(pointer)
        self._pointers, self._scratches = {}, {}


class BackwardMemory:
    """Either, of a backward problem: besides O and the log-sum-exp, which a forward stage is to write."""

    def __init__(self, problem: Problem, seed: int, cudart: Cudart):
        self._cudart = cudart
        torch_there = torch_with_cuda()
        self._inner = (
            TorchMemory(problem, seed, BACKWARD) if torch_there else PlainMemory(problem, seed, cudart, BACKWARD)
        )
        self.tensors = self._inner.tensors if torch_there else {}
        self.scratch, self.poison, self.bits = self._inner.scratch, self._inner.poison, self._inner.bits
        rows = problem.B * problem.Hq * problem.Nq
        self._added = {"O": cudart.malloc(problem.bytes("O")), "log_sum_exp": cudart.malloc(4 * rows)}

    def pointers(self) -> dict[str, int]:
        return self._inner.pointers() | self._added

    def release(self) -> None:
        for pointer in self._added.values():
            self._cudart.free(pointer)
        self._added, self.tensors = {}, {}
        self._inner.release()
