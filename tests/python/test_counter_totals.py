"""Sums over the simulator's report, and its comparison with Nsight Compute's figures."""

from flashladder.commands import results
from flashladder.ladder import stages
from flashladder.measuring import profile
from warpsim import counters


def launch(kernel: str, instructions: int, ideal) -> dict:
    return {
        "kernel": kernel,
        "instructions": {"total": instructions, "by_class": {"float": instructions - 3, "memory": 3}},
        "shared": {"load": {"wavefronts": 40, "ideal": 8}, "cp_async": {"wavefronts": 4, "ideal": ideal}},
        "global": {"load": {"sectors": 64, "ideal": 32, "bytes": 1024}},
        "barriers": 2,
        "divergent_branches": 1,
        "hazards": [{"kind": "race", "message": "a race"}],
        "lines": [
            {"file": "k.cu", "line": 7, "instructions": 5, "shared_wavefronts": 40, "shared_ideal": 8,
             "global_sectors": 0, "global_ideal": 0},
            {"file": "k.cu", "line": 3, "instructions": 1, "shared_wavefronts": 0, "shared_ideal": ideal,
             "global_sectors": 64, "global_ideal": 32},
        ],
    }  # fmt: skip


def test_totals_add_launches_up():
    sums = counters.totals({"launches": [launch("a", 100, 4), launch("b", 11, 4)]})
    assert sums["instructions"] == 111 and sums["launches"] == 2
    assert sums["shared load wavefronts"] == 80 and sums["shared load excess"] == 64
    assert sums["shared cp_async excess"] == 0
    assert sums["global load sectors"] == 128 and sums["global load bytes"] == 2048
    assert sums["barriers"] == 4 and sums["divergent branches"] == 2


def test_unknown_ideal_stays_unknown():
    report = {"launches": [launch("a", 100, 4), launch("b", 11, None)]}
    assert counters.totals(report)["shared cp_async excess"] is None
    assert [line.shared_excess for line in counters.lines(report)] == [0, 64]


def test_lines_are_summed_and_in_order():
    report = {"launches": [launch("a", 100, 4), launch("b", 11, 4)]}
    assert [(line.line, line.instructions) for line in counters.lines(report)] == [(3, 2), (7, 10)]
    assert [line.global_excess for line in counters.lines(report)] == [64, 0]
    assert counters.classes(report) == {"float": 105, "memory": 6}
    assert len(counters.hazards(report)) == 2


def test_copies_by_the_asynchronous_proxy_and_waits_are_summed():
    one = launch("a", 100, 4) | {
        "bulk": {"store": {"copies": 2, "bytes": 32}},
        "tensor_copies": {"load": {"copies": 3, "bytes": 3072, "sectors": 96}},
        "mbarriers": {"waits": 5, "waited": 4},
    }
    one["lines"][1] |= {"bulk_bytes": 3072, "tensor_sectors": 96}
    one["lines"][0] |= {"mbarrier_waits": 5, "mbarrier_waited": 4}
    report = {"launches": [one, launch("b", 11, 4), one]}
    sums = counters.totals(report)
    assert (sums["TMA load copies"], sums["TMA load bytes"], sums["TMA load sectors"]) == (6, 6144, 192)
    assert (sums["bulk store bytes"], sums["bulk load bytes"]) == (64, 0)
    assert (sums["mbarrier waits"], sums["mbarrier waited"]) == (10, 8)
    row = counters.summary(sums)  # all sectors, and those of ordinary accesses that better addresses would save
    assert (row["sectors"], row["excess"]) == (192 + 3 * 64, 3 * 32)
    assert profile.asynchronous_by_line(report) == [
        ("k.cu:3", "6144", "192", "", "", ""),
        ("k.cu:7", "", "", "10", "8", ""),
    ]


def test_lines_with_wgmma_are_summed():
    one = launch("a", 100, 4)
    one["lines"][0]["wgmma_wavefronts"] = 48
    assert [line.wgmma_wavefronts for line in counters.lines({"launches": [one, launch("b", 11, 4), one]})] == [0, 96]


