"""Which tool notices a planted mistake: a GPU, a compiler and a compute-sanitizer that are played are asked; and the
page that says it."""

import re
import threading

import numpy as np
import pytest

from flashladder.building import toolchain
from flashladder.commands import detections_page
from flashladder.core import dtypes, signals
from flashladder.core.device import Device, Gpu
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import stage_library
from flashladder.core.problem import Problem
from flashladder.ladder import host_streams, kernels, mistakes, stages
from flashladder.measuring import detections, planted, recorded, sanitizer
from flashladder.measuring import executed as executing
from flashladder.measuring.executed import executed
from flashladder.measuring.planted import Subject
from flashladder.running import worker
from flashladder.running.job import Job

GPU = Device("gpu", Gpu("Fake", 90, "580.1", 1))
ORIGIN = {"device": "Fake", "date": "2026-01-02 00:00 UTC", "commit": "abc", "driver": "580.1"}
SANITIZER = """#!/bin/sh
[ "$1" = --version ] && { echo Version 2026.1; exit 0; }
case "$2" in
  memcheck) echo "========= COMPUTE-SANITIZER"; echo "========= Invalid __global__ read of size 4 bytes"
            echo "========= ERROR SUMMARY: 3 errors"; exit 99 ;;
  racecheck) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" ;;
  initcheck) exec sleep 60 ;;
  synccheck) echo "no such device"; exit 1 ;;
esac
"""


# ---- which, and in which order ----


def test_each_stage_has_its_turn_and_lessons_come_first():
    which = [stages.get("swizzle"), stages.get("cp_async")]
    found = planted.in_order(which)
    assert [one.key for one in found[:4:2]] == [("05_swizzle", ""), ("06_cp_async", "")], "first each as it is"
    mine = [one for one in found if one.mistake and one.stage == which[0]]
    assert {one.name for one in mine} == {one.name for one in mistakes.mistakes("swizzle")}
    shown = [bool(one.mistake.caught_by) for one in mine]
    assert shown == sorted(shown, reverse=True) and set(shown) == {True, False}
    verdicts = [one.mistake.caught_by for one in mine if one.mistake.caught_by]
    assert len(set(verdicts[: len(set(verdicts))])) == len(set(verdicts)), "one of each verdict before a second"
    few = planted.first(found, 3)
    assert planted.first(found, 0) == planted.first(found, len(found)) == found
    assert few == found[: len(few)] and sum(bool(one.mistake) for one in few) == 3


def test_some_mistakes_alone():
    which = [stages.get("swizzle")]
    name = mistakes.of_lesson("swizzle")[1].name
    assert [one.name for one in planted.in_order(which, names=(name,))] == ["", name]
    with pytest.raises(FlashLadderError, match="no mistake 'fly'"):
        planted.in_order(which, names=(name, "fly"))


def test_what_the_compiler_says_is_read():
    said = """kernel.cu(123): warning #177-D: variable "x" was declared but never referenced
ptxas info    : (C7519) warpgroup.arrive is injected in around line 1906 by compiler
ptxas info    : (C7519) warpgroup.arrive is injected in around line 2006 by compiler
ptxas warning : Stack size for 'f' cannot be statically determined
ptxas info    : Used 154 registers, used 1 barriers
"""
    assert planted.notes(said) == ["177-D", "C7519", "Stack size for 'f' cannot be statically determined"]
    assert planted.notes("ptxas info    : 0 bytes gmem") == []
    assert planted.native(90)[1] == "arch=compute_90a,code=sm_90a" and planted.native(80)[1].endswith("code=sm_80")


# ---- runs ----


def test_a_persistent_kernel_has_as_many_turns_on_a_gpu(monkeypatch):
    monkeypatch.setattr(kernels, "cudart", lambda device: "libcudart.so.13")

    def on_a_gpu(one):
        return [job.problem for job in one.judged_jobs(stage_library(one.number), GPU)]

    stage = stages.get("tile_scheduler")
    few = [job.problem for job in stage.judged_jobs(stage_library(stage.number), Device("sim", None))]
    assert few == [problem for problem, _ in stage.judged_by()]
    assert [one.B for one in on_a_gpu(stage)] == [44 * one.B for one in few], "132 multiprocessors in place of 3"
    assert all(len(one.lengths) == one.B > 40 for one in on_a_gpu(stages.entry("lean")))
    under_tool = [job.problem for job in stage.judged_jobs(stage_library(stage.number), GPU, wide=False)]
    assert under_tool == few and stage.fewer == {"FLASHLADDER_MULTIPROCESSORS": "3"}
    assert stages.get("naive").fewer == {}
    assert [one.B for one in on_a_gpu(stages.get("naive"))] == [1]


