"""The float64 reference, the bounds, and planted errors, each of which must be found."""

import numpy as np
import pytest

from flashladder.core import dtypes
from flashladder.core.dtypes import FROBENIUS_LIMIT
from flashladder.core.problem import Problem
from flashladder.ladder import kernels, stages
from flashladder.ladder.run import run, run_problem
from flashladder.running import verify
from flashladder.running.job import StageError

SMALL = Problem(B=2, Hq=4, Hkv=2, Nq=32, d_head=64, dtype="bf16")


def run_fake(fake, fake_stage, plant, problem=SMALL, **options):
    inputs = problem.random(seed=7)
    result = run_problem(fake_stage, problem, inputs, library=fake(plant), **options)
    return verify.check(problem, inputs, result.bits)


@pytest.mark.parametrize("layout", ["bhnd", "bnhd"])
@pytest.mark.parametrize("causal", [False, True])
def test_right_kernel_passes(fake, fake_device, fake_stage, layout, causal):
    problem = Problem(B=2, Hq=4, Hkv=2, Nq=32, Nkv=48, d_head=64, dtype="bf16", layout=layout, causal=causal)
    comparison = run_fake(fake, fake_stage, 0, problem)
    assert comparison.passed, comparison.message
    assert 0 < comparison.frobenius < FROBENIUS_LIMIT[problem.dtype]


@pytest.mark.parametrize("plant", [1, 2, 3, 4])
def test_planted_error_is_found(fake, fake_device, fake_stage, plant):
    comparison = run_fake(fake, fake_stage, plant)
    assert not comparison.passed
    assert "first O[" in comparison.message and "worst O[" in comparison.message
    assert ("never written" in comparison.message) == (plant == 3)


def test_future_leak_is_found(fake, fake_device, fake_stage):
    problem = Problem(B=1, Hq=2, Nq=32, d_head=64, dtype="bf16", causal=True)
    assert not run_fake(fake, fake_stage, 5, problem).passed


def test_refusal_carries_the_stages_message(fake, fake_device, fake_stage):
    with pytest.raises(StageError, match="Nq must be a multiple of 16") as raised:
        run_problem(fake_stage, Problem(Nq=17, d_head=64), library=fake(0))
    assert raised.value.code == 2


def test_failed_launch_is_an_error(fake, fake_device, fake_stage):
    with pytest.raises(StageError, match="a planted failure"):
        run_problem(fake_stage, SMALL, library=fake(0), environment={"FAKE_FAILURE": "1"})


def test_reference_against_plain_formula():
    problem = Problem(B=1, Hq=1, Nq=5, Nkv=7, d_head=8, dtype="fp16", scale=0.3)
    inputs = problem.random()
    q, k, v = (dtypes.from_bits(inputs[name], "fp16")[0, 0].astype(np.float64) for name in "QKV")
    weights = np.exp(np.float64(np.float32(0.3)) * q @ k.T)
    expected = weights / weights.sum(axis=1, keepdims=True) @ v
    out, magnitude, fine = verify.reference(problem, inputs)
    np.testing.assert_allclose(out[0, 0], expected, rtol=1e-12)
    assert (magnitude >= np.abs(out) - 1e-12).all() and not fine.any()


def test_reference_of_chosen_rows_is_part_of_the_whole():
    problem = Problem(B=2, Hq=2, Nq=40, d_head=16, dtype="bf16", causal=True)
    inputs = problem.random()
    whole, *_ = verify.reference(problem, inputs)
    rows = np.array([0, 13, 39])
    part, *_ = verify.reference(problem, inputs, rows, [(1, 0)])
    # Not to the bit: the BLAS may sum in another order for another number of rows.
    np.testing.assert_allclose(part[0], whole[1, 0][rows], rtol=1e-9, atol=1e-12)


def test_large_logits_do_not_overflow():
    problem = Problem(B=1, Hq=1, Nq=4, d_head=16, dtype="bf16", scale=1e4)
    out, *_ = verify.reference(problem, problem.random())
    assert np.isfinite(out).all()


def test_nan_and_infinity_never_pass():
    expected = np.ones((2, 3))
    for value in (np.nan, np.inf):
        output = np.ones((2, 3), np.float32)
        output[1, 2] = value
        comparison = verify.compare(dtypes.to_bits(output, "bf16"), expected, expected, 0 * expected, "bf16")
        assert not comparison.passed and "O[1, 2]" in comparison.message


