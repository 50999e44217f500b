"""The benchmark's rules on the fake runtime: correctness first, provenance, refusals told, stale figures marked."""

import json
import types
from dataclasses import replace

import numpy as np
import pytest

from flashladder import plot
from flashladder.commands import result_pictures, results
from flashladder.core.abi import StageLibrary
from flashladder.core.device import Device
from flashladder.core.dtypes import to_bits
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.measuring import bench, gpu_memory, provenance, recorded

SETTINGS = bench.Settings(
    tokens=64, heads=2, lengths=(16, 24, 32), head_dims=(64,), stages=(1,), peers=False, seconds=0.01, most_runs=6
)


@pytest.fixture
def bench_on_fake(fake, fake_device, fake_stage, monkeypatch, tmp_path):
    """bench_on_fake(plant) -> the results of a benchmark of the fake stage, or of every one of those given."""

    def run(plant: int = 0, settings: bench.Settings = SETTINGS, every: tuple = ()) -> dict:
        monkeypatch.setattr(gpu_memory, "torch", None)
        monkeypatch.setattr(gpu_memory, "loaded_cudart", lambda: None)
        monkeypatch.setattr(bench, "cudart", lambda device: fake.cudart)
        monkeypatch.setattr(bench, "stage_library", lambda number: fake(plant))
        monkeypatch.setattr(bench, "check_build", lambda device: None)
        monkeypatch.setattr(recorded, "results_directory", lambda: tmp_path / "results")
        monkeypatch.setattr(stages, "all_stages", lambda: every or (fake_stage,))
        return recorded.load(bench.run_bench(settings, Device("gpu", fake_device)))

    return run


def test_results_and_provenance(bench_on_fake, fake_stage):
    got = bench_on_fake()
    assert [row["Nq"] for row in got["measurements"]] == [16, 32]
    for row in got["measurements"]:
        assert row["kernel_sha256"] == fake_stage.kernel_hash()
        assert row["ms"]["p20"] <= row["ms"]["median"] <= row["ms"]["p80"]
        assert row["registers"] == 42 and row["B"] * row["Nq"] == 64
        flops = 4 * row["B"] * row["Hq"] * row["Nq"] * row["Nkv"] * row["d_head"]
        assert row["tflops"] == pytest.approx(flops / row["ms"]["median"] / 1e9, rel=1e-3)
    assert {"device", "driver", "toolkit", "commit", "date", "kernels", "clocks"} <= set(got["provenance"])


def test_refused_length_is_told(bench_on_fake, capsys):
    got = bench_on_fake()
    assert [(row["Nq"], row["reason"]) for row in got["skipped"]] == [(24, "Nq must be a multiple of 16")]
    assert "not timed: 01_fake at N = 24" in capsys.readouterr().out


def test_wrong_stage_is_not_timed(bench_on_fake):
    with pytest.raises(FlashLadderError, match="is wrong .* so it is not timed"):
        bench_on_fake(plant=1)


def test_debug_build_is_refused(monkeypatch, fake_device):
    monkeypatch.setattr(bench.build, "info", lambda: {"build_type": "Debug", "native": ["90"]})
    with pytest.raises(FlashLadderError, match="Debug build"):
        bench.check_build(Device("gpu", fake_device))


def test_code_for_another_gpu_is_refused(monkeypatch, fake_device):
    monkeypatch.setattr(bench.build, "info", lambda: {"build_type": "Release", "native": ["80"]})
    with pytest.raises(FlashLadderError, match="native code for"):
        bench.check_build(Device("gpu", fake_device))


