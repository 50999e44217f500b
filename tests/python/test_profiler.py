"""What is read from Nsight Compute's pages, and what docs/profiler.md makes of it; ncu itself is a made-up program."""

import json
import os
import stat
from pathlib import Path

import pytest

from flashladder.commands import figure_lists, figures, gpu_report, profiler_pages, results
from flashladder.core.device import Device, Gpu
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.ladder import ablations, stages
from flashladder.measuring import ncu, profiler, recorded

STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
GPU = Device("gpu", Gpu("NVIDIA Fake", 90, "1.0", 1024))

_METRICS = {
    "gpu__time_duration.sum": "2,000,000",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "61.50",
    "smsp__inst_executed_op_ldsm.sum": "n/a",
    "smsp__sass_inst_executed_op_ldsm.sum": "10",  # the second name of the same thing
    "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum": "320",
    "smsp__inst_executed_op_ldgsts.sum": "0",
    STALL.format("selected"): "1",
    STALL.format("barrier"): "0.75",
    STALL.format("misc"): "nan",
}


def line(*cells: str) -> str:
    return ",".join(f'"{cell}"' for cell in cells) + "\n"


def raw_page(**changes: str) -> str:
    """A short launch and the one that counts, behind what ncu says first, with the row of units."""
    values = _METRICS | changes
    start = ("0", "4242", "python", "host", "void flash_kernel<__nv_bfloat16, 128>(FlashParams)")
    head = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name")
    short = {"gpu__time_duration.sum": "5,000"}
    return (
        "==PROF== Connected to process 4242\n"
        + line(*head, *values)
        + line(*[""] * len(head), *("nsecond" for _ in values))
        + line("7", *start[1:4], "void fill(int*)", *(short.get(metric, "0") for metric in values))
        + line(*start, *values.values())
    )


DETAILS = (
    line("ID", "Kernel Name", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Type",
         "Rule Description")
    + line("0", "k", "GPU Speed Of Light Throughput", "Duration", "ms", "2.00", "", "", "")
    + line("0", "k", "Occupancy", "Registers Per Thread", "register/thread", "255", "", "", "")
    + line("0", "k", "Memory Workload Analysis Tables", "", "", "", "SharedMemoryConflicts", "OPT",
           "8-way  bank | conflict,\nhere")
    + line("0", "k", "Occupancy", "", "", "", "Fine", "INF", "all is well")
    + line("7", "k", "Occupancy", "Registers Per Thread", "register/thread", "16", "", "", "")
)  # fmt: skip

# The columns of stall reasons twice, of all samples and of those where nothing was issued; ncu prints both.
SOURCE = (
    line("Kernel Name", "fill")
    + line("Address", "Source", "Warp Stall Sampling (All Samples)", "stall_barrier", "stall_long_sb", "stall_barrier")
    + line("0x0", "EXIT", "3", "0", "0", "0")
    + line("Kernel Name", "flash_kernel")
    + line("Address", "Source", "Warp Stall Sampling (All Samples)", "stall_barrier", "stall_long_sb", "stall_barrier")
    + line("0x0", "HMMA.16816.F32.BF16 R4, R8, R12, R4", "1,000", "0", "1", "0")
    + line("0x10", "@!P0 LDSM.16.MT88.4 R4, [R2]", "500", "0", "0", "0")
    + line("0x20", "BAR.SYNC.DEFER_BLOCKING 0x0", "300", "290", "10", "7")
    + line("0x30", "DEPBAR.LE SB0, 0x0", "200", "0", "200", "0")
    + line("0x40", "NOTINTHELOOP R1", "0", "0", "0", "0")
)


def entry(which: int, **more) -> dict:
    stage = stages.get(which)
    own = {"name": stage.name, "kind": "stage", "kernel_sha256": stage.kernel_hash(), "configuration": None}
    return own | profiler.from_pages(raw_page(), DETAILS, SOURCE) | more


