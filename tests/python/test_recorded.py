"""Records name stages without their numbers, and a new one leaves what it is not of."""

import json
from dataclasses import replace

import pytest

from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.ladder import stages
from flashladder.measuring import recorded

ORIGIN = {"device": "NVIDIA X", "date": "2026-01-02 00:00 UTC", "commit": "0123456789ab"}


def row(name: str, tflops: float = 1.0, **more) -> dict:
    return {"name": name, "kind": "stage", "tflops": tflops} | more


def results(*rows: dict, **more) -> dict:
    return {"version": 1, "provenance": ORIGIN | more, "measurements": list(rows)}


def names(record: dict) -> list[str]:
    return [one["name"] for one in record["measurements"]]


def test_a_file_has_names_and_memory_has_folders(tmp_path):
    record = results(
        row("05_swizzle"), row("09 kv_stages 1"), row("cuDNN attention", kind="peer"), kernels={"05_swizzle": "abc"}
    )
    record["profiler"] = {"provenance": ORIGIN, "kernels": [row("05_swizzle")]}
    file = recorded.write(record, tmp_path / "X.json")
    lies = json.loads(file.read_text())
    assert names(lies) == ["swizzle", "double_buffering: kv_stages 1", "cuDNN attention"]
    assert lies["provenance"]["kernels"] == {"swizzle": "abc"}
    assert lies["profiler"]["kernels"][0]["name"] == "swizzle"
    assert recorded.load(file) == record


def test_what_a_file_has_of_no_stage_is_left_out(tmp_path):
    lies = results(row("split_p"), row("split_p: a variant"), row("swizzle"), kernels={"split_p": "a", "swizzle": "b"})
    lies |= {"counters": [{"stage": "split_p"}, {"stage": "naive"}]}
    (tmp_path / "X.json").write_text(json.dumps(lies))
    record = recorded.load(tmp_path / "X.json")
    assert names(record) == ["05_swizzle"] and record["provenance"]["kernels"] == {"05_swizzle": "b"}
    assert [one["stage"] for one in record["counters"]] == ["01_naive"]


def test_a_record_moves_with_its_stage(tmp_path, monkeypatch):
    """The number is the stage's place, which no record has."""
    file = recorded.write(results(row("05_swizzle")), tmp_path / "X.json")
    moved = [one for one in stages.every_stage() if one.slug != "swizzle"]
    moved.append(replace(stages.get("swizzle"), number=31, name="31_swizzle"))
    monkeypatch.setattr(recorded.stages, "every_stage", lambda: tuple(moved))
    assert names(recorded.load(file)) == ["31_swizzle"]


def test_a_record_is_taken_in_beside_what_it_is_not_of(tmp_path):
    ceiling = {"name": "cuBLAS matmul", "kind": "ceiling", "tflops": 700.0}
    peer = {"name": "cuDNN attention", "kind": "peer", "tflops": 600.0}
    tma = stages.get("tma").name
    before = results(ceiling, row("05_swizzle", 200.0), row(tma, 400.0), peer)
    before["profiler"] = {"provenance": ORIGIN, "kernels": []}
    (tmp_path / "ships").mkdir()
    recorded.write(before, tmp_path / "ships" / "X.json")
    new = results(ceiling | {"tflops": 710.0}, row(tma, 500.0), peer | {"tflops": 610.0}, date="2026-02-03 00:00 UTC")
    file = recorded.take(recorded.write(new, tmp_path / "X.json"), tmp_path / "ships")
    taken = recorded.load(file)
    assert [one["tflops"] for one in taken["measurements"]] == [710.0, 200.0, 500.0, 610.0]
    assert taken["provenance"]["date"].startswith("2026-02-03") and "profiler" in taken
    assert taken["measurements"][1]["run"] == "2026-01-02, commit 0123456789ab"
    assert recorded.earlier(taken["measurements"]) == "05_swizzle: of another run, 2026-01-02, commit 0123456789ab."
    assert recorded.earlier(new["measurements"]) == ""
    variant = row("05 padding", 190.0) | {"kind": "variant"}
    both = [one | {"run": "2026-01-02, commit 0123456789ab"} for one in (variant, row("05_swizzle", 200.0))]
    words = "05_swizzle with variants: of another run, 2026-01-02, commit 0123456789ab."
    assert recorded.earlier([*both, row(tma)]) == words
    third = results(row("05_swizzle", 300.0))
    again = recorded.load(recorded.take(recorded.write(third, tmp_path / "X.json"), tmp_path / "ships"))
    assert [one.get("run", "") for one in again["measurements"] if one["name"] == "05_swizzle"] == [""]


