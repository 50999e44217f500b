"""What the judge says of answers: in words, with the lines of the reader's own text."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from flashladder.classroom import exercise, judge
from flashladder.core import device
from flashladder.core.device import Device, Gpu
from flashladder.core.paths import ROOT
from flashladder.core.problem import Problem
from flashladder.ladder import kernels, stages, technique
from flashladder.ladder.host_streams import HostStreams
from flashladder.ladder.stage import Verdict
from flashladder.running.job import Result, StageError

RESCALE = "rescale[r] = __expf(row_max[r] - new_max);"


@pytest.fixture(autouse=True)
def on_the_simulator(monkeypatch):
    monkeypatch.setenv("FLASHLADDER_DEVICE", "sim")


def attempt(number: int, name: str, text: str):
    return judge.attempt(exercise.get(number, name), text, "line {} of mine".format)


def test_a_stub_is_not_written_and_nothing_is_run(monkeypatch):
    monkeypatch.setattr(judge.build, "build", lambda targets: pytest.fail("built for a stub"))
    found = attempt(2, "rescale", "// later\nrescale[r] = 1.0f;\n")
    assert found == judge.NOT_WRITTEN and not found.passed and found.summary == "not written yet"


@pytest.mark.long
def test_right_in_other_words():
    found = attempt(2, "rescale", f"// e^(old - new)\n{RESCALE.replace('__expf', 'expf')}")
    assert found.passed and found.built and found.correct and not found.hazards and found.summary == "right"
    assert not found.words


@pytest.mark.long
def test_wrong_for_one_head_dim_alone():
    found = attempt(2, "rescale", f"if (d_head == 64) rescale[r] = 0.5f;\nelse {RESCALE}")
    assert found.built and not found.passed and found.summary == "wrong"
    first, cause, also, right = found.words
    assert first.startswith("wrong at fp16 B=2 H=2 N=128 d=64 bnhd: relative Frobenius error")
    assert "first O[0, 0, " in first and cause.startswith("wrong: all heads; all rows; all columns")
    assert also.startswith("wrong also at bf16 B=1 H=1 Nq=64 Nkv=256 d=64 scale=16")
    assert right.startswith("right at bf16 B=1 H=2 Nq=64 Nkv=192 d=128; ")
    assert found.wrong.problem.d_head == 64 and found.wrong.output.shape == found.wrong.problem.shape("O")


@pytest.mark.long
def test_the_stride_of_another_tensor():
    """K's and V's are equal in most of the problems, but not in all."""
    text = stages.get(1).source.read_text()
    found = judge.judge(1, text.replace("params.V.stride_row", "params.K.stride_row"), ["correct", "hazards"])
    assert found.words[0].startswith("wrong at bf16 B=2 H=2 Nq=64 Nkv=128 d=128 gaps: ")


@pytest.mark.long
def test_scores_beyond_what_exp_takes():
    """Without the maximum all is well for the usual scores."""
    stage = stages.get(2)
    text = stage.source.read_text().replace("new_max = row_reduce_max(new_max);", "new_max = 0.0f;")
    found = judge.judge(stage, text.replace("row_max[r] = -INFINITY", "row_max[r] = 0.0f"))
    assert found.words[0].startswith("wrong at bf16 B=1 H=1 Nq=64 Nkv=256 d=64 scale=16: ")
    assert "right at " in found.words[-1]


def test_lines_around_an_answer_are_named_as_the_caller_does():
    found = judge.attempt(exercise.get(2, "rescale"), "rescale[r] = expf(row_max[r] - new_max)",
                          "line {} of mine".format, "mine.cu:{}".format)  # fmt: skip
    assert found.words == ['mine.cu:111: expected a ";"']


def test_a_compiler_s_errors_have_the_reader_s_lines():
    found = attempt(2, "rescale", "float x = 1.0f;\nrescale[r] = expf(row_mx[r] - new_max)\n")
    assert not found.built and not found.passed and found.summary == "does not compile"
    assert found.words == ['line 2 of mine: identifier "row_mx" is undefined', 'kernel.cu:111: expected a ";"']


def test_a_missing_brace_is_looked_for_in_the_answer():
    found = attempt(2, "rescale", f"{{ {RESCALE}")
    assert all(word.startswith(("kernel.cu:", "and ", "no error is in your own lines")) for word in found.words)
    assert found.words[-1].startswith("no error is in your own lines")


@pytest.mark.long
def test_a_hazard_names_lines_of_the_answer_and_of_the_kernel():
    stage = exercise.get(2, "softmax")
    lines = stage.solution.splitlines()
    barrier = next(number for number, line in enumerate(lines) if "__syncwarp" in line)
    del lines[barrier]
    store = next(number for number, line in enumerate(lines, 1) if "from_float<T>" in line)
    found = attempt(2, "softmax", "\n".join(lines))
    assert found.summary in ("right numbers, but with a hazard", "wrong, and with a hazard")
    assert f"line {store} of mine" in found.hazards[0] and "__syncwarp" in found.hazards[0]
    # A line behind the answer has the number that it has in the file.
    own = stage.stage.source.read_text().splitlines()
    read = next(number for number, line in enumerate(own, 1) if "p[r] = to_float2(P_rows" in line)
    assert f"kernel.cu:{read}" in found.hazards[0]


@pytest.mark.parametrize(
    "said, words",
    [
        ("/b/kernel.cu(7): error: no such thing\n  x\n  ^\n\n1 error", ["L7: no such thing"]),
        ("/b/kernel.cu(7): warning #1-D: odd\n/b/kernel.cu(9): error: bad\n", ["L9: bad"]),
        ("/i/ptx.cuh(3): error: bad\n", ["ptx.cuh:3: bad"]),
        ("/b/kernel.cu:12:3: error: from g++\n", ["L12: from g++"]),
        ("/b/kernel.cu(1): fatal error: gone\n", ["L1: gone"]),
        ("".join(f"/b/kernel.cu({n}): error: e\n" for n in range(9)),
         ["L0: e", "L1: e", "L2: e", "and 6 more, which may follow from these"]),
        ("nvcc fatal: out of memory\n", ["nvcc fatal: out of memory"]),
        ("", ["the compiler says nothing"]),
    ],
)  # fmt: skip
def test_compilers_words(said, words):
    assert judge.compiler_words(said, "kernel.cu", "L{}".format) == words


@pytest.mark.long
def test_what_does_not_end_is_told(monkeypatch):
    def never(*arguments, **more):
        raise StageError("stage 02 did not finish within 120 s")

    monkeypatch.setattr(kernels, "run_library", never)
    found = judge.judge(2, stages.get(2).source.read_text())
    assert found.words == ["stopped at bf16 B=1 H=2 Nq=64 Nkv=192 d=128: stage 02 did not finish within 120 s"]


def test_lines_of_a_run_that_stops_are_the_reader_s(monkeypatch):
    def stops(*arguments, **more):
        raise StageError("access out of bounds at kernel.cu:39: far out\nand more")

    monkeypatch.setattr(kernels, "run_library", stops)
    monkeypatch.setattr(judge.kernels, "compile_kernel", lambda file, stage, only: file)
    found = judge.judge(2, stages.get(2).source.read_text(), line="line {} of mine".format)
    assert found.words[0].endswith(": access out of bounds at line 39 of mine: far out")


def test_what_the_toolchain_repairs_is_wrong_and_says_why():
    note = {
        "kind": "async_pending",
        "message": "kernel.cu:9 reads D's register %f1 while it is in flight",
        "note": True,
    }
    words = judge.hazard_words(note, "line {} of mine".format)
    assert words.startswith("async pending: line 9 of mine reads D's register")
    assert "The numbers are right all the same, but the code is wrong: the wait" in words
    plain = judge.hazard_words({"kind": "shared_race", "message": "shared race: kernel.cu:9"}, "L{}".format)
    assert plain == "shared race: L9"


def test_each_note_of_the_simulator_has_words():
    """Its sources call BlockContext::note() with these kinds, and mark races of blocks that write the same value."""
    text = "".join(file.read_text() for file in (ROOT / "common/simulator").rglob("*.cpp"))
    kinds = set(re.findall(r"note\(w, op, HazardKind::(\w+)", text)) | {"global_race"}
    assert kinds == set(judge.REPAIRED)


@pytest.mark.long
def test_a_gpu_gets_a_larger_problem(monkeypatch):
    """Where one is there: a run that is right on the simulator and wrong on it is wrong."""
    gpu = Device("gpu", Gpu("Fake", 90, "580.1", 1))
    simulated, ran = kernels.run_library, []

    def run(name, library, problem, inputs, where, *more, **others):
        ran.append((where.kind, problem))
        result = simulated(name, library, problem, inputs, Device("sim", None), *more, **others)
        return Result({"O": result.bits * 0}, problem, where, {}) if where.kind == "gpu" else result

    monkeypatch.setattr(kernels, "run_library", run)
    monkeypatch.setattr(device, "choose", lambda *arguments: gpu)
    monkeypatch.setattr(kernels, "choose", lambda _, kind: gpu if kind == "gpu" else Device("sim", None))
    monkeypatch.setattr(judge, "larger", lambda stage: Problem(Hq=1, Nq=128, d_head=64))
    monkeypatch.setattr(judge, "all_cases", lambda *arguments: [judge.Case(Problem(Hq=1, Nq=64, d_head=128))])
    found = judge.judge(2, stages.get(2).source.read_text())
    assert [kind for kind, _ in ran] == ["sim", "gpu"]
    assert found.words[0].startswith("wrong at bf16 B=1 H=1 N=128 d=64, on Fake")


def test_of_a_table_of_instances_those_that_run_are_compiled():
    stage = stages.get("shapes")
    used = [one.configuration for one in judge.all_cases(stage, ["correct", "hazards"])]
    whole, table = (stage.folder / "instances.h").read_text(), judge._table(stage, used)
    instances = [line for line in table.splitlines() if line.startswith("INSTANCE(")]
    assert len(instances) == len(set(used)) < whole.count("\nINSTANCE(")
    assert all(any(f'"{one}"' in line for line in instances) for one in used)
    assert table.count("CHOICE(") == whole.count("CHOICE(")
    assert judge._table(stage, [*used, None]) is None  # the kernel chooses
    assert None in [one.configuration for one in judge.all_cases(stage, ["technique"])]
    assert judge._table(stages.get("wgmma"), [None]) is None


@pytest.mark.parametrize("faults", ([], ["wrong"]))
def test_one_instance_is_judged_before_the_others_are_compiled(monkeypatch, faults):
    """The technique is judged for both of them: it may lack in one alone."""
    built, ran, said = [], [], []
    monkeypatch.setattr(judge.build, "build", lambda targets: None)
    monkeypatch.setattr(judge.kernels, "compile_kernel", lambda file, stage, only: built.append(only) or file)
    monkeypatch.setattr(judge.technique, "all_failures", lambda *arguments: [])

    def go_on(runs, library, case) -> bool:
        ran.append(case)
        runs.faults += faults
        return not faults

    monkeypatch.setattr(judge._Runs, "go_on", go_on)
    judge.judge(5, "", say=said.append)
    first = [one for one in ran if one.problem.d_head == 128]
    assert built == ([None] if faults else [None, ""]) and ran[: len(first)] == first and len(said) == len(built)
    if not faults:
        assert {one.problem.d_head for one in ran if one.counted} == {64, 128}
    else:
        assert len(ran) == 1


def test_what_a_trace_shows_is_among_what_is_counted(monkeypatch):
    """Without it an expectation of a trace would not be asked, and so be met."""
    stage, asked = stages.get("overlap"), ["softmax_under_pv"]
    (run,) = technique.runs(stage, asked)

    def left(runs, library, problem, inputs, kind, configuration, more):
        Path(more["WARPSIM_TRACE"]).write_text('{"launches": []}')
        return SimpleNamespace(report={"launches": []})

    monkeypatch.setattr(judge._Runs, "_run", left)
    monkeypatch.setattr(judge._Runs, "_compare", lambda *result: None)
    runs = judge._Runs(stage, str)
    assert runs.go_on(Path(), judge.Case(run.problem, counted=run))
    assert technique.all_failures(stage, runs.counted, asked)


def test_the_edges_are_among_the_cases():
    """A last tile of one column, rows that see no key, one tile and an odd number of many, each kind of scores."""
    found = [one.problem for one in judge.cases(stages.get("wgmma"))]
    Bc = stages.get("wgmma").data["launch"][-1]["Bc"]
    assert any(one.Nkv % Bc == 1 and one.Nkv > Bc for one in found) and any(one.Nkv == 1 for one in found)
    assert any(one.causal and one.Nq > one.Nkv for one in found) and any(one.Nkv == 7 * Bc for one in found)
    persistent = [one.problem for one in judge.cases(stages.get("tile_scheduler"))]
    assert any(one.Nkv == Bc and one.Hq * one.Nq // 128 >= 5 * 3 for one in persistent)  # on three multiprocessors
    assert {"negative", "half_negative", "lone_last", "lone_first"} <= {
        one.inputs for one in judge.cases(stages.get(5))
    }
    assert not any(one.problem.causal for one in judge.cases(stages.get(5)))


@pytest.mark.long
def test_right_without_the_technique():
    """Half of the swizzle: right numbers, and lanes that meet in the same banks."""
    one = exercise.get(5, "tile_offset")
    filled = exercise.fill(5, {one.name: one.solution.replace("row % 8", "row % 4")})
    found = judge.judge(5, filled.source, ("correct", "hazards", "technique:no_ldmatrix_conflicts"), "line {}".format)
    assert found.correct and not found.passed and found.summary == "right, but without the technique"
    assert re.match(r"right, but ldmatrix takes [\d,]+ wavefronts where [\d,]+ would do", found.technique[0])
    own = filled.source.splitlines()
    waste = re.match(r"most wavefronts of shared memory are wasted at line (\d+): [\d,]+ too many", found.technique[1])
    assert "ldmatrix" in own[int(waste[1]) - 1]


def test_a_program_s_streams_have_to_overlap(monkeypatch):
    """Stage 00: right results, all of them from one stream."""
    monkeypatch.setattr(judge.build, "build", lambda targets: None)
    monkeypatch.setattr(HostStreams, "judge", lambda stage, source: Verdict(False, "", ""))
    monkeypatch.setattr(judge.host_streams, "compile_program", lambda source, name: source)
    monkeypatch.setattr(judge.host_streams, "streams_in_flight", lambda program: {"streams": 1, "engines": 3})
    found = judge.judge(0, "int main() {}", ("correct", "technique"))
    assert found.correct and not found.passed
    assert found.technique == ["right, but the variant streams never has work of two streams in flight"]