@pytest.fixture
def record(monkeypatch):
    """A record of stages 04 and 05, of which 04 has changed since; it stands for what docs/results has."""
    provenance = {"device": "NVIDIA Fake", "date": "2026-01-31 10:00 UTC", "commit": "abc"}
    made = {"version": 1, "provenance": provenance, "problem": "a problem"}
    made["kernels"] = [entry(4, kernel_sha256="another"), entry(5)]
    monkeypatch.setattr(recorded, "shipped", lambda folder=None, kind="": [made] if kind == "profiler" else [])
    return made


def test_the_longest_launch_and_the_first_metric_with_a_number():
    found = profiler.from_pages(raw_page(), DETAILS, SOURCE)
    assert found["kernel"].startswith("void flash_kernel")
    assert found["figures"]["nanoseconds"] == 2_000_000 and found["figures"]["SM throughput"] == pytest.approx(61.5)
    assert found["figures"]["ldmatrix instructions"] == 10
    assert found["metrics"]["ldmatrix instructions"] == "smsp__sass_inst_executed_op_ldsm.sum"
    assert found["figures"]["cp.async instructions"] == 0  # which is not "unknown"
    assert found["figures"]["tensor pipe"] is None and found["metrics"]["tensor pipe"] is None
    assert found["stalls"] == {"selected": 1, "barrier": 0.75}
    json.dumps(found, allow_nan=False)


def test_a_report_without_a_kernel_is_an_error():
    with pytest.raises(FlashLadderError, match="no kernel in it"):
        profiler.from_pages("==PROF== nothing\n", "", "")


def test_pages_that_this_version_does_not_print_are_missing_and_no_error():
    found = profiler.from_pages(raw_page(), "", "")
    assert found["details"] == [] and found["advice"] == [] and found["samples"] is None


def test_sections_and_advice_are_those_of_the_launch():
    lines, advice = profiler.details(DETAILS, "0")
    assert [(one["name"], one["value"]) for one in lines] == [("Duration", "2.00"), ("Registers Per Thread", "255")]
    assert advice == [{"section": "Memory Workload Analysis Tables", "text": "8-way bank | conflict, here"}]


def test_samples_by_class_and_the_hottest():
    found = profiler.samples(SOURCE)
    assert found["total"] == 2000 and found["instructions"] == 5
    assert {name: count for name, count in found["by_class"].items() if count} == {
        "mma": 1000, "ldmatrix": 500, "barrier": 300, "wait for cp.async": 200,
    }  # fmt: skip
    assert [row["at"] for row in found["hottest"]] == [0, 1, 2, 3]  # the one without samples is none of them
    assert found["hottest"][2]["reasons"] == {"barrier": 290, "long_sb": 10}  # of all samples, not of the second column


def test_samples_by_the_older_name_of_their_column():
    assert profiler.samples(SOURCE.replace("Warp Stall Sampling (All Samples)", "# Samples"))["total"] == 2000


@pytest.mark.parametrize(
    "instruction, group",
    [
        ("LDGSTS.E.BYPASS.128 [R1], desc[UR4][R2.64]", "copies"),
        ("LDGDEPBAR", "wait for cp.async"),
        ("@P1 STL [R1], R2", "spills"),
        ("MUFU.EX2 R4, R5", "softmax"),
        ("@!PT LDS RZ, [RZ]", "the rest"),
        ("WARPGROUP.ARRIVE", "wait for wgmma"),
        ("", "the rest"),
    ],
)
def test_class_of_an_instruction(instruction, group):
    assert profiler.class_of(instruction) == group


def test_a_figure_of_the_record(record):
    assert (
        figures.text_of('profiled(5, "shared ldmatrix wavefronts") / profiled(5, "ldmatrix instructions") : .0f')
        == "32"
    )
    assert figures.text_of('profiled(5, "stall barrier") : .2f') == "0.75"
    assert figures.text_of('100 * profiled(5, "samples barrier") : .0f') == "15"
    assert figures.text_of('profiled(4, "registers") : .0f') == figures.UNRECORDED  # this ncu has no such figure
    assert figures.text_of('profiled(4, "nanoseconds") / 1e6 : .1f') == "2.0 (stale)"
    assert figures.text_of('profiled(9, "nanoseconds") : .0f') == figures.UNRECORDED
    with pytest.raises(FlashLadderError, match='no figure "stall boredom" of the profiler'):
        figures.text_of('profiled(5, "stall boredom") : .2f')


