"""One attention problem: its sizes, its inputs and how it lies in memory."""

import math
from dataclasses import dataclass

import numpy as np

from flashladder.core import abi
from flashladder.core.dtypes import to_bits
from flashladder.core.errors import FlashLadderError

LAYOUTS = ("bhnd", "bnhd")


@dataclass(frozen=True)
class Problem:
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
        if self.dtype not in abi.DTYPES:
            raise FlashLadderError(f"dtype '{self.dtype}': choose fp16 or bf16")
        if self.layout not in LAYOUTS:
            raise FlashLadderError(f"layout '{self.layout}': choose bhnd or bnhd")
        for name, default in (("Hkv", self.Hq), ("Nkv", self.Nq), ("scale", 1 / math.sqrt(max(self.d_head, 1)))):
            if not getattr(self, name):
                object.__setattr__(self, name, default)

    def shape(self, tensor: str) -> tuple[int, int, int, int]:
        """The tensor's shape as it lies in memory; Q and O have Hq heads and Nq rows, K and V Hkv and Nkv."""
        heads, rows = (self.Hq, self.Nq) if tensor in "QO" else (self.Hkv, self.Nkv)
        return (self.B, heads, rows, self.d_head) if self.layout == "bhnd" else (self.B, rows, heads, self.d_head)

    def bytes(self, tensor: str) -> int:
        return 2 * math.prod(self.shape(tensor))

    def flops(self) -> float:
        """4 B Hq Nq Nkv d, half of it where causal (both matrix products; the softmax is not counted)."""
        return 4.0 * self.B * self.Hq * self.Nq * self.Nkv * self.d_head * (0.5 if self.causal else 1.0)

    def random(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Standard normal Q, K, V as bit patterns, in this problem's layout."""
        generator = np.random.default_rng(seed)
        return {name: to_bits(generator.standard_normal(self.shape(name), np.float32), self.dtype) for name in "QKV"}

    def tensor(self, name: str, pointer: int) -> abi.FlashTensor:
        _, first, second, d = self.shape(name)
        row, head = (d, second * d) if self.layout == "bhnd" else (second * d, d)
        return abi.FlashTensor(pointer, first * second * d, head, row)

    def params(
        self, pointers: dict[str, int], workspace: int = 0, workspace_bytes: int = 0, configuration: str | None = None
    ) -> abi.FlashParams:
        """The C struct; pointers are device addresses of Q, K, V, O and "log_sum_exp" (missing ones are null)."""
        chosen = configuration.encode() if configuration else None
        tensors = [self.tensor(name, pointers.get(name, 0)) for name in "QKVO"]
        sizes = [self.B, self.Hq, self.Hkv, self.Nq, self.Nkv, self.d_head, abi.DTYPES[self.dtype], int(self.causal)]
        log_sum_exp = pointers.get("log_sum_exp", 0)
        return abi.FlashParams(*tensors, *sizes, self.scale, log_sum_exp, workspace, workspace_bytes, chosen)

    def to_bhnd(self, array: np.ndarray) -> np.ndarray:
        """A view with axes (B, heads, rows, d) of an array in this problem's layout."""
        return array if self.layout == "bhnd" else array.transpose(0, 2, 1, 3)

    def to_bhnd_tensor(self, tensor):
        """The same for a tensor of PyTorch."""
        return tensor if self.layout == "bhnd" else tensor.transpose(1, 2)

    def __str__(self) -> str:
        heads = f"H={self.Hq}" if self.Hq == self.Hkv else f"Hq={self.Hq} Hkv={self.Hkv}"
        rows = f"N={self.Nq}" if self.Nq == self.Nkv else f"Nq={self.Nq} Nkv={self.Nkv}"
        causal = " causal" if self.causal else ""
        layout = "" if self.layout == "bhnd" else f" {self.layout}"
        scale = "" if self.scale == 1 / math.sqrt(self.d_head) else f" scale={self.scale:g}"
        return f"{self.dtype} B={self.B} {heads} {rows} d={self.d_head}{causal}{scale}{layout}"