def test_sequences_of_a_wide_problem_repeat_in_other_orders_and_each_is_compared(monkeypatch, tmp_path):
    monkeypatch.setattr(kernels, "cudart", lambda device: "libcudart.so.13")
    stage, different = stages.get("tma_store"), executing.DIFFERENT
    problem = Problem(B=3 * different + 1, Hq=1, Nq=2, Nkv=3, d_head=64)
    jobs = [Job("", "", problem)]
    monkeypatch.setattr(type(stage), "judged_jobs", lambda *arguments, **more: jobs)
    some = executing.Problems(stage, GPU, tmp_path / "problems")
    (inputs,) = some.inputs
    known = [array.tobytes() for array in inputs["Q"]]
    assert all(len({*known[first : first + different]}) == different for first in range(0, 3 * different, different))
    assert len({*known}) == different
    right = dtypes.to_bits(stage.wanted(problem, inputs).output[0], "bf16")
    assert some.compared(0, {"O": right}, {}) == "right" and len(some.took) == different
    for further in range(1, 2 * different + 1):
        taken = right.copy()  # the last one stays, so that after whole orders each comes from where its like may be
        taken[:-1] = np.roll(right[:-1], -further, axis=0)
        assert some.compared(0, {"O": taken}, {}).startswith("wrong: "), f"{further} sequences further on"
    right[-2] = right[-3]
    assert some.compared(0, {"O": right}, {}).startswith("wrong: ")


@pytest.mark.parametrize("number", [2, 0])
def test_a_stage_runs_on_the_simulator_as_it_would_on_a_gpu(number):
    stage = stages.entry(number)
    library = stage_library(number) if number else host_streams.program()
    with executed(stage, library, Device("sim", None)) as runs:
        assert set(runs.plain(2 if number else 1, 120, 60)) == {"right"}
        status, text = runs.under(["env", "-u", "SOMETHING"], 120, 60)
        assert status == 0, text


@pytest.fixture
def played(fake, monkeypatch, tmp_path):
    """played(plants) -> has the n-th mistake (0: the stage as it is) of naive be the fake stage with plant n."""
    monkeypatch.setattr(kernels, "cudart", lambda device: fake.cudart)
    monkeypatch.setattr(detections.provenance, "collect", lambda device, which: ORIGIN)
    monkeypatch.setattr(detections, "QUIET_TOOL_SECONDS", 0.5)
    monkeypatch.setattr(recorded, "shipped", lambda *arguments, **more: [])
    tool = tmp_path / "bin/compute-sanitizer"
    tool.parent.mkdir()
    tool.write_text(SANITIZER)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    stage = stages.get("naive")

    def run(plants, **choice) -> list[str]:
        for plant in plants.values():
            if isinstance(plant, int):
                fake(plant)  # so that a build takes no time below

        def built(one, compute):
            plant = plants[one.name]
            if isinstance(plant, Exception):
                raise plant
            return (None if plant is None else fake(plant)), ["C7519"] if plant else []

        monkeypatch.setattr(planted, "built", built)
        names = tuple(name for name in plants if name)
        choice = detections.Choice(**{"seconds": 300} | choice)
        monkeypatch.setattr(
            planted, "in_order", lambda *arguments: [Subject(stage), *(Subject(stage, _naive(one)) for one in names)]
        )
        return detections.measure(GPU, [stage], choice, tmp_path / "Fake-faults.json")

    run.rows = lambda: recorded.load(tmp_path / "Fake-faults.json")["detections"]["planted"]
    run.file = tmp_path / "Fake-faults.json"
    return run


def _naive(name: str) -> mistakes.Mistake:
    return next(one for one in mistakes.mistakes("naive") if one.name == name)


NAMES = [one.name for one in mistakes.mistakes("naive")]