def test_before_there_is_a_record(monkeypatch):
    monkeypatch.setattr(recorded, "shipped", lambda folder=None, kind="": [])
    assert figures.text_of('profiled(4, "nanoseconds") / profiled(5, "nanoseconds") : .1f') == figures.UNRECORDED
    with pytest.raises(FlashLadderError, match="no figure"):
        figures.text_of('profiled(4, "nanosecond") : .1f')
    assert profiler_pages.page("swizzle") == profiler_pages.picture("profiler-stalls") == results.NOTHING
    assert profiler_pages.pictures() == []


def test_tables(record, tmp_path):
    head, body = profiler_pages.lines(record, "swizzle")
    assert head == ["", "04_tensor_cores\\*", "05_swizzle"]
    assert ["ldmatrix: wavefronts", "320", "320"] in body and ["cp.async: wavefronts", "-", "-"] in body
    assert profiler_pages.stalls(record)[1] == [
        ["selected", "1.00", "1.00"], ["barrier", "0.75", "0.75"], ["all", "1.75", "1.75"],
    ]  # fmt: skip
    assert ["mma", "50.0%", "50.0%"] in profiler_pages.samples(record)[1]
    assert profiler_pages.hottest(record, "5")[1][2] == [
        "2", "`BAR.SYNC.DEFER_BLOCKING 0x0`", "15.0%", "barrier 14.5%, long_sb 0.5%",
    ]  # fmt: skip
    assert profiler_pages.section(record, "speed-of-light", "5")[1] == [["Duration", "2.00 ms"]]
    assert profiler_pages.advice(record, "5")[1] == [
        ["Memory Workload Analysis Tables", "8-way bank \\| conflict, here"]
    ]
    assert results.STALE_NOTE in profiler_pages.page("stalls")
    assert results.STALE_NOTE not in profiler_pages.page("hottest", "5")
    assert profiler_pages.page("hottest", "9").startswith("Not recorded")
    with pytest.raises(FlashLadderError, match="table is first, swizzle"):
        profiler_pages.lines(record, "colours")


def test_the_chapter_is_filled_from_a_record(record, monkeypatch):
    """Every table, picture and figure that docs/profiler.md asks for is made, and a second time changes nothing."""
    record["kernels"] = [entry(which) for which in (4, 5, 6, 9, 12)]
    record["kernels"] += [entry(9, name="09 no eager loads (single buffers)")]
    for one in record["kernels"]:
        one["figures"] = dict.fromkeys(one["figures"], 3.0)
        one["stalls"] = dict.fromkeys(profiler.STALLS, 0.5)
    file = ROOT / "docs" / "profiler.md"
    chapter = file.read_text()
    own = [block for block in results._BLOCK.finditer(chapter) if block["what"].startswith("profiler")]
    assert len(own) > 5
    for block in own:
        filled = results.fill(block[0], file)
        assert results.NOTHING not in filled and results.fill(filled, file) == filled, block["what"]
    for one in figure_lists.of(file):
        for source in one.sources:
            if "profiled(" in source:
                figures.value_of(source)  # and it does not raise Unrecorded


def test_the_variant_that_is_profiled_exists():
    variants = {one.id: f"{one.stage.id} {one.title}" for one in ablations.ablations()}
    slugs = {one.slug for one in stages.all_stages()}
    assert all(which in variants or which in slugs for which in profiler.KERNELS)
    assert sum(which in slugs and stages.get(which).hopper for which in profiler.KERNELS) == 4
    assert variants["09_no_eager"] == "09 no eager loads (single buffers)"  # as docs/profiler.md calls it


