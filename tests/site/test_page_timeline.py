"""The page's timeline (docs/site/run/model.js, timeline.js) is the Python package's, span by span, to the last bit."""

import json
import shutil
from dataclasses import asdict

import page_runs
import pytest

from flashladder.building import build
from flashladder.commands import browser
from flashladder.ladder import stages
from flashladder.simulator import clocks, warps
from flashladder.site import page_kernels, run_page

# Kernels of clusters leave no trace.
STAGES = [one for one in page_kernels.offered() if one.kind == "stage" and "cluster" not in one.stage.launch]


@pytest.fixture(scope="module", autouse=True)
def built():
    build.build(["browser_run", *browser.targets()])


def in_node(file: dict, traced: dict, folder) -> list[dict]:
    scripts = folder / "scripts"
    shutil.copytree(run_page.FILES, scripts)
    (scripts / "package.json").write_text('{"type": "module"}')
    told = {"trace": traced, "clocks": asdict(clocks.load()), "sources": file["sources"], "phases": file["phases"]}
    (folder / "input.json").write_text(json.dumps(told))
    return json.loads(page_runs.node(page_runs.HERE / "timeline_in_node.mjs", scripts, folder / "input.json"))


@pytest.mark.parametrize(
    "one", [pytest.param(one, id=one.id, marks=[] if int(one.id) % 5 == 0 else pytest.mark.long) for one in STAGES]
)
def test_a_timeline_is_the_packages(one, tmp_path):
    at = page_runs.some(one)[1]
    file = browser.kernel_file(one, one.problems()[at : at + 1])
    traced = page_runs.native(file["ptx"], page_runs.with_settings(file["requests"][0]), tmp_path)["trace"]
    found = in_node(file, traced, tmp_path)
    wanted = page_runs.timelines(file, traced, tmp_path)
    assert len(found) == len(wanted) >= 1
    for ours, theirs in zip(found, wanted, strict=True):
        page_runs.same_timeline(ours, theirs)
        assert theirs.end > 0 and {span.kind for span in theirs.spans} >= {"arithmetic", "wait"}
    kinds = {span["kind"] for ours in found for span in ours["spans"]}
    wgmma = one.stage in stages.since("wgmma")
    assert ("wgmma" in kinds) == wgmma
    assert "product" in kinds or wgmma or one.stage not in stages.since("tensor_cores")


def launch_of(warps: list, ops: list, pieces=()) -> dict:
    block = {"block": [0, 0, 0], "cut": False, "pieces": list(pieces), "mbarriers": [[0, 64, 1]], "warps": warps}
    numbered = [[number, cls, text, 0, 7 + number, imm] for number, (cls, text, imm) in enumerate(ops)]
    launch = {"kernel": "k", "grid": [1, 1, 1], "block": [32 * len(warps), 1, 1], "error": "", "files": ["kernel.cu"]}
    return launch | {"ops": numbered, "traced": [block]}


def test_what_no_stage_has_is_replayed_alike(tmp_path):
    """wait_all, atomics, integers' products, bulk stores, arrivals behind copies, more groups left than there are."""
    ops = [
        ("mbarrier", "mbarrier.init", 0),
        ("async_copy", "cp.async.cg.shared.global", 0),
        ("async_copy", "cp.async.commit_group", 0),
        ("async_copy", "cp.async.wait_group", 3),
        ("async_copy", "cp.async.wait_all", 0),
        ("bulk_copy", "cp.async.bulk.global.shared::cta.bulk_group", 0),
        ("bulk_copy", "cp.async.bulk.commit_group", 0),
        ("bulk_copy", "cp.async.bulk.wait_group", 0),
        ("mbarrier", "cp.async.mbarrier.arrive", 0),
        ("vote", "vote.sync.ballot.b32", 0),
        *[("tensor", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 0)] * 8,  # 10 to 17
        *[("ldmatrix", "ldmatrix.sync.aligned.m8n8.x4.shared.b16", 0)] * 2,
        *[("special_function", "ex2.approx.ftz.f32", 0)] * 8,  # 20 to 27
        ("shuffle", "shfl.sync.bfly.b32", 0),
        ("integer", "add.s32", 0),
        *[("atomic", "atom.global.add.u32", 0)] * 8,  # 30 to 37
        *[("load_shared", "ld.shared.v4.b32", 0)] * 2,
    ]
    costs = [[1, 0, 4, 128], [5, 0, 2, 256], [18, 2, 0, 512], [30, 0, 2, 8], [38, 4, 0, 512]]
    pieces = [[0, 39, costs], [10, 19, costs[2:3]], [20, 29, []], [30, 39, costs[3:]], [1, 2, costs[:1]]]
    runs = [["run", piece] for piece in (0, 1, 2, 3, 1, 1, 2, 4, 3, 2)]
    events = [[*runs, ["arrive_copies", 8, 0, 0, 1, 0]], [["run", 4], ["wait", 0, 0, 0], ["wait", 0, 0, -1], *runs]]
    traced = {"version": 1, "launches": [launch_of(events, ops, pieces)]}
    text = ["mbarrier_init(&its.full[0], 1);\n" if line == 7 else ";\n" for line in range(1, 60)]
    text[15], text[30] = "// ---- some ---- other ----\n", "// ---- some more ----\n"
    (tmp_path / "kernel.cu").write_text("".join(text))
    phases = [[part.name, part.first, part.last] for part in warps.phases(tmp_path / "kernel.cu")]
    file = {"sources": {"kernel.cu": "".join(text)}, "phases": {"kernel.cu": phases}}
    (ours,), (theirs,) = in_node(file, traced, tmp_path), page_runs.timelines(file, traced, tmp_path)
    page_runs.same_timeline(ours, theirs)
    assert {"product", "arithmetic", "copy", "wait", "bytes"} == {one["kind"] for one in ours["spans"]}
    assert {"full[0]", "some", "some more", "load"} <= {one["label"] for one in ours["spans"]}


@pytest.mark.parametrize(
    "warps, words",
    (
        ([[["wait", 0, 0, 0]]], "nothing completes mbarrier 0 0"),
        ([[["warpgroup", 1]]], "warp 0 waits for ever"),
        ([[["run", 0]]], "does not know the instruction tensor.new"),
    ),
)
def test_a_trace_without_an_end_is_told_so(warps, words, tmp_path):
    ops = [("mbarrier", "mbarrier.init", 0), ("warpgroup", "setmaxnreg.inc", 0), ("tensor", "tensor.new", 0)]
    pieces = [[2, 2, []]] if warps[0][0][0] == "run" else []
    traced = {"version": 1, "launches": [launch_of(warps, ops, pieces)]}
    with pytest.raises(AssertionError, match=words):
        in_node({"sources": {}, "phases": {}}, traced, tmp_path)
