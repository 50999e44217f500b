"""A model of a causal grid: which multiprocessor works when, if blocks begin in the order of their index.

A block takes as long as it has tiles of K and V; the next one begins where a place becomes free. Nothing else is in
it: no memory, no caches, no start of a block. What it says is how much of the time the places are busy.
"""

import heapq
from collections.abc import Callable

Br, Bc = 128, 64
PLACES = 264  # resident blocks of an H200: 132 multiprocessors, two each

# The tiles of queries in the order in which their blocks begin, 0 the first rows; by the number of tiles and of heads.
ORDERS: dict[str, Callable[[int, int], list[int]]] = {
    "all heads' longest first": lambda tiles, heads: [tile for tile in reversed(range(tiles)) for _ in range(heads)],
    "all heads' shortest first": lambda tiles, heads: [tile for tile in range(tiles) for _ in range(heads)],
    "head by head, longest first": lambda tiles, heads: [*reversed(range(tiles))] * heads,
    "head by head, shortest first": lambda tiles, heads: [*range(tiles)] * heads,
}


def work(order: str, N: int, heads: int) -> list[int]:
    """How many tiles of K and V each block visits, in the order in which the blocks begin. N: rows, a multiple of Br;
    heads: of all batches together."""
    return [(tile + 1) * Br // Bc for tile in ORDERS[order](N // Br, heads)]


def schedule(costs: list[int], places: int = PLACES) -> list[tuple[int, int, int]]:
    """(place, start, end) of each block, in units of a tile: each begins at the place that is free first."""
    free = [(0, place) for place in range(places)]
    found = []
    for cost in costs:
        start, place = heapq.heappop(free)
        found.append((place, start, start + cost))
        heapq.heappush(free, (start + cost, place))
    return found


def busy(order: str, N: int, heads: int, places: int = PLACES) -> float:
    """The part of the time, from the first start to the last end, that the places work: 1 is a full last wave."""
    costs = work(order, N, heads)
    return sum(costs) / places / max(end for _, _, end in schedule(costs, places))
