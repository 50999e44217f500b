"""What each block of a persistent kernel does, counted by TMA's copies: as the simulator sees it, and as the model of
the order (flashladder/measuring/query_tile_order.py) has it from tile_scheduler on. Causal, d_head = 64."""

import math

from flashladder.core.problem import Problem
from flashladder.measuring import query_tile_order
from flashladder.simulator import trace


def copies_of_blocks(
    stage: str, heads: int, row_tiles: int, blocks: int, Br: int = 128, configuration: str | None = None
) -> list[int]:
    """In each block of a device with so many multiprocessors: one of Q for each query tile, one of K and one of V for
    each tile of them that it sees."""
    problem = Problem(Hq=heads, Nq=Br * row_tiles, Nkv=Br * row_tiles, d_head=64, causal=True)
    launch = trace.of(stage, problem, blocks, {"WARPSIM_MULTIPROCESSORS": str(blocks)}, configuration)
    copies = [[event.kind for warp in block.warps for event in warp].count("copy") for block in launch.blocks]
    tiles = sum(math.ceil(Br * (i + 1) / 128) for i in range(row_tiles))
    assert len(copies) == blocks
    assert sum(copies) == heads * (2 * tiles + row_tiles), "a query tile is left out, or done twice"
    return copies


def copies_by_the_model(heads: int, row_tiles: int, blocks: int, Br: int = 128) -> list[int]:
    order = "pairs, the last rounds by length"
    there = query_tile_order.schedule(order, Br * row_tiles, heads, True, blocks=blocks, rows=Br)
    return [sum(2 * (one.end - one.start) + 1 for one in there if one.block == block) for block in range(blocks)]
