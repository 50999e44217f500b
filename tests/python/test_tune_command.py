"""`make tune` from end to end on the fake runtime, as if it were a GPU; its record's tables and pictures; the command's
options. Times of the fake runtime are of no machine, and stay in the test's folder."""

import copy
import json
import sqlite3
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from flashladder import plot
from flashladder.building import build
from flashladder.commands import results, tune
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.measuring import bench, gpu_memory, recorded
from flashladder.plot.style import in_words
from flashladder.running.cudart import CudaError
from flashladder.tuning import gpu_times, instances, record, space, tables
from flashladder.tuning.configuration import of_stage
from flashladder.tuning.tune import TimingFailed

CONFIGURATIONS = [str(of_stage(11, "bf16", 64)), str(of_stage(9, "bf16", 64)), str(of_stage(8, "bf16", 64))]

SMALL = Problem(Nq=64)


@dataclass(frozen=True)
class Few(tune.Plan):
    first_seconds: float = 0.0
    seconds: float = 0.0
    stage_lengths: tuple[int, ...] = (32,)


@pytest.fixture(scope="module")
def kept():
    """The record of the first whole run, for the tests that only read one."""
    return {}


@pytest.fixture
def made(kept, tune_on_fake):
    return copy.deepcopy(kept["record"] if kept else tune_on_fake()[1])


@pytest.fixture
def tune_on_fake(kept, fake, fake_device, monkeypatch, tmp_path):
    """tune_on_fake(wrong, refused) -> (status, record): wrong ones have a planted error, refused ones do not build."""

    def run(wrong: tuple[str, ...] = (), refused: tuple[str, ...] = (), texts=tuple(CONFIGURATIONS), **other):
        for planted in {0, int(bool(wrong))}:  # before the builds, which are many at once
            fake(planted).with_suffix(".log").write_text("0 bytes stack frame\nUsed 42 registers\n")

        def build_one(configuration, compute=None, kernel=None):
            if str(configuration) in refused:
                raise FlashLadderError("nvcc: no such instruction")
            return instances.Built(configuration, fake(int(str(configuration) in wrong)))

        monkeypatch.setattr(instances, "build", build_one)
        monkeypatch.setattr(build, "build", lambda targets: None)
        monkeypatch.setattr(build, "info", lambda: {"nvcc_version": "13.0", "build_type": "Release"})
        monkeypatch.setattr(gpu_times, "verification", lambda one: space_problem(one))
        monkeypatch.setattr(gpu_memory, "torch", None)
        monkeypatch.setattr(gpu_memory, "loaded_cudart", lambda: None)
        monkeypatch.setattr(bench, "cudart", lambda device: fake.cudart)
        monkeypatch.setattr(bench, "stage_library", lambda number: fake(0))
        monkeypatch.setattr(bench, "check_build", lambda device: None)
        file = tmp_path / "configurations.txt"
        file.write_text("# three\n\n" + "\n".join(texts))
        options = tune.Options(
            configurations=file,
            tokens=64,
            heads=2,
            lengths=(16, 32),
            short_list=(32,),
            stages=(9, 10),
            store=tmp_path / "store.sqlite",
            out=tmp_path / "made-tuning.json",
        )
        options = replace(options, **other)
        status, made = tune.run(options, Device("gpu", fake_device)), recorded.load(options.out)
        if not (wrong or refused or other) and texts == tuple(CONFIGURATIONS):
            kept.setdefault("record", copy.deepcopy(made))
        return status, made

    def space_problem(one):
        return gpu_times.Problem(B=1, Hq=2, Nq=16, Nkv=32, d_head=one.d_head, dtype=one.dtype)

    # Few runs, and no gigabyte overwritten before each.
    monkeypatch.setattr(tune, "Plan", Few)
    fill = bench.Cudart.fill
    monkeypatch.setattr(bench.Cudart, "fill", lambda *call: fill(*call[:3], min(call[3], 1 << 16)))
    return run