def test_all_are_asked_and_each_answer_is_kept(played):
    said = played({"": 0, NAMES[0]: 2, NAMES[1]: None}, beside=8)
    assert re.fullmatch(r"faults: 3 of 3 mistakes and stages as they are in \d+ s; 0 known already", said[0])
    clean, wrong, broken = (row for name in ("", *NAMES[:2]) for row in played.rows() if row["mistake"] == name)
    assert clean["gpu"] == {"runs": 5, "wrong": 0, "outcome": "right"} and clean["notes"] == []
    assert wrong["gpu"]["outcome"] == "wrong" and wrong["gpu"]["wrong"] == wrong["gpu"]["runs"] == 5
    assert "relative" in wrong["gpu"]["said"] and wrong["notes"] == ["C7519"]
    words = "Invalid __global__ read of size 4 bytes"
    assert wrong["memcheck"] == {"outcome": "found", "reports": 3, "said": words, "kinds": [words[:-16]]}
    assert wrong["racecheck"] == {"outcome": "nothing"} and wrong["initcheck"] == {"outcome": "limit", "without": True}
    assert clean["initcheck"]["outcome"] == "limit" and 0.5 < clean["initcheck"]["seconds"] < 60
    assert wrong["synccheck"]["outcome"] == "failed" and "no such device" in wrong["synccheck"]["said"]
    assert broken["gpu"] == {"outcome": "not compiled"} and "memcheck" not in broken
    run = recorded.load(played.file)["detections"]["runs"][wrong["run"]]
    assert run["compute-sanitizer"] == "2026.1" and run["driver"] == "580.1" and run["beside"] == 8
    assert run["under_tools"] == detections.NARROW


def test_an_interrupted_run_goes_on(played, monkeypatch):
    monkeypatch.setattr(detections.sanitizer, "version", lambda: "")
    monkeypatch.setattr(detections, "GROUP", 1)
    with pytest.raises(RuntimeError, match="taken away"):
        played({"": 0, NAMES[0]: 1, NAMES[1]: RuntimeError("the machine is taken away")})
    assert [row["mistake"] for row in played.rows()] == ["", NAMES[0]]
    said = played({"": AssertionError("again"), NAMES[0]: AssertionError("again"), NAMES[1]: 3})
    assert said[0].startswith("faults: 1 of 1 mistakes") and said[0].endswith("; 2 known already")
    assert [row["mistake"] for row in played.rows()] == sorted(["", *NAMES[:2]])


def test_what_is_missing_is_asked_for_and_nothing_else(played, monkeypatch):
    with monkeypatch.context() as without:
        without.setattr(detections.sanitizer, "version", lambda: "")
        played({"": 0, NAMES[0]: 2})
    monkeypatch.setattr(detections.provenance, "collect", lambda *arguments: ORIGIN | {"date": "another day"})
    monkeypatch.setattr(detections, "compared", lambda *arguments: pytest.fail("results are known"))
    said = played({"": 0, NAMES[0]: 2})
    assert said[0].startswith("faults: 2 of 2")
    clean, wrong = played.rows()
    assert wrong["run"] == ORIGIN["date"] and wrong["racecheck"] == {"outcome": "nothing", "run": "another day"}
    assert wrong["gpu"]["outcome"] == "wrong" and "run" not in wrong["gpu"]
    monkeypatch.setattr(detections.Measured, "_ask_together", lambda *arguments: pytest.fail("nothing is left"))
    played({"": 0, NAMES[0]: 2})
    known = played.rows()
    assert [row["memcheck"] for row in known] == [clean["memcheck"], wrong["memcheck"]]
    assert known[1]["synccheck"]["outcome"] == "failed", "which is asked for again, of each alone"


def test_answers_of_a_wider_problem_under_a_tool_are_asked_for_again(played, monkeypatch):
    played({"": 0})
    record = recorded.load(played.file)
    (run,) = record["detections"]["runs"].values()
    run.pop("under_tools")
    recorded.write(record, played.file)
    asked = []
    monkeypatch.setattr(detections.Measured, "_ask_alone", lambda self, tool, one: asked.append(tool))
    played({"": 0})
    assert sorted(asked) == ["initcheck", "memcheck", "synccheck"], "not what had nothing to say"


@pytest.mark.parametrize("wide, again", [(False, []), (True, [""])])  # not what was wrong
def test_what_was_right_of_sequences_in_one_order_is_asked_for_again(played, monkeypatch, wide, again):
    played({"": 0, NAMES[0]: 2})
    record = recorded.load(played.file)
    (run,) = record["detections"]["runs"].values()
    assert run.pop("sequences") == detections.ORDERS
    recorded.write(record, played.file)
    asked = []
    monkeypatch.setattr(detections, "_is_wide", lambda stage: wide)
    monkeypatch.setattr(detections.Measured, "_compare", lambda self, one: asked.append(one.subject.name))
    monkeypatch.setattr(detections.Measured, "_ask", lambda *arguments: None)
    played({"": 0, NAMES[0]: 2})
    assert asked == again


