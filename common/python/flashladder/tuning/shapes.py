"""Configurations of the kernel of stage shapes: how high its tiles are, how many buffers they have, whether P comes in
parts, where Q lies, how many blocks share a multiprocessor.

A configuration is a frozen dataclass, one readable line that is parsed back exactly, and an aggregate of C++:

    >>> configuration = parse("(BF16, 64, 192, 128, 16): kv_buffers_3+turns+registers_32_160")
    >>> configuration.consumers, str(configuration), configuration.cpp()
    (3, '(BF16, 64, 192, 128, 16): kv_buffers_3+turns+registers_32_160', '{192, 128, 3, 1, true, false, 32, 160, 1}')

RULES say what goes together; space() is what `make tune ARGS="--stage shapes"` looks at, before the rules.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import product

from flashladder.core.abi import DTYPES
from flashladder.core.errors import FlashLadderError
from flashladder.core.expression import evaluate
from flashladder.ladder import stages
from flashladder.tuning.configuration import Aggregate
from flashladder.tuning.rules import HEAD_DIMS, REGISTERS_A_THREAD, Device, Rule

S_COLUMNS = (128,)  # of the wgmma in wgmma.cuh that have A and B in shared memory
BOX_ROWS = 256  # that one TMA copy brings at most
SYSTEM_BYTES = 1024  # of each block's shared memory
DEVICE = Device()  # compute capability 9.0
# Of a thread of the producer and of a consumer, by rows of Q and blocks on a multiprocessor: what a launch of so many
# threads gets, shared out.
REGISTERS = {
    (128, 1): ((24, 240),),
    (192, 1): ((32, 160),),
    (256, 1): ((24, 112),),
    (64, 2): ((24, 232), (24, 160)),  # more than it needs, and what it needs: ptxas arranges them differently
    (128, 2): ((24, 104),),
}
REGISTERS_BESIDE = 24  # beside S, P and O at the least: descriptors, counters, each row's reference and sum
BESIDE_PARTS = 16  # more with P in parts: with 8 more ptxas serializes wgmma, with 24 more it does not
EXAMPLE = "(BF16, 128, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240"


@dataclass(frozen=True)
class Configuration(Aggregate):
    """The fields of the struct in the stage's kernel.cu, in its order, after the type and the head dim."""

    dtype: str = "bf16"
    d_head: int = 128
    Br: int = 128  # rows of Q a block, 64 for each consumer warpgroup
    Bc: int = 128  # rows of K and V a tile
    kv_stages: int = 2  # buffers for tiles of K, and of V
    parts: int = 1  # of P
    turns: bool = False  # consumers take turns at the tensor cores
    Q_in_registers: bool = False  # each warp's rows, for all of a query tile
    producer_registers: int = 24  # a thread
    consumer_registers: int = 240
    blocks: int = 1  # that a multiprocessor holds at a time

    @property
    def consumers(self) -> int:
        """Warpgroups that compute."""
        return self.Br // 64

    @property
    def threads(self) -> int:
        """Of a block: the consumers and the producer."""
        return 128 * (self.consumers + 1)

    @property
    def shared_bytes(self) -> int:
        """Of a block, as stage.toml says: tiles of Q, K, V and O, mbarriers, and which query tile lies where."""
        names = {field.name: int(getattr(self, field.name)) for field in fields(self)[1:]}
        return evaluate(stages.get("shapes").data["launch"][-1]["shared_bytes"], names)

    @property
    def launch_registers(self) -> int:
        """A thread's at the launch, before setmaxnreg: as many as there are for so many threads, by eights."""
        threads = self.threads * self.blocks
        return min(65536 // threads // 8 * 8, REGISTERS_A_THREAD) if threads > 0 else 0

    @property
    def accumulators(self) -> int:
        """Registers of a consumer's thread that hold S and O, fp32, P beside them, and Q if it lies there."""
        return self.Bc // 2 + self.d_head // 2 + self.Bc // 4 + (self.d_head // 4 if self.Q_in_registers else 0)

    def __str__(self) -> str:
        words = [f"kv_buffers_{self.kv_stages}"]
        words += [f"parts_{self.parts}"] if self.parts != 1 else []
        words += ["turns"] if self.turns else []
        words += ["q_in_registers"] if self.Q_in_registers else []
        words += [f"registers_{self.producer_registers}_{self.consumer_registers}"]
        words += [f"blocks_{self.blocks}"] if self.blocks != 1 else []
        tile = f"{self.Br}, {self.Bc}, {self.threads // 32}"
        return f"({self.dtype.upper()}, {self.d_head}, {tile}): {'+'.join(words)}"


_SHORT_FORM = re.compile(
    r"\s*\((\w+),\s*(\d+),\s*(\d+),\s*(\d+),\s*(\d+)\)\s*:\s*"
    r"kv_buffers_(\d+)(?:\+parts_(\d+))?(\+turns)?(\+q_in_registers)?\+registers_(\d+)_(\d+)(?:\+blocks_(\d+))?\s*"
)


def parse(text: str) -> Configuration:
    """The configuration of a short form, its words in their order."""
    match = _SHORT_FORM.fullmatch(text)
    if not match or match[1].lower() not in DTYPES:
        raise FlashLadderError(f"'{text}' is no configuration of stage shapes; one is written like '{EXAMPLE}'.")
    dtype, d_head, Br, Bc, warps, kv_stages, parts, *words, producer, consumer, blocks = match.groups()
    numbers = map(int, (d_head, Br, Bc, kv_stages, parts or 1))
    switches = (word is not None for word in words)
    found = Configuration(dtype.lower(), *numbers, *switches, int(producer), int(consumer), int(blocks or 1))
    if found.threads != 32 * int(warps):
        raise FlashLadderError(
            f"'{text}' says {warps} warps; with Br = {found.Br} a block has {found.threads // 32}: "
            "four for each 64 rows, and the producer's four."
        )
    return found


# ---- rules ----

# A rule about one field looks at the others only where these are in order, so that each mistake has one name.


def _rows_in_order(c: Configuration) -> bool:
    return c.Br > 0 and c.Br % 64 == 0


def _registers_in_order(c: Configuration) -> bool:
    return all(24 <= one <= 256 and one % 8 == 0 for one in (c.producer_registers, c.consumer_registers))


def _shared_out(c: Configuration) -> int:
    """Registers of a block when all have asked for theirs."""
    return 128 * (c.consumers * c.consumer_registers + c.producer_registers)


RULES: tuple[Rule, ...] = (
    Rule(
        "types",
        "The kernel is built for fp16 and bf16, d_head 64 and 128.",
        lambda c, _: c.dtype not in DTYPES or c.d_head not in HEAD_DIMS,
    ),
    Rule("rows", "wgmma gives each consumer 64 rows, so Br is a multiple of 64.", lambda c, _: not _rows_in_order(c)),
    Rule("box_rows", f"One TMA copy brings a tile of Q, and at most {BOX_ROWS} rows.", lambda c, _: c.Br > BOX_ROWS),
    Rule(
        "columns",
        f"wgmma.cuh has S with {' or '.join(map(str, S_COLUMNS))} columns alone.",
        lambda c, _: c.Bc not in S_COLUMNS,
    ),
    Rule(
        "stages",
        "The next tile of K and V is under way while one is read: at least two buffers.",
        lambda c, _: c.kv_stages < 2,
    ),
    Rule("parts", "P comes whole or in two parts.", lambda c, _: c.parts not in (1, 2)),
    Rule(
        "turns_need_two",
        "Turns are taken by two consumers or more.",
        lambda c, _: c.turns and 0 < c.Br < 128,
    ),
    Rule(
        "turns_need_whole_P",
        "In two parts the products are issued between exponentials: there is no turn that would hold them together.",
        lambda c, _: c.turns and c.parts == 2,
    ),
    Rule(
        "setmaxnreg",
        "setmaxnreg takes multiples of 8 from 24 to 256.",
        lambda c, _: not _registers_in_order(c),
    ),
    Rule(
        "given_and_taken",
        "The producer gives registers away and the consumers take some: setmaxnreg.dec may not raise, .inc not lower.",
        lambda c, _: (
            _rows_in_order(c)
            and _registers_in_order(c)
            and c.blocks > 0
            and not c.producer_registers <= c.launch_registers <= c.consumer_registers
        ),
    ),
    Rule(
        "register_file",
        "Consumers and producer share what they had at the launch: at most 65,536 registers a multiprocessor.",
        lambda c, device: (
            _rows_in_order(c)
            and _registers_in_order(c)
            and c.blocks > 0
            and _shared_out(c) > min(c.launch_registers * c.threads, device.registers_a_multiprocessor // c.blocks)
        ),
    ),
    Rule(
        "accumulators",
        f"S, P, O, Q if it lies there, and {REGISTERS_BESIDE} more fit into a consumer's registers, with P in parts "
        f"{REGISTERS_BESIDE + BESIDE_PARTS}; else each turn spills them, or wgmma waits for each other.",
        lambda c, _: (
            _registers_in_order(c)
            and c.accumulators + REGISTERS_BESIDE + (BESIDE_PARTS if c.parts == 2 else 0)
            > min(c.consumer_registers, REGISTERS_A_THREAD)
        ),
    ),
    Rule(
        "shared_memory",
        "Tiles of Q, K, V and O fit into a block's shared memory.",
        lambda c, device: c.shared_bytes > device.shared_a_block,
    ),
    Rule("blocks", "A multiprocessor holds at least one block.", lambda c, _: c.blocks < 1),
    Rule(
        "resident_shared_memory",
        "The blocks of a multiprocessor share its shared memory; the system takes 1 KiB of each.",
        lambda c, device: (
            c.blocks > 1
            and c.shared_bytes <= device.shared_a_block
            and c.blocks * (c.shared_bytes + SYSTEM_BYTES) > device.shared_a_multiprocessor
        ),
    ),
)  # fmt: skip


def refusals(configuration: Configuration, device: Device = DEVICE) -> list[Rule]:
    """The rules that the configuration breaks; empty where it can be built and run."""
    return [rule for rule in RULES if rule.refuses(configuration, device)]


def space(dtype: str, d_head: int) -> Iterator[Configuration]:
    """All that is looked at, before the rules."""
    tiles = [(Br, blocks, *registers) for (Br, blocks), each in REGISTERS.items() for registers in each]
    switches = (False, True)
    for (Br, blocks, *registers), kv_stages, parts, *words in product(tiles, (2, 3, 4), (1, 2), switches, switches):
        yield Configuration(dtype, d_head, Br, 128, kv_stages, parts, *words, *registers, blocks)
