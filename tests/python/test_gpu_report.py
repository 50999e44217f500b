"""The report of a GPU: what its parts do, of which stages, and what they write."""

import json
import re
import subprocess

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


def played(monkeypatch, folder, build=lambda targets=(): None) -> None:
    """A report of the GPU above is written to the folder; nothing is built."""
    monkeypatch.setattr(gpu_report, "the_gpu", lambda: GPU)
    monkeypatch.setattr(gpu_report.build, "build", build)
    monkeypatch.setattr(gpu_report.build, "info", lambda: {"native": "90"})
    monkeypatch.setenv("OUT", str(folder))


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
    mistakes = report(tmp_path, "swizzle", "backward_naive")
    mistakes.planted = gpu_report.detections.Choice()
    mistakes.build(("faults",))
    assert built[:2] == [["stage_01", "stage_05"], ["stage_05", "warpsim_cudart"]]
    assert built[2] == ["stage_00", "stage_03", "stage_09"], "stage 00 runs kernels of others"
    assert built[3] == [], "the tests want all there is"
    assert built[4] == ["stage_13", "stage_40"], "O and the log-sum-exp are a forward stage's"
    assert built[5] == ["stage_01"], "kernels with mistakes are compiled one by one, and so are these stages"


def test_there_are_few_parts_and_each_has_its_function():
    everything = gpu_report.PARTS + gpu_report.ASKED_FOR
    assert len(everything) == len(set(everything)) <= 8
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
    said, good = gpu_report.run_part("verify", report(tmp_path, "swizzle"))
    assert said[0] == "verify: 0 of 4 runs right" and not good, "a part that is done would not be tried again"
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
        origin = {"version": 1, "provenance": gpu_report.provenance.collect(GPU)}
        recorded.write(origin | {"measurements": [], "skipped": []}, one.file())
        written.append(one.numbers)
        return ["bench: written"]

    monkeypatch.setitem(gpu_report._FUNCTIONS, "verify", fails)
    monkeypatch.setitem(gpu_report._FUNCTIONS, "bench", writes)
    played(monkeypatch, tmp_path, lambda targets=(): written.append(list(targets)))
    monkeypatch.setenv("STAGES", "swizzle")
    assert gpu_report.run(("verify", "bench")) == 1
    summary = (tmp_path / "summary.txt").read_text()
    assert "verify: no memory" in summary and "bench: written" in summary and "stages: 05_swizzle" in summary
    assert written == [["stage_05"], (5,)]
    names = {one.name for one in tmp_path.iterdir()}
    assert names == {"summary.txt", "Fake.json", "Fake.html", "Fake-gpu-report.zip", gpu_report.UNFINISHED}
    with pytest.raises(FlashLadderError, match="'fly' is none of verify"):
        gpu_report.run(("fly",))


def test_stages_that_the_gpu_cannot_run_are_left_out_with_the_reason(measured, monkeypatch, tmp_path):
    ampere = Device("gpu", Gpu("NVIDIA Fake 86", 86, "580.1", 1))
    one = gpu_report.Report(ampere, tmp_path, stages.every_stage())
    assert one.which and one.whole, "the tests run all the same"
    assert max(stage.min_compute for stage in one.which) == 80
    (reason, names), *more = one.left_out.items()
    assert not more and "compute capability 8.6" in reason
    assert names == [stage.name for stage in stages.every_stage() if stage.min_compute > 86] and "15_wgmma" in names
    turing = gpu_report.Report(Device("gpu", Gpu("Fake 75", 75, "580.1", 1)), tmp_path, stages.every_stage())
    assert [stage.slug for stage in turing.which] == ["host_streams", "naive", "online_softmax", "vectorized_loads"]
    assert [case["stage"] for case in gpu_report.stream_times.cases_for(turing.device)] == [3]
    played(monkeypatch, tmp_path)
    monkeypatch.setattr(gpu_report, "the_gpu", lambda: ampere)
    monkeypatch.setitem(gpu_report._FUNCTIONS, "verify", lambda one: [f"verify: {len(one.which)} stages"])
    assert gpu_report.run(("verify",)) == 0
    assert f"left out: {names[0]} to {names[-1]}: {reason}" in (tmp_path / "Fake-86.html").read_text()


def test_an_interrupted_run_goes_on_with_what_is_not_done(measured, monkeypatch, tmp_path, capsys):
    calls, ends = [], [KeyboardInterrupt(), FlashLadderError("a stage is wrong"), None]

    def bench(one):
        calls.append("bench")
        end = ends.pop(0)
        if end:
            raise end
        return ["bench: 7 figures"]

    played(monkeypatch, tmp_path)
    monkeypatch.setitem(gpu_report._FUNCTIONS, "ncu", lambda one: [calls.append("ncu") or "ncu: 7 kernels"])
    monkeypatch.setitem(gpu_report._FUNCTIONS, "bench", bench)
    with pytest.raises(KeyboardInterrupt):
        gpu_report.run(("ncu", "bench"))
    assert "The same command goes on; done: ncu" in capsys.readouterr().out
    assert gpu_report.run(("ncu", "bench")) == 1
    assert "Failed: bench." in capsys.readouterr().out
    assert gpu_report.run(("ncu", "bench")) == 0
    assert calls == ["ncu", "bench", "bench", "bench"]
    summary = (tmp_path / "summary.txt").read_text()
    assert "ncu: 7 kernels" in summary and "bench: 7 figures" in summary and "wrong" not in summary
    ends.append(None)
    assert gpu_report.run(("ncu", "bench")) == 0, "a run that came to its end is not gone on with"
    assert calls[4:] == ["ncu", "bench"]


