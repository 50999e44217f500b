"""Inputs and memory of the benchmark of several GPUs. A whole sequence of 256k rows is too long to be made anew for
each head: there is a block of N random rows for each of Q, K and V, and a head has these rows from some row on, round
the end. So any rows of any head are copies on the device, and the host knows every number."""

import ctypes

import numpy as np

from flashladder.core import abi
from flashladder.core.dtypes import from_bits, to_bits
from flashladder.core.ring_problem import RingProblem
from flashladder.running.cudart import NON_BLOCKING, Cudart

INPUTS = ("Q", "K", "V")


def first_row(name: str, head: int, N: int) -> int:  # noqa: N803 - the problem's name
    """The block's row with which a head begins."""
    return (head * 10007 + 4099 * INPUTS.index(name)) % N


class Blocks:
    """The random rows, on the host and on each device."""

    def __init__(self, cudart: Cudart, devices: int, rows: int, d_head: int, dtype: str):
        self.cudart, self.rows, self.d_head, self.dtype = cudart, rows, d_head, dtype
        rng = np.random.default_rng(rows)
        self.bits = {name: to_bits(rng.standard_normal((rows, d_head), np.float32), dtype) for name in INPUTS}
        self.values: dict[str, np.ndarray] = {}
        self.pointers = []
        for device in range(devices):
            cudart.call("cudaSetDevice", device)
            self.pointers.append({name: cudart.malloc(bits.nbytes) for name, bits in self.bits.items()})
            for name, bits in self.bits.items():
                cudart.upload(self.pointers[device][name], bits)

    def attention_row(self, head: int, kv_head: int, row: int, keys: int, scale: float) -> np.ndarray:
        """O of one row of Q that sees so many keys, with a softmax in float64. The block's products are turned to the
        head's order, and not its rows, which are many."""
        values = {name: self._values(name) for name in INPUTS}
        query = values["Q"][(first_row("Q", head, self.rows) + row) % self.rows]
        scores = np.roll(values["K"] @ query, -first_row("K", kv_head, self.rows)).astype(np.float64)[:keys] * scale
        weights = np.zeros(self.rows)
        weights[:keys] = np.exp(scores - scores.max())
        turned = np.roll(weights / weights.sum(), first_row("V", kv_head, self.rows))
        return turned.astype(np.float32) @ values["V"]

    def _values(self, name: str) -> np.ndarray:
        if name not in self.values:
            self.values[name] = from_bits(self.bits[name], self.dtype).astype(np.float32)
        return self.values[name]

    def fill(self, to: int, device: int, name: str, heads: list[int], pieces: list[tuple[int, int]]) -> None:
        """Queues that [heads, rows of the pieces, d_head] is written at `to`, a pointer of the current device."""
        row_bytes, source = 2 * self.d_head, self.pointers[device][name]
        for head in heads:
            begin = first_row(name, head, self.rows)
            for first, rows in pieces:
                while rows:
                    at = (begin + first) % self.rows
                    run = min(rows, self.rows - at)
                    self.cudart.copy_on_device(to, source + at * row_bytes, run * row_bytes)
                    to, first, rows = to + run * row_bytes, first + run, rows - run

    def free(self) -> None:
        for device, pointers in enumerate(self.pointers):
            self.cudart.call("cudaSetDevice", device)
            for pointer in pointers.values():
                self.cudart.free(pointer)