@pytest.mark.parametrize("dtype, tiny", [("fp16", 2.0**-24), ("bf16", 2.0**-133)])
def test_subnormal_outputs_have_an_absolute_bound(dtype, tiny):
    """Outputs of a few times the smallest number: right ones pass, and one more unit does not."""
    expected = np.random.default_rng(0).uniform(-5, 5, (64, 64)) * tiny
    rounded = np.rint(expected / tiny) * tiny
    bounds = expected, np.abs(expected), np.zeros_like(expected)
    assert verify.compare(dtypes.to_bits(rounded, dtype), *bounds, dtype).passed
    rounded[3, 4] += tiny
    comparison = verify.compare(dtypes.to_bits(rounded, dtype), *bounds, dtype)
    assert not comparison.passed and "worst O[3, 4]" in comparison.message


def test_bf16_rounding_matches_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    patterns = np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint32)
    ties = (np.arange(0, 2**16, dtype=np.uint32) << 16) | 0x8000
    values = np.concatenate([patterns, ties]).view(np.float32)
    values = values[~np.isnan(values)]
    np.testing.assert_array_equal(dtypes.to_bits(values, "bf16"), values.astype(ml_dtypes.bfloat16).view(np.uint16))


def test_e4m3_matches_ml_dtypes():
    """All patterns, and roundings: ties, subnormal numbers, what rounds up to the next power of two; what is too large
    becomes 448, as cvt.rn.satfinite has it and ml_dtypes has not."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    patterns = np.arange(256, dtype=np.uint8)
    known = patterns.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    np.testing.assert_array_equal(dtypes.from_bits(patterns, "e4m3"), known)
    numbers = ~np.isnan(known)
    np.testing.assert_array_equal(dtypes.to_bits(known[numbers], "e4m3"), patterns[numbers])
    positive = np.sort(known[numbers & (known >= 0) & ~np.signbit(known)]).astype(np.float64)
    ties = (positive[1:] + positive[:-1]) / 2
    drawn = 2.0 ** np.random.default_rng(0).uniform(-12, 8.8, 20_000)
    values = np.concatenate([drawn, ties, *(np.nextafter(np.float32(ties), np.float32(to)) for to in (0, 500))])
    for signed in (values, -values):
        wanted = signed.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
        np.testing.assert_array_equal(dtypes.to_bits(signed, "e4m3"), wanted)
    np.testing.assert_array_equal(dtypes.to_bits(np.array([449, 1e30, np.inf, -np.inf, np.nan]), "e4m3"),
                                  [0x7E, 0x7E, 0x7E, 0xFE, 0x7F])  # fmt: skip


@pytest.mark.parametrize("layout", ("bhnd", "bnhd"))
def test_scales_make_up_for_the_rounding_to_e4m3(layout):
    """Heads of very different sizes, one of them all zeros: each keeps as many bits."""
    problem = Problem(B=2, Hq=3, Nq=40, d_head=64, dtype="e4m3", layout=layout)
    values = {name: np.random.default_rng(1).standard_normal(problem.shape(name)) for name in "QKV"}
    factors = np.array([[1e-4, 1.0, 0.0], [300.0, 1e4, 1e-2]])
    for array in values.values():
        problem.to_bhnd(array)[...] *= factors[:, :, None, None]
    inputs = problem.rounded(values)
    for name, array in values.items():
        exact, got = problem.to_bhnd(array), problem.values(inputs, name)
        scale = inputs[f"{name}_scales"][:, :, None, None]
        assert (np.abs(got - exact) <= np.maximum(np.abs(exact) * (2.0**-4 + 1e-6), scale * 2.0**-10)).all()
        assert (got[0, 2] == 0).all() and inputs[f"{name}_scales"][0, 2] == 1


def test_nan_stays_nan_in_bf16():
    nan = np.array([0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)
    assert np.isnan(dtypes.from_bits(dtypes.to_bits(nan, "bf16"), "bf16")).all()


def test_run_takes_arrays_and_dlpack(fake, fake_device, fake_stage, monkeypatch):
    monkeypatch.setattr(stages, "get", lambda which: fake_stage)
    monkeypatch.setattr(kernels, "stage_library", lambda number: fake(0))
    generator = np.random.default_rng(3)
    q, k, v = (generator.standard_normal((1, 2, 16, 64), np.float32) for _ in range(3))

    class OnlyDlpack:
        def __dlpack__(self, **options):
            return q.__dlpack__(**options)

        def __dlpack_device__(self):
            return q.__dlpack_device__()

    first = run(1, q, k, v)
    second = run(1, OnlyDlpack(), k, v)
    assert first.bits.shape == (1, 2, 16, 64)
    np.testing.assert_array_equal(first.bits, second.bits)