def test_kernels_for_hopper_have_tables_of_their_own(record):
    record["kernels"].append(entry(stages.get("wgmma").number))
    wgmma = stages.get("wgmma").name
    assert profiler_pages.lines(record, "first")[0] == ["", "04_tensor_cores\\*", "05_swizzle"]
    assert profiler_pages.lines(record, "hopper")[0] == ["", wgmma]
    assert profiler_pages.stalls(record)[0] == ["cycles", "04_tensor_cores\\*", "05_swizzle"]
    assert profiler_pages.stalls(record, "hopper")[0] == ["cycles", wgmma]
    assert f"| found at | {wgmma} |" in profiler_pages.page("samples", "hopper")
    with pytest.raises(FlashLadderError, match="'hopper' or nothing"):
        profiler_pages.samples(record, "blackwell")
    record["kernels"].pop()
    assert profiler_pages.page("hopper").startswith("Not recorded")


def test_pictures(record):
    pytest.importorskip("matplotlib")
    from flashladder import plot

    assert profiler_pages.pictures() == list(profiler_pages.PICTURES)
    for name, (draw, _, _) in profiler_pages.PICTURES.items():
        figure = draw(plot)(record)
        labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert labels == ["04_tensor_cores\n(stale)", "05_swizzle"], name
    right = [sum(bar.get_width() for bar in bars.patches if bar.get_y() > 0.5)
             for bars in [plot.profiler_stalls(record).axes[0]]]  # fmt: skip
    assert right == [pytest.approx(1.75)]
    record["kernels"] = [entry(5, samples=None)]
    assert "profiler-samples" not in profiler_pages.pictures()
    with pytest.raises(FlashLadderError, match="samples"):
        plot.profiler_samples(record)


_FAKE_NCU = """#!/usr/bin/env python3
import os, sys
words = sys.argv[1:]
with open(os.environ["FAKE_NCU_LOG"], "a") as log:
    print(*words, file=log)
mode = os.environ.get("FAKE_NCU", "")
pages = os.path.dirname(os.path.abspath(__file__))
if "--version" in words:
    print("NVIDIA (R) Nsight Compute\\nVersion 2025.3.1.0 (build 1)")
elif "--query-metrics" in words:
    print("smsp__sass_inst_executed_op_ldsm   # of instructions\\nsm__throughput  a breakdown")
elif "--import" in words:
    page = words[words.index("--page") + 1]
    if mode == "old" and "--print-source" in words:
        sys.exit("==ERROR== unrecognised option '--print-source'")
    print(open(os.path.join(pages, page + ".csv")).read(), end="")
elif mode == "permission":
    print("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters")
    sys.exit(1)
elif mode == "refuses" and "sm__throughput" in words[words.index("--metrics") + 1]:
    print("==ERROR== Failed to find metric sm__throughput")
    sys.exit(1)
elif mode == "refuses all" and "--metrics" in words:
    print("==ERROR== Some metric is unknown")
    sys.exit(1)
elif mode == "fails":
    sys.exit("==ERROR== The application returned an error code (11).")
else:
    open(words[words.index("--export") + 1] + ".ncu-rep", "w").close()
"""


