"""The stages' kernels, unedited, through clang's WebAssembly and the compiler: ptxas takes them, they are right and
clean on the simulator, and access memory as nvcc's do. Needs node and PyPI's fortitudo; skips without."""

import re
import sys
import time

import clang_in_node
import pytest
import run_programs

from flashladder.building import build
from flashladder.commands import browser
from flashladder.core.paths import ROOT
from flashladder.ladder import stages
from flashladder.site import page_compiler, page_kernels

sys.path.insert(0, str(ROOT / "tests/site"))

import page_runs

pytestmark = pytest.mark.skipif(bool(clang_in_node.why_missing()), reason=clang_in_node.why_missing())

OFFERED = [one for one in page_kernels.offered() if one.kind == "stage"]
QUICK = {stages.get(one).id for one in ("swizzle", "warp_specialization")}
CASES = [pytest.param(one, id=one.id, marks=() if one.id in QUICK else pytest.mark.long) for one in OFFERED]

# Where clang's code before this compiler differs from nvcc's. Stores: nvcc has two copies of one, for lanes that have
# branched, and so more sectors. fp8: nvcc stores QueryTile's fields in pairs.
DIFFERENT = {(slug, "global", "store") for slug in ("wgmma", "warp_specialization", "tile_scheduler")}
DIFFERENT |= {("fp8", "shared", "store")}


@pytest.fixture(scope="module", autouse=True)
def built():
    build.build([*browser.targets()])


def clangs_name(symbol: str) -> str:
    """Of a kernel whose template has a structure nvcc names the zeros at its end, and clang does not (clang.js)."""
    return re.sub(r"(Xtl\w*?)(?:L[a-z]0E)+(?=EE)", r"\1", symbol, count=1)


def counters(launch: dict) -> dict:
    """By space and kind of access."""
    return {(space, kind): counts for space in ("shared", "global") for kind, counts in launch[space].items()}


@pytest.mark.parametrize("one", CASES)
def test_a_stage_is_right_and_accesses_what_nvccs_does(one, tmp_path):
    output = tmp_path / "kernel.ll"
    seconds = clang_in_node.compile_to_ir(
        page_compiler.find_clang(), one.stage.kernel, output, ("-DFLASH_ONLY_BF16_128",)
    )
    began = time.monotonic()
    ptx = run_programs.ir_to_ptx(output.read_text())
    print(f"\n{one.id}: clang {seconds:.1f} s, PTX {time.monotonic() - began:.2f} s, {len(ptx)} bytes")
    assert not run_programs.ptxas_refuses(ptx, tmp_path)

    problem = one.problems()[0]
    file = browser.kernel_file(one, [problem])
    request = page_runs.with_settings(file["requests"][0], WARPSIM_HAZARDS="strict")
    launched = re.findall(r"^launch (\w+)", request, re.M)
    for symbol in launched:
        ptx = ptx.replace(f".entry {clangs_name(symbol)}(", f".entry {symbol}(")
    assert set(launched) <= set(re.findall(r"\.entry (\w+)\(", ptx))
    ours, theirs = (page_runs.native(text, request, tmp_path) for text in (ptx, file["ptx"]))
    assert ours["status"] == "right", ours["message"]
    assert not any(launch["hazards"] for launch in ours["report"]["launches"])
    for our, their in zip(ours["report"]["launches"], theirs["report"]["launches"], strict=True):
        assert our["barriers"] == their["barriers"]
        our, their = counters(our), counters(their)
        wrong = {key for key in our if our[key] != their[key]}
        known = {key for key in our if (one.stage.slug, *key) in DIFFERENT}
        assert wrong == known, {key: (our[key], their[key]) for key in wrong ^ known}
