"""The benchmark of the backward stages on the fake runtime: by the rules of the forward one."""

from types import SimpleNamespace

import numpy as np
import pytest
from hostcc import HERE, compile_cpp

from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.backward import Backward
from flashladder.measuring import backward_bench, bench, gpu_memory, peers, recorded, report_check
from flashladder.running.verify import Comparison

SETTINGS = bench.Settings(
    tokens=32, heads=2, lengths=(8, 12, 16), head_dims=(64,), peers=False, seconds=0.01, most_runs=6
)


@pytest.fixture
def timed(fake, fake_device, monkeypatch, tmp_path):
    """timed(plant) -> the record of a benchmark of a backward stage on the host."""
    folder = tmp_path / "40_fake"
    folder.mkdir()
    (folder / "kernel.cu").write_text("// the kernels\n")
    stage = Backward(40, "40_fake", "Fake", "nothing", 75, None, folder, {})

    def run(plant: int = 0, **settings) -> dict:
        library = compile_cpp(HERE / "fake/backward_stage.cpp", tmp_path / f"{plant}.so", "-shared", "-fPIC",
                              f"-DPLANT={plant}")  # fmt: skip
        monkeypatch.setattr(gpu_memory, "torch", None)
        monkeypatch.setattr(gpu_memory, "loaded_cudart", lambda: None)
        monkeypatch.setattr(bench, "cudart", lambda device: fake.cudart)
        for one in (bench, backward_bench):
            monkeypatch.setattr(one, "stage_library", lambda number: library)
        monkeypatch.setattr(bench, "check_build", lambda device: None)
        monkeypatch.setattr(recorded, "results_directory", lambda: tmp_path / "results")
        monkeypatch.setattr(stages, "backward_stages", lambda: (stage,))
        return recorded.load(backward_bench.run(SETTINGS, Device("gpu", fake_device)))

    run.stage = stage
    return run


def test_results_and_provenance(timed, capsys):
    got = timed()
    assert got["pass"] == "backward" and got["provenance"]["kernels"] == {"40_fake": timed.stage.kernel_hash()}
    assert {(row["Nq"], row["causal"]) for row in got["measurements"]} == {
        (8, False),
        (16, False),
        (8, True),
        (16, True),
    }
    assert [row["reason"] for row in got["skipped"]] == ["Nq must be a multiple of 8"] * 2
    for row in got["measurements"]:
        assert row["kernel_sha256"] == timed.stage.kernel_hash() and row["registers"] == 43
        forward = 4 * row["B"] * row["Hq"] * row["Nq"] * row["Nkv"] * row["d_head"] * (0.5 if row["causal"] else 1)
        assert row["tflops"] == pytest.approx(2.5 * forward / row["ms"]["median"] / 1e9, rel=1e-3)
        assert row["relative_error"] < 4e-3
    assert "not timed: 40_fake at N = 12" in capsys.readouterr().out


@pytest.mark.parametrize("plant", (1, 2, 3))
def test_a_wrong_stage_is_not_timed(timed, plant):
    with pytest.raises(FlashLadderError, match="is wrong .* so it is not timed"):
        timed(plant)


def test_the_record_is_no_forward_throughput(timed, tmp_path):
    timed()
    assert recorded.latest_live() is None
    (file,) = (tmp_path / "results").glob("*.json")
    assert file.name.startswith("Fake-GPU-backward-")
    assert report_check.kind_of("H100-backward.json") == "backward"


def test_each_round_has_another_order(timed, monkeypatch, fake_device):
    timed()  # which puts the fake runtime in its place
    orders = []
    monkeypatch.setattr(bench.Bench, "time_once", lambda self, candidate: orders.append(candidate.name) or 0.01)
    made = backward_bench.BackwardBench(SETTINGS, Device("gpu", fake_device))
    made.measure([bench.Candidate(name, "stage", lambda: None) for name in "abc"])
    rounds = ["".join(orders[place : place + 3]) for place in range(3, len(orders), 3)]  # behind the first of each
    assert len(rounds) == SETTINGS.most_runs and len(set(rounds)) > 1
    assert {"".join(sorted(one)) for one in rounds} == {"abc"}


@pytest.mark.parametrize(
    "name, changes, admitted",
    [
        ("FlashAttention-2", True, True),
        ("FlashAttention-2, deterministic", False, True),
        ("FlashAttention-2, deterministic", True, False),
    ],
)
def test_a_peer_with_other_bits_in_a_later_run_is_not_deterministic(timed, fake_device, name, changes, admitted):
    timed()  # which puts the fake runtime in its place
    made = backward_bench.BackwardBench(SETTINGS, Device("gpu", fake_device))
    runs = []

    def output():
        last = changes and len(runs) == backward_bench.REPEATS
        return {"dQ": np.zeros(4), "dK": np.zeros(4), "dV": np.array([0, 0, 0, last])}

    candidate = bench.Candidate(name, "peer", lambda: runs.append(name), output)
    candidate.comparison = Comparison(True, 1e-3, 0.1, "")
    assert made.accepts(candidate, Problem()) is admitted
    reasons = [] if admitted else ["its gradients have other bits in one of 4 runs"]
    assert [row["reason"] for row in made.skipped] == reasons


def test_a_package_that_refuses_a_head_dim_is_skipped_with_its_reason(timed, fake_device, monkeypatch):
    timed()
    made = backward_bench.BackwardBench(SETTINGS, Device("gpu", fake_device))
    made.torch, made.settings = True, bench.Settings()

    def gradient_call(name, problem, tensors):
        if problem.d_head == 64:
            raise RuntimeError(f"RuntimeError: {name} has no kernels for d = 64\nand more words")
        return lambda: (1, 2, 3)

    monkeypatch.setattr(peers, "gradient_names", lambda: ("FlashAttention-3",))
    monkeypatch.setattr(peers, "gradient_call", gradient_call)
    memory = SimpleNamespace(tensors={})
    assert made.peer_candidates(Problem(d_head=64), memory) == []
    assert [row["reason"] for row in made.skipped] == ["RuntimeError: FlashAttention-3 has no kernels for d = 64"]
    (candidate,) = made.peer_candidates(Problem(d_head=128), memory)
    assert candidate.name == "FlashAttention-3" and candidate.flops == Problem(d_head=128).backward_flops()
