"""A problem of the decode stages: a few query rows of each sequence against its cache of keys and values.

Its inputs are those of core/problem.py, with "lengths" and, of a cache in pages, "block_table", int32 both. K and V
have a NaN wherever no key lies before its sequence's length, and page numbers that stand behind it are no page's.
"""

from dataclasses import dataclass

import numpy as np

from flashladder.core import abi
from flashladder.core.dtypes import to_bits
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem

NO_KEY = 0xFFFF  # a NaN in both types
NO_PAGE = 1 << 29


@dataclass(frozen=True)
class DecodeProblem(Problem):
    """Nkv is the cache's room for a sequence. The rows of Q are the last ones of their sequence."""

    PARAMS = abi.FlashDecodeParams

    Nq: int = 1
    Nkv: int = 256
    lengths: tuple[int, ...] = ()  # of each sequence; (): each Nkv
    page_size: int = 0  # 0: a sequence's cache is one piece

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "lengths", tuple(self.lengths) or (self.Nkv,) * self.B)
        if len(self.lengths) != self.B or not all(0 <= length <= self.Nkv for length in self.lengths):
            told = ",".join(map(str, self.lengths))
            raise FlashLadderError(f"lengths {told}: for each sequence ({self.B}) one is wanted, from 0 to {self.Nkv}")

    @property
    def equal_lengths(self) -> bool:
        """Whether each sequence fills its room, in one piece: a stage may then be called without lengths."""
        return set(self.lengths) == {self.Nkv} and not self.page_size

    @property
    def Nmax(self) -> int:  # noqa: N802 - the ABI's name
        return self.Nkv

    @property
    def max_pages(self) -> int:
        """Of a sequence."""
        return -(-self.Nkv // self.page_size) if self.page_size else 0

    @property
    def pages(self) -> int:
        """Those of all sequences, and one that no sequence has."""
        return sum(self._pages_of(b) for b in range(self.B)) + 1 if self.page_size else 0

    def _pages_of(self, b: int) -> int:
        return -(-self.lengths[b] // self.page_size)

    def _paged(self, tensor: str) -> bool:
        return bool(self.page_size) and tensor in "KV"

    def shape(self, tensor: str) -> tuple[int, int, int, int]:
        """As they lie in memory; K and V in pages: (pages, page_size, Hkv, d)."""
        return (self.pages, self.page_size, self.Hkv, self.d_head) if self._paged(tensor) else super().shape(tensor)

    def bytes(self, tensor: str) -> int:
        return np.dtype(self.bits_type(tensor)).itemsize * self.shape(tensor)[0] * self.steps(tensor)[0]

    def tensor(self, name: str, pointer: int) -> abi.FlashTensor:
        if not self._paged(name):
            return super().tensor(name, pointer)
        page, row, head, _ = self.steps(name)
        return abi.FlashTensor(pointer, page, head, row)

    def block_table(self, seed: int = 0) -> np.ndarray:
        """(B, max_pages): the pages of all sequences in a random order."""
        order = np.random.default_rng((seed, 2)).permutation(self.pages)
        table, taken = np.full((self.B, self.max_pages), NO_PAGE, np.int32), 0
        for b in range(self.B):
            own = self._pages_of(b)
            table[b, :own] = order[taken : taken + own]
            taken += own
        return table

    def cache_rows(self, inputs: dict[str, np.ndarray], name: str, b: int) -> np.ndarray:
        """K or V of a sequence up to its length, (Hkv, length, d), as bit patterns."""
        if not self.page_size:
            return self.to_bhnd(inputs[name])[b, :, : self.lengths[b]]
        pages = inputs[name][inputs["block_table"][b, : self._pages_of(b)]]
        return pages.reshape(-1, self.Hkv, self.d_head)[: self.lengths[b]].transpose(1, 0, 2)

    def random(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Standard normal Q, K and V as bit patterns."""
        generator = np.random.default_rng(seed)
        found = {"Q": to_bits(generator.standard_normal(self.shape("Q"), np.float32), self.dtype)}
        found["lengths"] = np.array(self.lengths, np.int32)
        if self.page_size:
            found["block_table"] = self.block_table(seed)
        for name in "KV":
            cache = np.full(self.shape(name), NO_KEY, np.uint16)
            for b, length in enumerate(self.lengths):
                values = generator.standard_normal((self.Hkv, length, self.d_head), np.float32)
                self._place(found, cache, b, to_bits(values, self.dtype))
            found[name] = cache
        return found

    def _place(self, inputs: dict[str, np.ndarray], cache: np.ndarray, b: int, bits: np.ndarray) -> None:
        """Writes a sequence's rows, (Hkv, length, d), where cache_rows() finds them."""
        if not self.page_size:
            self.to_bhnd(cache)[b, :, : self.lengths[b]] = bits
            return
        for number, page in enumerate(inputs["block_table"][b, : self._pages_of(b)]):
            rows = bits[:, number * self.page_size : (number + 1) * self.page_size]
            cache[page, : rows.shape[1]] = rows.transpose(1, 0, 2)

    def cache_bytes(self) -> int:
        """Of the keys and values that are before the lengths: what has to be read."""
        return 2 * 2 * self.Hkv * self.d_head * sum(self.lengths)

    def params(self, pointers: dict[str, int], *more, **others) -> abi.FlashDecodeParams:
        """As Problem.params(), with "lengths" and "block_table" among the pointers. A description needs none, but for
        whether there are such arrays: those of a problem that needs them are not null there."""
        needed = {"lengths": 0 if self.equal_lengths else 16, "block_table": 16 if self.page_size else 0}
        return super().params(needed | pointers, *more, **others)

    def __str__(self) -> str:
        lengths = f" lengths={list(self.lengths)}" if set(self.lengths) != {self.Nkv} else ""
        return super().__str__() + lengths + (f" pages of {self.page_size}" if self.page_size else "")
