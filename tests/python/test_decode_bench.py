"""The decode benchmark on the fake runtime: checked before it is timed, several copies, provenance, told by a table."""

import json
import types

import pytest
from hostcc import HERE, compile_cpp

from flashladder.commands import results
from flashladder.core.decode_problem import DecodeProblem
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.ladder.decode import Decode
from flashladder.measuring import bench, decode_bench, decode_peers, gpu_memory, recorded

SETTINGS = decode_bench.Settings(
    shapes=((4, 2, 2, 24), (2, 2, 1, 8), (2, 1, 2, 80)), other_caches=((2, 1, 2, 80),), head_dims=(64,), peers=False,
    rounds=2, series_ms=0.01, cold_bytes=1 << 14,
)  # fmt: skip


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
    assert names == [(name, n) for n in (24, 8, 80) for name in (decode_bench.READING, "50_fake")]
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


def test_unequal_lengths_and_pages_beside_equal_ones(decode_on_fake, capsys, monkeypatch):
    """As many keys in all as in the shape with equal lengths, whose time they are compared with."""
    got = decode_on_fake()
    assert "other_caches" in got and not [row for row in got["measurements"] if "lengths" in row or row["page_size"]]
    stage = [row for row in got["other_caches"] if row["name"] == "50_fake"]
    assert [(row.get("lengths"), row["page_size"]) for row in stage] == [
        ([20, 140], 0), (None, 64), ([20, 140], 64), ([20, 140], 256),
    ]  # fmt: skip
    assert {row["bytes"] for row in stage} == {4 * 64 * 160} and [row["Nkv"] for row in stage] == [140, 80, 140, 140]
    assert all(row["relative_error"] < 4e-3 for row in stage)
    head, body = decode_bench.beside_equal(got, 64)
    assert head[-1] == "50_fake" and [row[:4] for row in body] == [
        ["2 / 1", "2", "80", what]
        for what in ("unequal, one piece", "equal, pages of 64", "unequal, pages of 64", "unequal, pages of 256")
    ]
    equal = next(row for row in got["measurements"] if row["name"] == "50_fake" and row["Nkv"] == 80)
    assert float(body[1][-1].split("(")[1][:-1]) == pytest.approx(
        stage[1]["us"]["median"] / equal["us"]["median"], abs=0.006
    )
    assert "unequal, pages of 256" in capsys.readouterr().out
    monkeypatch.setattr(recorded, "shipped", lambda kind: [got])
    assert f"| 2 / 1 | 2 | 80 | equal, pages of 64 | {body[1][4]} | {body[1][5]} |" in results.decode_caches()
    monkeypatch.setattr(recorded, "shipped", lambda kind: [got | {"other_caches": []}])
    assert results.decode_caches() == results.NOTHING


def test_what_the_benchmark_runs():
    """Each shape of other caches is among the equal ones, or there would be nothing to compare it with; and the rows
    of the pages are what every stage takes."""
    settings = decode_bench.Settings()
    problems = settings.problems()
    others = [one for one in problems if not one.equal_lengths]
    assert set(settings.other_caches) <= set(settings.shapes)
    assert len(problems) == len(settings.shapes) + len(others) and len(others) == 4 * len(settings.other_caches)
    for problem in others:
        assert sum(problem.lengths) % problem.B == 0 and max(problem.lengths) == problem.Nkv
        mean = sum(problem.lengths) // problem.B
        assert (problem.Hq, problem.Hkv, problem.B, mean) in settings.shapes
        assert all(problem.page_size % one.page_multiple == 0 for one in stages.decode_stages())


def test_a_peer_that_refuses_is_skipped_with_its_reason(monkeypatch):
    """The first line of it, and the others are candidates."""

    def calls(name, problem, copies, table):
        if name == "refuses":
            raise RuntimeError("no kernel for d = 64\nand many lines of a compiler")
        return [lambda: "O"] * len(copies)

    monkeypatch.setattr(decode_peers, "names", lambda problem: ("refuses", "runs"))
    monkeypatch.setattr(decode_peers, "calls", calls)
    asked = object.__new__(decode_bench.DecodeBench)
    asked.torch, asked.settings, asked.pages, asked.skipped = True, decode_bench.Settings(), None, []
    copies = [types.SimpleNamespace(tensors={})] * 2
    found = asked.peer_candidates(DecodeProblem(d_head=64), copies)
    assert [(one.name, one.kind) for one in found] == [("runs", "peer")]
    assert [(row["name"], row["reason"]) for row in asked.skipped] == [("refuses", "no kernel for d = 64")]


@pytest.mark.parametrize("plant", (1, 2, 3))
def test_a_wrong_stage_is_not_timed(decode_on_fake, plant):
    with pytest.raises(FlashLadderError, match="50_fake is wrong .* so it is not timed"):
        decode_on_fake(plant)