def test_a_stage_that_needs_more_gpus_is_asked_again(played, monkeypatch):
    asked = []
    monkeypatch.setattr(detections, "compared", lambda *arguments: asked.append(1) or {"outcome": "refused"})
    monkeypatch.setattr(detections.Measured, "_ask_alone", lambda *arguments: pytest.fail("a tool has nothing to see"))
    for times in (1, 2):
        assert played({"": 0})[0].startswith("faults: 0 of 1") and len(asked) == times
    assert detections._patience(stages.entry(61), 20) == 1.5 * detections._patience(stages.entry(23), 20) == 30


def test_which_batches_are_wide():
    those = [one.slug for one in map(stages.entry, (0, 13, 23, 47, 54, 63)) if detections._is_wide(one)]
    assert those == ["shapes", "deterministic", "one_launch"]


# Runs what it is told to, and reports of one library what its lines say; a line of LOG for each call.
REPORTING = """#!/bin/sh
[ "$1" = --version ] && { echo Version 2026.1; exit 0; }
echo "$2 $6" >>LOG
while [ "${1#--}" != "$1" ]; do shift 2; done
"$@"
shift 3
for one in "$@"; do grep -o 'libstage_2[.]so' "$one/job.json"; done | sort -u >LOG.$$
while read library; do
  echo "========= Invalid __global__ write of size 4 bytes"
  echo "=========     at kernel+0x10 in kernel.cu:7"
  echo "=========         Host Frame: [0x10] in /somewhere/$library"
done <LOG.$$
echo "========= ERROR SUMMARY: $(grep -c . LOG.$$) errors"
rm LOG.$$
"""


def test_what_a_tool_does_not_name_is_not_asked_about_alone(played, monkeypatch, tmp_path):
    log = tmp_path / "log"
    monkeypatch.setattr(detections, "QUIET_TOOL_SECONDS", 60)
    (tmp_path / "bin/compute-sanitizer").write_text(REPORTING.replace("LOG", str(log)))
    said = played({"": 0, NAMES[0]: 2, NAMES[1]: 3}, beside=4)
    found = {row["mistake"]: [row[tool] for tool in sanitizer.TOOLS] for row in played.rows()}
    words = "Invalid __global__ write of size 4 bytes"
    report = {"outcome": "found", "reports": 1, "said": words, "kinds": [words[:-16]]}
    assert found == {"": [{"outcome": "nothing"}] * 4, NAMES[0]: [report] * 4, NAMES[1]: [{"outcome": "nothing"}] * 4}
    assert sorted(log.read_text().split("\n")[:-1]) == sorted(f"{one} {how}" for one in sanitizer.TOOLS for how in HOW)
    assert any("memcheck of 2 at once" in line for line in said)


HOW = ("no", "host")  # the stage as it is, alone; the others together, which names libraries


def test_reports_are_told_apart():
    names, ended = ["a.so", "b.so", "c.so"], [True] * 3

    def text(*named, count=None):
        reports = "".join(f"========= Error: Potential hazard\n=========     in /x/{one}\n" for one in named)
        return f"========= COMPUTE-SANITIZER\n{reports}========= RACECHECK SUMMARY: {count or len(named)} hazards\n"

    def words(*arguments) -> dict[str, str]:
        found = sanitizer.told_apart(*arguments)
        return {name: f"{cell.get('reports', cell.get('outcome'))}" for name, cell in found.items()}

    none = "nothing"
    assert words(text(), names, ended) == dict.fromkeys(names, none)
    both = sanitizer.told_apart(text("b.so", "b.so"), names, ended)
    said = {"said": "Error: Potential hazard", "kinds": ["Error: Potential hazard"]}
    assert both["b.so"] == {"outcome": "found", "reports": 2} | said and both["c.so"] == {"outcome": none}
    most = sanitizer.told_apart(text("b.so", count=7), names, ended)
    assert most == {"a.so": {"outcome": none}, "b.so": {"outcome": "found", "reports": 1} | said | {"more": True}}
    assert words(text("elsewhere"), names, ended) == words("no device", names, ended) == {}
    assert words(text(), names, [True, False, False]) == {"a.so": none, "b.so": "None"}, "c.so had no turn"
    ended_by_force = text("b.so", "c.so").partition("========= RACECHECK")[0]
    assert words(ended_by_force, names, [True, True, False]) == {"a.so": none, "b.so": "1", "c.so": "None"}
    broken = text("b.so").replace(
        "========= RACECHECK", "========= Program hit x on CUDA API call to y\n========= ERROR"
    )
    broken = broken.replace("SUMMARY: 1", "SUMMARY: 2")
    assert words(broken, names, [True, False, False]) == {"a.so": none, "b.so": "2"}


