"""What each block of a persistent kernel does, counted by TMA's copies: as the simulator sees it, and as a model of
the order has it, which the kernels have from tile_scheduler on. Causal, d_head = 64."""

import math

from flashladder.core.problem import Problem
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


def dealt(row_tiles: int, heads: int, blocks: int, Br: int) -> list[tuple[int, int]]:
    """(block, row tile) of each query tile. As many heads as fill all whole rounds of pairs but the last ones go in
    pairs, a long query tile with a short one, every other head from its end; the others one by one, all heads' longest
    first. Every other round goes from the last block to the first."""
    last_rounds = 0 if row_tiles < 8 else 3 if Br > 128 else 1
    rounds = max(row_tiles * heads // (2 * blocks) - last_rounds, 0)
    in_pairs = rounds * 2 * blocks // row_tiles // 2 * 2
    of_a_head = [place // 2 if place % 2 else row_tiles - 1 - place // 2 for place in range(row_tiles)]
    in_order = [tile for head in range(in_pairs) for tile in (reversed(of_a_head) if head % 2 else of_a_head)]
    work = list(zip(in_order[::2], in_order[1::2], strict=True))
    work += [(row_tile,) for row_tile in reversed(range(row_tiles)) for _ in range(heads - in_pairs)]
    tiles = []
    for number, one_or_two in enumerate(work):
        turn, place = divmod(number, blocks)
        tiles += [(blocks - 1 - place if turn % 2 else place, tile) for tile in one_or_two]
    return tiles


def copies_by_the_model(heads: int, row_tiles: int, blocks: int, Br: int = 128) -> list[int]:
    copies = [0] * blocks
    for block, row_tile in dealt(row_tiles, heads, blocks, Br):
        copies[block] += 2 * math.ceil(Br * (row_tile + 1) / 128) + 1
    return copies
