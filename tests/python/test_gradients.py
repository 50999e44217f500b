"""The float64 gradients are derivatives, the comparison finds what is wrong, a stage on the host runs right."""

from dataclasses import replace

import numpy as np
import pytest
from hostcc import HERE, compile_cpp

from flashladder.core.dtypes import from_bits, to_bits
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.running import gradients
from flashladder.running.job import Options, StageError, run_library
from flashladder.running.verify import reference

RAGGED = Problem(B=1, Hq=4, Hkv=2, Nq=5, Nkv=7, d_head=8, dtype="fp16", causal=True)
BLIND = Problem(B=2, Hq=1, Nq=6, Nkv=3, d_head=8, causal=True, scale=0.7, layout="bnhd")  # rows that see no key
PLAIN = Problem(B=1, Hq=2, Nq=4, Nkv=9, d_head=8, layout="gaps")


def loss(problem: Problem, values: dict[str, np.ndarray]) -> float:
    """sum(dO * O) of values in float64, (B, heads, rows, d): written without the reference's code."""
    total = 0.0
    for b in range(problem.B):
        for h in range(problem.Hq):
            kv = h // (problem.Hq // problem.Hkv)
            for i in range(problem.Nq):
                keys = problem.Nkv if not problem.causal else max(0, i + 1 + problem.Nkv - problem.Nq)
                if keys == 0:
                    continue
                scores = values["K"][b, kv, :keys] @ values["Q"][b, h, i] * float(np.float32(problem.scale))
                weights = np.exp(scores) / np.exp(scores).sum()
                total += values["dO"][b, h, i] @ (weights @ values["V"][b, kv, :keys])
    return total


@pytest.mark.parametrize("problem", (RAGGED, BLIND, PLAIN), ids=str)
def test_the_reference_is_the_derivative(problem):
    inputs = gradients.random_inputs(problem, 4)
    wanted = gradients.expected(problem, inputs)
    values = {name: problem.values(inputs, name).copy() for name in ("Q", "K", "V", "dO")}
    step, dice = 1e-5, np.random.default_rng(0)
    for of, name in (("Q", "dQ"), ("K", "dK"), ("V", "dV")):
        for _ in range(40):
            at = tuple(dice.integers(size) for size in values[of].shape)
            middle = values[of][at]
            sides = []
            for side in (middle + step, middle - step):
                values[of][at] = side
                sides.append(loss(problem, values))
            values[of][at] = middle
            slope = (sides[0] - sides[1]) / (2 * step)
            assert wanted[name].value[at] == pytest.approx(slope, rel=1e-6, abs=1e-8), f"{name}{list(at)}"


def test_heads_that_cannot_be_shared_are_refused_in_words():
    with pytest.raises(FlashLadderError, match="Hq must be a multiple of Hkv; they are 3 and 2"):
        gradients.random_inputs(replace(PLAIN, Hq=3, Hkv=2))


def test_a_part_is_a_part_of_the_whole():
    problem = Problem(B=2, Hq=2, Nq=6, Nkv=6, d_head=8, causal=True)
    inputs = gradients.random_inputs(problem, 1)
    rows = np.array([0, 2, 5])
    part = gradients.expected(problem, inputs, gradients.Part(((1, 0), (0, 1)), rows, rows))
    whole = gradients.expected(problem, inputs)
    for name in gradients.GRADIENTS:
        for number, (b, h) in enumerate(((1, 0), (0, 1))):
            assert np.allclose(part[name].value[number], whole[name].value[b, h][rows], rtol=1e-12, atol=1e-14)
            assert np.allclose(part[name].magnitude[number], whole[name].magnitude[b, h][rows], rtol=1e-12)


def test_long_rows_are_computed_in_chunks(monkeypatch):
    problem = Problem(B=1, Hq=2, Hkv=1, Nq=11, Nkv=5, d_head=8)
    inputs = gradients.random_inputs(problem, 1)
    whole = gradients.expected(problem, inputs)
    monkeypatch.setattr(gradients, "CHUNK", 4)
    for name, one in gradients.expected(problem, inputs).items():
        assert np.allclose(one.value, whole[name].value, rtol=1e-12, atol=1e-14), name


def rounded(problem: Problem, inputs: dict) -> dict[str, np.ndarray]:
    """The reference's gradients as a stage writes them."""
    wanted = gradients.expected(problem, inputs)
    return {name: to_bits(problem.to_bhnd(one.value), problem.dtype) for name, one in wanted.items()}


@pytest.mark.parametrize("name, at", (("dQ", (0, 1, 3, 2)), ("dK", (0, 0, 6, 0)), ("dV", (0, 1, 0, 7))))
def test_a_wrong_element_is_named_with_its_tensor_row_and_column(name, at):
    inputs = gradients.random_inputs(RAGGED, 2)
    got = rounded(RAGGED, inputs)
    assert gradients.check(RAGGED, inputs, got)
    one = got[name][at[:3]]  # the element's row
    one[at[3]] = to_bits(from_bits(one, "fp16") + np.float32(0.5), "fp16")[at[3]]
    comparison = gradients.check(RAGGED, inputs, got)
    assert not comparison and f"{name}: " in comparison.message and f"first {name}{list(at)} =" in comparison.message


