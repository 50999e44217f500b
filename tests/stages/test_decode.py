"""The decode stages: numbers, lengths, layouts, pages, refusals, launches and techniques."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from chosen import of_chosen
from queued import check_launches, each, in_order, only_simulated, verified
from refused import INVALID, UNSUPPORTED, check_refusals

from flashladder.commands import other_parts
from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import place
from flashladder.ladder import launches, stages, technique
from flashladder.ladder.kernels import compile_kernel
from flashladder.running.job import Result

CHOSEN = of_chosen(stages.decode_stages())
EACH = each(CHOSEN)


def with_pages_of(one, problem: DecodeProblem) -> DecodeProblem:
    """The problem, its pages as small as the stage takes them where they would be smaller."""
    return replace(problem, page_size=problem.page_size and max(problem.page_size, one.page_multiple))


def verify(one, problem: DecodeProblem, inputs: dict | None = None, **options) -> Result:
    """Behind every end lies a NaN."""
    return verified(one, with_pages_of(one, problem), inputs, **options)


# Unequal lengths, one of them 0 and one shorter than Nq, in pages; packed heads and several parts of a sequence.
PAGES = DecodeProblem(B=4, Hq=4, Hkv=2, Nq=2, Nkv=90, lengths=(90, 0, 1, 33), d_head=64, dtype="fp16", page_size=16)
PARTS = DecodeProblem(B=1, Hq=8, Hkv=1, Nkv=300, d_head=128, layout="bnhd")
EMPTY_PARTS = DecodeProblem(B=1, Hq=8, Hkv=1, Nkv=300, d_head=64, lengths=(3,))


@EACH
@pytest.mark.parametrize("problem", (PAGES, PARTS, EMPTY_PARTS), ids=("pages", "parts", "empty parts"))
def test_twice_over_one_workspace(one, problem):
    result = verify(one, problem, repeat=2)
    assert not result.changed, f"stage {one.id}, {problem}: other bits in the second run: {result.changed}"


@pytest.mark.long
@EACH
@pytest.mark.parametrize("d_head, dtype", tuple(itertools.product((64, 128), ("bf16", "fp16"))))
def test_lengths_around_tiles_and_parts(one, d_head, dtype):
    """One less and one more than a unit of 16 keys, than a block's 64 and than a part."""
    lengths = (0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257)
    for number, length in enumerate(lengths):
        heads = ((4, 1), (2, 2), (6, 2))[number % 3]
        layout = ("bhnd", "bnhd", "gaps")[number % 3]
        shape = {"Hq": heads[0], "Hkv": heads[1], "Nkv": 257, "lengths": (length,), "layout": layout}
        verify(one, DecodeProblem(**shape, d_head=d_head, dtype=dtype))


@pytest.mark.long
@EACH
@pytest.mark.parametrize("page_size", (0, 16, 32, 64))
@pytest.mark.parametrize("Nq, group", ((1, 16), (8, 1), (5, 3), (8, 16), (3, 4)))
def test_rows_groups_and_pages(one, page_size, Nq, group):
    shape = {"B": 3, "Hq": 2 * group, "Hkv": 2, "Nq": Nq, "Nkv": 150, "lengths": (150, 4, 97), "page_size": page_size}
    verify(one, DecodeProblem(**shape, d_head=64))


@pytest.mark.parametrize("one", [one for one in CHOSEN if one.slug == "paged_kv"], ids=lambda one: one.name)
def test_more_units_of_a_warp_than_lanes(one):
    """In pages of half a unit, the last of which is the table's last one. By its own choice the stage divides the head,
    and its warps have fewer units than lanes."""
    problem = DecodeProblem(Hq=1, Hkv=1, Nkv=8880, d_head=64, page_size=16)
    verify(one, problem, configuration="warps_8+blocks_1")


