"""A model of a persistent grid: which block works on which query tile when, in stages 17 to 22 and 23 to 25.

A query tile takes as long as it has tiles of K and V; each block's next one follows at once. Nothing else is in it: no
memory, no caches, no start and no end of a query tile. What it says is how much of the time the blocks are busy, and
how many heads' K and V are wanted at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass

Br = Bc = 128
BLOCKS = 132  # one for each multiprocessor of an H200


@dataclass(frozen=True)
class Piece:
    """One query tile: rows from row_tile * Br on, of one head; the block that works on it, and from when to when, in
    units of a tile of K and V."""

    block: int
    start: int
    end: int
    head: int
    row_tile: int


def heads_apart(row_tiles: int, heads: int, causal: bool) -> list[tuple[int, int]]:
    """(head, row tile) by number, as in stages 17 to 22: all heads' last rows first."""
    return [(head, row_tile) for row_tile in reversed(range(row_tiles)) for head in range(heads)]


def side_by_side(row_tiles: int, heads: int, causal: bool) -> list[tuple[int, int]]:
    """(head, row tile) by number, as in stages 23 to 25: one head after the other; if causal its last rows, its first,
    its last but one, ..."""
    in_turn = [place // 2 if place % 2 else row_tiles - 1 - place // 2 for place in range(row_tiles)]
    return [(head, row_tile) for head in range(heads) for row_tile in (in_turn if causal else range(row_tiles))]


def longest_first(row_tiles: int, heads: int, causal: bool) -> list[tuple[int, int]]:
    """(head, row tile) by number: one head after the other, its last rows first."""
    return [(head, row_tile) for head in range(heads) for row_tile in reversed(range(row_tiles))]


# The order of the query tiles, and whether a block takes two neighbours where there are enough.
ORDERS: dict[str, tuple[Callable[[int, int, bool], list[tuple[int, int]]], bool]] = {
    "heads apart": (heads_apart, False),
    "head by head, longest first": (longest_first, False),
    "head by head, long with short": (side_by_side, True),
}


def schedule(order: str, N: int, heads: int, causal: bool, blocks: int = BLOCKS) -> list[Piece]:
    """All query tiles in the order of their numbers. N: rows of Q and of K, a multiple of Br; heads: of all batches
    together."""
    in_order, pairs = ORDERS[order]
    tiles = in_order(N // Br, heads, causal)
    blocks = min(blocks, len(tiles))
    neighbours = 2 if pairs and causal and len(tiles) >= 2 * blocks else 1
    free = [0] * blocks
    found = []
    for number, (head, row_tile) in enumerate(tiles):
        block = number // neighbours % blocks
        start = free[block]
        free[block] += (row_tile + 1) * Br // Bc if causal else N // Bc
        found.append(Piece(block, start, free[block], head, row_tile))
    return found


def busy(order: str, N: int, heads: int, causal: bool, blocks: int = BLOCKS) -> float:
    """The part of the time, until the last block has ended, that the blocks work on average."""
    pieces = schedule(order, N, heads, causal, blocks)
    work = sum(one.end - one.start for one in pieces)
    return work / len({one.block for one in pieces}) / max(one.end for one in pieces)


def heads_at_once(order: str, N: int, heads: int, causal: bool, blocks: int = BLOCKS) -> float:
    """How many heads are worked on at a time, on average over the time: so many K and V should have room in the L2."""
    pieces = schedule(order, N, heads, causal, blocks)
    end = max(one.end for one in pieces)
    at_work: list[set[int]] = [set() for _ in range(end)]
    for one in pieces:
        for time in range(one.start, one.end):
            at_work[time].add(one.head)
    return sum(len(heads) for heads in at_work) / end
