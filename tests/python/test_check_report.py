"""A reader's report, as one file: what is wrong with it is said in words, and a right one passes."""

import copy
import datetime
import io
import json
import tarfile
import zipfile

import pytest

from flashladder.commands import check_report
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.ladder.kernels import code_hash
from flashladder.measuring import recorded, report_check

TODAY = datetime.date(2026, 2, 1)
COMMIT = "0123456789ab"
SUMMARY = """NVIDIA A100-SXM4-80GB, 2026-01-31 12:00 UTC
verify: 300 of 300 runs right
test (auto): status 0: 512 passed in 200 s
test (gpu): status 0: 99 passed in 20 s
sanitize: 40 of 40 runs clean (memcheck and racecheck)
ncu: 60 of 60 counters equal
"""


def row(stage: stages.Kernel, length: int = 1024, tflops: float = 100.0) -> dict:
    problem = Problem(B=4, Hq=16, Nq=length, d_head=128)
    ms = problem.flops() / tflops / 1e9
    fields = {"B": 4, "Hq": 16, "Hkv": 16, "Nq": length, "Nkv": length, "d_head": 128, "dtype": "bf16", "causal": False}
    times = {"p20": ms * 0.99, "median": ms, "p80": ms * 1.01}
    facts = {"relative_error": 0.0023, "kernel_sha256": stage.kernel_hash(), "tflops": tflops, "ms": times}
    return {"name": stage.slug, "kind": "stage"} | fields | facts


@pytest.fixture
def report() -> report_check.Report:
    """A report of an A100 with which nothing is wrong."""
    provenance = {
        "date": "2026-01-31 12:00 UTC",
        "commit": COMMIT,
        "uncommitted_changes": False,
        "device": "NVIDIA A100-SXM4-80GB",
        "toolkit": "13.0.88",
        "build_type": "Release",
        "kernels": {stage.slug: stage.kernel_hash() for stage in stages.all_stages()},
        "compute_capability": 8.0,
        "driver": "580.1",
        "memory_mib": 81920,
    }
    rows = [row(stage, length) for stage in stages.all_stages() for length in (1024, 2048)]
    ceiling = {"name": "cuBLAS matmul", "kind": "ceiling", "dtype": "bf16", "tflops": 260.0}
    rows.append(ceiling | {"ms": {"p20": 1.0, "median": 1.1, "p80": 1.2}})
    record = {"version": 1, "provenance": provenance, "settings": {}, "measurements": rows, "skipped": []}
    return report_check.Report({"A100-SXM4-80GB.json": record}, {"summary.txt": SUMMARY})


def show(commit: str, path: str) -> bytes | None:
    """The project's history: one commit, whose files are those of today."""
    if commit != COMMIT:
        return None
    file = stages.STAGES.parent / path
    if path == "stages":  # as git lists a folder
        listed = [f"{one.name}/" for one in sorted(file.iterdir()) if one.is_dir()]
        return "\n".join([f"tree {commit}:{path}", "", *listed, ""]).encode()
    return file.read_bytes() if path and file.is_file() else None if path else b"commit"


def errors(report) -> list[str]:
    return report_check.check(report, show, TODAY).errors


def record(report) -> dict:
    return next(iter(report.records.values()))


def test_a_record_of_gradients_is_of_backward_stages(report):
    backward, *_ = stages.backward_stages()
    rows = [row(backward, length) | {"tflops": 250.0} for length in (1024, 2048)]  # 2.5 times the forward pass's
    gradients = record(report) | {"pass": "backward", "measurements": rows}
    gradients["provenance"] = gradients["provenance"] | {"kernels": {backward.slug: backward.kernel_hash()}}
    report.records["A100-SXM4-80GB-backward.json"] = gradients
    assert not errors(report)
    rows[0]["name"], rows[1]["tflops"] = "swizzle", 100.0
    said = "\n".join(errors(report))
    assert "swizzle" in said and "this project has no such stage" in said and "makes 250.0" in said