def test_it_times_chooses_and_writes_the_record(tune_on_fake, capsys):
    status, made = tune_on_fake()
    assert status == 0
    assert [(row["d_head"], row["Nq"]) for row in made["chosen"]] == [(64, 16), (64, 32)]
    assert all(row["configuration"] in CONFIGURATIONS for row in made["chosen"])
    assert made["kernel_sha256"] == instances.kernel_hash() and made["multiprocessors"] > 0
    assert {row["configuration"] for row in made["configurations"]} >= set(CONFIGURATIONS)
    for row in made["configurations"]:
        assert row["registers"] == 42 and row["spill_bytes"] == 0
    timed = [figures for row in made["configurations"] for figures in row["first"]]
    assert len(timed) == 3 and all(one["ms"]["p20"] <= one["ms"]["median"] <= one["ms"]["p80"] for one in timed)
    assert {row["name"] for row in made["stages"]} == {"09_double_buffering", "10_fast_softmax"}
    own = record.Tuned(made, "bf16", 64).winner
    assert {row["name"] for row in made["measurements"] if row["round"] == "flags"} >= {own}
    (counts,) = made["refused"]
    assert counts["enumerated"] == counts["admitted"] == 3
    said = capsys.readouterr().out
    assert "Configurations that each rule refuses" in said and own in said


@pytest.mark.long
def test_a_second_run_measures_nothing_anew_and_the_store_is_an_ordinary_database(tune_on_fake, monkeypatch, tmp_path):
    _, first = tune_on_fake()
    base = sqlite3.connect(tmp_path / "store.sqlite")
    rows = base.execute("select configuration, failed from configurations").fetchall()
    assert set(CONFIGURATIONS) <= {name for name, _ in rows} and {failed for _, failed in rows} == {""}
    assert all(json.loads(ms) for (ms,) in base.execute("select ms from times"))
    monkeypatch.setattr(bench.Bench, "time_once", lambda *_: pytest.fail("timed again"))
    _, second = tune_on_fake()
    assert second["chosen"] == first["chosen"] and second["measurements"] == first["measurements"]


def test_what_is_wrong_or_does_not_build_is_listed_and_makes_the_status_1(tune_on_fake, capsys):
    status, made = tune_on_fake(wrong=(CONFIGURATIONS[1],), refused=(CONFIGURATIONS[2],))
    assert status == 1
    failed = {row["configuration"]: row for row in made["configurations"] if "failed" in row}
    assert failed[CONFIGURATIONS[1]]["failed"] == "verify" and failed[CONFIGURATIONS[2]]["failed"] == "build"
    assert "no such instruction" in failed[CONFIGURATIONS[2]]["message"]
    assert not {row["configuration"] for row in made["chosen"]} & set(failed)
    assert "2 configurations that no rule refuses failed" in capsys.readouterr().out


@pytest.mark.long
def test_what_the_rules_refuse_is_counted_and_not_built(tune_on_fake, capsys):
    refused = str(replace(of_stage(11, "bf16", 64), async_copy=False))
    status, made = tune_on_fake(texts=(CONFIGURATIONS[0], refused))
    assert status == 0 and refused not in {row["configuration"] for row in made["configurations"]}
    (counts,) = made["refused"]
    assert counts["admitted"] == 1 and counts["by_rule"]["eager_needs_async"] == 1
    assert "eager_needs_async" in capsys.readouterr().out


@pytest.mark.long
def test_tables_pictures_and_figures_are_made_of_the_record(made, monkeypatch, tmp_path):
    monkeypatch.setattr(recorded, "shipped", lambda folder=None, kind="": [made] if kind == "tuning" else [])
    text = "".join(f"<!-- results: tuned {what} 64 -->\n<!-- end results -->\n" for what in
                   ("chosen", "worth", "stages", "advice", "refused", "fastest"))  # fmt: skip
    text = text.replace("fastest 64", "fastest 64 32")
    pictures = "<!-- results: tuned-pictures -->\n<!-- end results -->\n"
    filled = results.fill(text, tmp_path)
    own = tables.chosen(record.Tuned(made, "bf16", 64))[1][0][-1]
    assert own in filled and "09_double_buffering" in filled and "Fake GPU" in filled and results.NOTHING not in filled
    assert results.fill(filled, tmp_path) == filled
    assert "(tuning-flags-d64.png)" in results.fill(pictures, tmp_path)
    made["configurations"][0]["first"][0]["sm_mhz"] = 1000  # the fake has no clock
    drawn = [
        plot.tuning_flags([made], d=64),
        plot.tuning_lengths([made], d=64),
        plot.tuning_predicted([made], d=64),
        plot.tuning_tiles([made]),
    ]
    for number, figure in enumerate(drawn):
        assert "Fake GPU" in in_words(figure) and plot.save(figure, tmp_path / f"{number}.png").stat().st_size > 5000
    with pytest.raises(FlashLadderError, match="No tuning is recorded for bf16, d = 128"):
        plot.tuning_flags([made])


