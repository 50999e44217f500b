"""What a configuration takes, predicted by formulas from its fields; what ptxas and the simulator say stands beside it.

Counts are of one block and one tile of K and V, all warps together: what the loop over K and V costs in a turn. A warp
has rows = Br / warps rows of Q, so rows / 16 pieces of 16; S has Bc / 8 pieces of 8 columns, O has d_head / 8.

    mma            rows/16 · (Bc/8 · d_head/16 for S = QKᵀ  +  d_head/8 · Bc/16 for O += PV)      each warp
    ldmatrix       Bc/16 · d_head/16 of K, as many of V, and rows/16 · d_head/16 of Q             each warp
                   unless Q stays in registers
    copies         2 · Bc · d_head / 8 pieces of 16 bytes, 32 in an instruction
    wavefronts     4 for 32 lanes of 16 bytes; of an ldmatrix 8 times as many where rows are not swizzled, since its
                   8 rows of 128 or 256 bytes begin in the same bank
    ex2            rows · Bc / 32, and two rows' rescaling in each piece                          each warp
    FP32           for each of the rows · Bc / 32 elements of S 5 in PTX (4 with the fast softmax), d_head · rows / 32
                   to rescale O, and 7 (6) for each row                                           each warp

These are what the simulator counts (FP32: where each tile rescales O). Integers, addresses, moves and branches are not
predicted. Registers are: by a formula that was fitted to what ptxas says, with an error that
tests/python/test_tuning_model.py states.
"""

from dataclasses import dataclass
from pathlib import Path

from flashladder.core.device import Device as Where
from flashladder.core.problem import Problem
from flashladder.running.job import Options, run_library
from flashladder.tuning import rules
from flashladder.tuning.configuration import Configuration
from warpsim import counters

DEVICE = rules.Device()  # compute capability 9.0
# Clocks of a multiprocessor's matrix units for one mma.m16n8k16 of a warp: 2,048 products and sums, of which the
# A100's and the H100's data sheets promise 1,024 and 2,048 a clock. By compute capability; the next lower counts.
MMA_CLOCKS = {80: 2.0, 90: 1.0}
SPECIAL_CLOCKS = 2.0  # 16 results a clock (CUDA C++ Programming Guide, arithmetic instructions): 32 lanes take two
ISSUED_A_CLOCK = 4  # one instruction from each of the four schedulers

# What predicts the registers: a constant, and registers for each that the arrays O, S and Q (where it stays) need, and
# if the compiler is promised a number of resident blocks. Least squares over 131 configurations with which ptxas was
# free to choose; docs/results/sm_90-registers.json is another sample, which tests hold it to. Spills it overstates: it
# predicted all of the 67 that came, and 30 that did not; the bytes are a rough guess.
REGISTERS = {"always": 31.0, "O": 1.25, "S": 1.36, "Q": 0.66, "promised": 17.5}


@dataclass(frozen=True)
class Arrays:
    """Registers of 32 bits in each thread that hold S and O (float32) and, where they stay, Q's fragments."""

    O: int  # noqa: E741 (the output, as everywhere here)
    S: int
    Q: int