@pytest.mark.long
@EACH
def test_many_sequences_and_a_long_one(one):
    """More blocks than the device holds, and as many parts of a sequence as it can have."""
    lengths = tuple(np.random.default_rng(1).integers(0, 200, 24).tolist())
    verify(one, DecodeProblem(B=24, Hq=4, Hkv=2, Nkv=200, lengths=lengths, d_head=64, page_size=32))
    few = {"WARPSIM_MULTIPROCESSORS": "2"}  # so many heads for each that stages choose otherwise
    problem = DecodeProblem(B=24, Hq=4, Hkv=2, Nkv=200, lengths=lengths, d_head=64)
    result = verify(one, problem, device="sim", environment=few)
    assert result.description["configuration"] == "warps_4+blocks_3+resident_2" or one.slug != "paged_kv"
    many = {"WARPSIM_MULTIPROCESSORS": "48"}
    result = verify(one, DecodeProblem(Hq=2, Hkv=1, Nkv=2400, d_head=64), device="sim", environment=many)
    assert result.description["splits"] > 8 or one.slug == "decode_naive"


@pytest.mark.long
@EACH
@pytest.mark.parametrize("scale", (-0.7, 3.0))
def test_scales(one, scale):
    verify(one, DecodeProblem(Hq=4, Hkv=2, Nq=2, Nkv=140, d_head=64, scale=scale, dtype="fp16"))


@pytest.mark.long
@EACH
def test_large_and_very_low_scores(one):
    for sign in (1, -1):
        problem = DecodeProblem(Hq=2, Hkv=1, Nkv=200, d_head=64)
        inputs = problem.random(5)
        inputs["Q"] = np.full_like(inputs["Q"], 0x4080)  # 4 in bf16
        inputs["K"] = np.full_like(inputs["K"], 0x4180 if sign > 0 else 0xC180)  # 16 or -16
        verify(one, problem, inputs)


@EACH
@pytest.mark.parametrize("schedule", ("1", pytest.param("2", marks=pytest.mark.long), "3"))
def test_other_orders_of_execution(one, schedule):
    problem = DecodeProblem(B=2, Hq=4, Hkv=1, Nkv=140, lengths=(140, 71), d_head=64)
    in_order(one, schedule, verify, problem, repeat=2)


@EACH
def test_a_stream_of_its_own(one):
    """What goes to the default stream instead is late: nothing waits for it before the outputs are looked at."""
    verify(one, DecodeProblem(Hq=2, Hkv=1, Nkv=65, d_head=64), own_stream=True, repeat=2)


@EACH
def test_captured_in_a_graph(one):
    """The graph holds two calls one right after the other; it is launched twice over one workspace."""
    result = verify(one, DecodeProblem(Hq=2, Hkv=1, Nkv=140, d_head=64), own_stream=True, graph=True, repeat=2)
    assert not result.changed


# ---- refusals ----

SMALL = DecodeProblem(Hq=4, Hkv=2, Nq=2, Nkv=200, d_head=64)
IN_PAGES = DecodeProblem(Hq=4, Hkv=2, Nq=2, Nkv=200, d_head=64, page_size=32)
WRONG = {
    "null": ({"K.data": 0}, INVALID, "K is a null pointer"),
    "misaligned": ({"O.data": {"add": 8}}, INVALID, "O must be 16-byte aligned"),
    "odd stride": ({"V.stride_row": {"add": 4}}, INVALID, "V's row stride must be a non-negative multiple of 8"),
    "no lengths": ({"lengths": 0}, INVALID, "lengths is a null pointer"),
    "odd lengths": ({"lengths": {"add": 2}}, INVALID, "lengths must be 4-byte aligned"),
    "odd log-sum-exp": ({"log_sum_exp": {"add": 2}}, INVALID, "log_sum_exp must be 4-byte aligned"),
    "no cache": ({"Nmax": 0}, INVALID, "Nmax must be positive; it is 0"),
    "heads": ({"Hq": 3, "Hkv": 2}, INVALID, "Hq must be a multiple of Hkv; they are 3 and 2"),
    "group": ({"Hq": 34, "Hkv": 2}, UNSUPPORTED, "Hq / Hkv to be at most 16; they are 34 and 2"),
    "rows": ({"Nq": 9}, UNSUPPORTED, "Nq to be at most 8; it is 9"),
    "scale": ({"scale": float("nan")}, INVALID, "scale must be finite; it is nan"),
    "e4m3": ({"dtype": 2}, UNSUPPORTED, "takes fp16 and bf16; dtype is 2 (e4m3)"),
    "head dim": ({"d_head": 96}, UNSUPPORTED, "supports d_head 64 and 128; it is 96"),
    "pages without a table": ({"page_size": 16}, INVALID, "are 0 where block_table is null; they are 0, 16 and 0"),
    "small workspace": ({"workspace_bytes": 16}, INVALID, "(flash_describe_decode() tells); 16 given"),
    "odd workspace": ({"workspace": {"add": 4}}, INVALID, "workspace must be 16-byte aligned"),
    "configuration": ({"configuration": "fast"}, UNSUPPORTED, "configuration must be null"),
}
WRONG_PAGES = {
    "odd table": ({"block_table": {"add": 2}}, INVALID, "block_table must be 4-byte aligned"),
    "no pages": ({"pages": 0}, INVALID, "pages must be positive; it is 0"),
    "too few pages": ({"max_pages": 6}, INVALID, "max_pages * page_size must be at least Nmax; they are 6, 32 and 200"),
    "page size": ({"page_size": 40}, UNSUPPORTED, "page_size to be a multiple of"),
}


