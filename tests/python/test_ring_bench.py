"""The benchmark of several GPUs as far as it goes without one: calls on the simulator, the record and the pages."""

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from flashladder import plot
from flashladder.commands import other_parts, ring_pages
from flashladder.core.device import choose
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import stage_library
from flashladder.ladder import stages
from flashladder.ladder.ring import FORWARD, library_of
from flashladder.measuring import recorded, ring_bench
from flashladder.running import ring


def test_settings_go_to_another_process_as_they_are():
    settings = ring_bench.Settings(lengths=(1024,), stages=("ring",), rounds=3)
    assert ring_bench.Settings.read(json.dumps(asdict(settings))) == settings


def test_settings_of_a_command():
    assert other_parts.ring_setting("lengths", "16384,65536") == {"lengths": (16384, 65536)}
    assert other_parts.ring_setting("budget_s", "30") == {"budget_s": 30.0}
    with pytest.raises(FlashLadderError, match="'heat' is no setting"):
        other_parts.ring_setting("heat", "1")
    with pytest.raises(FlashLadderError, match="ranks=two"):
        other_parts.ring_setting("ranks", "two")
    for name, value in (("lengths", "1024,0"), ("rounds", "0"), ("budget_s", "-1"), ("filler_ms", "nan")):
        with pytest.raises(FlashLadderError, match=f"{name}={value}: "):
            other_parts.ring_setting(name, value)


def test_a_long_call_is_timed_alone_and_less_often():
    settings = ring_bench.Settings()
    short, long, longer = (ring_bench.Pace.of(settings, ms) for ms in (2.0, 150.0, 800.0))
    assert (short.calls, short.filler_ms, short.rounds) == (20, settings.filler_ms, settings.rounds)
    assert (long.calls, long.filler_ms, long.rounds) == (1, 0.0, 3)
    assert longer.rounds == 2 and longer.seconds(800.0) == pytest.approx(0.96)


def test_a_problem_is_begun_only_where_there_is_time_for_it():
    short, long = (ring_bench.Settings(lengths=(N,)).problems(4)[0] for N in (16384, 524288))
    assert 5 < ring_bench.least_seconds(short, 20) < 5.02 and 12 < ring_bench.least_seconds(long, 20) < 15


@pytest.mark.parametrize("ranks", (2, 3, 4, 8))
def test_links_are_timed_between_all_pairs(ranks):
    patterns = ring_bench.link_patterns(ranks)
    pairs = ranks * (ranks - 1)
    assert sorted(pair for way in patterns["one way"] for pair in way) == sorted(patterns["all at once"][0])
    assert len(patterns["one way"]) == len(patterns["all at once"][0]) == 2 * len(patterns["both ways"]) == pairs
    in_pairs = patterns.get("in pairs, all pairs", [])
    assert len(in_pairs) == (ranks - 1 if ranks in (4, 8) else 0)
    assert not in_pairs or sorted(pair for way in in_pairs for pair in way) == sorted(patterns["all at once"][0])
    for way in in_pairs:  # every GPU has one partner, who has it
        assert sorted(to for to, _ in way) == list(range(ranks)) and {pair[::-1] for pair in way} == set(way)


def test_there_are_two_rounds_or_none():
    assert ring_bench.rounds_that_fit(5, 1.0, 100.0) == 5
    assert ring_bench.rounds_that_fit(5, 10.0, 35.0) == 3
    assert ring_bench.rounds_that_fit(5, 10.0, 15.0) == 0


