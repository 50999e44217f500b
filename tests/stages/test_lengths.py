"""Lengths that are no whole number of tiles, for stages that announce that they take them."""

import pytest
from calls import Call, verified

from flashladder.core.problem import Problem
from flashladder.ladder.run import describe


def test_lengths_between_tiles(stage, tile):
    """One row and one column; one more and one less than several tiles: all of them, and nothing beyond."""
    Br, Bc = tile
    limits = describe(stage)
    if (limits["multiple_Nq"], limits["multiple_Nkv"]) != (1, 1):
        pytest.skip("this stage takes whole tiles alone")
    lengths = ((1, 1), (1, 2 * Bc + 1), (3 * Br + 1, 2 * Bc - 1), (2 * Br - 1, 5 * Bc + 1))
    verified(stage, *(Call(Problem(B=2, Hq=2, Nq=rows, Nkv=columns, d_head=64)) for rows, columns in lengths))
