"""Sums of mma.sync and wgmma on hard operands: as whole numbers have them, and as a GPU recorded them, to the last bit."""

import json
import zlib
from functools import cache

import numpy as np
import pytest
from cudart import ON_GPU, REPOSITORY
from exact_arithmetic import FORMATS, INF, NAN, decode
from recorded_sums import INTEGERS, VERSION, all_cases, unpacked
from tensor_sums import matrix_product

RECORD = REPOSITORY / "tests" / "simulator" / "recorded" / "H200-sums.json"
CASES = all_cases()


def differences(case, got, want):
    """Words for an assertion: which elements differ."""
    rows, columns = np.nonzero(got != want)
    places = [f"[{r}, {c}] {got[r, c]:#x}, not {want[r, c]:#x}" for r, c in zip(rows[:8], columns[:8], strict=True)]
    return f"{case.name}: {len(rows)} of {got.size} differ: {'; '.join(places)}"


def exact(case):
    a, b, d = case.operands()
    if case.a in INTEGERS:
        wide = [
            x.view(np.int8 if kind == "s8" else np.uint8).astype(np.int64) for x, kind in ((a, case.a), (b, case.b))
        ]
        return (wide[0] @ wide[1].T + d.view(np.int32) & 0xFFFFFFFF).astype(np.uint32)
    return matrix_product(a, b.T, d, case.a, case.b, case.d, case.instruction)


@cache
def recorded() -> dict:
    record = json.loads(RECORD.read_text())
    assert record["operands"] == VERSION, "the operands have changed: PARTS=faults make gpu-report records them anew"
    return record["sums"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_sums_are_those_of_whole_numbers_and_those_that_a_gpu_recorded(case):
    got, want = case.run(), exact(case)
    assert np.array_equal(got, want), f"not as whole numbers have it: {differences(case, got, want)}"
    if not ON_GPU:
        want = unpacked(recorded()[case.name], case)
        assert np.array_equal(got, want), f"not as a GPU has it: {differences(case, got, want)}"


def test_operands_are_for_ever():
    """A record can be compared only where the operands are made as they were."""
    total = 0
    for case in CASES:
        for matrix in case.operands():
            total = zlib.crc32(matrix.astype(matrix.dtype.newbyteorder("<")).tobytes(), total)
    assert (VERSION, len(CASES), total) == (1, 280, 3938267234)


def test_operands_are_hard():
    """The families do what they say: subnormals, NaN and infinities occur, and some sums overflow."""
    for case in CASES:
        if case.a in INTEGERS:
            continue
        fmt = FORMATS[case.a]
        values = [decode(int(bits), fmt)[1] for bits in case.operands()[0].flat]
        if case.what == "specials":
            assert NAN in values and 0 in values and (INF in values or not fmt.has_infinity), case.name
        if case.what == "subnormals":
            assert any(0 < value < 2.0**fmt.least_exponent for value in values), case.name
        if case.what == "near the largest" and (case.d == "f16" or case.a in ("bf16", "tf32")):
            fmt = FORMATS[case.d]
            infinite = (exact(case).astype(np.int64) & ~(1 << (fmt.bits - 1))) == fmt.infinity
            assert 0.1 < infinite.mean() < 0.9, case.name
