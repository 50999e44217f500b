"""Which block of a persistent kernel has which query tiles; and that their order changes no bit of the result."""

import pytest
from chosen import chosen_stages
from handed_out import copies_by_the_model, copies_of_blocks

from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.run import run_problem
from flashladder.running.job import StageError
from flashladder.simulator import trace

pytestmark = pytest.mark.skipif(
    "tile_scheduler" not in [one.slug for one in chosen_stages()], reason="tests of stage tile_scheduler"
)

MULTIPROCESSORS = "FLASHLADDER_MULTIPROCESSORS"


@pytest.mark.parametrize(
    "heads, row_tiles, blocks",
    (
        (2, 4, 4),  # a pair for each block
        (2, 3, 3),  # so, too, and a pair of the two middle ones
        (2, 3, 4),  # fewer than two for each: by length, 3, 3, 2 + 1, 2 + 1
        (1, 11, 3),  # one head: by length, to and fro
        (4, 4, 3),  # two heads in pairs, of which two blocks lack one
        (7, 5, 4),  # of an odd number an even one in pairs
        (4, 8, 5),  # the last round by length, too
    ),
)
def test_causal_each_block_has_what_the_model_says(heads, row_tiles, blocks):
    assert copies_of_blocks("tile_scheduler", heads, row_tiles, blocks) == copies_by_the_model(heads, row_tiles, blocks)


@pytest.mark.parametrize("causal", (False, True))
def test_another_order_changes_no_bit(causal):
    problem = Problem(B=2, Hq=3, Hkv=1, Nq=650, Nkv=700, d_head=64, causal=causal)
    inputs = problem.random(3)
    old, new = (
        run_problem(one, problem, inputs, "sim", environment=one.simulated)
        for one in map(stages.get, ("warp_specialization", "tile_scheduler"))
    )
    assert (old.bits == new.bits).all() and (old.log_sum_exp == new.log_sum_exp).all()


@pytest.mark.parametrize("variable, blocks", (({}, 3), ({MULTIPROCESSORS: ""}, 3), ({MULTIPROCESSORS: "2"}, 2)))
def test_fewer_blocks_can_be_asked_for(variable, blocks):
    """As where a tool runs a small problem on a GPU, which has many multiprocessors (measuring/executed.py)."""
    problem = Problem(B=1, Hq=2, Nq=256, Nkv=128, d_head=64)
    launch = trace.of("tile_scheduler", problem, 4, {"WARPSIM_MULTIPROCESSORS": "3"} | variable)
    assert len(launch.blocks) == blocks


@pytest.mark.parametrize("said", ("many", "0", "-2", "2 or 3", "1e3", "99999999999999999999"))
def test_a_number_of_multiprocessors_that_is_none_is_an_error(said):
    problem = Problem(B=1, Hq=1, Nq=64, Nkv=64, d_head=64)
    with pytest.raises(StageError, match=f"{MULTIPROCESSORS}={said}: set a whole number"):
        run_problem("tile_scheduler", problem, device="sim", environment={MULTIPROCESSORS: said})