def test_a_record_of_another_kernel_is_marked_stale(made, monkeypatch, tmp_path):
    monkeypatch.setattr(recorded, "shipped", lambda folder=None, kind="": [made] if kind == "tuning" else [])
    text = "<!-- results: tuned chosen 64 -->\n<!-- end results -->\n"
    assert "stale" not in results.fill(text, tmp_path)
    made["kernel_sha256"] = "0" * 64
    assert results.STALE_NOTE in results.fill(text, tmp_path)
    assert "(stale)" in in_words(plot.tuning_flags([made], d=64))


@pytest.mark.long
def test_of_another_record_the_fastest_of_each_length_are_tuned_and_the_record_and_its_tables_say_so(
    tune_on_fake, made, monkeypatch, tmp_path
):
    made["settings"]["short_list"] = [16, 32]
    row = next(row for row in made["configurations"] if row["configuration"] == CONFIGURATIONS[0])
    times = {16: (3.0, 1.0, 2.0), 32: (1.0, 3.0, 2.0)}  # of the three: the second is first at 16, the first at 32
    rows = []
    for place, text in enumerate(CONFIGURATIONS):
        first = [{**row["first"][0], "Nq": n, "ms": {"median": ms[place]}} for n, ms in times.items()]
        rows.append({**row, "configuration": text, "first": first})
    made["configurations"] = rows
    other = tmp_path / "other-tuning.json"
    other.write_text(json.dumps(made))
    chosen = {"configurations": None, "fastest_of": other, "head_dims": (64,), "stages": ()}
    _, bounded = tune_on_fake(limit=1, **chosen)
    timed = {row["configuration"] for row in bounded["configurations"] if row["first"]}
    assert timed == {CONFIGURATIONS[0], CONFIGURATIONS[1]} and bounded["refused"][0]["enumerated"] == 2
    assert bounded["space"] == f"the 1 fastest at N = 16 and 32 of those timed on {recorded.label(made)}"
    assert record.Tuned(made, "bf16", 64).fastest(2) == [of_stage(n, "bf16", 64) for n in (9, 8, 11)]
    _, more = tune_on_fake(**chosen)
    assert len(more["refused"]) == 1 and more["refused"][0]["enumerated"] == 3

    monkeypatch.setattr(recorded, "shipped", lambda folder=None, kind="": [bounded] if kind == "tuning" else [])
    text = "".join(f"<!-- results: tuned {what} 64 -->\n<!-- end results -->\n" for what in ("chosen", "stages"))
    filled = results.fill(text, tmp_path)
    assert f"d = 64, of the 1 fastest at N = 16 and 32 of those timed on {recorded.label(made)}. Recorded:" in filled
    assert "with a stage's flags" not in filled and results.NOTHING in filled, "no stage was timed: no table of them"
    bounded["configurations"][0]["first"][0]["sm_mhz"] = 1000  # the fake has no clock
    for figure in (plot.tuning_tiles([bounded]), plot.tuning_predicted([bounded], d=64)):
        assert "of the 1 fastest at N = 16 and 32" in in_words(figure).replace("\n", " ")
    assert not tune.Options(fastest_of=other).of_all and tune.Options().of_all

    with pytest.raises(FlashLadderError, match="has no times for fp16, d = 64"):
        tune_on_fake(**chosen, dtypes=("fp16",))
    (tmp_path / "bench.json").write_text('{"version": 1, "provenance": {}}')
    with pytest.raises(FlashLadderError, match="bench.json is no record of `make tune`"):
        tune_on_fake(**chosen | {"fastest_of": tmp_path / "bench.json"})


def test_worth_and_advice_are_ratios_to_the_winner_in_its_heat(made):
    own = record.Tuned(made, "bf16", 64).winner
    flag = next(row for row in made["flags"] if row["flag"] == "swizzling")
    for row in made["measurements"]:
        if row["round"] == "flags":
            row["ms"]["median"] = {own: 2.0, flag["configuration"]: 3.0}.get(row["name"], 2.01)
    worth = {one.flag: one.times_as_long for one in record.Tuned(made, "bf16", 64).worth()}
    assert worth["swizzling"] == {16: 1.5, 32: 1.5}
    assert all("swizzling" not in flags and flags for flags in record.Tuned(made, "bf16", 64).does_not_pay().values())