@pytest.fixture
def fake_ncu(monkeypatch, tmp_path):
    """Puts a program `ncu` on PATH that prints the pages above; fake_ncu(mode) makes it fail in one of its ways, and
    gives the lines that it was called with."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for page, text in (("raw", raw_page()), ("details", DETAILS), ("source", SOURCE)):
        (folder / f"{page}.csv").write_text(text)
    program = folder / "ncu"
    program.write_text(_FAKE_NCU)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_NCU_LOG", str(tmp_path / "log"))
    monkeypatch.setattr(profiler, "KERNELS", ("tensor_cores", "swizzle"))
    monkeypatch.setattr(profiler, "PROBLEM", gpu_report.SMALL)
    monkeypatch.setattr(stages.Kernel, "describe", lambda *arguments: {"configuration": "(BF16)"})
    monkeypatch.setattr(ncu, "cudart", lambda device: Path("libcudart.so"))
    for cached in (ncu.known, ncu.metrics):
        cached.cache_clear()

    def mode(name: str = "") -> Path:
        monkeypatch.setenv("FAKE_NCU", name)
        return tmp_path / "log"

    mode()
    yield mode
    for cached in (ncu.known, ncu.metrics):
        cached.cache_clear()


def test_the_record_of_a_gpu(fake_ncu, tmp_path):
    made, notes = profiler.collect(GPU, tmp_path / "profiler")
    assert [one["name"] for one in made["kernels"]] == ["04_tensor_cores", "05_swizzle"]
    assert made["kernels"][1]["figures"]["ldmatrix instructions"] == 10
    assert made["kernels"][1]["kernel_sha256"] == stages.get(5).kernel_hash()
    assert made["metrics"]["tensor pipe"] is None and not notes
    assert made["provenance"]["device"] == "NVIDIA Fake" and "2025.3" in made["provenance"]["ncu"]
    assert (tmp_path / "profiler" / "05_swizzle.ncu-rep").exists()
    assert (tmp_path / "profiler" / "05_swizzle-raw.csv").read_text() == raw_page()
    run = next(words for words in fake_ncu().read_text().splitlines() if "--export" in words)
    assert "--clock-control none" in run and "--section SourceCounters" in run
    asked = run.split("--metrics ")[1].split()[0].split(",")
    assert "sm__throughput.avg.pct_of_peak_sustained_elapsed" in asked
    assert not [one for one in asked if "tensor" in one], "asks for what --query-metrics does not list"


def test_without_permission_it_says_what_to_do_and_stops(fake_ncu, tmp_path):
    log = fake_ncu("permission")
    with pytest.raises(FlashLadderError, match="run as root, or have the driver loaded with NVreg"):
        profiler.collect(GPU, tmp_path)
    assert log.read_text().count("--export") == 1, "it is the same for all kernels"


def test_some_stages_alone_and_for_some_time(fake_ncu, tmp_path):
    made, notes = profiler.collect(GPU, tmp_path, (5,))
    assert [one["name"] for one in made["kernels"]] == ["05_swizzle"] and not notes
    assert profiler.collect(GPU, tmp_path, (7,)) == (None, [])
    made, notes = profiler.collect(GPU, tmp_path, ends=0)
    assert [one["name"] for one in made["kernels"]] == ["04_tensor_cores"], "one at the least"
    assert notes == ["profiler: no time was left for swizzle"]


def test_a_metric_that_is_refused_after_all(fake_ncu, tmp_path):
    log = fake_ncu("refuses")
    profiler.collect(GPU, tmp_path)
    runs = [words for words in log.read_text().splitlines() if "--export" in words]
    assert len(runs) == 4 and "sm__throughput" in runs[0] and "sm__throughput" not in runs[1]
    assert "smsp__sass_inst_executed_op_ldsm.sum" in runs[1], "the others are still asked"


def test_with_every_metric_refused_the_sections_are_left(fake_ncu, tmp_path):
    fake_ncu("refuses all")
    record, notes = profiler.collect(GPU, tmp_path)
    assert len(record["kernels"]) == 2 and not notes


def test_a_kernel_that_fails_is_told(fake_ncu, tmp_path):
    fake_ncu("fails")
    with pytest.raises(FlashLadderError, match="tensor_cores: .*stage 04.*\n.*error code"):
        profiler.collect(GPU, tmp_path)


def test_an_older_ncu_prints_its_source_page_too(fake_ncu, tmp_path):
    fake_ncu("old")
    record, notes = profiler.collect(GPU, tmp_path)
    assert not notes and record["kernels"][0]["samples"]["total"] == 2000


def test_no_ncu_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FlashLadderError, match="install Nsight Compute"):
        profiler.collect(GPU, tmp_path)


def test_each_metric_is_asked_once_by_a_whole_name():
    names = [metric for several in profiler.FIGURES.values() for metric in several]
    assert len(names) == len(set(names))
    assert all("__" in name for name in names)
    assert set(profiler.SAMPLED) == set(profiler.samples(SOURCE)["by_class"])
    classes = [one for group in profiler.SAMPLED.values() for one in group]
    from flashladder.measuring import machine_code

    assert sorted(classes) == sorted(machine_code.NAMES)