class Asked:
    """A CUDA runtime that notes what is asked of it; events are numbers."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *arguments: self.calls.append((name, *arguments)) or len(self.calls)


def test_ranks_begin_together_and_an_event_has_come_before_its_time_is_asked():
    cudart, use = Asked(), lambda: None
    ranks = [SimpleNamespace(stream=stream, use=use) for stream in "ab"]
    marks = ring.Marks(cudart, ranks)
    first, second = marks.begin
    begun = [call for call in cudart.calls if call[0] != "event"]
    noted, waited = [("record", first, "a"), ("record", second, "b")], "cudaStreamWaitEvent"
    waits = [("call", waited, stream, event, 0) for stream in "ab" for event in marks.begin]
    assert begun == [*noted, *waits, *noted]
    marks.seen = [(1, "attention", -1, 0, 7), (1, "attention", -1, 1, 8)]
    del cudart.calls[:]
    (span,) = marks.spans()
    assert cudart.calls == [call for event in (7, 8) for call in (("wait", event), ("elapsed_ms", second, event))]
    assert span["start_ms"] < span["end_ms"] and span["rank"] == 1


@pytest.mark.long
def test_the_calls_of_all_stages_are_right_on_the_simulator(tmp_path):
    """Every stage is admitted, so that it is timed; the variant has no output to check."""
    needed = [stage_library(stage.number) for stage in stages.ring_stages()] + [library_of(FORWARD)]
    missing = [library.name for library in needed if not library.exists()]
    assert not missing, f"not built: {missing}: run `make build`"
    rows, where = tmp_path / "rows.jsonl", choose(90, "sim")
    assert ring_bench.in_its_own_process("stages", ring_bench.REHEARSAL, where, 400, rows) == ""
    told = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [line for line in told if "skipped" in line] == []
    timed = {line["measurements"]["name"]: line["measurements"] for line in told}
    wanted = [*(stage.name for stage in stages.ring_stages()), "63 heads first"]
    assert sorted(timed) == sorted([ring_bench.IDEAL, *wanted, f"63 {ring_bench.THERE}"])
    assert all(timed[name]["off"] < 8e-3 and timed[name]["row_error"] < 8e-3 for name in wanted)


def test_a_part_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(ring_bench, "PATIENCE_S", 0.1)
    settings = ring_bench.REHEARSAL
    said = ring_bench.in_its_own_process("stages", settings, choose(90, "sim"), 0.0, tmp_path / "rows.jsonl")
    assert said.startswith("it was ended after")


@pytest.fixture
def record() -> dict:
    return made(2)


def made(ranks: int) -> dict:
    rows = []
    for problem in ring_bench.Settings(lengths=(16384, 65536)).problems(ranks):
        for name, kind in (
            (ring_bench.IDEAL, "ideal"), ("62_zigzag", "stage"), ("63_one_launch", "stage"),
            (f"63 {ring_bench.THERE}", "variant"), ("a peer", "peer"),
        ):  # fmt: skip
            rows.append(ring_bench.row_of(problem, name, kind, [1.0, 2.0, 3.0], {"of_ideal": 0.5}))
    links = [{"pattern": "one way", "ranks": ranks, "bytes": 1 << 20, "gb_per_s": 100.0}]
    skipped = [{"name": "another", "Hq": 16, "Hkv": 16, "N": 16384, "causal": True, "reason": "no such kernel"}]
    provenance = {"device": "NVIDIA H200", "date": "2026-01-01 00:00 UTC", "commit": "0", "kernels": {}}
    return {"version": 1, "provenance": provenance, "measurements": rows, "links": links, "skipped": skipped}


def test_throughput_counts_the_operations_of_each_gpu(record):
    full, causal = (next(row for row in record["measurements"] if row["causal"] == mask) for mask in (False, True))
    assert full["tflops_per_gpu"] == round(4 * 16 * 16384**2 * 128 / 2e-3 / 1e12 / 2, 1)
    assert causal["tflops_per_gpu"] == pytest.approx(full["tflops_per_gpu"] / 2, abs=0.1)
    assert full["ms"] == {"median": 2.0, "p20": 1.4, "p80": 2.6}


def test_a_record_keeps_its_stages_by_name(record, tmp_path):
    file = tmp_path / "H200-ring.json"
    file.write_text(recorded.to_text(record))
    assert "one_launch: K and V there" in file.read_text() and recorded.kind_of(file.stem) == "ring"
    assert recorded.load(file)["measurements"] == record["measurements"]


def test_pages_and_picture(record, monkeypatch):
    monkeypatch.setattr(recorded, "shipped", lambda *_, kind="": [record] if kind == "ring" else [])
    page = ring_pages.page("causal")
    assert "| 2 | 16 / 16 | 16,384 |" in page and "another, 16/16 at N = 16,384: no such kernel" in page
    assert "another" not in ring_pages.page()
    assert "| 2 | one way | 100 |" in ring_pages.links() and "ring.png" in ring_pages.picture()
    axes = plot.ring([record]).axes
    assert [one.get_title() for one in axes] == [
        "16/16 heads, full", "16/16 heads, causal", "32/8 heads, full", "32/8 heads, causal",
    ]  # fmt: skip
    assert all(len(one.lines) == 5 for one in axes)


def test_another_way_is_stale_when_its_file_has_changed():
    stage = stages.entry(63)
    row = {"name": "63 heads first", "kind": "variant", "way": "heads_first"}
    row |= {"kernel_sha256": stage.way_hash("heads_first")}
    assert stage.ways == ["heads_first"] and not recorded.is_stale(row)
    assert stage.way_hash("heads_first") != stage.kernel_hash()
    assert recorded.is_stale(row | {"kernel_sha256": "0"}) and recorded.is_stale(row | {"way": "rows_first"})
    assert not recorded.is_stale({"name": "63 K and V there", "kind": "variant"})


def test_rows_of_another_number_of_gpus_stay(record, tmp_path, monkeypatch):
    """They come first, say of which run they are, and have panels of their own; the fresh ones' own are replaced."""
    place, fresh = tmp_path / "records", tmp_path / "H200-ring.json"
    place.mkdir()
    for number, ranks in enumerate((4, 2, 4)):
        one = made(ranks) | {"skipped": []}
        one["provenance"] = record["provenance"] | {"commit": str(number)}
        one["links"][0] |= {"fastest": 120.0 + number}
        fresh.write_text(recorded.to_text(one))
        recorded.take(fresh, place)
    both = recorded.load(place / fresh.name)
    assert both["provenance"]["commit"] == "2" and len(both["measurements"]) == 80
    assert [row.get("run", "") for row in both["measurements"][::40]] == ["NVIDIA H200, 2026-01-01, commit 1", ""]
    assert [(row["ranks"], row["fastest"]) for row in both["links"]] == [(2, 121.0), (4, 122.0)]
    monkeypatch.setattr(recorded, "shipped", lambda *_, kind="": [both] if kind == "ring" else [])
    page = ring_pages.page()
    assert "| 2 | 16 / 16 | 16,384 |" in page and "| 4 | 16 / 16 | 16,384 |" in page
    runs = "Recorded: 2 GPUs, NVIDIA H200, 2026-01-01, commit 1; 4 GPUs, NVIDIA H200, 2026-01-01, commit 2."
    assert runs in page and runs in ring_pages.links() and "| 4 | one way | 100 to 122 |" in ring_pages.links()
    axes = plot.ring([both]).axes
    assert len(axes) == 8 and all(len(one.lines) == 5 for one in axes)
    assert axes[4].get_ylabel() == "TFLOP/s of each of 4 GPUs"


def test_a_page_says_where_nothing_is_recorded(monkeypatch):
    monkeypatch.setattr(recorded, "shipped", lambda *_, kind="": [])
    for text in (ring_pages.page(), ring_pages.links(), ring_pages.picture()):
        assert text == "No results are recorded yet."


def test_rows_come_line_by_line(tmp_path):
    told = ring_bench.Told(Path(tmp_path / "rows.jsonl"), 100)
    told.row("links", {"bytes": 1})
    told.skip("a peer", None, "first line\nsecond")
    lines = [json.loads(line) for line in told.file.read_text().splitlines()]
    assert lines == [{"links": {"bytes": 1}}, {"skipped": {"name": "a peer", "reason": "first line"}}]