def test_a_right_report_passes(report):
    found = report_check.check(report, show, TODAY)
    assert not found.errors and not found.remarks, (found.errors, found.remarks)


def first(report, **values) -> None:
    record(report)["measurements"][0].update(values)


def times(report, **values) -> None:
    record(report)["measurements"][0]["ms"].update(values)


def origin(report, **values) -> None:
    record(report)["provenance"].update(values)


def summary(report, old: str, new: str) -> None:
    report.texts["summary.txt"] = SUMMARY.replace(old, new)


@pytest.mark.parametrize(
    "spoil, said",
    [
        (lambda r: record(r)["provenance"].pop("uncommitted_changes"), "whether the tree was the commit's, is missing"),
        (lambda r: record(r)["provenance"].pop("driver"), "provenance.driver, the driver's version, is missing"),
        (lambda r: record(r).pop("provenance"), "no provenance"),
        (lambda r: origin(r, kernels={}), "provenance.kernels, each kernel's sha256, is missing"),
        (lambda r: origin(r, commit="unknown"), "commit 'unknown' names none"),
        (lambda r: origin(r, commit="fedcba987654"), "this project has no commit fedcba987654"),
        (lambda r: origin(r, uncommitted_changes=True), "changes that are in no commit"),
        (lambda r: record(r)["provenance"]["kernels"].update({"swizzle": "0" * 64}), "swizzle is not the kernel"),
        (lambda r: record(r)["provenance"]["kernels"].update({"x": "0" * 64}), "has no stage x"),
        (lambda r: origin(r, build_type="Debug"), "a Debug build"),
        (lambda r: origin(r, driver="535.54"), "driver 535.54; CUDA 13 needs 580"),
        (lambda r: origin(r, date="2027-01-01 00:00 UTC"), "which is not yet"),
        (lambda r: origin(r, date="yesterday"), "not of the form"),
        (lambda r: origin(r, device="simulator (warpsim)"), "measured on the simulator"),
        (lambda r: record(r).update(version=2), "version 2"),
        (lambda r: record(r).update(measurements=[]), "no measurements"),
        (lambda r: record(r)["measurements"].append("fast"), "no measurement of a stage"),
        (lambda r: record(r)["measurements"][0].pop("d_head"), "without d_head nobody knows what was measured"),
        (lambda r: first(r, B=10**400), "is no size of a problem"),
        (lambda r: first(r, Nq=0), "Nq = 0 is no size of a problem"),
        (lambda r: first(r, tflops=10**400), "no positive number"),
        (lambda r: first(r, relative_error=-1), "timed without having been verified"),
        (lambda r: first(r, dtype="fp8"), "dtype 'fp8'"),
        (lambda r: first(r, name="fast"), "this project has no such stage"),
        (lambda r: first(r, relative_error=None), "timed without having been verified"),
        (lambda r: first(r, relative_error=0.1), "beyond the bound of 0.004"),
        (lambda r: first(r, kernel_sha256=None), "which kernel it was is unknown"),
        (lambda r: first(r, tflops=120.0), "120.0 TFLOP/s, but its median"),
        (lambda r: first(r, tflops=float("nan")), "no positive number"),
        (lambda r: times(r, median=-1.0), "no positive number"),
        (lambda r: times(r, p20=1e9), "are not in order"),
        (lambda r: record(r)["measurements"].append(record(r)["measurements"][0]), "measured twice"),
        (lambda r: r.texts.clear(), "no summary.txt"),
        (lambda r: summary(r, "status 0: 99", "status 1: 98"), "the tests failed (FLASHLADDER_DEVICE=gpu)"),
        (lambda r: summary(r, "test (", "toast ("), "the tests did not run"),
        (lambda r: summary(r, "verify: ", ""), "nothing was verified"),
        (lambda r: summary(r, "300 of", "299 of"), "1 of 300 runs are wrong"),
        (lambda r: summary(r, "40 of 40", "38 of 40"), "objects to 2 of 40 runs"),
        (lambda r: r.records.clear(), "the part bench did not run"),
    ],
)
def test_what_is_wrong_is_said(report, spoil, said):
    spoil(report)
    found = errors(report)
    assert any(said in error for error in found), found


