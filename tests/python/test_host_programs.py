"""What the runners' C++ (common/host) and the package must agree about: the bounds, the FLOPs; and its errors.

The bounds stand here as numbers, so that a change of common/host/bounds.h shows.
"""

import json
import subprocess

import numpy as np
import pytest
from hostcc import HERE, ROOT, compile_cpp

from flashladder.core.abi import TYPE_NUMBERS
from flashladder.core.dtypes import LOG_SUM_EXP_UNIT, OUTPUT, from_bits, to_bits
from flashladder.core.problem import Problem
from flashladder.running import verify

UNIT = {"fp16": 2.0**-11, "bf16": 2.0**-8, "e4m3": 2.0**-4}
ELEMENT = {"fp16": 4, "bf16": 4, "e4m3": 1.5}
SMALLEST = {"fp16": 2.0**-24, "bf16": 2.0**-133, "e4m3": 2.0**-133}  # of O
FROBENIUS = {"fp16": 6e-4, "bf16": 4e-3, "e4m3": 4e-2}
ROOM = {"fp16": 1, "bf16": 1, "e4m3": 1 / 16}


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """host(words) -> what tests/python/compare.cpp prints."""
    output = tmp_path_factory.mktemp("host") / "compare"
    sources = [str(ROOT / "common/host" / name) for name in ("reference.cpp", "problem.cpp")]
    program = compile_cpp(HERE / "compare.cpp", output, *sources, f"-I{ROOT}/common/host", "-pthread")

    def ask(words: str) -> str:
        done = subprocess.run([program], input=words, capture_output=True, text=True)
        assert done.returncode == 0, f"the program ended with status {done.returncode}: {done.stderr}"
        return done.stdout.strip()

    return ask


def one_element(dtype: str, share: float):
    """1024 outputs of 1; one is off by `share` of 4 u softmax(S)|V| (e4m3: 1.5 u) and of half the smallest number."""
    output, expected = np.ones(1024), np.ones(1024)
    expected[700] += share * (ELEMENT[dtype] * UNIT[dtype] + SMALLEST[dtype] / 2)
    return output, expected, np.ones(1024), np.zeros(1024)


def all_elements(dtype: str, share: float):
    """1024 outputs that are all off by `share` of the relative Frobenius error allowed; each within its own bound."""
    output = np.ones(1024)
    return output, output / (1 + share * FROBENIUS[dtype]), output, np.zeros(1024)


def one_tiny_element(dtype: str, share: float):
    """An output of the smallest number where V is 0: it may be off by half of that."""
    output, expected = np.zeros(1024), np.zeros(1024)
    output[5] = SMALLEST[dtype]
    expected[5] = SMALLEST[dtype] * (1 - share / 2)
    return output, expected, np.zeros(1024), np.zeros(1024)


def all_tiny_elements(dtype: str, share: float):
    """1024 smallest numbers, each off by `share` of half of that; |V| is large, so that only the whole is limited."""
    output = np.full(1024, SMALLEST[dtype])
    # error = share * limit, limit = FROBENIUS |expected| + SMALLEST / 2, expected = output - error
    limit = (FROBENIUS[dtype] + 0.5) * SMALLEST[dtype] / (1 + share * FROBENIUS[dtype])
    return output, output - share * limit, np.ones(1024), np.zeros(1024)


def one_element_of_tiny_weights(dtype: str, share: float):
    """1024 outputs of 1, one off by `share` of what weights below the normal numbers may move it by; |V| is tiny."""
    output, expected, fine = np.ones(1024), np.ones(1024), np.zeros(1024)
    fine[700] = 0.25
    expected[700] += share * (fine[700] + SMALLEST[dtype] / 2)
    return output, expected, np.zeros(1024), fine


def all_elements_of_tiny_weights(dtype: str, share: float):
    """1024 zeros, off by `share` of what the whole may be off by for its weights; each within its own bound."""
    fine = np.full(1024, 0.25)
    expected = np.zeros(1024)
    limit = (ROOM[dtype] * 0.25 + SMALLEST[dtype] / 2) / (
        1 - FROBENIUS[dtype]
    )  # = FROBENIUS |expected| + |fine| + SMALLEST / 2
    return np.zeros(1024), expected - share * limit, np.ones(1024), fine