class PlayedBench:
    """What a heat asks of the benchmark: one peer, and an error where a configuration is to be admitted."""

    def __init__(self, torch: bool, error: Exception | None = None):
        self.torch, self.error, self.settings, self.libraries = torch, error, bench.Settings(stages=()), {}

    def prepared(self, problem):
        return "memory", "expected"

    def peer_candidates(self, problem, memory):
        return [SimpleNamespace(name="peer")]

    def stage_candidate(self, stage, problem, memory):
        return SimpleNamespace(name=stage.name)

    def admit(self, candidate, problem, memory, expected):
        assert (problem, memory, expected) == (SMALL, "memory", "expected")
        if self.error and candidate.name != "peer":
            raise self.error
        return True

    def measure(self, running):
        for one in running:
            one.times_ms = [1.0]


@pytest.fixture
def timer(monkeypatch, fake_device):
    """timer(torch, error) -> a GpuTimer of a PlayedBench."""

    def made(*played):
        monkeypatch.setattr(bench, "Bench", lambda settings, device: PlayedBench(*played))
        monkeypatch.setattr(gpu_times, "StageLibrary", lambda file: file)
        table = SimpleNamespace(STAGE="autotune", build=lambda one, compute: instances.Built(one, None))
        return gpu_times.GpuTimer(Device("gpu", fake_device), (), table)

    return made


def test_what_ends_cuda_when_a_heat_admits_it_is_told_apart(timer):
    one = of_stage(9)
    for error, ends in ((CudaError("illegal address"), True), (FlashLadderError("refused"), False)):
        with pytest.raises(TimingFailed, match=str(error)) as failed:
            timer(True, error).heat(SMALL, [one], 0.0)
        assert failed.value.ends == ends


def test_peers_and_hard_inputs_come_with_torch_and_peers_are_admitted_to_the_heat(timer):
    times = timer(True).heat(SMALL, [of_stage(9)], 0.0)
    assert {name: one.kind for name, one in times.items()} == {str(of_stage(9)): "configuration", "peer": "peer"}
    assert timer(True).peers and timer(True).hard and not timer(False).peers and not timer(False).hard


def test_the_table_of_the_fastest_has_ten_rows_the_fastest_first():
    _, rows = tables.fastest(record.Tuned(recorded.shipped(kind="tuning")[0], "bf16", 128), 4096)
    throughput = [float(row[1]) for row in rows]
    assert len(rows) == 10 and throughput == sorted(throughput, reverse=True)


def test_the_bounded_space_has_200_configurations_that_no_rule_refuses():
    left = sum(len(space.admitted(space.bounded("bf16", d)).admitted) for d in (64, 128))
    assert 200 <= left <= 800, "a quarter of an hour on 16 cores is for about 600"


def test_thinned_keeps_the_ends_of_the_space_in_view():
    admitted = space.admitted(space.bounded("bf16", 64))
    few = admitted.thinned(10).admitted
    assert len(few) == 10 and len({one.Br for one in few}) > 1 and admitted.thinned(10**6) == admitted


def test_each_neighbour_has_its_flag_off_and_breaks_no_rule():
    winner = of_stage(11)
    found = {one.flag: one for one in space.neighbours(winner)}
    assert found["asynchronous copies"].besides == ("eager K and V", "second buffer for tiles", "lean addressing")
    assert found["swizzling"].besides == () and not found["swizzling"].configuration.swizzled
    assert "Q in registers" not in found, "it is off in the winner"


@pytest.mark.parametrize(
    "words, said",
    [
        (("--configs", "/nowhere/x"), "/nowhere/x cannot be read"),
        (("--d-head", "64,x"), "is no list of numbers"),
        (("--fastest-of", "/nowhere/x"), "/nowhere/x cannot be read"),
        (("--fastest-of", "x", "--configs", "y"), "not allowed with argument --fastest-of"),
    ],
)
def test_wrong_options_are_told(flashladder, words, said):
    done = flashladder("tune", *words, FLASHLADDER_DEVICE="sim")
    assert done.returncode and said in done.stderr


def test_stages_that_have_configurations_explain_them_and_others_do_not(flashladder):
    done = flashladder("stage", "11", "explain")
    assert done.returncode and "stage 11 can" in done.stderr and "explain" not in done.stderr.split("can", 1)[1]
    assert any("configuration" in launch for launch in stages.get(12).data["launch"])