def test_a_throughput_above_the_data_sheet_is_implausible(report):
    peak = report_check.peak("NVIDIA A100-SXM4-80GB")
    stage = stages.get(5)
    record(report)["measurements"][0] = row(stage, 4096, peak * 1.1)
    assert not errors(report), "cards may be somewhat faster than their data sheet"
    record(report)["measurements"][0] = row(stage, 4096, peak * 1.2)
    (error,) = errors(report)
    assert "above the 312 of the data sheet of NVIDIA A100-SXM4-80GB" in error and "swizzle" in error


def test_tensor_cores_take_twice_as_many_bytes(report):
    peak = report_check.peak("NVIDIA A100-SXM4-80GB")
    record(report)["measurements"][0] = row(stages.get("fp8"), 4096, peak * 1.9) | {"dtype": "e4m3"}
    assert not errors(report)
    record(report)["measurements"][0] = row(stages.get("fp8"), 4096, peak * 2.4) | {"dtype": "e4m3"}
    assert any("above the 624 of the data sheet" in error and "e4m3" in error for error in errors(report))


def test_an_unknown_gpu_is_remarked_upon(report):
    origin(report, device="NVIDIA X1")
    found = report_check.check(report, show, TODAY)
    assert not found.errors and "no data sheet's peak of NVIDIA X1" in found.remarks[0]


def test_many_faults_of_a_kind_are_told_once(report):
    for one in record(report)["measurements"][:-1]:
        one.pop("relative_error")
    found = errors(report)
    assert len(found) == 9 and "more measurements of the same kind" in found[-1]


def test_files_of_two_gpus_are_no_report(report):
    other = copy.deepcopy(record(report))
    other["provenance"]["device"] = "NVIDIA H100 PCIe"
    report.records["H100-ablations.json"] = other
    assert any("files of different GPUs" in error for error in errors(report))


def test_a_stale_kernel_is_a_remark(report):
    def before(commit: str, path: str) -> bytes | None:
        return b"another kernel" if path == "stages/05_swizzle/kernel.cu" else show(commit, path)

    record(report)["provenance"]["kernels"]["swizzle"] = code_hash(b"another kernel")
    found = report_check.check(report, before, TODAY)
    assert not found.errors and "measured before swizzle changed" in found.remarks[0]


@pytest.mark.parametrize("name", [file.name for file in sorted(recorded.RECORDED.glob("H200*.json"))])
def test_what_ships_has_no_wrong_measurement(name):
    """Its commits may be beyond a shallow clone: only its figures are judged."""
    one = report_check.read(recorded.RECORDED / name)
    everything = report_check.check(one, show, datetime.date(2100, 1, 1)).errors
    found = [error for error in everything if "commit" not in error and "summary.txt" not in error]
    assert not [error for error in found if not error.startswith("no GPU.json")], found


def packed(folder, report) -> None:
    for name, value in report.records.items():
        (folder / name).write_text(json.dumps(value))
    for name, text in report.texts.items():
        (folder / name).write_text(text)


