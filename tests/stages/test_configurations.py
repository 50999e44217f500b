"""Instances of stage 12's kernel: those of its table, and with the flags of each stage from 04 to 11.

Each is right on the simulator and free of hazards, and flash_describe() says what the configuration says.
"""

from itertools import pairwise

import pytest
from calls import Call, gaps, verified
from chosen import chosen_stages, tried
from shares import share

from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.run import describe, run_problem
from flashladder.measuring import machine_code
from flashladder.running.verify import check
from flashladder.tuning import instances, rules
from flashladder.tuning.configuration import Configuration, of_stage

pytestmark = pytest.mark.skipif(12 not in [one.number for one in chosen_stages()], reason="tests of stage 12")

BUILT = instances.configurations_built()


def right(configuration: Configuration, library=None) -> None:
    """On an odd and on an even number of tiles, with the tensors in both layouts."""
    c = configuration
    for tiles, layout in ((3, "bhnd"), (2, "bnhd")):
        problem = Problem(B=2, Hq=2, Nq=2 * c.Br, Nkv=tiles * c.Bc, d_head=c.d_head, dtype=c.dtype, layout=layout)
        inputs = problem.random(tiles)
        got = run_problem(12, problem, inputs, device="sim", library=library, configuration=str(c))
        comparison = check(problem, inputs, got.bits)
        assert comparison, f"{c}, {problem}: {comparison.message}"
        says = {key: got.description[key] for key in ("configuration", "Br", "Bc", "threads", "shared_bytes")}
        assert says == {
            "configuration": str(c),
            "Br": c.Br,
            "Bc": c.Bc,
            "threads": rules.threads(c),
            "shared_bytes": rules.shared_bytes(c),
        }, f"flash_describe() of {c} says {says}"


@pytest.mark.parametrize("configuration", BUILT, ids=str)
def test_an_instance_of_the_table_is_right(configuration):
    right(configuration)


def test_the_instances_of_the_table_take_any_strides():
    """Each tensor with strides of its own, two batches, two heads, two query blocks."""
    calls = []
    for seed, c in enumerate(BUILT):
        problem = Problem(B=2, Hq=2, Nq=2 * c.Br, Nkv=3 * c.Bc, d_head=c.d_head, dtype=c.dtype)
        calls.append(Call(problem, gaps, seed=seed, configuration=str(c)))
    verified(stages.get(12), *calls)


def test_a_problem_that_no_tile_divides_is_refused_by_the_tile_of_stage_11():
    problem = Problem(Nq=96, Nkv=64, d_head=128)
    with pytest.raises(Exception, match="needs Nq to be a multiple of 128; it is 96"):
        describe(12, problem)


def test_without_a_choice_the_first_instance_runs_whose_tiles_divide_the_lengths():
    narrow = next(one for one in BUILT if one.Br == 64)
    got = describe(12, Problem(Nq=64, Nkv=128, d_head=narrow.d_head, dtype=narrow.dtype))
    assert got["configuration"] == str(narrow)


# ---- the flags of the stages ----


CLASSES = ("tensor", "ldmatrix", "async_copy", "shuffle", "vote", "special_function", "barrier", "load_global",
           "store_global", "load_shared", "store_shared")  # fmt: skip


def counted(launch: dict) -> dict[str, int]:
    """What must not differ between stage 12 with a stage's flags and that stage: all but plain arithmetic."""
    classes = {name: launch["instructions"]["by_class"].get(name, 0) for name in CLASSES}
    wavefronts = {f"shared {kind} wavefronts": counts["wavefronts"] for kind, counts in launch["shared"].items()}
    sectors = {f"global {kind} sectors": counts["sectors"] for kind, counts in launch["global"].items()}
    return classes | wavefronts | sectors | {"barriers": launch["barriers"]}


def flags_of_stages() -> list:
    found = []
    for number in range(4, 12):
        for d_head in (64, 128):
            marks = () if of_stage(number, "bf16", d_head) in BUILT else pytest.mark.long
            found.append(pytest.param(number, d_head, id=f"{number:02d}-d{d_head}", marks=marks))
    return share(found, tried(4))


@pytest.mark.parametrize("number, d_head", flags_of_stages())
def test_with_a_stages_flags_it_counts_and_computes_as_that_stage(number, d_head):
    """To the bit: the same products and sums in the same order."""
    problem = Problem(B=1, Hq=2, Nq=256, Nkv=192, d_head=d_head)
    inputs = problem.random(number)
    flags = of_stage(number, "bf16", d_head)
    library = None if flags in BUILT else instances.build(flags).library
    configured = run_problem(12, problem, inputs, device="sim", library=library, configuration=str(flags))
    plain = run_problem(number, problem, inputs, device="sim")
    got, wanted = (counted(one.report["launches"][-1]) for one in (configured, plain))
    different = {name: (got[name], wanted[name]) for name in wanted if got[name] != wanted[name]}
    assert not different, f"stage 12 with the flags of stage {number:02d}, and that stage: {different}"
    assert (configured.bits == plain.bits).all(), f"stage 12 as stage {number:02d} differs"


AS_LONG = [
    pytest.param(number, d_head, id=f"{number:02d}-d{d_head}", marks=pytest.mark.long)
    for number in (5, 8, 11)
    for d_head in (64, 128)
]


@pytest.mark.parametrize("number, d_head", share(AS_LONG, tried(3)))
def test_with_a_stages_flags_its_machine_code_is_as_long(number, d_head):
    """Within 5 percent, which is what the README calls nearly the same."""
    (row,) = machine_code.recorded_rows(number, d=d_head)
    found = instances.in_a_turn(of_stage(number, "bf16", d_head))
    got, wanted = sum(found[name] for name in machine_code.NAMES), sum(row["in_a_turn"].values())
    assert abs(got / wanted - 1) < 0.05, f"{got} instructions in a turn, stage {number:02d} has {wanted}"


def test_what_is_compared_tells_the_stages_apart():
    """Else a flag that does nothing would pass."""
    problem = Problem(B=1, Hq=2, Nq=256, Nkv=192, d_head=64)
    seen = {n: counted(run_problem(n, problem, device="sim").report["launches"][-1]) for n in (4, 5, 6, 7, 9, 10)}
    for earlier, later in pairwise(seen):
        assert seen[earlier] != seen[later], f"stages {earlier:02d} and {later:02d} count the same"