@EACH
@pytest.mark.parametrize(
    "problem, wrong",
    (
        pytest.param(SMALL, WRONG, id="one piece"),
        pytest.param(IN_PAGES, WRONG_PAGES, id="pages", marks=pytest.mark.long),
    ),
)
def test_what_is_wrong_is_refused_and_nothing_else_written(one, problem, wrong):
    described = one.describe(problem)
    idle = {"small workspace", "odd workspace"} if not described["workspace_bytes"] else set()
    idle |= {"page size"} if 40 % described["page_multiple"] == 0 else set()
    idle |= {"no lengths"} if described["optional_lengths"] else set()
    check_refusals(one, problem, {what: case for what, case in wrong.items() if what not in idle})


# ---- launches and techniques ----


@EACH
@pytest.mark.parametrize("problem", (PAGES, PARTS), ids=("pages", "parts"))
def test_launch_data(one, problem):
    problem = with_pages_of(one, problem)
    only_simulated(one, "the grid is that of another device")
    check_launches(
        one,
        problem,
        Bc=one.launch.get("Bc", 0),
        zeroed_bytes=launches.workspace_bytes(one, problem, "zeroed_bytes"),
        splits=launches.own_names(one, problem)["splits"],
        page_multiple=one.page_multiple,
        supports_log_sum_exp=1,
        supports_gqa=1,
    )


@EACH
@pytest.mark.parametrize("d_head, dtype", ((128, "bf16"), pytest.param(64, "fp16", marks=pytest.mark.long)))
def test_the_technique_is_used(one, d_head, dtype):
    found = technique.judge(one, d_head=d_head, dtype=dtype)
    assert not found, f"stage {one.id} is right, but {'; '.join(found)}"


# ---- problems ----


def test_a_problem_in_pages_is_the_one_in_one_piece():
    """The same numbers, whatever pages they lie in; NaNs elsewhere, and page numbers that are no page's."""
    problem, inputs = IN_PAGES, IN_PAGES.random(1)
    for name in "KV":
        rows = problem.cache_rows(inputs, name, 0)
        assert rows.shape == (2, 200, 64) and not (rows == 0xFFFF).any()
        assert (inputs[name] == 0xFFFF).sum() == inputs[name].size - rows.size
    assert len(set(inputs["block_table"][0])) == problem.max_pages == problem.pages - 1
    with pytest.raises(FlashLadderError, match="one is wanted, from 0 to 256"):
        DecodeProblem(lengths=(3, 4))


PAGED_KV = pytest.mark.parametrize("one", [one for one in CHOSEN if one.slug == "paged_kv"], ids=lambda one: one.name)
# The first look sees other lengths, or another table, than the second: the launch before has written them meanwhile.
FIRST_LOOKS = {
    "lengths": ("read_lengths(params, warps);", "read_lengths(guess ? all_longest(params) : params, warps);"),
    "table": (
        "const Place<box> first = ",
        "if (guess) units.now.block[0] -= 7;\n        const Place<box> first = ",
    ),
}
ALL_LONGEST = """
__device__ FlashDecodeParams all_longest(FlashDecodeParams params) {
    params.lengths = nullptr;
    return params;
}

// ---- kernel ----
"""