def test_what_is_packed_is_read_again(tmp_path, report):
    packed(tmp_path, report)
    (tmp_path / "notes.md").write_text("not of a report")
    file = report_check.pack(tmp_path, "A100")
    assert file.name == "A100-gpu-report.zip"
    again = report_check.read(file)
    assert (again.records, again.texts, again.faults) == (report.records, report.texts, [])
    assert report_check.read(tmp_path).records == report.records
    with tarfile.open(tmp_path / "report.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "summary.txt", "folder/summary.txt")
    assert report_check.read(tmp_path / "report.tar.gz").texts == report.texts


def test_a_hostile_archive_writes_nothing_and_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(report_check, "MOST_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("../../x.json", "{}")
        archive.writestr("big.json", "0" * 1001)
        archive.writestr("list.json", "[]")
        archive.writestr("broken.json", "{")
        archive.writestr("deep.json", "[" * 900)
        archive.writestr("other/x.json", "{}")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        link = tarfile.TarInfo("link.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link, io.BytesIO())
    before = sorted(tmp_path.rglob("*"))
    read = report_check.read(tmp_path / "a.zip")
    assert set(read.records) == {"x.json"}
    for said in ("big.json: more than", "list.json: holds a list", "broken.json: cannot be", "x.json: twice"):
        assert any(said in fault for fault in read.faults), (said, read.faults)
    assert "link.json: more than" in report_check.read(tmp_path / "a.tar").faults[0]
    assert sorted(tmp_path.rglob("*")) == before


def test_the_command_says_what_it_found(tmp_path, report, capsys, monkeypatch):
    monkeypatch.setattr(check_report, "at_commit", lambda commit, path: show(COMMIT, path))
    packed(tmp_path, report)
    record(report)["provenance"]["date"] = "2026-01-31 12:00 UTC"
    assert check_report.run(str(tmp_path)) == 0
    assert "TAKE=1" in capsys.readouterr().out
    (tmp_path / "summary.txt").unlink()
    assert check_report.run(str(tmp_path)) == 1
    assert "error: no summary.txt" in capsys.readouterr().out
    (tmp_path / "no.zip").write_text("no archive")
    for name, said in (("", "Name the report"), (str(tmp_path / "gone.zip"), "does not exist")):
        with pytest.raises(FlashLadderError, match=said):
            check_report.run(name)
    with pytest.raises(FlashLadderError, match="no archive that can be read"):
        check_report.run(str(tmp_path / "no.zip"))


def test_a_report_is_taken_in(tmp_path, report, capsys, monkeypatch):
    """Also one that lacks something, which is told: of what it is not of, the record before is kept."""
    monkeypatch.setattr(check_report, "at_commit", lambda commit, path: show(COMMIT, path))
    monkeypatch.setattr(check_report, "RECORDED", tmp_path / "ships")
    record(report)["measurements"] = [row(stages.get(5))]
    (tmp_path / "sent").mkdir()
    packed(tmp_path / "sent", report)
    (tmp_path / "sent" / "summary.txt").unlink()
    assert check_report.run(str(tmp_path / "sent"), take=True) == 0
    said = capsys.readouterr().out
    assert "error: no summary.txt" in said and "Taken in: " in said
    (file,) = (tmp_path / "ships").iterdir()
    assert [one["name"] for one in recorded.load(file)["measurements"]] == ["05_swizzle"]
    del record(report)["provenance"]["uncommitted_changes"]
    record(report)["provenance"]["toolkit"] = None
    packed(tmp_path / "sent", report)
    with pytest.raises(FlashLadderError, match="A100-SXM4-80GB.json has no toolkit, uncommitted_changes"):
        check_report.run(str(tmp_path / "sent"), take=True)


def test_a_files_words_are_no_commands_of_the_terminal():
    assert check_report.printable("a\x1b[2Jb\nc") == "a?[2Jb?c"


def test_one_gpu_is_what_sentences_are_about(tmp_path, monkeypatch):
    for name in ("A100", "H200"):
        device = {"provenance": {"device": f"NVIDIA {name}"}, "version": 1}
        (tmp_path / f"{name}.json").write_text(json.dumps(device))
    monkeypatch.setattr(recorded.shipped, "__defaults__", (tmp_path, ""))
    assert recorded.first()["provenance"]["device"] == recorded.MAIN
    (tmp_path / "H200.json").unlink()
    assert recorded.first()["provenance"]["device"] == "NVIDIA A100"