def test_peers_of_the_new_run_stand_before_those_of_an_earlier_one():
    before = [{"name": name, "kind": "peer"} for name in ("FlashAttention-3", "cuDNN attention")]
    fresh = [{"name": name, "kind": "peer"} for name in ("FlashAttention-2", "cuDNN attention")]
    joined = recorded._joined(fresh, before, "2026-11-30")
    assert [row["name"] for row in joined] == ["FlashAttention-2", "cuDNN attention", "FlashAttention-3"]
    assert [row.get("run") for row in joined] == [None, None, "2026-11-30"]


def test_stages_of_decode_are_joined_in_the_ladders_order(tmp_path):
    def decode(*names, date="2026-01-02 00:00 UTC"):
        made = results(*({"name": name, "kind": "stage", "dtype": "bf16"} for name in names), date=date)
        return made | {"other_caches": made["measurements"]}

    recorded.write(decode("51_split_kv", "54_lean"), tmp_path / "ships" / "X-decode.json")
    new = recorded.write(decode("54_lean", "55_paged_kv", date="2026-02-03 00:00 UTC"), tmp_path / "X-decode.json")
    taken = recorded.load(recorded.take(new, tmp_path / "ships"))
    for rows in (taken["measurements"], taken["other_caches"]):
        assert [row["name"] for row in rows] == ["51_split_kv", "54_lean", "55_paged_kv"]
        assert ["run" in row for row in rows] == [True, False, False]


def test_what_is_all_of_one_earlier_run_is_labelled_so():
    now = results(row("05_swizzle"), date="2026-02-03 00:00 UTC")
    run = "2026-01-02, commit 0123456789ab"
    old = [row(name) | {"run": run} for name in ("05_swizzle", "06_cp_async")]
    assert recorded.label(now, old).endswith(f", {run}") and recorded.earlier(old) == ""
    mixed = [*old, row("07_eager_kv")]
    assert "2026-02-03" in recorded.label(now, mixed)
    assert recorded.earlier(mixed) == f"05_swizzle to 06_cp_async: of another run, {run}."
    two = [old[0], old[1] | {"run": "2026-01-01, commit fedcba987654"}]
    assert "2026-02-03" in recorded.label(now, two) and recorded.earlier(two).count("of another run") == 2
    assert recorded.label(now) == recorded.label(now, []) == recorded.label(now, now["measurements"])


def test_configurations_of_another_head_dim_stay(tmp_path):
    """make tune ARGS="--stage shapes --d-head 128": what was tuned of d_head 64 before is not measured anew."""

    def tuned(date: str, *head_dims: int) -> dict:
        rows = [{"dtype": "bf16", "d_head": d, "tflops": 1.0} for d in head_dims]
        return recorded.inside("shapes", {"provenance": ORIGIN | {"date": date}, "chosen": rows, "hard": rows[:1]})

    ships = tmp_path / "ships"
    recorded.write(tuned("2026-01-02 00:00 UTC", 64, 128), ships / "X-tuning.json")
    new = recorded.write(tuned("2026-02-03 00:00 UTC", 128), tmp_path / "X-tuning.json")
    taken = recorded.load(recorded.take(new, ships))["shapes"]
    assert taken["provenance"]["date"].startswith("2026-02-03")
    earlier = "2026-01-02, commit 0123456789ab"
    for key, runs in (("chosen", [(64, earlier), (128, None)]), ("hard", [(64, earlier), (128, None)])):
        assert [(row["d_head"], row.get("run")) for row in taken[key]] == runs
    whole = recorded.write(tuned("2026-03-04 00:00 UTC", 64, 128), tmp_path / "X-tuning.json")
    assert not [row for row in recorded.load(recorded.take(whole, ships))["shapes"]["chosen"] if "run" in row]


