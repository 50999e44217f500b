"""One attention problem: its sizes, its inputs and how it lies in memory.

Inputs are a dictionary: "Q", "K" and "V" as bit patterns in the problem's layout; of e4m3 "Q_scales", "K_scales" and
"V_scales" besides, float32 (B, heads), 1 where they are missing. A gradient's tensor has the shape of what it is the
gradient of: "dO" that of "O".
"""

import ctypes
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from flashladder.core import abi
from flashladder.core.dtypes import E4M3_LARGEST, OUTPUT, bits_type, from_bits, to_bits
from flashladder.core.errors import FlashLadderError

LAYOUTS = ("bhnd", "bnhd")
GAPS = "gaps"  # bhnd with more behind each row, head and batch, in each tensor other: no two strides are equal


@dataclass(frozen=True)
class Problem:
    PARAMS: ClassVar[type[ctypes.Structure]] = abi.FlashParams  # of a call with such a problem

    B: int = 1
    Hq: int = 2
    Nq: int = 256
    d_head: int = 64
    dtype: str = "bf16"
    Hkv: int = 0  # 0: as many as Hq
    Nkv: int = 0  # 0: as long as Nq
    causal: bool = False
    scale: float = 0.0  # 0: 1 / sqrt(d_head)
    layout: str = "bhnd"

    def __post_init__(self):
        if self.dtype not in abi.TYPE_NUMBERS:
            raise FlashLadderError(f"dtype '{self.dtype}': choose {', '.join(abi.TYPE_NUMBERS)}")
        if self.layout not in (*LAYOUTS, GAPS):
            raise FlashLadderError(f"layout '{self.layout}': choose bhnd or bnhd")
        for name, default in (("Hkv", self.Hq), ("Nkv", self.Nq), ("scale", 1 / math.sqrt(max(self.d_head, 1)))):
            if not getattr(self, name):
                object.__setattr__(self, name, default)

    def shape(self, tensor: str) -> tuple[int, int, int, int]:
        """The tensor's axes as they lie in memory; Q and O have Hq heads and Nq rows, K and V Hkv and Nkv."""
        heads, rows = (self.Hq, self.Nq) if tensor[-1] in "QO" else (self.Hkv, self.Nkv)
        return (self.B, heads, rows, self.d_head) if self.layout != "bnhd" else (self.B, rows, heads, self.d_head)

    def steps(self, tensor: str) -> tuple[int, int, int, int]:
        """Elements from one to the next along each axis of shape()."""
        _, first, second, d = self.shape(tensor)
        piece = 16 // np.dtype(self.bits_type(tensor)).itemsize  # strides are multiples of 16 bytes
        gap = piece * (abi.TENSORS.index(tensor) + 1) if self.layout == GAPS else 0
        inner = d + gap
        outer = second * inner + gap
        return first * outer + gap, outer, inner, 1

    def view(self, tensor: str, memory: np.ndarray) -> np.ndarray:
        """The tensor in bytes() of memory, of type uint8, as an array of its shape()."""
        elements = memory.view(self.bits_type(tensor))
        steps = [elements.itemsize * step for step in self.steps(tensor)]
        return np.lib.stride_tricks.as_strided(elements, self.shape(tensor), steps)

    def bits_type(self, tensor: str) -> type:
        """Of the tensor's elements as bit patterns in NumPy."""
        return bits_type(OUTPUT[self.dtype] if tensor == "O" else self.dtype)

    def bytes(self, tensor: str) -> int:
        return np.dtype(self.bits_type(tensor)).itemsize * self.B * self.steps(tensor)[0]

    def flops(self) -> float:
        """4 B Hq Nq Nkv d, half of it where causal (both matrix products; the softmax is not counted)."""
        return 4.0 * self.B * self.Hq * self.Nq * self.Nkv * self.d_head * (0.5 if self.causal else 1.0)

    def backward_flops(self) -> float:
        """2.5 times as many: five matrix products where forward has two."""
        return 2.5 * self.flops()

    def random(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Standard normal Q, K, V as bit patterns, in this problem's layout. e4m3: with scales 1, 2 and 3 times
        as large as they need be, so that a scale of another head is wrong."""
        generator = np.random.default_rng(seed)
        values = {name: generator.standard_normal(self.shape(name), np.float32) for name in "QKV"}
        return self.rounded(values, rooms=3)

    def rounded(self, values: dict[str, np.ndarray], rooms: int = 1) -> dict[str, np.ndarray]:
        """Q, K and V in this problem's layout, rounded to its type. e4m3: each head divided by its scale before, so
        that its largest element is 448, the largest of the type; with rooms = 3 by turns half and a third of that."""
        if self.dtype != "e4m3":
            return {name: to_bits(array, self.dtype) for name, array in values.items()}
        inputs = {}
        for name, array in values.items():
            largest = np.abs(self.to_bhnd(np.asarray(array, np.float64))).max(axis=(2, 3))
            room = np.arange(largest.size).reshape(largest.shape) % rooms + 1
            scales = np.where(largest > 0, room * largest / E4M3_LARGEST, 1).astype(np.float32)
            inputs[f"{name}_scales"] = scales
            inputs[name] = to_bits(array / self._spread(scales), self.dtype)
        return inputs

    def _spread(self, scales: np.ndarray) -> np.ndarray:
        """(B, heads) as factors of a tensor in this problem's layout."""
        return self.to_bhnd(scales.astype(np.float64)[:, :, None, None])

    def scales(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """e4m3: the heads' scales of Q, K and V, 1 where inputs have none; of the other types nothing."""
        if self.dtype != "e4m3":
            return {}
        heads = {name: (self.B, self.Hq if name == "Q" else self.Hkv) for name in "QKV"}
        return {
            f"{name}_scales": np.asarray(inputs.get(f"{name}_scales", np.ones(heads[name])), np.float32)
            for name in "QKV"
        }

    def values(self, inputs: dict[str, np.ndarray], name: str) -> np.ndarray:
        """Q, K or V in float64 as the patterns, and the scales of e4m3, say; (B, heads, rows, d)."""
        values = from_bits(self.to_bhnd(inputs[name]), self.dtype).astype(np.float64)
        scales = self.scales(inputs)
        return values * scales[f"{name}_scales"].astype(np.float64)[:, :, None, None] if scales else values

    def tensor(self, name: str, pointer: int) -> abi.FlashTensor:
        batch, outer, inner, _ = self.steps(name)
        return abi.FlashTensor(pointer, batch, *((inner, outer) if self.layout == "bnhd" else (outer, inner)))

    def params(
        self,
        pointers: dict[str, int],
        workspace: int = 0,
        workspace_bytes: int = 0,
        configuration: str | None = None,
        kind: type[ctypes.Structure] | None = None,
    ) -> ctypes.Structure:
        """The C struct of a call: PARAMS, or another kind. pointers: device addresses of its tensors and arrays, by
        their names there; missing ones are null."""
        call = {"dtype": abi.TYPE_NUMBERS[self.dtype], "workspace": workspace, "workspace_bytes": workspace_bytes}
        call["configuration"] = configuration.encode() if configuration else None

        def value(name: str, field: type):
            if field is abi.FlashTensor:
                return self.tensor(name, pointers.get(name, 0))
            if name in call:
                return call[name]
            return pointers.get(name, 0) if field is ctypes.c_void_p else getattr(self, name)

        kind = kind or self.PARAMS
        return kind(**{name: value(name, field) for name, field in kind._fields_})

    def to_bhnd(self, array: np.ndarray) -> np.ndarray:
        """A view with axes (B, heads, rows, d) of an array in this problem's layout."""
        return array if self.layout != "bnhd" else array.transpose(0, 2, 1, 3)

    def to_bhnd_tensor(self, tensor):
        """The same for a tensor of PyTorch."""
        return tensor if self.layout != "bnhd" else tensor.transpose(1, 2)

    def __str__(self) -> str:
        heads = f"H={self.Hq}" if self.Hq == self.Hkv else f"Hq={self.Hq} Hkv={self.Hkv}"
        rows = f"N={self.Nq}" if self.Nq == self.Nkv else f"Nq={self.Nq} Nkv={self.Nkv}"
        causal = " causal" if self.causal else ""
        layout = "" if self.layout == "bhnd" else f" {self.layout}"
        scale = "" if self.scale == 1 / math.sqrt(self.d_head) else f" scale={self.scale:g}"
        return f"{self.dtype} B={self.B} {heads} {rows} d={self.d_head}{causal}{scale}{layout}"
