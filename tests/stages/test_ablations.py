"""The variants that `make ablations` times give the right answer and are free of hazards."""

import shutil
from pathlib import Path

import pytest
from shares import share

from flashladder.core import device
from flashladder.core.problem import Problem
from flashladder.ladder import ablations, kernels, stages, technique
from flashladder.ladder.run import run_problem
from flashladder.measuring import ablation_times, bench, recorded
from flashladder.running.job import StageError
from flashladder.running.verify import check


@pytest.mark.parametrize(
    "ablation",
    share([pytest.param(one, id=one.name, marks=pytest.mark.long) for one in ablations.ablations()], 16),
)
def test_variant_is_right(ablation):
    """Or, of a mistake that ptxas repairs, has its hazard: the simulator reads the PTX before ptxas does."""
    verdict = kernels.judge(ablation.stage, ablations.library(ablation))
    assert verdict.by == ablation.hazard, f"{verdict.problem}: {verdict.message}"


@pytest.mark.long
@pytest.mark.parametrize(
    "ablation", [one for one in ablations.ablations() if one.stage.number == 5], ids=lambda ablation: ablation.name
)
def test_padding_and_rotation_leave_no_bank_conflict(ablation):
    """As the README of stage 05 says: they are alternatives to its XOR, for ldmatrix and for the stores."""
    found = technique.judge(ablation.stage, ablations.library(ablation))
    assert not found, f"{ablation.title}: {'; '.join(found)}"


def test_each_variant_is_timed_beside_its_own_kernel(monkeypatch, tmp_path):
    """In the same run: a percentage of another run's figure would say something about the weather."""
    runs, real_heats = [], bench.Bench.heats

    class Bench:
        def __init__(self, settings, where):
            self.stages, self.libraries, self.heat_of, self.device = [], {}, None, where
            runs.append((settings, self))

        def run(self):
            return {"measurements": []}

    gpu = device.Device("gpu", device.Gpu("Fake", 90, "580.1", 1))
    monkeypatch.setattr(ablation_times.bench, "Bench", Bench)
    monkeypatch.setattr(ablation_times.bench, "check_build", lambda where: None)
    monkeypatch.setattr(ablation_times.bench, "print_tables", lambda results: None)
    monkeypatch.setattr(ablation_times, "library", lambda one, compute: one.title)
    monkeypatch.setattr(ablation_times, "StageLibrary", lambda library: library)
    monkeypatch.setattr(recorded, "results_directory", lambda: tmp_path)
    ablation_times.run(gpu)
    ((settings, timing),) = runs
    assert set(settings.stages) == {one.stage.number for one in ablations.ablations()}
    assert [one.name for one in timing.stages] == [f"{one.stage.id} {one.title}" for one in ablations.ablations()]
    names = ["05_swizzle", timing.stages[0].name, "22_no_gap", "23 Q in shared memory alone"]
    candidates = [bench.Candidate(name, "stage", None) for name in names] + [bench.Candidate("peer", "peer", None)] * 2
    heats = real_heats(timing, candidates)
    assert [[one.name for one in heat] for heat in heats] == [names[:2], names[2:3], names[3:], ["peer", "peer"]]
    for one in timing.stages:  # they are compiled side by side: each with its own library
        assert timing.libraries[one.number] == one.name[3:]
    assert set(settings.head_dims) == {64, 128}


def test_what_is_timed_is_built_for_both_head_dims(monkeypatch):
    built = []
    monkeypatch.setattr(
        ablations, "compile_kernel", lambda *arguments, **named: built.append((arguments, named)) or "built"
    )
    one = ablations.ablations()[0]
    assert ablations.library(one, 90) == ablations.library(one) == "built"
    (timed, simulated) = built
    assert timed[1] == {"only": "BF16"} and "arch=compute_90,code=sm_90" in timed[0]
    assert simulated[1] == {}, "for the simulator one instance is enough: it compiles faster"


@pytest.mark.long
def test_a_build_for_bf16_has_both_head_dims_and_says_what_it_lacks(tmp_path):
    stage = stages.get(7)
    library = kernels.compile_kernel(Path(shutil.copy(stage.kernel, tmp_path)), stage, only="BF16")
    for d in (64, 128):
        problem = Problem(B=1, Hq=1, Nq=128, Nkv=64, d_head=d)
        inputs = problem.random(3)
        result = run_problem(stage, problem, inputs, device="sim", library=library)
        assert check(problem, inputs, result.bits), f"d = {d}"
    with pytest.raises(StageError, match="this build has bf16 only"):
        run_problem(stage, Problem(B=1, Hq=1, Nq=128, Nkv=64, d_head=64, dtype="fp16"), device="sim", library=library)