class Streams:
    """Two streams of each device, and events that line up and time what all devices do."""

    def __init__(self, cudart: Cudart, ranks: int):
        self.cudart, self.main, self.copies, self.begun, self.start, self.stop = cudart, [], [], [], [], []
        for rank in range(ranks):
            cudart.call("cudaSetDevice", rank)
            self.main.append(cudart.stream(NON_BLOCKING))
            self.copies.append(cudart.stream(NON_BLOCKING))
            for events in (self.begun, self.start, self.stop):
                events.append(cudart.event())

    def record(self, events: list) -> None:
        for rank, (event, stream) in enumerate(zip(events, self.main, strict=True)):
            self.cudart.call("cudaSetDevice", rank)
            self.cudart.record(event, stream)

    def begin(self) -> None:
        """All devices begin what comes next together."""
        self.record(self.begun)
        for stream in self.main:
            for event in self.begun:
                self.cudart.call("cudaStreamWaitEvent", stream, event, 0)
        self.record(self.start)

    def end(self) -> list[float]:
        """The milliseconds since begin() of each device; waits for them."""
        self.record(self.stop)
        for event in self.stop:
            self.cudart.wait(event)
        return [self.cudart.elapsed_ms(*both) for both in zip(self.start, self.stop, strict=True)]

    def synchronize(self) -> None:
        for rank in range(len(self.main)):
            self.cudart.call("cudaSetDevice", rank)
            self.cudart.synchronize()


class Share:
    """Q, K, V and O of some heads and pieces on one device, without gaps, and scratch."""

    def __init__(self, blocks: Blocks, device: int, heads: tuple[list[int], list[int]], pieces: list[tuple[int, int]]):
        self.cudart, self.device, self.pieces, self.heads = blocks.cudart, device, pieces, heads
        self.rows, self.d_head = sum(rows for _, rows in pieces), blocks.d_head
        self.cudart.call("cudaSetDevice", device)
        counts = {"Q": len(heads[0]), "K": len(heads[1]), "V": len(heads[1]), "O": len(heads[0])}
        self.head_bytes = 2 * self.rows * self.d_head
        self.bytes = {name: count * self.head_bytes for name, count in counts.items()}
        self.pointers = {name: self.cudart.malloc(size) for name, size in self.bytes.items()}
        for name in INPUTS:
            blocks.fill(self.pointers[name], device, name, heads[name != "Q"], pieces)
        self.poison()
        self.scratch = 0

    def poison(self) -> None:
        self.cudart.call("cudaSetDevice", self.device)
        self.cudart.fill(self.pointers["O"], 0xFF, self.bytes["O"])

    def tensor(self, name: str) -> abi.FlashTensor:
        head = self.rows * self.d_head
        return abi.FlashTensor(self.pointers[name], self.bytes[name] // 2, head, self.d_head)

    def make_scratch(self, size: int) -> None:
        self.cudart.call("cudaSetDevice", self.device)
        if size:
            self.scratch = self.cudart.malloc(size)
            self.cudart.fill(self.scratch, 0, size)

    def output(self, index: int) -> np.ndarray:
        """O of the head with that place among the heads, its bit patterns."""
        self.cudart.call("cudaSetDevice", self.device)
        self.cudart.synchronize()
        found = np.empty((self.rows, self.d_head), np.uint16)
        self.cudart.download(found, self.pointers["O"] + index * self.head_bytes)
        return found

    def free(self) -> None:
        self.cudart.call("cudaSetDevice", self.device)
        for pointer in (*self.pointers.values(), *((self.scratch,) if self.scratch else ())):
            self.cudart.free(pointer)


def forward_params(share: Share, problem: RingProblem, causal: bool) -> abi.FlashParams:
    """Attention of all rows of a share."""
    tensors = (share.tensor(name) for name in "QKVO")
    sizes = (1, len(share.heads[0]), len(share.heads[1]), share.rows, share.rows, share.d_head)
    return abi.FlashParams(*tensors, *sizes, abi.TYPE_NUMBERS[problem.dtype], int(causal), problem.scale)


def ring_ranks(shares: list[Share], streams: Streams, scratch_bytes: list[int]) -> ctypes.Array:
    """FlashRank of each share."""
    made = []
    for rank, share in enumerate(shares):
        tensors = (share.tensor(name) for name in "QKVO")
        both = (streams.main[rank].value, streams.copies[rank].value)
        made.append(abi.FlashRank(share.device, *both, *tensors, None, share.scratch, scratch_bytes[rank]))
    return (abi.FlashRank * len(made))(*made)
