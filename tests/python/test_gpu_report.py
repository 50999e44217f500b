"""The report of a GPU: what the simulator counts beside it is counted on a device as large."""

import json

from flashladder.commands import gpu_report
from flashladder.core.device import Device, Gpu
from flashladder.ladder import stages


def test_persistent_stages_are_simulated_on_a_whole_device(monkeypatch, tmp_path):
    """SMALL is four query tiles of no_gap: four blocks hand over one each and the end, six numbers at a time; the three
    blocks that the stage is simulated with elsewhere hand over seven."""
    gpu, stage = Device("gpu", Gpu("Fake", 90, "580.1", 1)), stages.get("no_gap")
    monkeypatch.setattr(gpu_report.ncu, "available", lambda: True)
    monkeypatch.setattr(gpu_report.ncu, "measure", lambda stage, problem, device: {})
    monkeypatch.setattr(gpu_report.ncu, "metrics", lambda: {})
    monkeypatch.setattr(gpu_report.stages, "all_stages", lambda: [stage])
    monkeypatch.setattr(gpu_report.provenance, "collect", lambda device: {})
    gpu_report.part_ncu(gpu, tmp_path)
    (file,) = tmp_path.glob("*-counters.json")
    (entry,) = json.loads(file.read_text())["counters"]
    assert entry["stage"] == stage.name
    handed_over = entry["warpsim"]["shared store wavefronts"]
    assert handed_over % (4 * 2) == 0 and handed_over > 0, handed_over
