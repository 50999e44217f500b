"""A model of a persistent grid: which block works on which query tile when, by several orders.

A query tile takes as long as it has tiles of K and V; each block's next one follows at once. Nothing else is in it: no
memory, no caches, no start and no end of a query tile. What it says is how much of the time the blocks are busy, and
how many heads' K and V are wanted at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass

Br = 128  # rows of a query tile where nothing else is said
Bc = 128
BLOCKS = 132  # one for each multiprocessor of an H200


@dataclass(frozen=True)
class Piece:
    """One query tile: Br rows from row_tile * Br on, of one head; the block that works on it, and from when to when, in
    units of a tile of K and V."""

    block: int
    start: int
    end: int
    head: int
    row_tile: int


def heads_apart(row_tiles: int, heads: int, causal: bool) -> list[tuple[int, int]]:
    """(head, row tile) by number: all heads' last rows first."""
    return [(head, row_tile) for row_tile in reversed(range(row_tiles)) for head in range(heads)]


def side_by_side(row_tiles: int, heads: int, causal: bool) -> list[tuple[int, int]]:
    """(head, row tile) by number: one head after the other; if causal its last rows, its first, its last but
    one, ..."""
    in_turn = [place // 2 if place % 2 else row_tiles - 1 - place // 2 for place in range(row_tiles)]
    return [(head, row_tile) for head in range(heads) for row_tile in (in_turn if causal else range(row_tiles))]


def longest_first(row_tiles: int, heads: int, causal: bool) -> list[tuple[int, int]]:
    """(head, row tile) by number: one head after the other, its last rows first."""
    return [(head, row_tile) for head in range(heads) for row_tile in reversed(range(row_tiles))]


def every_other_reversed(row_tiles: int, heads: int, causal: bool) -> list[tuple[int, int]]:
    """(head, row tile) by number, as tile_scheduler has it in pairs: side_by_side, every other head from its end."""
    tiles = side_by_side(row_tiles, heads, causal)
    of_heads = [tiles[head * row_tiles : (head + 1) * row_tiles] for head in range(heads)]
    return [tile for head, own in enumerate(of_heads) for tile in (reversed(own) if head % 2 else own)]


@dataclass(frozen=True)
class Order:
    """(head, row tile) by number, of row_tiles, heads and causal; and to whom they go: two neighbours to each block
    where there are enough (if causal), or one each, every other round from the last block to the first.

    last_by_length: if causal, only as many heads as fill all whole rounds of pairs but the last ones (last_rounds) are
    in this order, in pairs. The others are heads_apart, one each. Pairs and these go to and fro."""

    in_order: Callable[[int, int, bool], list[tuple[int, int]]]
    pairs: bool = False
    to_and_fro: bool = False
    last_by_length: bool = False


ORDERS = {
    "heads apart": Order(heads_apart),
    "head by head, longest first": Order(longest_first),
    "head by head, long with short": Order(side_by_side, pairs=True),
    "long with short, every other head reversed": Order(every_other_reversed, pairs=True),
    "heads apart, to and fro": Order(heads_apart, to_and_fro=True),
    "pairs, the last rounds by length": Order(every_other_reversed, pairs=True, last_by_length=True),
}


def last_rounds(row_tiles: int, rows: int) -> int:
    """How many whole rounds of pairs go by length instead, with so many query tiles a head, as in tile_scheduler."""
    return 0 if row_tiles < 8 else 3 if rows > 128 else 1


def dealt(how: Order, row_tiles: int, heads: int, causal: bool, blocks: int, rows: int) -> list[tuple[int, int, int]]:
    """(block, head, row tile), those of a block in the order in which it works on them."""
    numbers = row_tiles * heads
    if causal and how.last_by_length:
        rounds = max(numbers // (2 * blocks) - last_rounds(row_tiles, rows), 0)
        in_pairs = rounds * 2 * blocks // row_tiles // 2 * 2
        in_order = how.in_order(row_tiles, in_pairs, causal)
        work = list(zip(in_order[::2], in_order[1::2]))
        work += [((in_pairs + head, row_tile),) for head, row_tile in heads_apart(row_tiles, heads - in_pairs, causal)]
        tiles = []
        for number, one_or_two in enumerate(work):
            turn, place = divmod(number, blocks)
            tiles += [(blocks - 1 - place if turn % 2 else place, *tile) for tile in one_or_two]
        return tiles
    neighbours = 2 if how.pairs and causal and numbers >= 2 * blocks else 1
    tiles = []
    for number, tile in enumerate(how.in_order(row_tiles, heads, causal)):
        turn, block = divmod(number // neighbours, blocks)
        tiles.append((blocks - 1 - block if how.to_and_fro and turn % 2 else block, *tile))
    return tiles


def schedule(order: str, N: int, heads: int, causal: bool, blocks: int = BLOCKS, rows: int = Br) -> list[Piece]:
    """All query tiles in the order of their numbers. N: rows of Q and of K; heads: of all batches together; rows: of Q
    in a query tile."""
    row_tiles = -(-N // rows)
    blocks = min(blocks, row_tiles * heads)
    free = [0] * blocks
    found = []
    for block, head, row_tile in dealt(ORDERS[order], row_tiles, heads, causal, blocks, rows):
        start = free[block]
        free[block] += -(-min(N, (row_tile + 1) * rows if causal else N) // Bc)
        found.append(Piece(block, start, free[block], head, row_tile))
    return found


def busy(order: str, N: int, heads: int, causal: bool, blocks: int = BLOCKS, rows: int = Br) -> float:
    """The part of the time, until the last block has ended, that the blocks work on average."""
    pieces = schedule(order, N, heads, causal, blocks, rows)
    work = sum(one.end - one.start for one in pieces)
    return work / len({one.block for one in pieces}) / max(one.end for one in pieces)


def heads_at_once(order: str, N: int, heads: int, causal: bool, blocks: int = BLOCKS, rows: int = Br) -> float:
    """How many heads are worked on at a time, on average over the time: so many K and V should have room in the L2."""
    pieces = schedule(order, N, heads, causal, blocks, rows)
    end = max(one.end for one in pieces)
    at_work: list[set[int]] = [set() for _ in range(end)]
    for one in pieces:
        for time in range(one.start, one.end):
            at_work[time].add(one.head)
    return sum(len(heads) for heads in at_work) / end
