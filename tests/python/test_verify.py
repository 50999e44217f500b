"""The float64 reference, the bounds, and planted errors, each of which must be found."""

import numpy as np
import pytest

from flashladder.core import dtypes
from flashladder.core.dtypes import FROBENIUS_LIMIT
from flashladder.core.problem import Problem
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


def test_nan_stays_nan_in_bf16():
    nan = np.array([0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)
    assert np.isnan(dtypes.from_bits(dtypes.to_bits(nan, "bf16"), "bf16")).all()


def test_run_takes_arrays_and_dlpack(fake, fake_device, fake_stage, monkeypatch):
    from flashladder.ladder import run as run_module

    monkeypatch.setattr(run_module.stages, "get", lambda which: fake_stage)
    monkeypatch.setattr(run_module, "stage_library", lambda number: fake(0))
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