def test_what_was_done_with_other_kernels_is_done_again(measured, monkeypatch, tmp_path):
    one, origin = report(tmp_path, "swizzle"), {"device": "X", "commit": "abc", "kernels": {"05_swizzle": "1"}}
    gpu_report.Progress(one, origin).keep("verify", ["verify: right"])
    assert gpu_report.Progress(one, origin).done == {"verify": ["verify: right"]}
    assert not gpu_report.Progress(one, origin | {"kernels": {"05_swizzle": "2"}}).done
    assert not gpu_report.Progress(report(tmp_path, "naive"), origin).done


def test_without_a_gpu_or_room_the_way_out_is_told(measured, monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_report, "choose", lambda choice: Device("sim", None, "no NVIDIA GPU here"))
    with pytest.raises(FlashLadderError, match="no NVIDIA GPU here.*--gpus all.*`make demo` needs no GPU"):
        gpu_report.run(("bench",))
    played(monkeypatch, tmp_path)
    monkeypatch.setattr(gpu_report, "FREE_BYTES_NEEDED", 1 << 62)
    with pytest.raises(FlashLadderError, match="GiB free.*FLASHLADDER_BUILD="):
        gpu_report.run(("bench",))
    monkeypatch.setattr(gpu_report, "FREE_BYTES_NEEDED", 0)

    def full(one):
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(gpu_report._FUNCTIONS, "bench", full)
    assert gpu_report.run(("bench",)) == 1
    assert "bench: [Errno 28] No space left on device" in (tmp_path / "summary.txt").read_text()


def test_what_a_part_has_started_ends_when_it_is_interrupted(monkeypatch):
    started = []

    def wait(running, timeout=None):
        started.append(running)
        if timeout:
            raise KeyboardInterrupt
        return waits(running)

    waits = subprocess.Popen.wait
    monkeypatch.setattr(subprocess.Popen, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        gpu_report.run_for(["sleep", "60"], 60)
    assert started[0].returncode == -9


def test_the_demo_is_told_by_how_it_ended(monkeypatch, tmp_path):
    ended = [(0, "fine"), (1, "05_swizzle is wrong")]
    monkeypatch.setattr(gpu_report, "run_for", lambda command, *more: ended.pop(0))
    one = report(tmp_path, "swizzle")
    assert gpu_report.run_demo(one) == ["demo: every stage right"] and not one.wrong
    assert gpu_report.run_demo(one) == ["demo: status 1, see demo.txt"] and one.wrong
    assert (tmp_path / "demo.txt").read_text() == "05_swizzle is wrong"


def test_the_page_is_one_file_with_figures_pictures_and_what_was_left_out(tmp_path):
    """An H200's record, as one of an older card has it: without the last stages, one problem skipped, no peer."""
    record = recorded.first()
    rows = [one for one in recorded.pick(record, d_head=64, dtype="bf16") if one["name"] < "14"]
    skipped = rows[0] | {"reason": "needs 9 GiB of scratch, <6> GiB are free"}
    few = {key: record[key] for key in ("version", "provenance", "settings")}
    file = recorded.write(few | {"measurements": rows, "skipped": [skipped]}, tmp_path / "X.json")
    page = gpu_report.report_page.write(file, ["NVIDIA X", "left out: 14_tma: too old", "bench: <1> figures"])
    text = page.read_text()
    assert page.name == "X.html" and "<h1>FlashLadder on NVIDIA X</h1>" in text
    assert "left out: 14_tma: too old" in text and "&lt;1&gt; figures" in text and "&lt;6&gt; GiB" in text
    assert text.count("data:image/png;base64,") == len({one["causal"] for one in rows})
    assert f"<td>{rows[-1]['name']}</td>" in text and f">{rows[-1]['tflops']:.1f}</td>" in text
    assert all(str(record["provenance"][key]) in text for key in ("driver", "commit", "toolkit", "date"))
    assert not re.search(r"<script|<link|https?://|src=(?!\"data:)", text)
    file.unlink()
    assert "Throughput" not in gpu_report.report_page.write(file, ["NVIDIA X", "verify: right"]).read_text()


def test_a_benchmark_without_peers_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_report.gpu_memory, "torch", None)
    made = recorded.write(recorded.first(), tmp_path / "made.json")
    monkeypatch.setattr(gpu_report.bench, "run_bench", lambda settings, device: made)
    said = gpu_report.part_bench(report(tmp_path, "swizzle"))
    assert said[0].startswith("bench: ") and "figures" in said[0]
    assert said[1:] == ["bench: no peers, for this Python has no PyTorch that sees the GPU"]


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
