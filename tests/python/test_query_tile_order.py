"""The model of a persistent grid's order, and its picture; the kernel's own order where the simulator shows it."""

import pytest

pytest.importorskip("matplotlib")

from flashladder import plot  # noqa: E402
from flashladder.measuring import query_tile_order as model  # noqa: E402
from flashladder.plot import style  # noqa: E402


@pytest.mark.parametrize("order", model.ORDERS)
@pytest.mark.parametrize("row_tiles, heads, blocks", ((4, 3, 3), (5, 3, 4), (7, 1, 3), (1, 2, 5), (3, 1, 3)))
@pytest.mark.parametrize("causal", (False, True))
def test_every_query_tile_once_and_no_block_twice_at_a_time(order, row_tiles, heads, blocks, causal):
    pieces = model.schedule(order, row_tiles * model.Br, heads, causal, blocks)
    there = sorted((one.head, one.row_tile) for one in pieces)
    assert there == [(head, row_tile) for head in range(heads) for row_tile in range(row_tiles)]
    for block in range(blocks):
        own = [one for one in pieces if one.block == block]
        assert all(before.end == after.start for before, after in zip(own, own[1:]))
        assert all(one.start == 0 for one in own[:1])
    assert all(one.end - one.start == (one.row_tile + 1 if causal else row_tiles) for one in pieces)


def test_long_with_short_gives_each_block_as_much():
    """6 row tiles for 3 blocks: 6 + 1, 5 + 2, 4 + 3; one by one, longest first: 9, 7, 5."""
    ends = {}
    for one in model.schedule("head by head, long with short", 6 * model.Br, 1, True, 3):
        ends[one.block] = one.end
    assert ends == {0: 7, 1: 7, 2: 7}
    assert model.busy("heads apart", 6 * model.Br, 1, True, 3) == pytest.approx(21 / 3 / 9)


def test_to_and_fro_who_had_the_longest_has_the_shortest():
    """7 row tiles for 3 blocks: 7 + 2 + 1, 6 + 3, 5 + 4."""
    ends = {one.block: one.end for one in model.schedule("heads apart, to and fro", 7 * model.Br, 1, True, 3)}
    assert ends == {0: 10, 1: 9, 2: 9}


def test_with_every_other_head_reversed_the_middle_ones_of_two_heads_are_a_pair():
    """3 row tiles of 2 heads for 3 blocks: 3 + 1, 2 + 2, 1 + 3; not reversed 3 + 1, 2 + 3, 1 + 2."""
    for order, lengths in (
        ("long with short, every other head reversed", {0: 4, 1: 4, 2: 4}),
        ("head by head, long with short", {0: 4, 1: 5, 2: 3}),
    ):
        assert {one.block: one.end for one in model.schedule(order, 3 * model.Br, 2, True, 3)} == lengths


def test_the_last_rounds_by_length_begin_with_who_lacks_a_pair():
    """3 heads of 8 row tiles for 3 blocks: two of them are 8 pairs of 9 tiles, and a block lacks one. Of the other head
    it has the first, 8, which ends the third round; then, from the last block on, 7 6 5, back 4 3 2, and 1."""
    order = "pairs, the last rounds by length"
    ends = {one.block: one.end for one in model.schedule(order, 8 * model.Br, 3, True, 3)}
    assert ends == {0: 27 + 5 + 4, 1: 27 + 6 + 3, 2: 18 + 8 + 7 + 2 + 1}


def test_how_many_rounds_go_by_length_is_a_matter_of_the_query_tiles():
    """None besides what is left over where a head has few of them; three where they have 192 rows."""
    assert [model.last_rounds(7, 128), model.last_rounds(8, 128), model.last_rounds(8, 192)] == [0, 1, 3]


def test_query_tiles_of_other_sizes():
    """500 rows in query tiles of 192: three, which see 2, 3 and 4 tiles of 128 keys."""
    pieces = model.schedule("heads apart", 500, 1, True, 3, rows=192)
    assert [(one.row_tile, one.end) for one in pieces] == [(2, 4), (1, 3), (0, 2)]
    assert model.busy("heads apart", 500, 1, True, 3, rows=192) == pytest.approx(9 / 12)


def test_with_too_few_for_two_each_block_has_one():
    pieces = model.schedule("head by head, long with short", 3 * model.Br, 1, True, 3)
    assert [(one.block, one.row_tile) for one in pieces] == [(0, 2), (1, 0), (2, 1)]


def test_side_by_side_wants_few_heads_at_a_time():
    """4 row tiles: 8 blocks work on 2 heads, where heads apart they work on 8."""
    assert model.heads_at_once("head by head, long with short", 4 * model.Br, 16, False, 8) == pytest.approx(2)
    assert model.heads_at_once("heads apart", 4 * model.Br, 16, False, 8) == pytest.approx(8)


def test_the_picture_has_a_bar_for_each_query_tile():
    figure = plot.query_tiles(512, 3, 3)
    assert [len(axes.collections) for axes in figure.axes] == [12] * 4
    assert figure.axes[0].get_title().startswith("full, heads apart\n3.0 heads at a time, busy 100%")
    assert "causal, head by head, long with short" in style.in_words(figure)


def test_the_picture_of_one_mask_and_other_rows():
    figure = plot.query_tiles(500, 2, 3, orders=("heads apart, to and fro",), rows=192, masks=(True,))
    (axes,) = figure.axes
    assert len(axes.collections) == 2 * 3 and axes.get_title().startswith("causal, heads apart, to and fro")