@pytest.mark.parametrize("side", ("runner", "package"))
@pytest.mark.parametrize("dtype", TYPE_NUMBERS)
@pytest.mark.parametrize(
    "case",
    (
        one_element,
        all_elements,
        one_tiny_element,
        all_tiny_elements,
        one_element_of_tiny_weights,
        all_elements_of_tiny_weights,
    ),
    ids=lambda c: c.__name__,
)
def test_bounds_are_where_they_should_be(host, case, dtype, side):
    for share, passes in ((0.99, True), (1.01, False)):
        output, *arrays = case(dtype, share)
        bits = to_bits(output, OUTPUT[dtype])
        if side == "package":
            got = verify.compare(bits, *arrays, dtype).passed
        else:
            lines = [" ".join((str(b), *(number.hex() for number in rest))) for b, *rest in zip(bits, *arrays)]
            got = host(f"compare {TYPE_NUMBERS[dtype]} {len(bits)}\n" + "\n".join(lines)) == "1"
        assert got == passes, f"at {share} of the {dtype} bound ({case.__doc__}) the {side} says passed = {got}"


@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("Nq, Nkv", ((5, 5), (3, 11), (11, 3), (1, 1)))
@pytest.mark.parametrize("dtype, scale", (("bf16", 0.35), ("fp16", 3.0), ("bf16", 20.0), ("e4m3", 0.35), ("e4m3", 3.0)))
def test_both_references_are_the_same(host, dtype, scale, Nq, Nkv, causal):
    """O and what its bound is made of, log-sum-exp and its bound, of ragged lengths, with and without a mask, 4 heads
    on 2; against the formula. Scales of 3 and 20 leave weights below fp16's and below bf16's normal numbers. e4m3: a
    head dim of three sums on the tensor cores."""
    d = 72 if dtype == "e4m3" else 8
    problem = Problem(B=2, Hq=4, Hkv=2, Nq=Nq, Nkv=Nkv, d_head=d, causal=causal, dtype=dtype, scale=scale)
    words = f"reference 2 4 2 {Nq} {Nkv} {d} {int(causal)} {TYPE_NUMBERS[dtype]} {scale}"
    lines = [line.split() for line in host(words).splitlines()]
    inputs = {
        name: np.array(line, problem.bits_type(name)).reshape(problem.shape(name)) for name, line in zip("QKV", lines)
    }
    *arrays, sums, bound = (np.array(line, np.float64) for line in lines[3:8])
    heads = {name: (2, 4 if name == "Q" else 2) for name in "QKV"}
    for name, line in zip("QKV", lines[8:], strict=False):
        inputs[f"{name}_scales"] = np.array(line, np.float32).reshape(heads[name])
    if dtype == "e4m3":
        for name in "QKV":  # heads' largest elements are the type's largest number, half and a third of it, by turns
            largest = np.abs(from_bits(problem.to_bhnd(inputs[name]), dtype)).max(axis=(2, 3)).ravel()
            np.testing.assert_allclose(largest * (np.arange(largest.size) % 3 + 1), 448, rtol=0.05)
    for got, wanted in zip(arrays, verify.reference(problem, inputs), strict=True):
        np.testing.assert_allclose(got, wanted.ravel(), rtol=1e-9, atol=1e-15)
    if dtype == "fp16" and (Nq, Nkv) == (5, 5):
        assert arrays[2].any(), "no weight was small enough to show"
    expected, expected_bound = verify.log_sum_exp(problem, inputs)
    np.testing.assert_allclose(sums, expected.ravel(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(bound, expected_bound.ravel(), rtol=1e-12)
    q, k = (problem.values(inputs, name) for name in "QK")
    for b, h, i in np.ndindex(2, 4, Nq):
        seen = max(0, min(Nkv, i + 1 + Nkv - Nq)) if causal else Nkv
        with np.errstate(divide="ignore"):
            scores = np.float64(np.float32(problem.scale)) * (k[b, h // 2, :seen] @ q[b, h, i])
            wanted = np.log(np.exp(scores).sum())
        assert expected[b, h, i] == wanted or abs(expected[b, h, i] - wanted) < 1e-12, f"row {b}, {h}, {i}"


@pytest.mark.parametrize("side", ("runner", "package"))
def test_log_sum_exp_has_its_bound(host, side):
    """Just inside and just outside; a row without keys is -infinity and nothing else; NaN never passes."""
    infinity = float("inf")
    cases = [
        (2.5 + 0.99 * 2.0**-10, 2.5, 2.0**-10, True),
        (2.5 - 1.01 * 2.0**-10, 2.5, 2.0**-10, False),
        (-infinity, -infinity, 2.0**-10, True),
        (-1e38, -infinity, 2.0**-10, False),
        (infinity, -infinity, 2.0**-10, False),
        (-infinity, 2.5, 2.0**-10, False),
        (float("nan"), 2.5, 2.0**-10, False),
        (float("nan"), -infinity, 2.0**-10, False),
    ]
    for got, expected, bound, passes in cases:
        if side == "package":
            arrays = (np.array([[[number]]]) for number in (np.float32(got), expected, bound))
            said = verify.compare_log_sum_exp(*arrays).passed
        else:
            said = host(f"sums {float(got)!r} {expected!r} {bound!r}") == "1"
        assert said == passes, f"{got} for {expected}, bound {bound}: the {side} says passed = {said}"


def test_a_row_at_its_bound_is_not_the_first_beyond_it():
    said = verify.compare_log_sum_exp(np.float32([[[1, 3]]]), np.zeros((1, 1, 2)), np.ones((1, 1, 2))).message
    assert said.startswith("1 of 2 rows'") and "first log_sum_exp[0, 0, 1] = 3" in said


@pytest.mark.parametrize("dtype", TYPE_NUMBERS)
def test_what_rounding_moves_weights_by(dtype):
    """P = weight p, rounded, of e4m3 on a straight line: never further off than u p (of e4m3 1.5 u p) + fine(p), at
    some p nearly that far. fine is 0 where P is a normal number, of e4m3 from 8.5 times that on."""
    # Of a row's largest score: optimistic_max's margin, e4m3's headroom.
    least = {"fp16": 2.0**-3, "bf16": 2.0**-32, "e4m3": 2.0**8}[dtype]
    normal = {"fp16": 2.0**-14, "bf16": 2.0**-126, "e4m3": 2.0**-6}[dtype] / least
    p = normal * np.concatenate([2.0 ** np.random.default_rng(0).uniform(-14, 4, 20000), [0.0, 1.0, 16.0]])
    is_line = dtype == "e4m3"
    error = np.abs(from_bits(_on_the_line(least * p) if is_line else to_bits(least * p, dtype), dtype) / least - p)
    allowed = (1.5 if is_line else 1) * UNIT[dtype] * p + verify.fine_errors(p, dtype)
    assert (error <= allowed).all()
    assert (error[p < normal] > 0.97 * allowed[p < normal]).any()
    assert not verify.fine_errors(p[p >= normal * (8.5 if is_line else 1)], dtype).any()


def _on_the_line(P: np.ndarray) -> np.ndarray:  # noqa: N803 - as everywhere
    """The bytes that stage fp8 takes for weights."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.rint(8 * (7 + np.log2(P)) - 0.4), 0).astype(np.uint8)


def test_the_unit_of_log_sum_exp():
    assert LOG_SUM_EXP_UNIT == 2.0**-23
    problem = Problem(Hq=1, Nq=1, Nkv=32, d_head=64, scale=0.5)
    ones = {name: to_bits(np.ones(problem.shape(name)), "bf16") for name in "QKV"}
    values, bound = verify.log_sum_exp(problem, ones)
    assert values[0, 0, 0] == pytest.approx(32 + np.log(32), rel=1e-12)
    assert bound[0, 0, 0] == 2.0**-23 * (64 * 32 + 32 / 16 + 64)


@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("Nq, Nkv", ((256, 256), (128, 384), (384, 128)))
def test_flops_are_the_same_on_both_sides(host, Nq, Nkv, causal):
    """4 B Hq Nq Nkv d, half of it where causal."""
    wanted = 4 * 2 * 3 * Nq * Nkv * 64 / (2 if causal else 1)
    assert Problem(B=2, Hq=3, Nq=Nq, Nkv=Nkv, d_head=64, causal=causal).flops() == wanted
    assert float(host(f"flops 2 3 {Nq} {Nkv} 64 {int(causal)}")) == wanted


def test_a_reference_without_memory_is_an_error_and_no_abort(host):
    assert host("no-memory") == "bad_alloc"


# ---- what they write as JSON ----


def test_what_is_written_can_be_read(tmp_path):
    """Whatever a name or a number is."""
    program = compile_cpp(HERE / "write_json.cpp", tmp_path / "write_json")
    text = subprocess.run([program], capture_output=True, check=True).stdout.decode("utf-8")
    wrong = "\ufffd"  # stands for each byte that is no UTF-8
    assert json.loads(text) == {
        'quotes " and \\': f"tab\t, line\n, bell\a, é, {wrong}, {wrong}{wrong}, cut {wrong}{wrong}",
        "numbers": [2**64 - 1, -7, 0.1, None, None, None],
        "empty": {},
        "triple": [1, -2, 3],
        "right": True,
    }, f"read back from {text}"