def test_comparison_with_ncu():
    entry = {
        "warpsim": counters.totals({"launches": [launch("a", 100, 4)]}),
        "ncu": [
            {"kernel": "a", "shared load wavefronts": 30, "global load sectors": 60, "nanoseconds": 5.0},
            {"kernel": "b", "shared load wavefronts": 10, "global load sectors": 5},
        ],
    }
    assert results.compare_counters(entry) == [("shared load wavefronts", 40, 40), ("global load sectors", 64, 65)]


def test_the_comparison_says_how_many_are_equal_and_where_they_differ_the_most(monkeypatch):
    def entry(stage, measured):
        return {"stage": stage, "warpsim": {"shared load wavefronts": 120, "global load sectors": 8}, "ncu": [measured]}

    rows = [
        entry("01_naive", {"shared load wavefronts": 120, "global load sectors": 10}),
        entry("02_online_softmax", {"shared load wavefronts": 80, "global load sectors": 8}),
    ]
    source = {"device": "GPU", "date": "2026-01-01", "commit": "abc"}
    record = {"provenance": source, "problem": "bf16 B=1", "counters": rows}
    monkeypatch.setattr(results.recorded, "shipped", lambda kind: [record])
    text = results.counters_table()
    assert "2 of 4 figures are equal." in text
    assert "The largest deviation: +50 percent, shared load wavefronts of 02_online_softmax." in text
    assert text.splitlines()[-2:] == [
        "| 01_naive | 120 | **8** : 10 |",
        "| 02_online_softmax | **120** : 80 | 8 |",
    ]
    rows[0]["run"] = "2025-12-31, commit def"
    rows.append(entry(stages.get("fp8").name, {"shared load wavefronts": 120}))
    text = results.counters_table()
    assert text.startswith("bf16 B=1 (fp8: e4m3). Recorded: GPU, 2026-01-01, commit abc. 3 of 5 figures are equal.")
    assert text.endswith("\n\n01_naive: of another run, 2025-12-31, commit def.")


def test_asynchronous_copies_count_as_loads_as_they_do_in_ncu():
    entry = {
        "warpsim": {"global load sectors": 8, "global cp_async sectors": 20},
        "ncu": [{"kernel": "a", "global load sectors": 28, "global cp_async sectors": 20}],
    }
    assert results.compare_counters(entry) == [("global load sectors", 28, 28)]


def from_a_header(line: int, *calls: tuple[str, int]) -> dict:
    ways = [{"file": f"/a/{file}", "line": at, "function": "load_tile"} for file, at in calls]
    return launch("a", 100, 4)["lines"][0] | {"file": "/a/tile.cuh", "line": line, "inlined": ways}


def test_a_headers_line_is_one_with_all_that_call_it():
    one = launch("a", 100, 4)
    one["lines"] += [from_a_header(9, ("k.cu", 30)), from_a_header(9, ("other.cuh", 4), ("k.cu", 31))]
    report = {"launches": [one, one]}
    found = counters.lines(report)
    assert [line.where for line in found] == ["tile.cuh:9, called at k.cu:30 and at 1 more", "k.cu:3", "k.cu:7"]
    assert (found[0].instructions, found[0].shared_excess, len(found[0].inlined)) == (20, 128, 2)
    assert (found[0].line_in("k.cu"), found[0].line_in("tile.cuh"), found[1].line_in("k.cu")) == (30, 9, 3)


def test_code_of_headers_belongs_to_the_lines_that_call_it():
    one = launch("a", 100, 4)
    one["lines"] += [from_a_header(9, ("k.cu", 30)), from_a_header(9, ("other.cuh", 4), ("k.cu", 31))]
    assert [counters.place_in(line, "k.cu") for line in one["lines"]] == [7, 3, 30, 31]
    assert counters.place_in(one["lines"][3], "other.cuh") == 4 and counters.place_in(one["lines"][0], "b.cu") == 0
    assert counters.executed({"launches": [one, one]}, "k.cu", {3, 31}) == 12
