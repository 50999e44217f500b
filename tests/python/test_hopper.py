"""What Hopper's stages need besides a kernel: wgmma.cuh as its script writes it, code for one architecture."""

import re
import runpy

import pytest

from flashladder.building import build
from flashladder.core import device
from flashladder.core.device import Compute, Gpu
from flashladder.core.paths import ROOT
from flashladder.ladder import ablations, stages
from flashladder.ladder.kernels import stage_flags

INCLUDE = ROOT / "common/include"


@pytest.mark.parametrize("name", ("wgmma", "wgmma_backward"))
def test_wgmma_is_as_its_script_writes_it(name):
    script = runpy.run_path(str(INCLUDE / f"make_{name}.py"))
    assert (INCLUDE / f"{name}.cuh").read_text() == script["text"](), f"run python common/include/make_{name}.py"


def test_wgmma_names_each_register_once():
    text = (INCLUDE / "wgmma.cuh").read_text()
    found = re.findall(
        r"wgmma_(ss|rs_k_major|rs)<(\w+), (\d+)>.*?m64n(\d+)k(\d+)\.f32\.(\w+)\.(\w+) \"\n\s+\"\{(.*?)\}", text, re.S
    )
    assert len(found) == len({(kind, name, n) for kind, name, n, *_ in found}) == text.count("\ntemplate <>")
    types = {"__half": ("f16", "16"), "__nv_bfloat16": ("bf16", "16"), "e4m3": ("e4m3", "32")}
    for kind, name, columns, shape, k, a, b, registers in found:
        told = f"wgmma_{kind}<{name}, {columns}>"
        assert columns == shape and a == b and (a, k) == types[name], told
        assert registers.split(", ") == [f"%{i}" for i in range(int(columns) // 2)], told


def test_every_shape_of_wgmma_is_used():
    """Only what a stage uses, or one of its ablations: each kind stands in some kernel, by a constant of it."""
    kernels = "".join(stage.source.read_text() for stage in stages.all_stages())
    kernels += "".join(one.text() for one in ablations.ablations())
    for kind in ("ss", "rs", "rs_k_major"):
        assert f"ptx::wgmma_{kind}<T" in kernels


def gpu(compute: int) -> Gpu:
    return Gpu("A GPU", compute, "580.1", 80000)


@pytest.mark.parametrize("compute, kind", ((80, "sim"), (90, "gpu"), (100, "sim"), (120, "sim")))
def test_a_stage_for_one_architecture_takes_no_other_gpu(monkeypatch, compute, kind):
    monkeypatch.setattr(device, "find_gpu", lambda: gpu(compute))
    where = device.choose(Compute(90, specific=True), "auto")
    assert where.kind == kind
    if compute > 90:
        assert where.reason == f"A GPU has compute capability {compute / 10}, this needs 9.0 and no other"
        assert device.choose(Compute(90), "auto").kind == "gpu", "without `specific` a newer one will do"


def test_what_an_architecture_is_called():
    plain, specific = Compute(90), Compute(90, specific=True)
    assert (f"{plain}", f"{specific}", plain, specific) == ("90", "90a", 90, 90)
    assert (plain.native(100), specific.native(90), specific.native(100)) == ("100", "90a", "100")


@pytest.mark.parametrize("which, arch", [("tma", "90"), ("wgmma", "90a"), ("warp_specialization", "90a")])
def test_hopper_stages_are_compiled_for_their_architecture(which, arch):
    if not (build.build_directory() / "compile_commands.json").exists():
        pytest.skip("nothing is built yet: run `make build`")
    stage = stages.get(which)
    assert f"--generate-code=arch=compute_{arch},code=[compute_{arch}]" in stage_flags(stage)
