"""Instances of the kernel of shapes: each is right where it is ragged, masked and has several query tiles a block; with
an earlier stage's form it computes what that stage does; what no rule refuses spills no register."""

import re
from dataclasses import fields, replace

import pytest
from chosen import chosen_stages, tried
from handed_out import copies_by_the_model, copies_of_blocks
from shares import share

from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.run import describe, run_problem
from flashladder.measuring import machine_code
from flashladder.running.verify import check
from flashladder.simulator import clocks, replay, steps, trace
from flashladder.tuning import shape_table, shapes, space
from flashladder.tuning.shape_table import as_launched
from flashladder.tuning.shapes import Configuration

pytestmark = pytest.mark.skipif("shapes" not in [one.slug for one in chosen_stages()], reason="tests of stage shapes")

BUILT = shape_table.configurations_built()
ADMITTED = [one for d in (64, 128) for one in space.admitted(shapes.space("bf16", d), among=shapes.RULES).admitted]
STRICT = stages.get("shapes").simulated | {"WARPSIM_HAZARDS": "strict"}


def right(c: Configuration, problem: Problem, library=None) -> None:
    inputs = problem.random(3)
    got = run_problem("shapes", problem, inputs, "sim", library, environment=STRICT, configuration=str(c))
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


@pytest.mark.parametrize(
    "c", share([pytest.param(one, id=str(one), marks=pytest.mark.long) for one in ADMITTED], tried(8))
)
def test_what_no_rule_refuses_is_right_and_spills_nothing_and_is_not_serialised(c):
    """ptxas has the consumers' registers, not those of the launch, to put S, P and O into; and says where it makes
    wgmma wait for each other."""
    built = shape_table.build(c, 90)
    assert built.spill_bytes == 0 and built.registers == c.launch_registers
    assert "wgmma" not in built.library.with_suffix(".log").read_text()
    right(c, several(c, causal=ADMITTED.index(c) % 2 == 0), built.library)
    right(c, Problem(B=2, Hq=2, Nq=5, Nkv=1, d_head=c.d_head), built.library)


@pytest.mark.long
def test_the_loop_of_each_instance_has_its_products_and_fetches_nothing_uniform():
    """Of the table that is built nothing is spilled, and no product waits for another. Lanes that the compiler takes
    for apart it would bring together again in each turn of the loop over K and V (WARPSYNC), and fetch from a register
    what all of them have (R2UR); and of barriers there are a turn's three alone: where it is taken, where a warp that
    looks first passes it on, and where the others do."""
    cubin = machine_code.compile_for(stages.get("shapes").kernel, "sm_90a")
    report = cubin.with_suffix(".txt").read_text()
    assert "wgmma" not in report, "ptxas makes products wait for each other"
    assert re.findall(r"(\d+) bytes stack frame", report) == ["0"] * len(BUILT), "registers are spilled"
    kernels = machine_code.functions(machine_code.disassemble(cubin))
    assert len(kernels) == len(BUILT)
    mangled = {True: "Lb1E", False: "Lb0E"}
    for c in BUILT:
        values = [getattr(c, field.name) for field in fields(c)][2:]
        words = "".join(mangled[one] if isinstance(one, bool) else f"Li{one}E" for one in values)
        kind = {"bf16": "bfloat16", "fp16": "half"}[c.dtype]
        (text,) = [text for name, text in kernels.items() if f"{kind}Li{c.d_head}E" in name and words in name]
        opcodes = machine_code.opcodes(text)
        counts = {name: sum(one.startswith(name) for one in opcodes) for name in ("HGMMA", "WARPSYNC", "R2UR", "BAR")}
        steps = c.d_head // 16 + c.Bc // 16
        assert counts == {"HGMMA": steps, "WARPSYNC": 0, "R2UR": 0, "BAR": 3 * c.turns}, f"{c}: {counts}"


def of_both(c: Configuration, stage: str, problem: Problem, inputs=None):
    inputs = inputs or problem.random(23)
    library = None if c in BUILT else shape_table.build(c).library
    configured = run_problem("shapes", problem, inputs, "sim", library, environment=STRICT, configuration=str(c))
    return configured, run_problem(stage, problem, inputs, "sim", environment=STRICT)


def executed(got) -> dict[str, int]:
    return got.report["launches"][-1]["instructions"]["by_class"]


def same_numbers(one, other) -> None:
    assert (one.bits == other.bits).all() and (one.log_sum_exp == other.log_sum_exp).all()


COMPILED = pytest.mark.long  # a configuration that the table does not build


@pytest.mark.parametrize(
    "before, d_head", [pytest.param("no_gap", 64, marks=COMPILED), ("no_gap", 128), ("optimistic_max", 128)]
)
def test_with_p_whole_and_turns_it_computes_what_the_stages_before_do(before, d_head):
    """To the bit, by as many products and exponentials: the same sums in the same order."""
    problem = Problem(Hq=3, Nq=260, Nkv=390, d_head=d_head, causal=True)
    configured, plain = of_both(Configuration("bf16", d_head, turns=True), before, problem)
    same_numbers(configured, plain)
    for name in ("tensor", "special_function"):
        assert executed(configured)[name] == executed(plain)[name], name


