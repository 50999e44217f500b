"""Stage 26: which block has which query tiles; and that neither their order nor a look at the maximum, where nobody
looks, changes a bit of the result."""

import pytest
from chosen import chosen_stages
from handed_out import copies_by_the_model, copies_of_blocks

from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.run import run_problem
from flashladder.measuring import query_tile_order

CHOSEN = [one.number for one in chosen_stages()]
of_stage_26 = pytest.mark.skipif(26 not in CHOSEN, reason="tests of stage 26")
of_stage_27 = pytest.mark.skipif(27 not in CHOSEN, reason="tests of stage 27")


@of_stage_26
@pytest.mark.parametrize(
    "heads, row_tiles, blocks",
    (
        (2, 4, 4),  # a pair for each block
        (2, 3, 3),  # so, too, and a pair of the two middle ones
        (2, 3, 4),  # fewer than two for each: by length, 3, 3, 2 + 1, 2 + 1
        (1, 11, 3),  # one head: by length, to and fro
        (4, 4, 3),  # two heads in pairs, of which two blocks lack one
        (7, 5, 4),  # of an odd number an even one in pairs
        (4, 8, 5),  # the last round by length, too, as in the lesson
    ),
)
def test_causal_each_block_has_what_the_model_says(heads, row_tiles, blocks):
    assert copies_of_blocks(26, heads, row_tiles, blocks) == copies_by_the_model(heads, row_tiles, blocks)


@of_stage_26
def test_the_lessons_table_says_what_the_kernel_does():
    """stages/26_last_rounds/README.md: 4 heads of 8 query tiles, 5 blocks; tiles of each block, and in pairs alone."""
    lines = (stages.get(26).folder / "README.md").read_text().splitlines()
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in lines if " of head " in line and line[0] == "|"
    ]
    assert [row[0] for row in rows] == list("01234")
    tiles = [[int(word) for cell in row[1:6] for word in cell.split(" of ")[0].split(" + ") if word] for row in rows]
    assert [sum(own) for own in tiles] == [int(row[6]) for row in rows]
    assert copies_of_blocks(26, 4, 8, 5) == [2 * sum(own) + len(own) for own in tiles]
    pairs = query_tile_order.schedule("long with short, every other head reversed", 1024, 4, True, blocks=5)
    assert [max(one.end for one in pairs if one.block == block) for block in range(5)] == [int(row[7]) for row in rows]


def same_bits(before: int, after: int, causal: bool) -> None:
    problem = Problem(B=2, Hq=3, Hkv=1, Nq=650, Nkv=700, d_head=64, causal=causal)
    inputs = problem.random(3)
    old, new = (
        run_problem(number, problem, inputs, "sim", environment=stages.get(number).simulated)
        for number in (before, after)
    )
    assert (old.bits == new.bits).all() and (old.log_sum_exp == new.log_sum_exp).all()


@of_stage_26
@pytest.mark.parametrize("causal", (False, True))
def test_another_order_changes_no_bit(causal):
    same_bits(25, 26, causal)


@of_stage_27
@pytest.mark.parametrize("causal", (False, True))
def test_where_nobody_looks_no_bit_changes(causal):
    same_bits(26, 27, causal)