def test_what_was_not_written_is_wrong():
    inputs = gradients.random_inputs(PLAIN, 2)
    got = rounded(PLAIN, inputs)
    got["dV"][0, 0, 8, :3] = 0xFFFF
    comparison = gradients.check(PLAIN, inputs, got)
    assert not comparison and "3 elements were never written" in comparison.message


@pytest.mark.parametrize("dtype, error", (("bf16", 2.0**-8), ("fp16", 2.0**-11)))
def test_rounding_of_all_that_has_to_be_rounded_is_admitted(dtype, error):
    """P, dS and O rounded to the type and everything else exact: within a half of the bound, and not far below it."""
    problem = Problem(B=1, Hq=1, Nq=40, Nkv=48, d_head=16, dtype=dtype)
    inputs = gradients.random_inputs(problem, 5)
    q, k, v, do, o = (problem.values(inputs, name)[0, 0] for name in ("Q", "K", "V", "dO", "O"))

    def near(values):
        return from_bits(to_bits(values, dtype), dtype).astype(np.float64)

    P = np.exp(problem.scale * q @ k.T - inputs["log_sum_exp"][0, 0][:, None].astype(np.float64))
    dS = near(near(P) * (do @ v.T - (do * o).sum(axis=1)[:, None]))
    exact = {"dQ": problem.scale * dS @ k, "dK": problem.scale * dS.T @ q, "dV": near(P).T @ do}
    got = {name: to_bits(array[None, None], dtype) for name, array in exact.items()}
    comparison = gradients.check(problem, inputs, got)
    assert comparison and 0.02 < comparison.worst_ratio < 0.6, comparison.message


def test_a_row_that_sees_one_key_has_no_gradient_and_room_for_its_rounding():
    problem = Problem(B=1, Hq=1, Nq=1, Nkv=2, d_head=16)
    inputs = gradients.random_inputs(problem, 3)
    one = replace(problem, Nkv=1)
    of_one = gradients.completed(one, {"Q": inputs["Q"], "K": inputs["K"][:, :, :1], "V": inputs["V"][:, :, :1],
                                       "dO": inputs["dO"]})  # fmt: skip
    wanted = gradients.expected(one, of_one)
    assert np.abs(wanted["dQ"].value).max() < 1e-12 and wanted["dQ"].room > 1e-3
    zero = np.zeros((1, 1, 1, 16), np.uint16)
    dV = to_bits(reference(one, of_one)[0] * 0 + problem.values(inputs, "dO")[:, :, :1], "bf16")
    assert gradients.check(one, of_one, {"dQ": zero, "dK": zero, "dV": dV})


# ---- runs ----


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("backward")

    def compiled(plant: int = 0):
        file = folder / f"libstage_{plant}.so"
        if not file.exists():
            compile_cpp(HERE / "fake/backward_stage.cpp", file, "-shared", "-fPIC", f"-DPLANT={plant}")
        return file

    return compiled


def ran(library, fake_device, plant: int, problem: Problem, **options):
    from flashladder.core.device import Device

    inputs = gradients.random_inputs(problem, 1)
    where = Device("gpu", fake_device)
    result = run_library("stage 99", library(plant), problem, inputs, where, Options(kind="backward", **options))
    return result, gradients.check(problem, inputs, result.outputs)


@pytest.mark.parametrize("problem", (replace(BLIND, Nq=8, d_head=16), replace(PLAIN, Nq=8)), ids=str)
def test_a_run_on_the_host(library, fake_device, problem):
    result, comparison = ran(library, fake_device, 0, problem, repeat=2)
    assert comparison, comparison.message
    assert result.description["registers"] == 43 and result.description["zeroed_workspace"] and not result.changed


@pytest.mark.parametrize("plant, name", ((1, "dQ"), (2, "dK"), (3, "dQ")))
def test_an_error_is_found(library, fake_device, plant, name):
    _, comparison = ran(library, fake_device, plant, Problem(Hq=2, Nq=8, d_head=16))
    assert not comparison and comparison.message.startswith(f"{name}: "), comparison.message


def test_a_workspace_that_is_not_left_zeroed_is_found(library, fake_device):
    with pytest.raises(StageError, match="1 of 64 bytes of the workspace are not zero after the call"):
        ran(library, fake_device, 4, Problem(Hq=2, Nq=8, d_head=16))


def test_a_refusal_has_the_stages_words(library, fake_device):
    with pytest.raises(StageError, match="Nq must be a multiple of 8"):
        ran(library, fake_device, 0, Problem(Hq=2, Nq=9, d_head=16))
