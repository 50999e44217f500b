"""What goes together in a configuration: named rules, each with its reason in a sentence.

A rule refuses what the kernel cannot do, and what would cost something for nothing. What no rule refuses builds,
launches and computes attention; tests draw samples of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from flashladder.core.abi import DTYPES
from flashladder.tuning.configuration import Configuration

HEAD_DIMS = (64, 128)
REGISTERS_A_THREAD = 255  # that an instruction can name
REGISTERS_BESIDE = 32  # beside O and S at the least: fragments, addresses, each row's maximum and sum


@dataclass(frozen=True)
class Device:
    """What the rules ask of a GPU."""

    name: str = "compute capability 9.0"
    shared_a_block: int = 227 * 1024  # bytes that a block may have
    shared_a_multiprocessor: int = 228 * 1024  # bytes; each block takes 1 KB more than it asks for
    threads_a_multiprocessor: int = 2048
    registers_a_multiprocessor: int = 65536


@dataclass(frozen=True)
class Rule:
    """refuses(configuration, device): whether the rule forbids it."""

    name: str
    reason: str
    refuses: Callable[[Configuration, Device], bool]


def threads(c: Configuration) -> int:
    """Of a block."""
    return 32 * c.warps


def shared_bytes(c: Configuration) -> int:
    """Of a block: Q, and the buffers of K and of V."""
    return (c.Br + 2 * c.kv_stages * c.Bc) * c.d_head * 2


def accumulators(c: Configuration) -> int:
    """Registers of a thread that hold O, and S beside it: fp32, 32 lanes."""
    return c.Br // c.warps * (c.d_head + c.Bc) // 32


def blocks_by_shared_memory(c: Configuration, device: Device) -> int:
    """Blocks that a multiprocessor's shared memory holds."""
    return device.shared_a_multiprocessor // (shared_bytes(c) + 1024)


# A rule about one field looks at the others only where these are in order, so that each mistake has one name.


def _whole(a: int, b: int) -> bool:
    return a > 0 and b > 0 and a % b == 0


def _rows_at_once(c: Configuration) -> int:
    """Rows of a tile that all threads of a block copy at once, 8 elements each."""
    return 8 * threads(c) // c.d_head if c.d_head in HEAD_DIMS else 0


def _copied_in_rounds(c: Configuration) -> bool:
    return all(_whole(rows, _rows_at_once(c)) for rows in (c.Br, c.Bc))


def _in_groups(load: int, pieces: int) -> bool:
    """Whether fragments of 8 elements come whole (0), or by steps of 2, in groups that divide them."""
    return load == 0 or load % 2 == 0 and _whole(pieces, load)


def _spills(c: Configuration, registers: int) -> bool:
    in_order = 1 <= c.warps <= 32 and _whole(c.Br, 16 * c.warps)
    return in_order and accumulators(c) + REGISTERS_BESIDE > registers