def test_a_tool_is_ended_when_it_has_said_enough(monkeypatch):
    head = "========= Error: Potential WAR hazard detected at __shared__ 0x10 in block (1,0,0) :\n=========     more\n"
    many = head * sanitizer.MOST_REPORTS
    assert not sanitizer.enough()(many[:-200]) and sanitizer.enough()(many)
    cell = sanitizer.cell("racecheck", 124, head, 60)
    assert cell["reports"] == 1 and cell["more"] and cell["kinds"] == ["Error: Potential WAR hazard detected"]
    assert sanitizer.cell("racecheck", 124, "=========\n", 60) == {"outcome": "limit", "seconds": 60}
    monkeypatch.setattr(sanitizer, "MORE_SECONDS", -1)
    asked = sanitizer.enough()
    assert not asked("") and asked(head)
    script = "printf '========= A report\\n'; sleep 60; echo 'This was not waited for.'"
    status, text = signals.run_for(["sh", "-c", script], 60, None, sanitizer.enough())
    assert status == 124 and text == "========= A report\n"


def test_pieces_are_of_one_stage():
    subjects = planted.in_order([stages.get("swizzle"), stages.get("cp_async"), host_streams.stage()])
    pieces = planted.by_stage(subjects, 6)
    assert sorted(one.key for piece in pieces for one in piece) == sorted(one.key for one in subjects)
    assert all(len({one.stage.name for one in piece}) == 1 and len(piece) <= 6 for piece in pieces)
    assert [piece[0].stage.slug for piece in pieces[:4]] == ["swizzle", "cp_async", "host_streams", "swizzle"]
    assert all(len(piece) == 1 for piece in pieces if piece[0].stage.number == 0)


def test_what_took_how_long_is_told():
    times = detections.Times()
    times.took["memcheck"] = [3.0, 4.0, 90.0]
    assert times.lines() == ["faults: memcheck: 4.0 s in the median, 90.0 s at most, 97 s for all 3"]


