"""A problem of the stages for several GPUs: one sequence, divided over ranks. Its inputs and outputs are those of the
whole sequence; which rows a rank has, the stage tells (pieces: pairs of a first row and a number of rows)."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from flashladder.core import abi
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem

Pieces = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class RingProblem(Problem):
    """Nq rows of Q, K and V. A rank's Q and O lie in the problem's layout, its K and V without gaps."""

    ranks: int = 2

    def __post_init__(self):
        super().__post_init__()
        if self.Nq != self.Nkv:
            raise FlashLadderError(f"one sequence has as many keys as queries; Nq is {self.Nq} and Nkv {self.Nkv}")
        if self.ranks < 1:
            raise FlashLadderError(f"ranks must be at least 1; it is {self.ranks}")

    def of_rows(self, rows: int, layout: str = "") -> Problem:
        """As a forward problem with so many rows of each tensor."""
        values = {field.name: getattr(self, field.name) for field in fields(Problem)}
        return replace(Problem(**values), Nq=rows, Nkv=rows, layout=layout or self.layout)

    def rank_layout(self, tensor: str, rows: int) -> Problem:
        """The forward problem by which a rank's tensor lies in memory."""
        return self.of_rows(rows, "bhnd" if tensor in "KV" else "")

    def rows_of(self, array: np.ndarray, pieces: Pieces) -> np.ndarray:
        """A rank's rows, (B, heads, L, d), of a tensor in the problem's layout."""
        whole = self.to_bhnd(array)
        return np.concatenate([whole[:, :, first : first + rows] for first, rows in pieces], axis=2)

    def put_rows(self, whole: np.ndarray, pieces: Pieces, own: np.ndarray) -> None:
        """Writes a rank's rows, (B, heads, L, ...), into an array with axes (B, heads, N, ...)."""
        done = 0
        for first, rows in pieces:
            whole[:, :, first : first + rows] = own[:, :, done : done + rows]
            done += rows

    def ring_params(self, forward: str | None = None, configuration: str | None = None) -> abi.FlashRingParams:
        """The C struct."""
        words = [word.encode() if word else None for word in (forward, configuration)]
        sizes = [self.ranks, self.B, self.Hq, self.Hkv, self.Nq, self.d_head, abi.TYPE_NUMBERS[self.dtype]]
        return abi.FlashRingParams(*sizes, int(self.causal), self.scale, *words, abi.FlashRingMark(), None)

    def __str__(self) -> str:
        return f"{super().__str__()} P={self.ranks}"
