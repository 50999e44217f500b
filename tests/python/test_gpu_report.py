"""The report of a GPU: what its parts do, of which stages, and what they write."""

import json

import pytest

from flashladder.commands import gpu_report
from flashladder.core.device import Device, Gpu
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.stages import Kernel
from flashladder.measuring import recorded
from flashladder.running.job import Result

GPU = Device("gpu", Gpu("Fake", 90, "580.1", 1))


def report(folder, *which) -> gpu_report.Report:
    return gpu_report.Report(GPU, folder, tuple(stages.entry(one) for one in which) or stages.every_stage())


def slugs(text: str) -> list[str]:
    return [one.slug for one in gpu_report.chosen(text)]


def test_stages_are_chosen_by_number_by_name_and_from_one_to_another():
    assert slugs("") == [one.slug for one in stages.every_stage()]
    assert slugs("05") == slugs("swizzle") == ["swizzle"]
    assert slugs("swizzle-07, 02") == ["online_softmax", "swizzle", "cp_async", "eager_kv"]
    assert slugs("0 1") == ["host_streams", "naive"]
    assert slugs("40-41") == ["backward_naive", "backward_recompute"]
    with pytest.raises(FlashLadderError, match="no stage"):
        gpu_report.chosen("split_q")
    with pytest.raises(FlashLadderError, match="'7-5' is no stage and no range"):
        gpu_report.chosen("7-5")


def test_a_part_builds_what_it_needs(monkeypatch, tmp_path):
    built = []
    monkeypatch.setattr(gpu_report.build, "build", lambda targets=(): built.append(list(targets)))
    report(tmp_path, "naive", "swizzle").build(("verify", "bench"))
    report(tmp_path, "swizzle").build(("ncu",))
    report(tmp_path, "host_streams").build(("bench",))
    report(tmp_path).build(("bench", "verify"))
    report(tmp_path, "backward_naive").build(("verify", "bench"))
    assert built[:2] == [["stage_01", "stage_05"], ["stage_05", "warpsim_cudart"]]
    assert built[2] == ["stage_00", "stage_03", "stage_09"], "stage 00 runs kernels of others"
    assert built[3] == [], "the tests want all there is"
    assert built[4] == ["stage_13", "stage_40"], "O and the log-sum-exp are a forward stage's"


def test_there_are_few_parts_and_each_has_its_function():
    everything = gpu_report.PARTS + gpu_report.ASKED_FOR
    assert len(everything) == len(set(everything)) <= 7
    assert gpu_report._FUNCTIONS.keys() == set(everything)


@pytest.fixture
def measured(monkeypatch):
    """No GPU is asked: what is measured is nothing."""
    monkeypatch.setattr(gpu_report.ncu, "available", lambda: True)
    monkeypatch.setattr(gpu_report.ncu, "measure", lambda stage, problem, device: {})
    monkeypatch.setattr(gpu_report.ncu, "metrics", dict)
    monkeypatch.setattr(gpu_report.profiler, "collect", lambda *arguments: (None, ["profiler: a note"]))
    monkeypatch.setattr(gpu_report.roofline, "measure", lambda *arguments: {"rows": []})
    origin = {"device": "NVIDIA Fake", "date": "2026-01-02 00:00 UTC", "commit": "abc"}
    monkeypatch.setattr(gpu_report.provenance, "collect", lambda device: origin)


def test_persistent_stages_are_simulated_on_a_whole_device(measured, tmp_path):
    """SMALL is four query tiles of no_gap, whose producer hands them over in shared memory. On a whole device each has
    a block of its own, which is handed the tile and the end; the few blocks of a simulated one are handed more."""
    stage = stages.get("no_gap")
    assert "a note" in "\n".join(gpu_report.part_ncu(report(tmp_path, stage)))
    (file,) = tmp_path.glob("*-counters.json")
    (entry,) = json.loads(file.read_text())["counters"]
    assert entry["stage"] == "no_gap"
    whole = entry["warpsim"]["shared store wavefronts"]
    few = stage.run(stage.own(gpu_report.SMALL), device="sim").report
    assert whole > 0
    assert whole != gpu_report.counters.totals(few)["shared store wavefronts"]


@pytest.mark.parametrize("stage", [one for one in stages.all_stages()], ids=lambda stage: stage.name)
def test_every_stage_is_verified_with_both_head_dims_and_all_of_its_types(stage: Kernel):
    problems = gpu_report.to_verify(stage)
    assert {(one.d_head, one.dtype) for one in problems} >= {(d, dtype) for d in (64, 128) for dtype in stage.dtypes}
    assert bool(stage.data.get("masks")) == any(one.causal and one.Nq % 16 and one.Hkv < one.Hq for one in problems)


