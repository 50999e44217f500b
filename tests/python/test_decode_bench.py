"""The decode benchmark on the fake runtime: checked before it is timed, several copies, provenance, told by a table."""

import json

import pytest
from hostcc import HERE, compile_cpp

from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.ladder.decode import Decode
from flashladder.measuring import bench, decode_bench, gpu_memory, recorded

SETTINGS = decode_bench.Settings(
    shapes=((4, 2, 2, 24), (2, 2, 1, 8)), head_dims=(64,), peers=False, rounds=2, series_ms=0.01, cold_bytes=1 << 14
)


@pytest.fixture
def decode_on_fake(fake, fake_device, monkeypatch, tmp_path):
    """decode_on_fake(plant) -> the results of a benchmark of the fake decode stage, and its file."""
    folder = tmp_path / "50_fake"
    folder.mkdir()
    (folder / "kernel.cu").write_text("// the kernel\n")
    stage = Decode(50, "50_fake", "Fake", "nothing", 75, None, folder, {})

    def run(plant: int = 0) -> dict:
        library = compile_cpp(HERE / "fake/decode_stage.cpp", tmp_path / f"{plant}.so", "-shared", "-fPIC",
                              f"-DPLANT={plant}")  # fmt: skip
        monkeypatch.setattr(gpu_memory, "torch", None)
        monkeypatch.setattr(gpu_memory, "loaded_cudart", lambda: None)
        monkeypatch.setattr(bench, "cudart", lambda device: fake.cudart)
        monkeypatch.setattr(bench, "stage_library", lambda number: library)
        monkeypatch.setattr(decode_bench, "read_library", lambda: library)
        monkeypatch.setattr(bench, "check_build", lambda device: None)
        monkeypatch.setattr(recorded, "results_directory", lambda: tmp_path / "results")
        monkeypatch.setattr(stages, "decode_stages", lambda: (stage,))
        monkeypatch.setattr(stages, "other_parts", lambda: (stage,))
        monkeypatch.setattr(stages, "entry", lambda which: stage)
        return recorded.load(decode_bench.run_bench(SETTINGS, Device("gpu", fake_device)))

    run.stage = stage
    return run


def test_what_is_recorded(decode_on_fake, capsys, tmp_path):
    got = decode_on_fake()
    names = [(row["name"], row["Nkv"]) for row in got["measurements"]]
    assert names == [(name, n) for n in (24, 8) for name in (decode_bench.READING, "50_fake")]
    for row in got["measurements"]:
        assert row["us"]["p20"] <= row["us"]["median"] <= row["us"]["p80"] and row["launches"] >= 2 * row["copies"]
        assert row["bytes"] == 4 * row["B"] * row["Hkv"] * row["Nkv"] * row["d_head"]
        assert row["copies"] * row["bytes"] >= SETTINGS.cold_bytes and row["copies"] >= 2
    stage = got["measurements"][1]
    limit = got["measurements"][0]["us"]["median"]
    assert stage["of_reading"] == pytest.approx(limit / stage["us"]["median"], rel=1e-2)
    assert stage["gb_per_s"] == pytest.approx(stage["bytes"] / stage["us"]["median"] / 1e3, rel=1e-2)
    assert stage["kernel_sha256"] == decode_on_fake.stage.kernel_hash() and stage["splits"] == 3
    assert stage["relative_error"] < 4e-3 and not recorded.is_stale(stage)
    assert got["provenance"]["kernels"]["50_fake"] == stage["kernel_sha256"] and not got["settings"]["graph"]
    (file,) = (tmp_path / "results").glob("*-decode*.json")
    assert json.loads(file.read_text())["measurements"][1]["name"] == "fake"
    assert "4/2 B=2 N=24 d=64" in capsys.readouterr().out


@pytest.mark.parametrize("plant", (1, 2))
def test_a_wrong_stage_is_not_timed(decode_on_fake, plant):
    with pytest.raises(FlashLadderError, match="50_fake is wrong .* so it is not timed"):
        decode_on_fake(plant)
