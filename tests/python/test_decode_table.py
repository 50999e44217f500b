"""What is tried for a decode stage's table, and the table's lines from a record: of times that a test makes up."""

import re

import pytest

from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.measuring import decode_bench
from flashladder.tuning import decode_table

FEW_HEADS = DecodeProblem(Hq=32, Hkv=8, Nkv=16384, d_head=64)
SETTINGS = decode_bench.Settings(head_dims=(64, 128))


def test_configurations_are_those_that_the_table_would_make():
    """8 heads on 132 multiprocessors: half of these are 66 blocks, and with equal lengths a multiple of the heads."""
    tried = decode_bench.tries(FEW_HEADS, 132)
    assert tried["warps_8+blocks_64"] == [(8, 0.5, 0)]
    assert tried["warps_8+blocks_64+resident_1"] == [(8, 0.5, 1)]
    assert tried["warps_8+blocks_8"] == [(8, 0, 0)] and "warps_4+blocks_264+resident_2" in tried
    unequal = DecodeProblem(B=2, Hq=32, Hkv=8, Nkv=16384, lengths=(16384, 5), d_head=64)
    assert {"warps_8+blocks_66", "warps_16+blocks_66"} <= decode_bench.tries(unequal, 132).keys()
    # Of d_head 128 a block has so much shared memory that one alone fits; two tiles of rows want 8 warps.
    wide = decode_bench.tries(DecodeProblem(Hq=32, Hkv=8, Nkv=16384, d_head=128), 132)
    assert "warps_8+blocks_64" in wide and "warps_8+blocks_64+resident_1" not in wide
    two_tiles = decode_bench.tries(DecodeProblem(Hq=16, Hkv=1, Nkv=4096, d_head=64), 132)
    assert all(name.startswith("warps_8") for name in two_tiles)


@pytest.mark.parametrize("Hq, Hkv, warps", ((32, 8, 8), (32, 8, 4), (16, 1, 8)))
def test_the_kernel_takes_what_is_tried(Hq, Hkv, warps):
    """And asks for so much shared memory that no more blocks fit on a multiprocessor than are to be resident."""
    problem, stage = DecodeProblem(Hq=Hq, Hkv=Hkv, Nkv=16384, d_head=64), stages.entry("lean")
    of_warps = [name for name in decode_bench.tries(problem, 132) if name.startswith(f"warps_{warps}")]
    for configuration in of_warps[-2:]:
        found = stage.describe(problem, "sim", configuration=configuration)
        assert found["configuration"] == configuration
        resident = re.search(r"resident_(\d)", configuration)
        assert not resident or 228 << 10 < (int(resident[1]) + 1) * (found["shared_bytes"] + 1024)


LEAN = decode_table.text_of("lean")


def record(best: dict[int, decode_table.Blocks], stage: str = "lean") -> dict:
    """Of SETTINGS' problems, all with the same times: by head dim one entry of the table is the fastest."""
    rows = []
    for problem in SETTINGS.problems():
        for configuration, entries in decode_bench.tries(problem, 132).items():
            us = 10.0 if best[problem.d_head] in entries else 11.0
            facts = {"name": f"{stage} {configuration}", "kind": "stage", "us": {"median": us}}
            rows.append(decode_bench.DecodeBench.fields_of(problem) | facts | {"configuration": configuration})
    equal = [row for row in rows if "lengths" not in row and not row["page_size"]]
    return {"multiprocessors": 132, "measurements": equal, "other_caches": [row for row in rows if row not in equal]}


def test_each_line_takes_what_was_the_fastest_for_its_shapes():
    best = {64: (8, 1, 1), 128: (8, 1, 0)}
    told = decode_table.lines_from(record(best))
    lines = decode_table.lines_of("\n".join(told))
    before = decode_table.lines_of(LEAN)
    assert [line.most_keys for line in lines] == [line.most_keys for line in before]
    few = next(line for line in lines if line.fits(FEW_HEADS, 132))
    assert few.blocks[64] == best[64] and few.blocks[128] == best[128]
    assert any(str(FEW_HEADS) in line and line.endswith("{8, 1, 1} 10.0") for line in told)


def test_the_record_says_whose_table_it_is():
    """That of paged_kv has lines for all lengths, in pages or in one piece."""
    best = {64: (8, 0.5, 1), 128: (8, 0.5, 0)}
    lines = decode_table.lines_of("\n".join(decode_table.lines_from(record(best, "paged_kv"))))
    before = decode_table.lines_of(decode_table.text_of("paged_kv"))
    assert len(lines) == len(before) and all(line.any_lengths == "true" for line in before)
    used = [next(line for line in lines if line.fits(problem, 132)) for problem in SETTINGS.problems()]
    assert used and all(line.blocks == best for line in used)
    with pytest.raises(FlashLadderError, match="of one of lean, paged_kv; it has .'short_ends'."):
        decode_table.lines_from(record(best, "short_ends"))


def test_what_stood_there_stays_where_nothing_is_faster():
    before = decode_table.lines_of(LEAN)
    shapes = [decode_table.Shape(FEW_HEADS, {(8, 0.5, 0): 10.0, (8, 1, 1): 9.97, (4, 1, 0): 9.0})]
    assert decode_table.chosen(shapes, (8, 0.5, 0)) == (4, 1, 0)
    del shapes[0].times[4, 1, 0]
    assert decode_table.chosen(shapes, (8, 0.5, 0)) == (8, 0.5, 0)
    other = decode_table.Shape(FEW_HEADS, {(8, 3, 0): 1.0})
    assert decode_table.chosen([*shapes, other], (8, 0.5, 0)) == (8, 0.5, 0)
    assert all(str(line) in LEAN.splitlines() for line in before)
    with pytest.raises(FlashLadderError, match="has no line of the form"):
        decode_table.lines_of("constexpr Choice choices[] = {};")
