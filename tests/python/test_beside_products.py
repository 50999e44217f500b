"""What instructions take beside products: the program, its record, its table."""

import pytest

from flashladder.commands import results
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.measuring import ablation_times, beside_products, recorded


def test_the_program_compiles_for_hopper(tmp_path):
    assert beside_products.compiled(tmp_path).stat().st_size > 0


def test_what_nvcc_says_is_told(tmp_path, monkeypatch):
    wrong = tmp_path / "wrong.cu"
    wrong.write_text("int main() { return nowhere; }")
    monkeypatch.setattr(beside_products, "PROGRAM", wrong)
    with pytest.raises(FlashLadderError, match=r'(?s)wrong\.cu does not compile:.*"nowhere" is undefined'):
        beside_products.compiled(tmp_path)


def test_a_simulator_measures_nothing():
    with pytest.raises(FlashLadderError, match="capability 9.0 alone; this is"):
        beside_products.measure(Device("sim", None))


def test_the_table_says_what_an_instruction_loses(monkeypatch):
    source = {"device": "NVIDIA H200", "date": "2026-11-23 16:49 UTC", "commit": "0123456789ab"}
    rows = [{"instruction": "", "products": "bf16", "clocks_of_a_product": 86.0}]
    rows += [
        {"instruction": "fma.f32", "products": kind, "clocks": clocks}
        for kind, clocks in (("none", 1.4), ("bf16", 1.96), ("e4m3", 2.1))
    ]
    made = {"provenance": source, "rows": rows}
    monkeypatch.setattr(recorded, "shipped", lambda kind: [made] if kind == "beside-products" else [])
    text = results.beside_products()
    assert "Recorded: NVIDIA H200, 2026-11-23, commit 0123456789ab." in text
    assert "| `fma.f32` | 1.40 | 1.96 | 2.10 | +50% |" in text
    assert text.count("\n| `") == 1, "products alone have no row"


def test_ablations_of_a_stage_that_has_none():
    with pytest.raises(FlashLadderError, match="Stage 04 has no ablations"):
        ablation_times.run(Device("sim", None), (4, 29))