@pytest.mark.parametrize(
    "d_head, parts",
    [(128, 2), *share([pytest.param(*one, id=str(one), marks=COMPILED) for one in ((64, 1), (64, 2), (128, 1))], 3)],
)
def test_where_q_lies_changes_no_bit(d_head, parts):
    """As many products; 16 rows and 16 columns of Q an ldmatrix, of each of the 9 query tiles."""
    problem = Problem(Hq=3, Nq=260, Nkv=390, d_head=d_head, causal=True)
    inputs, found = problem.random(23), []
    for there in (False, True):
        c = Configuration("bf16", d_head, parts=parts, Q_in_registers=there)
        library = None if c in BUILT else shape_table.build(c).library
        found.append(run_problem("shapes", problem, inputs, "sim", library, environment=STRICT, configuration=str(c)))
        counts = executed(found[-1])
        assert counts.get("ldmatrix", 0) == (9 * c.Br // 16 * d_head // 16 if there else 0)
    same_numbers(*found)
    assert executed(found[0])["tensor"] == executed(found[1])["tensor"]


def copies(Br: int, heads: int, row_tiles: int, blocks: int) -> list[int]:
    """handed_out.copies_of_blocks() with query tiles of so many rows."""
    c = next(one for one in BUILT if one.Br == Br and one.d_head == 64 and one.dtype == "bf16")
    return copies_of_blocks("shapes", heads, row_tiles, blocks, Br, str(c))


@pytest.mark.parametrize(
    "Br, heads, row_tiles, blocks",
    (
        (128, 2, 4, 4),  # a pair for each block
        (128, 2, 3, 3),  # so, too, and a pair of the two middle ones
        (128, 2, 3, 4),  # fewer than two for each: by length, 3, 3, 2 + 1, 2 + 1
        (128, 1, 8, 3),  # one head: by length, to and fro
        (192, 1, 11, 3),
        (128, 4, 4, 3),  # two heads in pairs, of which two blocks lack one
        (128, 7, 5, 4),  # of an odd number an even one in pairs
        (128, 7, 8, 5),  # the last round by length, too
        pytest.param(192, 12, 8, 3, marks=pytest.mark.long),  # the last three of them
    ),
)
def test_causal_each_block_has_what_the_model_says(Br, heads, row_tiles, blocks):
    assert copies(Br, heads, row_tiles, blocks) == copies_by_the_model(heads, row_tiles, blocks, Br)


def test_query_tiles_by_length_come_first_to_who_lacks_a_pair():
    """Four heads of 4 query tiles for 3 blocks: two heads' 4 pairs of 5 tiles, 5, 5 and, on the way back, 10. Of the
    others 4 and 4 end the second round, then 3, 3 and 2, back 2, 1 and 1."""
    tiles = [5 + 4 + 3 + 1, 5 + 4 + 3 + 1, 10 + 2 + 2]
    assert copies(128, 4, 4, 3) == [2 * tiles[0] + 5, 2 * tiles[1] + 5, 2 * tiles[2] + 6]


def modelled_end(c: Configuration, length: int, folder) -> float:
    """Clocks of one query tile by the model of the warps' timeline (docs/timeline.md)."""
    problem = Problem(B=1, Hq=1, Nq=c.Br, Nkv=length, d_head=c.d_head, dtype=c.dtype)
    # As many multiprocessors as the device has: one block for the one query tile.
    variables = {"WARPSIM_TRACE": str(folder / "trace.json"), "WARPSIM_TRACE_BLOCKS": "1"}
    variables |= {"WARPSIM_MULTIPROCESSORS": "0"}
    library = None if c in BUILT else shape_table.build(c).library
    run_problem("shapes", problem, None, "sim", library, environment=variables, configuration=str(c))
    (launch,) = trace.load(folder / "trace.json")
    numbers = clocks.load()
    return replay.replay(steps.programs(launch, numbers), numbers).end


@pytest.mark.long
def test_the_model_does_not_know_where_q_lies(tmp_path):
    """Two lengths differ by turns alone: what comes before and after them is not compared."""
    turns = []
    for there in (False, True):
        c = replace(as_launched(), Q_in_registers=there)
        turns.append(modelled_end(c, 1536, tmp_path) - modelled_end(c, 512, tmp_path))
    assert turns[1] == pytest.approx(turns[0], rel=0.003)


def test_the_shape_chooses():
    """By the committed table: head dim, mask and length."""
    seen = {
        (d, causal, n): describe("shapes", Problem(Nq=n, d_head=d, causal=causal))["configuration"]
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
        describe("shapes", Problem(Nq=64, d_head=c.d_head), configuration=str(c))


CAUSAL_AT_64 = "bfloat16Li64EXtl13ConfigurationLi128ELi128ELi4ELi1ELb1ELb1E"  # two consumers, turns, Q in registers


@pytest.mark.long
def test_the_turn_is_passed_on_before_most_of_the_softmax():
    """In an iteration over K and V, between the products and the last arrival at a named barrier: where the arrival
    comes to stand is ptxas' choice."""
    kernel = stages.get("shapes").kernel
    kernels = machine_code.functions(machine_code.disassemble(machine_code.compile_for(kernel, "sm_90a")))
    (text,) = [text for name, text in kernels.items() if CAUSAL_AT_64 in name]
    opcodes = machine_code.opcodes(text)
    products = max(number for number, one in enumerate(opcodes) if one.startswith("HGMMA"))
    arrival = max(number for number, one in enumerate(opcodes) if one.startswith("BAR.ARV"))
    assert products < arrival
    assert sum(one.startswith("MUFU.EX2") for one in opcodes[products:arrival]) <= 16