def arrays(c: Configuration) -> Arrays:
    rows = c.Br // c.warps
    return Arrays(rows * c.d_head // 32, rows * c.Bc // 32, rows * c.d_head // 64 if c.Q_in_registers else 0)


def register_limit(c: Configuration) -> int:
    """Registers that the compiler may give a thread: 255, or what the promised blocks leave; whole eights."""
    blocks = max(c.resident_blocks, 1)
    return min(
        rules.REGISTERS_A_THREAD, rules.Device.registers_a_multiprocessor // (blocks * rules.threads(c)) // 8 * 8
    )


def registers_wanted(c: Configuration) -> int:
    """Registers that a thread would take if it could have any number."""
    held = arrays(c)
    share = REGISTERS
    sized = share["O"] * held.O + share["S"] * held.S + share["Q"] * held.Q
    return round(share["always"] + sized + (share["promised"] if c.resident_blocks else 0))


def registers(c: Configuration) -> int:
    """Registers of a thread; what is wanted beyond register_limit() is spilled."""
    return min(registers_wanted(c), register_limit(c))


def resident_blocks(c: Configuration, registers_a_thread: int) -> int:
    """Blocks that a multiprocessor holds at once: by shared memory, threads, and registers (given to warps by 8)."""
    threads = rules.threads(c)
    by_registers = DEVICE.registers_a_multiprocessor // (-(-registers_a_thread // 8) * 8 * threads)
    by_threads = DEVICE.threads_a_multiprocessor // threads
    return min(rules.blocks_by_shared_memory(c, DEVICE), by_threads, by_registers)


def per_tile(c: Configuration) -> dict[str, int]:
    """What a block does for one tile of K and V, by the names of measured(): instructions of warps, and wavefronts."""
    rows, warps, d = c.Br // c.warps, c.warps, c.d_head
    pieces, elements = rows // 16, rows * c.Bc // 32
    copies = 2 * c.Bc * d // 8 // 32
    ldmatrix = warps * (2 * (c.Bc // 16) * (d // 16) + (0 if c.Q_in_registers else pieces * (d // 16)))
    batches = warps * (1 if c.kv_stages == 2 or not c.eager else 2) if c.async_copy else 0
    of_a_row = 6 if c.fast_softmax else 7
    return {
        "mma": warps * pieces * 2 * (c.Bc // 8) * (d // 16),
        "ldmatrix": ldmatrix,
        "cp.async": copies + 2 * batches if c.async_copy else 0,
        "ldmatrix wavefronts": ldmatrix * 4 * (1 if c.swizzled else 8),
        "copy wavefronts": copies * 4,
        "barriers": warps * (3 if c.eager and c.kv_stages == 1 else 1 if c.eager else 2),
        "ex2": warps * (elements + 2 * pieces),
        "FP32": warps * (elements * (4 if c.fast_softmax else 5) + rows * d // 32 + 2 * pieces * of_a_row),
        "shuffle": warps * 2 * pieces * (2 if c.fast_softmax else 4),
        "conversion": warps * elements // 2,
    }


EXACT = ("mma", "ldmatrix", "cp.async", "ldmatrix wavefronts", "copy wavefronts", "barriers")
# What is summed to the instructions that are predicted.
_ISSUED = ("mma", "ldmatrix", "cp.async", "barriers", "ex2", "FP32", "shuffle", "conversion")


def instructions(c: Configuration) -> int:
    """Instructions of warps that are predicted, for one tile. Copies without cp.async are a load and a store each."""
    counts = per_tile(c)
    copies = 0 if c.async_copy else 2 * counts["copy wavefronts"] // 4
    return sum(counts[name] for name in _ISSUED) + copies


def least_issued(c: Configuration) -> int:
    """What the machine has to issue of instructions() in a turn: with the fast softmax, one FFMA where PTX has a
    multiply and a subtraction; with skip_rescale, no rescaling of O as long as no maximum grows."""
    rows = c.Br // c.warps
    contracted = rows * c.Bc // 32 if c.fast_softmax else 0
    skipped = rows * c.d_head // 32 if c.skip_rescale else 0
    return instructions(c) - c.warps * (contracted + skipped)


def clocks(c: Configuration, compute: int = 90) -> dict[str, float]:
    """Clocks of a multiprocessor that one tile keeps each of its units busy, if all else is hidden behind it."""
    counts = per_tile(c)
    known = [capability for capability in MMA_CLOCKS if capability <= compute] or [min(MMA_CLOCKS)]
    return {
        "matrix units": counts["mma"] * MMA_CLOCKS[max(known)],
        "shared memory": float(counts["ldmatrix wavefronts"] + counts["copy wavefronts"]),
        "issue slots": least_issued(c) / ISSUED_A_CLOCK,
        "special functions": counts["ex2"] * SPECIAL_CLOCKS,
    }


def bound(c: Configuration, compute: int = 90) -> tuple[str, float]:
    """(unit, clocks) of the unit that a tile keeps busy longest: no tile takes less, whatever overlaps."""
    return max(clocks(c, compute).items(), key=lambda item: item[1])


def least_ms(c: Configuration, problem: Problem, mhz: float, multiprocessors: int, compute: int = 90) -> float:
    """Milliseconds that the problem takes at least: bound() for each tile of each block, all multiprocessors busy."""
    tiles = problem.B * problem.Hq * -(-problem.Nq // c.Br) * -(-problem.Nkv // c.Bc)
    return tiles * bound(c, compute)[1] / multiprocessors / (mhz * 1e3)


# ---- what it took ----

_TILES = (3, 5)  # of K and V: the difference is what two of them cost


def measured(c: Configuration, library: Path) -> dict[str, float]:
    """The counts of per_tile() on the simulator, the difference of two lengths; and "instructions", all of PTX's, and
    "shared bytes" of a block."""
    reports = []
    for tiles in _TILES:
        problem = Problem(B=1, Hq=1, Nq=c.Br, Nkv=tiles * c.Bc, d_head=c.d_head, dtype=c.dtype)
        result = run_library(str(c), library, problem, problem.random(1), Where("sim", None), Options(timeout=300))
        reports.append(counters.by_name(result.report))

    def more(*names: str) -> float:
        short, long = (sum(report.get(name) or 0 for name in names) for report in reports)
        return (long - short) / (_TILES[1] - _TILES[0])

    return {
        "mma": more("tensor instructions"),
        "ldmatrix": more("ldmatrix instructions"),
        "cp.async": more("async_copy instructions"),
        "ldmatrix wavefronts": more("shared ldmatrix wavefronts"),
        "copy wavefronts": more("shared cp_async wavefronts", "shared store wavefronts"),
        "barriers": more("barriers"),
        "ex2": more("special_function instructions"),
        "FP32": more("fp32 instructions"),
        "shuffle": more("shuffle instructions"),
        "conversion": more("conversion instructions"),
        "instructions": more("instructions"),
        "shared bytes": result.report["launches"][0]["shared_bytes"],
    }