def _registers_left(c: Configuration, device: Device) -> int:
    """A thread, where as many blocks are resident as are asked for."""
    blocks = max(c.resident_blocks, 1) * max(threads(c), 1)
    return min(device.registers_a_multiprocessor // blocks, REGISTERS_A_THREAD)


RULES: tuple[Rule, ...] = (
    Rule(
        "types",
        "The kernel is built for fp16 and bf16, d_head 64 and 128.",
        lambda c, _: c.dtype not in DTYPES or c.d_head not in HEAD_DIMS,
    ),
    Rule("threads", "A block has 1 to 32 warps, 1,024 threads.", lambda c, _: not 1 <= c.warps <= 32),
    Rule(
        "warp_rows",
        "A warp works on pieces of 16 rows of Q, so Br is a multiple of 16 times the warps.",
        lambda c, _: c.warps > 0 and not _whole(c.Br, 16 * c.warps),
    ),
    Rule(
        "tile_rows", "PV goes over the rows of V by 16, so Bc is a multiple of 16.", lambda c, _: not _whole(c.Bc, 16)
    ),
    Rule(
        "copy_rounds",
        "All threads copy a tile in whole rounds, so the rows that they bring at once divide Br and Bc.",
        lambda c, _: c.warps > 0 and c.d_head in HEAD_DIMS and not _copied_in_rounds(c),
    ),
    Rule(
        "load_Q",
        "Q's fragments come whole (0) or by steps of mma, 2 each, in groups that divide d_head / 8.",
        lambda c, _: not _in_groups(c.load_Q, c.d_head // 8),
    ),
    Rule(
        "load_K",
        "K's fragments come whole (0), by one ldmatrix (1), or by steps of 2 in groups that divide d_head / 8.",
        lambda c, _: c.load_K != 1 and not _in_groups(c.load_K, c.d_head // 8),
    ),
    Rule(
        "load_V",
        "V's fragments come whole (0), by one ldmatrix (1), or by steps of 2 in groups that divide Bc / 8.",
        lambda c, _: c.load_V != 1 and not _in_groups(c.load_V, c.Bc // 8),
    ),
    Rule(
        "Q_loaded_once",
        "Q in registers is loaded whole before the loop, so load_Q has nothing to say and is 0.",
        lambda c, _: c.Q_in_registers and c.load_Q != 0,
    ),
    Rule(
        "stages",
        "There are one or two buffers for tiles, and one or two for fragments.",
        lambda c, _: c.kv_stages not in (1, 2) or c.fragment_stages not in (1, 2),
    ),
    Rule(
        "eager_needs_async",
        "A tile that is requested early must not stand in registers until it is used: cp.async brings it past them.",
        lambda c, _: c.eager and not c.async_copy,
    ),
    Rule(
        "buffers_need_eager",
        "A second buffer for tiles is filled while the first is read, so the next tile must be requested early.",
        lambda c, _: c.kv_stages == 2 and not c.eager,
    ),
    Rule(
        "lean_needs_async",
        "The addresses that are computed once are those of cp.async.",
        lambda c, _: c.lean and not c.async_copy,
    ),
    Rule(
        "lean_needs_rounds_of_8",
        "One swizzled address serves all rows that a thread copies only if they are a multiple of 8 apart.",
        lambda c, _: c.lean and c.swizzled and _rows_at_once(c) % 8 != 0,
    ),
    Rule(
        "fragment_buffers_need_groups",
        "A second buffer for fragments is filled while the first is multiplied, so K or V must come in several loads.",
        lambda c, _: c.fragment_stages == 2 and not (0 < c.load_K < c.d_head // 8 or 0 < c.load_V < c.Bc // 8),
    ),
    Rule(
        "shared_memory",
        "Q and the buffers of K and V fit into a block's shared memory.",
        lambda c, device: shared_bytes(c) > device.shared_a_block,
    ),
    Rule(
        "resident_shared_memory",
        "As many blocks as are asked for fit into a multiprocessor's shared memory.",
        lambda c, device: c.resident_blocks > 1 and c.resident_blocks > blocks_by_shared_memory(c, device),
    ),
    Rule(
        "resident_threads",
        "As many blocks as are asked for have their threads on a multiprocessor.",
        lambda c, device: (
            c.resident_blocks < 0
            or c.resident_blocks > 1
            and c.resident_blocks * threads(c) > device.threads_a_multiprocessor
        ),
    ),
    Rule(
        "accumulators",
        f"O, S beside it and {REGISTERS_BESIDE} more fit into a thread's 255 registers; else each turn spills them.",
        lambda c, _: _spills(c, REGISTERS_A_THREAD),
    ),
    Rule(
        "resident_registers",
        "With as many blocks as are asked for, a thread's share of the registers still holds O, S and 32 more.",
        lambda c, device: not _spills(c, REGISTERS_A_THREAD) and _spills(c, _registers_left(c, device)),
    ),
)


def refusals(configuration: Configuration, device: Device = Device()) -> list[Rule]:
    """The rules that the configuration breaks; empty where it can be built and run."""
    return [rule for rule in RULES if rule.refuses(configuration, device)]