def test_stale_after_the_kernel_changed(bench_on_fake, fake_stage, tmp_path, monkeypatch):
    got = bench_on_fake()
    fresh = plot.save(plot.throughput([(got, False)], "bf16", 64), tmp_path / "fresh.svg").read_text()
    assert not recorded.is_stale(got["measurements"][0])
    fake_stage.kernel.write_text("// the kernel, in other words\n")
    assert not recorded.is_stale(got["measurements"][0]), "another comment makes no other kernel"
    fake_stage.kernel.write_text("another kernel;\n")
    assert recorded.is_stale(got["measurements"][0])
    stale = plot.save(plot.throughput([(got, False)], "bf16", 64), tmp_path / "stale.svg").read_text()
    # matplotlib keeps the text of each label in a comment of the SVG
    assert "(stale)" in stale and "(stale)" not in fresh
    assert "recorded: Fake GPU" in fresh and got["provenance"]["commit"] in fresh
    monkeypatch.setattr(results.recorded, "shipped", lambda kind="": [got])
    assert results.STALE_NOTE in results.throughput("bf16", "64")


def test_plot_is_reproducible(bench_on_fake, tmp_path):
    got = bench_on_fake()
    files = [plot.save(plot.throughput([(got, True)], "bf16", 64), tmp_path / name) for name in ("a.png", "b.png")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_tables_are_idempotent(bench_on_fake, monkeypatch, tmp_path):
    got = bench_on_fake()
    monkeypatch.setattr(results.recorded, "shipped", lambda kind="": [got])
    text = "before\n<!-- results: throughput bf16 64 -->\nold\n<!-- end results -->\nafter\n"
    text += "<!-- results: resources -->\n<!-- end results -->\n<!-- results: provenance -->\n<!-- end results -->\n"
    once = results.fill(text, tmp_path)
    assert "| 01_fake |" in once and "old" not in once and once.startswith("before\n") and "\nafter\n" in once
    assert results.fill(once, tmp_path) == once


def ablation_rows() -> list[dict]:
    """Two kernels, their variants in no order, one whose kernel was not measured, and a peer."""

    def row(name, tflops, kind="stage"):
        return {"name": name, "kind": kind, "tflops": tflops, "Nq": 4096, "d_head": 128, "dtype": "bf16",
                "causal": False, "kernel_sha256": "another"}  # fmt: skip

    return [row("09_double_buffering", 300.0), row("07_eager_kv", 200.0), row("07 later", 100.0), row("09 slow", 30.0),
            row("09 fast", 330.0), row("05 padded", 1.0), row("FlashAttention-2", 350.0, "peer")]  # fmt: skip


def test_ablations_stand_below_their_kernel_the_fastest_first(monkeypatch):
    record = {
        "provenance": {"device": "Fake GPU", "date": "2026-01-01 x", "commit": "0"},
        "measurements": ablation_rows(),
    }
    record["settings"] = {"heads": 16, "tokens": 16384}
    monkeypatch.setattr(results.recorded, "shipped", lambda kind="": [record])
    lines = [line.split(" | ") for line in results.ablations().splitlines() if line.startswith("| ")][2:]
    assert [line[0].removeprefix("| ").split(",")[0] for line in lines] == [
        "**07_eager_kv**", "07 later", "**09_double_buffering**", "09 fast", "09 slow", "FlashAttention-2"
    ]  # fmt: skip
    assert [line[-1].removesuffix(" |") for line in lines] == ["100.0%", "50.0%", "100.0%", "110.0%", "10.0%", ""]
    assert "09_" not in results.ablations("07") and results.STALE_NOTE in results.ablations("07")
    axes = plot.ablations([record]).axes[0]
    labels = axes.get_yticklabels()
    assert [label.get_text().split(",")[0] for label in labels] == [
        line[0].strip("| *").split(",")[0].strip("*") for line in lines
    ]
    assert [label.get_text() for label in labels if label.get_fontweight() == "bold"] == [
        "07_eager_kv, the kernel itself", "09_double_buffering, the kernel itself"
    ]  # fmt: skip
    shown = [text.get_text() for text in axes.texts]
    assert any("(110.0%)" in text for text in shown) and any("(10.0%)" in text for text in shown)
    assert len(plot.ablations([record], 7).axes[0].patches) == 3
    with pytest.raises(FlashLadderError, match="No ablations of stage 05"):
        plot.ablations([record], 5)


def test_ablations_by_head_dim(monkeypatch):
    record = {
        "provenance": {"device": "Fake GPU", "date": "2026-01-01 x", "commit": "0"},
        "measurements": ablation_rows() + [row | {"d_head": 64, "tflops": 7.0} for row in ablation_rows()[:3]],
        "settings": {"heads": 16, "tokens": 16384},
    }
    monkeypatch.setattr(results.recorded, "shipped", lambda kind="": [record])
    small = results.ablations("07", "64")
    assert "bf16, d = 64" in small and "| 07 later | 7.0\\* | 100.0% |" in small
    assert "| 07 later | 100.0\\* | 50.0% |" in results.ablations("07")
    assert results.ablations("all", "64") == small
    record["measurements"] = ablation_rows()
    assert results.ablations("07", "64") == results.NOTHING


def test_unknown_marker_is_an_error(tmp_path):
    with pytest.raises(FlashLadderError, match="unknown marker"):
        results.fill("<!-- results: nonsense -->\n<!-- end results -->", tmp_path)


def test_interleaving(bench_on_fake, monkeypatch):
    """A B A B: no candidate runs twice in a row while another still has runs to make."""
    order = []
    one = bench.Bench.__new__(bench.Bench)
    one.settings = replace(SETTINGS, fewest_runs=3, most_runs=3)
    one.cudart = type("Quiet", (), {"synchronize": lambda self: None})()
    monkeypatch.setattr(one, "time_once", lambda candidate: order.append(candidate.name) or 1.0, raising=False)
    pair = [bench.Candidate(name, "stage", launch=lambda: None, first_seconds=1.0) for name in "AB"]
    one.measure(pair)
    assert "".join(order[2:]) == "ABABAB"


def test_results_text_is_json(bench_on_fake):
    got = bench_on_fake()
    text = recorded.to_text(got)
    assert recorded.from_file(json.loads(text)) == got and '"name": "fake"' in text


@pytest.mark.parametrize(
    "changes, words", [(True, "commit 0123 with changes"), (False, "commit 0123"), (None, "commit 0123")]
)
def test_label_tells_of_changes(changes, words):
    record = {"device": "GPU", "date": "2026-01-31 12:00 UTC", "commit": "0123", "uncommitted_changes": changes}
    assert recorded.label({"provenance": record}) == f"GPU, 2026-01-31, {words}"


def test_a_named_commit_is_the_commit(monkeypatch, fake_device, fake_stage):
    monkeypatch.setattr(stages, "all_stages", lambda: (fake_stage,))
    monkeypatch.setenv("FLASHLADDER_COMMIT", "0123456789ab")
    record = provenance.collect(Device("gpu", fake_device))
    assert (record["commit"], record["uncommitted_changes"]) == ("0123456789ab", None)


def test_causal_problems_are_for_stages_that_mask(bench_on_fake, monkeypatch):
    """The fake stage says that it has no mask: nothing causal is timed, and nothing is told as skipped."""
    got = bench_on_fake()
    assert {row["causal"] for row in got["measurements"] + got["skipped"]} == {False}
    describe = StageLibrary.describe

    def masking(library, params):
        description = describe(library, params)
        description.supports_causal = 1
        return description

    monkeypatch.setattr(StageLibrary, "describe", masking)
    asked = []
    monkeypatch.setattr(bench.Bench, "admit", lambda self, candidate, problem, *rest: asked.append(problem))
    bench_on_fake()
    assert [problem.Nq for problem in asked if problem.causal] == [16, 24, 32]
    assert all(problem.flops() * 2 == replace(problem, causal=False).flops() for problem in asked if problem.causal)


def causal_record() -> dict:
    """One stage with and without a mask, and a peer."""

    def row(name, tflops, causal, kind="stage"):
        return {"name": name, "kind": kind, "tflops": tflops, "Nq": 4096, "d_head": 128, "dtype": "bf16",
                "causal": causal, "kernel_sha256": "another", "ms": {"median": 1.0, "p20": 1.0, "p80": 1.0},
                "threads": 1, "shared_bytes": 1, "registers": 1, "spill_bytes": 0, "resident_blocks": 1}  # fmt: skip

    rows = [
        row("13_masking", 380.0, False),
        row("13_masking", 362.0, True),
        row("FlashAttention-2", 289.0, True, "peer"),
    ]
    record = {"provenance": {"device": "Fake GPU", "date": "2026-01-01 x", "commit": "0"}, "measurements": rows}
    return record | {"settings": {"heads": 16, "tokens": 16384}}


def written(figure) -> list[str]:
    """What is written into the panel of the way up: the peers, then the stages."""
    return [text.get_text() for text in figure.axes[0].texts]


def test_causal_figures_have_tables_and_pictures_of_their_own(monkeypatch):
    record = causal_record()
    monkeypatch.setattr(results.recorded, "shipped", lambda kind="": [record])
    assert "380.0" in results.throughput("bf16", "128") and "362.0" not in results.throughput("bf16", "128")
    causal = results.throughput("bf16", "128", "causal")
    assert "362.0" in causal and "289.0" in causal and "380.0" not in causal and "half the FLOPs" in causal
    with pytest.raises(FlashLadderError, match="'causal' or left out, not 'diagonal'"):
        results.throughput("bf16", "128", "diagonal")
    figure = plot.throughput([(record, False)], "bf16", 128, causal=True)
    assert all("causal" in axes.get_title() for axes in figure.axes)
    assert written(figure) == ["FA-2 289", "13 masking 362 (stale)"]
    with pytest.raises(FlashLadderError, match="No results for bf16, d = 64, causal to plot"):
        plot.throughput([(record, False)], "bf16", 64, causal=True)


def test_flash_attention_3_stands_beside_the_other_peers_and_deterministic_ones_apart(monkeypatch):
    record = causal_record()
    peer = record["measurements"][-1] | {"causal": False}
    names = ("FlashAttention-3", "FlashAttention-2, deterministic")
    record["measurements"] += [peer | {"name": name, "tflops": 500.0 + place} for place, name in enumerate(names)]
    monkeypatch.setattr(results.recorded, "shipped", lambda kind="": [record])
    monkeypatch.setattr(results.recorded, "of", lambda name: record)
    record["provenance"] |= {"FlashAttention-3": "3.0.1"}
    assert "| FlashAttention-3 | 3.0.1 |" in results.provenance() and "FlashAttention-4" not in results.provenance()
    assert "| FlashAttention-3 | peer |  |  |  | 500.0 |" in results.ladder()
    assert "| FlashAttention-3 | 500.0 |" in results.throughput("bf16", "128")
    plain, deterministic = results.gradients("128"), results.deterministic("128")
    assert "| FlashAttention-3 | 500.0 |" in plain and "deterministic" not in plain
    assert "| FlashAttention-2, deterministic | 501.0 |" in deterministic and "FlashAttention-3" not in deterministic
    figure = plot.throughput([(record, False)], "bf16", 128)
    assert written(figure) == ["FA-3 500", "13 masking 380 (stale)"]
    assert "76% of FA-3" in figure.axes[0].get_title()
    assert "FlashAttention-3" in [text.get_text() for text in figure.axes[1].get_legend().get_texts()]


def fp8_stage(folder) -> stages.Kernel:
    (folder / "29_bytes").mkdir()
    (folder / "29_bytes/kernel.cu").write_text("// another kernel\n")
    return stages.Kernel(29, "29_bytes", "Fake", "bytes", 75, None, folder / "29_bytes", {"dtypes": ["e4m3"]})


def test_e4m3_stands_beside_the_first_other_type():
    settings = replace(SETTINGS, lengths=(16,), causal=(False,), dtypes=("bf16", "e4m3", "fp16"))
    assert [[problem.dtype for problem in run] for run in settings.runs()] == [["bf16", "e4m3"], ["fp16"]]
    assert [[problem.dtype for problem in run] for run in replace(settings, dtypes=("e4m3",)).runs()] == [["e4m3"]]
    ((one, beside), _) = settings.runs()
    assert beside == replace(one, dtype="e4m3") and beside.flops() == one.flops()


def test_a_stage_of_bytes_is_timed_in_the_same_run(bench_on_fake, fake_stage, tmp_path, monkeypatch, capsys):
    """With the others of its shape, in turn, verified by its type's bounds, and never in their table."""
    both = (fake_stage, fp8_stage(tmp_path))
    order = []
    once = bench.Bench.time_once
    monkeypatch.setattr(
        bench.Bench, "time_once", lambda self, candidate: order.append(candidate.name) or once(self, candidate)
    )
    compared = []
    compare = bench.compare
    monkeypatch.setattr(bench, "compare", lambda *arrays: compared.append(arrays[-1]) or compare(*arrays))
    settings = replace(SETTINGS, lengths=(16,), stages=(1, 29), fewest_runs=3, most_runs=3)
    got = bench_on_fake(settings=settings, every=both)
    assert [(row["name"], row["dtype"]) for row in got["measurements"]] == [("01_fake", "bf16"), ("29_bytes", "e4m3")]
    assert order == ["01_fake", "29_bytes"] * 4 and compared == ["bf16", "e4m3"]
    assert 0 < got["measurements"][1]["relative_error"] < 0.04
    titles = [line for line in capsys.readouterr().out.splitlines() if "TFLOP/s" in line]
    assert ["bf16" in title for title in titles] == [True, False] and "e4m3" in titles[1]


def test_a_wrong_stage_of_bytes_is_not_timed(bench_on_fake, tmp_path):
    with pytest.raises(FlashLadderError, match="29_bytes is wrong for e4m3 .* so it is not timed"):
        bench_on_fake(2, replace(SETTINGS, stages=(29,)), every=(fp8_stage(tmp_path),))


def test_without_a_stage_of_bytes_nothing_of_them_is_prepared(bench_on_fake, monkeypatch):
    prepared, prepare = [], bench.Bench.prepared
    monkeypatch.setattr(
        bench.Bench, "prepared", lambda self, problem: prepared.append(problem.dtype) or prepare(self, problem)
    )
    bench_on_fake()
    assert set(prepared) == {"bf16"}


def test_a_peer_that_computes_something_else_is_not_timed():
    one = bench.Bench.__new__(bench.Bench)
    one.skipped, one.cudart = [], type("Quiet", (), {"synchronize": lambda self: None})()
    problem = Problem(B=1, Hq=1, Nq=16, d_head=64)
    memory = type("Memory", (), {"poison": lambda self: None})()
    shape = problem.shape("O")
    right = np.ones(shape)[0]
    expected = (np.arange(16), [(0, 0)], right, right, np.zeros_like(right))
    for value, timed in ((1.0, True), (1.05, True), (0.0, False), (float("nan"), False)):
        bits = to_bits(np.full(shape, value, np.float32), "bf16")
        peer = bench.Candidate("Peer", "peer", lambda: None, lambda bits=bits: bits)
        assert one.admit(peer, problem, memory, expected) is timed, value
        assert ("note" in peer.facts) is (value == 1.05)
    assert all(row["reason"].startswith("it computes something else") for row in one.skipped)


def test_bytes_have_tables_and_pictures_of_their_own(monkeypatch):
    """The page of fp8 shows them beside the bf16 of the same run, in two tables; bf16's tables have none of them."""
    record = causal_record()
    facts = {key: value for key, value in record["measurements"][0].items() if key not in ("name", "kind", "tflops")}

    def row(name, tflops, dtype, kind="stage"):
        return facts | {"name": name, "kind": kind, "tflops": tflops, "dtype": dtype}

    record["measurements"] = [
        row("23_shapes", 746.0, "bf16"),
        row("24_fp8", 1071.0, "e4m3"),
        row("cuDNN attention", 675.0, "bf16", "peer"),
        row("cuDNN FP8", 1031.0, "e4m3", "peer"),
    ]
    monkeypatch.setattr(results.recorded, "shipped", lambda kind="": [record])
    assert "1071.0" in results.throughput("e4m3", "128") and "746.0" not in results.throughput("e4m3", "128")
    for text in (results.throughput("bf16", "128"), results.ladder()):
        assert "1071.0" not in text and "1031.0" not in text
    e4m3, bf16 = results.throughput("e4m3", "128"), results.throughput("bf16", "128")
    assert "1071.0" in e4m3 and "1031.0" in e4m3 and "746.0" not in e4m3
    assert "746.0" in bf16 and "675.0" in bf16 and "1071.0" not in bf16
    assert "24_fp8, d = 128 | 1 |" in results.resources()
    assert result_pictures.throughput("e4m3") == "![e4m3, d = 128](throughput-e4m3-d128.png)"
    assert results.errors("e4m3") == results.NOTHING
    for row, error in zip(record["measurements"], (0.002, 0.0286, 0.0022, 0.0364), strict=True):
        row["relative_error"] = error
    assert "| d = 128, full | 24_fp8 | 2.86% |" in results.errors("e4m3") and "0.20%" not in results.errors("e4m3")
    assert "| d = 128, full | cuDNN FP8 | 3.64% |" in results.errors("e4m3")
    figure = plot.throughput([(record, False)], "e4m3", 128)
    assert written(figure) == ["cuDNN FP8 1031", "24 fp8 1071 (stale)"]
    run = {"run": "2025-01-02, commit fedcba987654"}
    ceilings = [
        {"name": "cuBLAS matmul", "kind": "ceiling", "dtype": dtype, "tflops": 1.0} for dtype in ("bf16", "e4m3")
    ]
    earlier = [row | run if row["dtype"] == "e4m3" else row for row in [*record["measurements"], *ceilings]]
    record["measurements"] = earlier
    e4m3, bf16 = results.throughput("e4m3", "128"), results.throughput("bf16", "128")
    assert run["run"] in e4m3 and run["run"] not in bf16 and "another" not in e4m3 + bf16
    assert run["run"] in plot.throughput([(record, False)], "e4m3", 128).axes[0].get_title()
    record["measurements"][-1].pop("run")
    assert "in another run: 1 TFLOP/s" in results.throughput("e4m3", "128")
    monkeypatch.setattr(results.recorded, "shipped", lambda kind="": [causal_record()])
    assert results.throughput("e4m3", "128") == result_pictures.throughput("e4m3") == results.NOTHING


def test_a_host_that_takes_long_has_time_to_queue_the_launch(monkeypatch):
    """Else its work for a call would be timed in place of the kernel."""
    now, filled = [0.0], []
    monkeypatch.setattr(bench.time, "perf_counter", lambda: now[0])
    one = bench.Bench.__new__(bench.Bench)
    one.fill_ms, one.flush_buffer, one.flush_bytes = 0.25, 0, 1
    one.cudart = types.SimpleNamespace(fill=lambda *_: filled.append(1), synchronize=lambda: None)
    monkeypatch.setattr(one, "elapsed_ms", lambda work: work() or 1.0)

    def calls(milliseconds: float) -> bench.Candidate:
        return bench.Candidate("peer", "peer", lambda: now.__setitem__(0, now[0] + milliseconds / 1e3))

    assert [one.fills(calls(ms)) for ms in (0.01, 0.12, 0.45, 60)] == [1, 1, 4, bench.MOST_FILLS]
    one.settings = bench.Settings(most_runs=3, fewest_runs=3)
    slow, quick = calls(0.45), calls(0.01)
    one.measure([slow, quick])
    assert (slow.fills, quick.fills) == (4, 1) and len(slow.times_ms) == 3
    assert len(filled) == (1 + 3) * (4 + 1)
