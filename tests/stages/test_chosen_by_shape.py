"""Instances of stage 24's kernel: each is right where it is ragged, masked and has several query tiles a block; with an
earlier stage's form it computes and counts what that stage does; what no rule refuses spills no register."""

import re

import pytest
from conftest import chosen_stages

from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.run import describe, run_problem
from flashladder.measuring import machine_code
from flashladder.running.verify import check
from flashladder.tuning import shape_model, shape_table, shapes
from flashladder.tuning.shapes import Configuration, of_stage_23

pytestmark = pytest.mark.skipif(24 not in [one.number for one in chosen_stages()], reason="tests of stage 24")

BUILT = shape_table.configurations_built()
ADMITTED = [one for d in (64, 128) for one in shapes.admitted(shapes.space("bf16", d))]
STRICT = stages.get(24).simulated | {"WARPSIM_HAZARDS": "strict"}


def right(c: Configuration, problem: Problem, library=None) -> None:
    inputs = problem.random(3)
    got = run_problem(24, problem, inputs, "sim", library, STRICT, configuration=str(c))
    comparison = check(problem, inputs, got.bits, got.log_sum_exp)
    assert comparison, f"{c}, {problem}: {comparison.message}"
    says = {key: got.description[key] for key in ("configuration", "Br", "Bc", "threads", "shared_bytes")}
    wanted = {"configuration": str(c), "Br": c.Br, "Bc": c.Bc, "threads": c.threads, "shared_bytes": c.shared_bytes}
    assert says == wanted, f"flash_describe() of {c} says {says}"


def several(c: Configuration, causal: bool = True) -> Problem:
    """More query tiles than two for each of the three blocks, a ragged end, groups of heads. Causal, the rows from 128
    on of a query tile of 192 see one tile of K and V more than those before them."""
    return Problem(Hq=4, Hkv=2, Nq=c.Br + 70, Nkv=c.Br + 325, d_head=c.d_head, dtype=c.dtype, causal=causal)


@pytest.mark.parametrize("c", BUILT, ids=str)
def test_an_instance_of_the_table_is_right(c):
    right(c, several(c, causal=c.dtype == "bf16"))


@pytest.mark.long
@pytest.mark.parametrize("c", [one for one in ADMITTED if one not in BUILT], ids=str)
def test_what_no_rule_refuses_is_right(c):
    library = shape_table.build(c).library
    for causal in (False, True):
        right(c, several(c, causal), library)
    right(c, Problem(B=2, Hq=2, Nq=5, Nkv=1, d_head=c.d_head), library)


@pytest.mark.long
@pytest.mark.parametrize("c", ADMITTED, ids=str)
def test_what_no_rule_refuses_spills_nothing_and_is_not_serialised(c):
    """ptxas has the consumers' registers, not those of the launch, to put S, P and O into; and says where it makes
    wgmma wait for each other."""
    built = shape_table.build(c, 90)
    assert built.spill_bytes == 0 and built.registers == c.launch_registers
    assert "wgmma" not in built.library.with_suffix(".log").read_text()


def of_both(c: Configuration, number: int, problem: Problem):
    inputs = problem.random(number)
    library = None if c in BUILT else shape_table.build(c).library
    configured = run_problem(24, problem, inputs, "sim", library, STRICT, configuration=str(c))
    return configured, run_problem(number, problem, inputs, "sim", environment=STRICT)


@pytest.mark.parametrize("d_head", (64, 128))
def test_with_the_configuration_of_stage_23_it_is_stage_23(d_head):
    """To the bit, and instruction by instruction."""
    problem = Problem(Hq=3, Nq=260, Nkv=390, d_head=d_head, causal=True)
    configured, plain = of_both(of_stage_23("bf16", d_head), 23, problem)
    assert (configured.bits == plain.bits).all() and (configured.log_sum_exp == plain.log_sum_exp).all()
    got, wanted = (one.report["launches"][-1]["instructions"]["by_class"] for one in (configured, plain))
    assert got["tensor"] == wanted["tensor"] and got == wanted


def test_with_p_whole_it_computes_what_stage_21_does():
    """To the bit: the same products and sums in the same order, another order of query tiles."""
    problem = Problem(Hq=3, Nq=260, Nkv=390, d_head=128, causal=True)
    configured, plain = of_both(Configuration(turns=True), 21, problem)
    assert (configured.bits == plain.bits).all() and (configured.log_sum_exp == plain.log_sum_exp).all()


@pytest.mark.long
def test_with_the_configuration_of_stage_23_its_machine_code_is_stage_23s():
    for d_head in (64, 128):
        copy = shape_table.source_with(of_stage_23("bf16", d_head))
        got = machine_code.measure(copy, "sm_90a")[d_head]
        assert got["loop"] == machine_code.measure(stages.get(23).kernel, "sm_90a")[d_head]["loop"]


MODELLED = re.findall(r"^\| `(\(BF16[^`]*)`[^|]*\| (\d+) \|$", (stages.get(24).folder / "README.md").read_text(), re.M)


@pytest.mark.long
@pytest.mark.parametrize("short_form, clocks", MODELLED, ids=[one for one, _ in MODELLED])
def test_the_model_says_what_the_readme_says(short_form, clocks):
    assert len(MODELLED) == 5
    assert shape_model.clocks_a_step(shapes.parse(short_form)) == pytest.approx(int(clocks), rel=0.02)


def test_the_shape_chooses():
    """By the committed table: head dim, mask and length."""
    seen = {
        (d, causal, n): describe(24, Problem(Nq=n, d_head=d, causal=causal))["configuration"]
        for d in (64, 128)
        for causal in (False, True)
        for n in (100, 1000)
    }
    for (d, causal, n), name in seen.items():
        wanted = shape_table.chosen("bf16", d, shape_table.MASKS[causal], n).configuration
        assert name == str(wanted)
    assert len(set(seen.values())) >= 3


def test_a_configuration_that_is_not_built_is_refused_with_those_that_are():
    c = next(one for one in ADMITTED if one not in BUILT)
    with pytest.raises(Exception, match="has no instance"):
        describe(24, Problem(Nq=64, d_head=c.d_head), configuration=str(c))