def test_a_process_hangs_when_none_of_its_runs_ends(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(executing.time, "monotonic", lambda: now[0])
    is_quiet = executing._is_quiet([(0, tmp_path / "a"), (1, tmp_path / "b")], 20)
    now[0] = 15
    (tmp_path / "a").mkdir()
    (tmp_path / "a/result.json").write_text("{}")
    assert not is_quiet("")
    now[0] = 34
    assert not is_quiet("")
    now[0] = 36
    assert is_quiet("")


def test_where_a_tool_comes_to_no_end_on_the_stage_as_it_is_it_is_asked_nothing_else(played):
    played({"": 0, NAMES[0]: 2})
    rows = {row["mistake"]: row["initcheck"] for row in played.rows()}
    assert rows[""]["outcome"] == "limit" and rows[NAMES[0]] == {"outcome": "limit", "without": True}


def test_what_should_hang_has_its_turn_after_the_others_of_lessons(played, monkeypatch):
    shown = [name for name in NAMES if _naive(name).caught_by][:2]
    other = next(name for name in NAMES if not _naive(name).caught_by)
    monkeypatch.setattr(detections.sanitizer, "version", lambda: "")
    monkeypatch.setattr(detections, "_should_hang", lambda one: one.name == shown[0])
    measured, own = [], detections.Measured.measure

    def measure(self, piece, gpu):
        measured.append([one.subject.name for one in piece])
        own(self, piece, gpu)

    monkeypatch.setattr(detections.Measured, "measure", measure)
    played({"": 0, shown[0]: 1, shown[1]: 2, other: 3})
    assert [sorted(piece) for piece in measured] == [["", shown[1]], [shown[0]], [other]]


def test_tools_are_asked_late_of_what_hangs(played, monkeypatch, tmp_path):
    (tmp_path / "bin/compute-sanitizer").write_text(SANITIZER.replace("exec sleep 60", "exit 0"))
    monkeypatch.setattr(executing, "run_for", lambda command, _, *more: signals.run_for(command, 0.01, *more))
    asked = []
    monkeypatch.setattr(detections.Measured, "_probe", lambda *arguments: None)
    monkeypatch.setattr(
        detections.Measured, "_ask", lambda self, tool, some: asked.append([one.outcome for one in some])
    )
    played({"": 0})
    assert asked == [[], [], [], [], ["hang"], ["hang"], ["hang"], ["hang"]]
    assert played.rows()[0]["gpu"]["outcome"] == "hang" and "memcheck" not in played.rows()[0]


def test_what_a_tool_says_before_it_is_ended_is_kept(played, tmp_path):
    tool = tmp_path / "bin/compute-sanitizer"
    tool.write_text(SANITIZER.replace("exec sleep", "echo '========= Uninitialized read'; exec sleep"))
    played({"": 0})
    (row,) = played.rows()
    words = "Uninitialized read"
    assert row["initcheck"] == {"outcome": "found", "reports": 1, "said": words, "kinds": [words], "more": True}


def test_what_there_is_no_time_for_is_told_and_not_recorded(played):
    said = played({"": 0, NAMES[0]: 1}, seconds=0.0)
    assert said[0].startswith("faults: 0 of 2") and "the same command goes on" in said[1]
    assert not played.file.exists()


def test_a_gpu_that_no_longer_answers_ends_it(played, monkeypatch):
    monkeypatch.setattr(detections.sanitizer, "version", lambda: "")
    monkeypatch.setattr(detections, "GROUP", 1)
    monkeypatch.setenv("FAKE_FAILURE", "1")
    said = played({"": 0, NAMES[0]: 1})
    (row,) = played.rows()
    assert row["gpu"]["outcome"] == "error" and "a planted failure" in row["gpu"]["said"]
    assert said[-1] == f"faults: the GPU stopped answering after 01 {row['mistake']}"


def test_a_run_that_never_ends_is_told(played, monkeypatch):
    monkeypatch.setattr(detections.sanitizer, "version", lambda: "")
    monkeypatch.setattr(executing, "run_for", lambda command, _, *more: signals.run_for(command, 0.01, *more))
    played({"": 0})
    assert played.rows()[0]["gpu"] == {
        "runs": 1, "wrong": 0, "outcome": "hang", "seconds": detections.QUIET_SECONDS, "said": "hang: never ended",
    }  # fmt: skip


def test_rows_of_earlier_runs_stay(tmp_path):
    def record(date, *rows):
        inside = {"version": 1, "provenance": ORIGIN | {"date": date}, "runs": {date: {}}, "planted": list(rows)}
        return recorded.inside("detections", inside)

    def row(stage, mistake, run):
        return {"stage": stage, "mistake": mistake, "run": run}

    fresh, shipped = tmp_path / "new", tmp_path / "old"
    first = record("1 1", row("05_swizzle", "a", "1 1"), row("05_swizzle", "b", "1 1"))
    recorded.write(first | {"faults": [{"fault": "x"}]}, shipped / "X-faults.json")
    recorded.write(record("2 2", row("01_naive", "c", "2 2"), row("05_swizzle", "b", "2 2")), fresh / "X-faults.json")
    got = recorded.load(recorded.take(fresh / "X-faults.json", shipped))
    assert got["faults"] == [{"fault": "x"}]
    assert {(one["stage"], one["mistake"], one["run"]) for one in got["detections"]["planted"]} == {
        ("01_naive", "c", "2 2"), ("05_swizzle", "a", "1 1"), ("05_swizzle", "b", "2 2"),
    }  # fmt: skip
    assert set(got["detections"]["runs"]) == {"1 1", "2 2"}


def test_the_compiler_alone_is_asked_without_a_gpu(monkeypatch, tmp_path):
    file = recorded.write({"version": 1, "provenance": ORIGIN, "rows": []}, tmp_path / "sm_90-machine-code.json")
    asked = []
    monkeypatch.setattr(planted, "machine_code_notes", lambda one: asked.append(one.key) or ["C7508"])
    detections.record_notes([stages.get("wgmma"), host_streams.stage()], 2, file)
    rows = detections.record_notes([stages.get("wgmma")], 1, file)
    assert len(asked) == len(rows) == len(set(asked)) == 4, "the stage as it is, two mistakes and a third one"
    assert recorded.load(file)["ptxas"]["planted"] == rows and rows[0]["notes"] == ["C7508"]
    older = [row if row["mistake"] else row | {"digest": "of another source"} for row in rows]
    recorded.write(recorded.inside("ptxas", recorded.load(file)["ptxas"] | {"planted": older}), file)
    detections.record_notes([stages.get("wgmma")], 1, file)
    assert asked[4] == ("15_wgmma", ""), "a stage that has changed is asked about again"


def test_the_simulator_is_asked_about_what_no_lesson_shows(monkeypatch, tmp_path):
    file = recorded.write({"version": 1, "provenance": ORIGIN, "rows": []}, tmp_path / "sm_90-machine-code.json")
    others = {one.name for one in mistakes.mistakes("naive") if not one.caught_by}
    asked = []
    monkeypatch.setattr(planted, "judged", lambda one: asked.append(one.name) or {"by": "verification", "said": "x"})
    detections.record_verdicts([stages.get("naive")], 2, file)
    rows = detections.record_verdicts([stages.get("naive")], file=file)
    assert sorted(asked) == sorted(others) and {row["mistake"] for row in rows} == others, "each once"
    assert recorded.load(file)["judged"]["planted"] == rows and rows[0]["by"] == "verification"


@pytest.mark.parametrize("name, by", [("no_scale", "verification"), ("wrong_head_stride", "global_race")])
def test_the_simulator_itself(name, by):
    said = planted.judged(Subject(stages.get("naive"), mistakes.get("naive", name)))
    assert said["by"] == by and said["said"], "as it says of a lesson's"


@pytest.mark.long
def test_what_the_simulator_names_of_streams_comes_before_their_numbers():
    stage = host_streams.stage()
    for one in mistakes.mistakes(stage):
        if one.name in ("one_set_of_buffers", "wrong_stream", "missing_wait"):
            assert planted.judged(Subject(stage, one))["by"] == "launch_race", one.name
    assert stage.first_hazard(stage.source) is None


def test_the_compiler_itself():
    """Of a mistake that ptxas repairs, and the lesson of stage 15 quotes."""
    if not toolchain.find_nvcc():
        pytest.skip("no nvcc here")
    assert planted.machine_code_notes(Subject(stages.get("wgmma"), mistakes.get("wgmma", "no_fence"))) == ["C7519"]


# ---- the page ----


@pytest.fixture
def page(monkeypatch):
    """page(what): with rows of naive: as it is racecheck has a false alarm, a mistake of each class is noticed. Of
    three in no lesson warpsim has said something; memcheck notices the one to whose numbers it has no objection."""
    stage = stages.get("naive")
    lesson = next(one for one in mistakes.of_lesson("naive") if one.caught_by == "verification")

    def row(one, **found):
        return {"stage": stage.name, "mistake": one.name, "digest": one.digest(), "notes": []} | found

    nothing, found = {"outcome": "nothing"}, {"outcome": "found", "reports": 1, "said": "x"}
    right = {"outcome": "right", "runs": 5, "wrong": 0}
    clean = row(Subject(stage), gpu=right, memcheck=nothing, racecheck=found, initcheck={"outcome": "limit"})
    clean["synccheck"] = {"outcome": "limit", "said": "x"}
    wrong = row(Subject(stage, lesson), gpu=right | {"outcome": "wrong", "wrong": 4}, memcheck=found, racecheck=found)
    old = row(Subject(stage, _naive(NAMES[-1])), gpu=right) | {"digest": "of another source"}
    run = ORIGIN | {"compute-sanitizer": "2026.1"}
    others = [Subject(stage, one) for one in mistakes.mistakes("naive") if not one.caught_by and not one.lives]
    missed = row(others[2], gpu=right, memcheck=found)
    planted_rows = [clean, wrong | {"notes": ["C7519"]}, old, missed]
    record = {"provenance": ORIGIN, "runs": {"now": run, "then": run | {"commit": "def"}}, "planted": planted_rows}
    said = [row(one) | {"by": by} for one, by in zip(others, ("global_race", "verification", ""), strict=False)]
    judged = {"planted": [*said, row(others[3]) | {"by": "shared_race", "digest": "of another source"}]}
    monkeypatch.setattr(recorded, "first", lambda kind: {"detections": record, "judged": judged}.get(kind))
    detections_page.matrix.cache_clear()
    yield lambda what: [line.strip("| ").split(" | ") for line in detections_page.page(what).splitlines()], lesson
    detections_page.matrix.cache_clear()


def test_the_page_counts_what_was_asked_and_says_what_was_not(page):
    text, lesson = page
    everyone = next(line for line in text("counts") if line[0] == "all")
    known, shown = mistakes.everything(), [one for one in mistakes.everything() if one.caught_by]
    numbers = sum(one.caught_by == "verification" for one in shown)
    lives = sum(bool(one.lives) for one in known)
    with_verdict = len(shown) + 3 + lives
    assert everyone == [
        "all", str(len(known)), f"{len(shown) - numbers + 1} of {with_verdict}", f"{numbers + 1} of {with_verdict}",
        "1 of 2", "1 of 2", "2 of 2", "0 of 1", "not run", "not run",
    ]  # fmt: skip
    groups = [line[:2] for line in text("counts")[4:]]
    assert groups[0][0] == "wrong results, in lessons" and groups[-2][0] == "technique gone, in no lesson"
    assert sum(int(count) for _, count in groups[:-1]) == len(known)
    (asked,) = text("counts")[0]
    assert "Fake, driver 580.1, compute-sanitizer 2026.1: now, commit abc, then, commit def." in asked
    alarms = {line[0]: line[1:] for line in text("clean")}
    of_racecheck = ["1", "1", "1", "0", "0", "01_naive (1 report)"]
    assert alarms["racecheck"] == of_racecheck, "its report of a mistake says nothing"
    assert alarms["initcheck"] == ["1", "0", "", "", "1", "01_naive (no end)"]
    assert alarms["memcheck"][:2] == ["1", "0"]
    assert alarms["synccheck"][:2] == ["1", "1"] and "1 or more reports" in alarms["synccheck"][-1]
    (line,) = [line for line in text("list") if line[-1] == f"`{lesson.name}`" and line[0] == "01_naive"]
    assert line[3:10] == [
        "numbers", "C7519", "wrong 4 of 5", "1 report", "1 report, and without it", "not run", "not run",
    ]  # fmt: skip


def test_where_there_are_false_alarms_a_report_of_another_kind_counts():
    war, raw = "Error: Potential WAR hazard detected", "Error: Potential RAW hazard detected"

    def cell(kinds, of_clean, mistake="x", **more):
        found = {"outcome": "found", "reports": 9, "said": "y"}
        row = {"mistake": mistake, "racecheck": found | {"kinds": kinds} | more}
        clean = {"racecheck": found | ({"kinds": of_clean} if of_clean else {})}
        return detections_page._reports(row, clean, "racecheck")

    assert cell([war], [war]) == cell([raw], None) == detections_page.Cell("9 reports, and without it", False)
    assert not cell([war, "Error: Race reported"], [war]).noticed, "that is the same, summed up"
    assert cell([war, raw], [war], more=True) == detections_page.Cell("9 or more reports, of another kind", True)
    assert cell([war], [raw], "") == detections_page.Cell("9 reports", True), "a false alarm"
    known = {"mistake": "x", "racecheck": {"outcome": "found", "reports": 1, "said": "y", "kinds": [war]}}
    for of_clean in ({}, {"racecheck": {"outcome": "limit", "seconds": 60}}):
        unknown = detections_page.Cell("1 report, no verdict without it", None)
        assert detections_page._reports(known, of_clean, "racecheck") == unknown


def test_what_gave_no_verdict_is_not_called_not_run():
    found = object.__new__(detections_page.Matrix)
    naive = [Subject(stages.get("naive"), _naive(name)) for name in NAMES[:2]]
    cells = [detections_page.Cell("limit reached"), detections_page.Cell()]
    found.cells = {one.key: {"memcheck": cell} for one, cell in zip(naive, cells, strict=True)}
    assert found.count(naive, "memcheck") == "0 of 0" and found.count(naive[1:], "memcheck") == "not run"


def test_the_page_says_where_another_tool_finds_more(page):
    text, lesson = page
    more = {line[0] for line in text("more")}
    assert re.fullmatch(
        rf"- memcheck: 2 of the 2 that it notices: `{lesson.id}`, `01-\w+`",
        next(line for line in more if "memcheck" in line),
    )
    assert not any(line.startswith("- results: 1") for line in more), "warpsim's numbers are wrong as well"
    with pytest.raises(FlashLadderError, match="'odd'"):
        detections_page.page("odd")


def test_the_list_has_all_lessons_and_counts_the_others(page):
    text, _ = page
    rows = text("list")[2:]
    broken = [row for row in rows if "make mutants" not in row[-1]]
    rest = sum(int(re.match(r"(\d+) more", row[1])[1]) for row in rows if "make mutants" in row[-1])
    assert len(broken) + rest == len(mistakes.everything())
    assert len(broken) == 1 + sum(bool(one.caught_by) for one in mistakes.everything())
    (unknown,) = [row for row in broken if row[3] == "a test"]
    assert unknown[4:7] == ["nothing", "right", "1 report"]


def test_one_that_takes_long_to_compile_keeps_none_waiting(monkeypatch):
    monkeypatch.setattr(detections.build, "jobs", lambda: 2)
    second_came, order = threading.Event(), []
    for one, _ in detections._done(lambda one: one == "long" and second_came.wait(60), ["long", "short"]):
        order.append(one)
        second_came.set()
    assert order == ["short", "long"]


def test_an_output_is_a_link_only_where_it_is_as_before(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "_SAVED", {})
    for name, value in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / name).mkdir()
        worker.save(tmp_path / name, {"O": np.full(3, value)})
    files = [tmp_path / name / "O.npy" for name in "abc"]
    assert [file.is_symlink() for file in files] == [False, True, False]
    assert [np.load(file)[0] for file in files] == [1, 1, 2]
