"""The simulator's outputs beside a GPU's: what is counted, and inputs on which nothing may differ."""

import numpy as np
import pytest

from flashladder.commands import results
from flashladder.core.dtypes import from_bits, to_bits
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.measuring import outputs, recorded


def test_representable_numbers_apart():
    values = np.array([1, -1, 0, -0.0, 1e-45, 3], np.float32)
    others = np.array([np.nextafter(np.float32(1), 2), -1, -0.0, 0, -1e-45, 3], np.float32)
    apart = outputs.ulps(values.view(np.uint32), others.view(np.uint32))
    assert apart.tolist() == [1, 0, 0, 0, 2, 0]
    halves = outputs.ulps(to_bits(np.float32([1, -2]), "fp16"), to_bits(np.float32([1 + 2**-9, 2]), "fp16"))
    assert halves.tolist() == [2, 2 * 0x4000]


@pytest.mark.parametrize("number", (2, 13))
def test_the_simulator_differs_from_itself_in_nothing(number):
    stage = stages.get(number)
    for kind in outputs.KINDS:
        problem = outputs.problems(stage, kind)[-1]
        row = outputs.compare(stage, kind, problem, "sim")
        assert row["O elements"] == np.prod(problem.shape("O")) and row["O differ"] == row["O ulps"] == 0
        assert ("log_sum_exp elements" in row) == bool(stage.data.get("log_sum_exp"))


def test_a_difference_is_counted():
    stage = stages.get(2)
    problem = outputs.problems(stage, "normal")[1]
    result = outputs.run_problem(stage, problem, device="sim")
    other = outputs.run_problem(stage, problem, device="sim")
    other.bits.reshape(-1)[[3, 700]] += np.uint16(2), np.uint16(1)
    assert outputs.compared(result, other) == {"O elements": other.bits.size, "O differ": 2, "O ulps": 2}


def test_scores_are_whole_powers_of_two():
    """A kernel's own factor of S, both float32, is 1 with that scale; and S of -1, 0 and 1 is whole."""
    assert np.float32(outputs.WHOLE) * np.float32(1.44269504) == 1
    for problem in outputs.problems(stages.get(13), "powers of two"):
        arrays = outputs.inputs("powers of two", problem)
        assert problem.scale == outputs.WHOLE
        for name in "QK":
            assert set(np.unique(from_bits(arrays[name], problem.dtype))) == {-1.0, 0.0, 1.0}
    with pytest.raises(FlashLadderError, match="'odd'"):
        outputs.inputs("odd", problem)


def test_table(monkeypatch):
    def row(kind, differ):
        return {"name": "13_masking", "kind": "stage", "kernel_sha256": stages.get(13).kernel_hash(), "inputs": kind,
                "O elements": 2000, "O differ": differ, "O ulps": differ and 3}  # fmt: skip

    source = {"device": "NVIDIA H200", "date": "2026-11-22", "commit": "0123456789ab"}
    rows = [row("normal", 1), row("normal", 4), row("equal scores", 0)]
    record = {"provenance": source, "inputs": {"normal": "", "equal scores": ""}, "outputs": rows}
    monkeypatch.setattr(recorded, "shipped", lambda kind="": [record] if kind == "outputs" else [])
    assert "| 13_masking | 1.2 (3) | none |" in results.outputs()