@PAGED_KV
@pytest.mark.parametrize("what", FIRST_LOOKS)
def test_a_wrong_guess_is_found_out(one, what):
    source, (seen, written) = one.source.read_text(), FIRST_LOOKS[what]
    assert source.count(seen) == source.count("\n// ---- kernel ----\n") == 1
    changed = source.replace("\n// ---- kernel ----\n", ALL_LONGEST).replace(seen, written)
    library = compile_kernel(place("break", f"guess-{what}", "kernel.cu", changed), one)
    shape = {"Hq": 4, "Hkv": 2, "Nkv": 300, "d_head": 128, "dtype": "bf16", "page_size": 64}
    verify(one, DecodeProblem(B=5, lengths=(300, 0, 33, 150, 64), **shape), library=library)
    # One length of the fourth row of 32 sequences is another one.
    lengths = (300,) * 98 + (33,)
    verify(one, DecodeProblem(B=99, lengths=lengths, **shape | {"Hq": 1, "Hkv": 1}), library=library)


@PAGED_KV
@pytest.mark.parametrize("shares", (1, 2, 5, 24))
def test_heads_divided_by_their_lengths(one, shares):
    """None of them, the longest one, and all but the shortest ones; an empty one among more sequences than lanes."""
    lengths = (900, 0, 300, 150) + (33,) * 30
    problem = DecodeProblem(B=34, Hq=1, Hkv=1, Nkv=900, lengths=lengths, d_head=64, page_size=64)
    result = verify(one, problem, configuration=f"warps_4+blocks_{shares}", repeat=2)
    assert not result.changed and result.description["splits"] == 34 + shares


@PAGED_KV
def test_more_sequences_than_a_warp_keeps_lengths_of(one):
    """It keeps those of 128, and reads the others' each time."""
    lengths = (40, 0, 70, 1, 33) * 28
    problem = DecodeProblem(B=140, Hq=2, Hkv=1, Nkv=70, lengths=lengths, d_head=64, dtype="fp16", page_size=32)
    assert not verify(one, problem, repeat=2).changed


@PAGED_KV
def test_sixteen_warps(one):
    """Of d_head 64 and one tile of rows alone."""
    lengths = (600, 0, 33, 250)
    problem = DecodeProblem(B=4, Hq=4, Hkv=1, Nkv=600, lengths=lengths, d_head=64, page_size=64)
    assert not verify(one, problem, configuration="warps_16+blocks_3", repeat=2).changed
    for wrong in ({"d_head": 128}, {"Hq": 16}):
        with pytest.raises(FlashLadderError, match="configuration must be null or one such as"):
            verify(one, replace(problem, **wrong), configuration="warps_16+blocks_3")


@EACH
def test_without_a_gpu_the_bench_command_counts_all_that_are_named(one, capsys, monkeypatch):
    monkeypatch.setenv("FLASHLADDER_DEVICE", "sim")
    named = [stage for stage in (stages.previous_of(one), one) if stage]
    other_parts.bench_decode(one, [stage.slug for stage in named])
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("5")]
    assert rows == [stage.name for stage in named]


@EACH
def test_the_run_command(one, capsys):
    words = "--batch 2 --heads 4 --heads-kv 2 --seq 2 --seq-kv 90 --dim 64 --dtype fp16 --layout bnhd --lengths 90,33"
    assert other_parts.run_decode(one, words.split()) == 0
    asked = "fp16 B=2 Hq=4 Hkv=2 Nq=2 Nkv=90 d=64 bnhd lengths=[90, 33]: right"
    said = capsys.readouterr().out
    assert asked in said
    assert other_parts.run_decode(one, [*words.split(), "--seed", "3"]) == 0 and capsys.readouterr().out != said
    if one.page_multiple > 1:
        with pytest.raises(FlashLadderError, match="needs page_size to be a multiple"):
            other_parts.run_decode(one, ["--page-size", "7"])