def test_a_wrong_result_and_a_failure_are_told(measured, monkeypatch, tmp_path):
    def run(stage, problem, inputs, device, repeat):
        if problem.d_head == 64:
            raise FlashLadderError("it failed")
        return Result({"O": inputs["Q"]}, problem, GPU, {})

    monkeypatch.setattr(Kernel, "run", run)
    said = gpu_report.part_verify(report(tmp_path, "swizzle"))
    assert said[0] == "verify: 0 of 4 runs right"
    assert sum("failed: it failed" in line for line in said) == 2
    assert sum("WRONG: " in line for line in said) == 2
    assert (tmp_path / "verify.txt").read_text().count("swizzle") == 4


def test_wrong_gradients_are_told(measured, monkeypatch, tmp_path):
    def run(stage, problem, inputs, device, repeat):
        bits = {"dQ": inputs["Q"], "dK": inputs["K"], "dV": inputs["V"]}
        return Result(bits, problem, GPU, {})

    few = [Problem(Hq=2, Hkv=1, Nq=8, d_head=64, dtype="fp16"), Problem(Hq=1, Nq=8, d_head=64)]
    monkeypatch.setattr(stages.Backward, "run", run)
    monkeypatch.setattr(gpu_report, "to_verify", lambda stage: few)
    said = gpu_report.part_verify(report(tmp_path, "backward_naive"))
    assert said[0] == "verify: 0 of 2 runs right" and sum("WRONG: dQ: " in line for line in said) == 2


def test_a_stage_without_variants_is_no_error(measured, tmp_path):
    assert gpu_report.part_ablations(report(tmp_path, "naive")) == ["ablations: none of these stages has any"]
    assert gpu_report.part_tune(report(tmp_path, "naive")) == ["tune: none of these stages is tuned"]
    assert not list(tmp_path.iterdir())


def test_a_part_that_fails_does_not_keep_the_others_back(measured, monkeypatch, tmp_path, capsys):
    def fails(one):
        raise FlashLadderError("no memory")

    written = []

    def writes(one):
        recorded.write({"version": 1, "provenance": gpu_report.provenance.collect(GPU)}, one.file())
        written.append(one.numbers)
        return ["bench: written"]

    monkeypatch.setitem(gpu_report._FUNCTIONS, "verify", fails)
    monkeypatch.setitem(gpu_report._FUNCTIONS, "bench", writes)
    monkeypatch.setattr(gpu_report, "choose", lambda choice: GPU)
    monkeypatch.setattr(gpu_report.build, "build", lambda targets=(): written.append(list(targets)))
    monkeypatch.setattr(gpu_report.build, "info", lambda: {"native": "90"})
    monkeypatch.setenv("OUT", str(tmp_path))
    monkeypatch.setenv("STAGES", "swizzle")
    assert gpu_report.run(("verify", "bench")) == 1
    summary = (tmp_path / "summary.txt").read_text()
    assert "verify: no memory" in summary and "bench: written" in summary and "stages: 05_swizzle" in summary
    assert written == [["stage_05"], (5,)]
    names = {one.name for one in tmp_path.iterdir()}
    assert names == {"summary.txt", "Fake.json", "Fake-gpu-report.zip"}
    with pytest.raises(FlashLadderError, match="'fly' is none of verify"):
        gpu_report.run(("fly",))


def test_the_part_faults_is_of_the_stages_mistakes_where_stages_are_named(monkeypatch, tmp_path):
    asked, built = [], []

    def measure(device, which, choice, file):
        asked.append(([one.slug for one in which], choice.most, choice.beside, choice.seconds, file.name))
        return ["faults: asked"]

    monkeypatch.setattr(gpu_report.detections, "measure", measure)
    monkeypatch.setattr(gpu_report, "choose", lambda choice: GPU)
    monkeypatch.setattr(gpu_report.build, "build", lambda targets=(): built.append(set(targets)))
    monkeypatch.setattr(gpu_report.build, "info", lambda: {"native": "90"})
    monkeypatch.setenv("OUT", str(tmp_path))
    monkeypatch.setenv("STAGES", "00 gather")
    assert gpu_report.run(("faults",), most=3, beside=4, seconds=60) == 0
    assert asked == [(["host_streams", "gather"], 3, 4, 60, "Fake-faults.json")]
    assert built[0] >= {"stage_00", "stage_03", "stage_60", "stage_13"}, "and what these stages run"
    assert "faults: asked" in (tmp_path / "summary.txt").read_text()