def test_figures_of_another_type_stay(tmp_path):
    ceilings = [{"name": "cuBLAS matmul", "kind": "ceiling", "dtype": dtype} for dtype in ("bf16", "e4m3")]
    (tmp_path / "ships").mkdir()
    recorded.write(results(*(one | {"tflops": 700.0} for one in ceilings)), tmp_path / "ships" / "X.json")
    new = recorded.write(results(ceilings[1] | {"tflops": 1400.0}), tmp_path / "X.json")
    taken = recorded.load(recorded.take(new, tmp_path / "ships"))
    assert [recorded.ceiling(taken, dtype)["tflops"] for dtype in ("bf16", "e4m3")] == [700.0, 1400.0]


def test_a_record_inside_another_replaces_itself_alone(tmp_path):
    file = tmp_path / "X-ablations.json"
    hurt = {"provenance": ORIGIN, "measurements": [row(stages.get("optimistic_max").name)]}
    recorded.write(recorded.inside("inputs", hurt), file)
    recorded.write(results(row("05_swizzle")), file)
    record = recorded.load(file)
    assert names(record) == ["05_swizzle"] and record["inputs"] == hurt
    recorded.write(recorded.inside("inputs", hurt | {"measurements": []}), file)
    record = recorded.load(file)
    assert names(record) == ["05_swizzle"] and record["inputs"]["measurements"] == []
    assert recorded.shipped(tmp_path, "inputs") == [record["inputs"]]
    assert recorded.shipped(tmp_path, "shapes") == [] and recorded.shipped(tmp_path) == []


def test_every_record_that_ships_is_of_a_kind():
    assert len(recorded.KINDS) <= 9
    assert set(recorded.INSIDE.values()) <= set(recorded.KINDS)
    for file in recorded.RECORDED.glob("*.json"):
        kind = recorded.kind_of(file.stem)
        assert "-" not in file.stem.removesuffix(f"-{kind}").removeprefix("H100-80GB-HBM3").strip("-"), file
        for one in recorded.INSIDE:
            assert one not in json.loads(file.read_text()) or recorded.INSIDE[one] == kind, file


def test_every_record_that_ships_says_what_it_was_measured_with():
    folders = (recorded.RECORDED, ROOT / "tests/simulator/recorded")
    files = [file for folder in folders for file in folder.glob("*.json")]
    assert len(files) > 10
    for file in files:
        if recorded.kind_of(file.stem) != "machine-code":  # of no GPU
            assert not recorded.lacking(json.loads(file.read_text())), file


def test_what_a_record_does_not_say_is_named():
    whole = ORIGIN | {"driver": "580.1", "toolkit": "13.0", "uncommitted_changes": None}
    assert recorded.lacking({"provenance": whole}) == []
    some = {key: value for key, value in whole.items() if key not in ("date", "uncommitted_changes")}
    assert recorded.lacking({"provenance": some | {"commit": "unknown"}}) == ["commit", "date", "uncommitted_changes"]
    assert recorded.lacking({"provenance": whole, "inputs": {"provenance": some}})[0].startswith("inputs: date")
    assert recorded.lacking({}) == list(recorded.PROVENANCE)


def test_a_kernel_is_another_one_when_a_header_changes_that_a_stage_teaches(monkeypatch):
    stage = stages.get("ping_pong")
    headers = [header.name for header in stage.own_headers() if header.suffix == ".cuh"]
    assert "pipeline.cuh" in headers
    assert "ptx_hopper.cuh" not in headers, "one function per instruction, taught by no stage"
    before, others = stage.kernel_hash(), stages.get("swizzle").kernel_hash()
    read = type(stage.kernel).read_bytes
    for more, another in ((b"// a comment\n", False), (b"int x;\n", True)):
        changed = lambda file, more=more: read(file) + more * (file.name == "pipeline.cuh")  # noqa: E731
        monkeypatch.setattr(type(stage.kernel), "read_bytes", changed)
        assert (stage.kernel_hash() != before) == another
        assert stages.get("swizzle").kernel_hash() == others


def test_what_is_no_record_is_told(tmp_path):
    for text in ("[]", "{", '{"version": 2}'):
        (tmp_path / "X.json").write_text(text)
        with pytest.raises(FlashLadderError, match="X.json"):
            recorded.load(tmp_path / "X.json")
