"""Solutions have all points, stubs none, and whatever is wrong loses some, with words that name the cause."""

import json
import re
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
from graded import SIMULATOR, ZEROS, as_json, assignment_for, ragged, tile, tiny
from shares import share

from flashladder.classroom import device_code, exercise, isolation, marks, report, trials
from flashladder.classroom.assignment import Sizes
from flashladder.classroom.grading import Fact, _mended, _next, facts_of, grade
from flashladder.core.device import Device, Gpu, choose, find_gpu
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, simulator_library
from flashladder.core.problem import GAPS, LAYOUTS, Problem
from flashladder.core.toml import tomllib
from flashladder.ladder import mistakes, stages
from flashladder.ladder.kernels import problems_for
from flashladder.ladder.launches import configurations, instances, launches
from flashladder.ladder.run import describe
from flashladder.running.verify import check

ALL_CHECKS = ("correct", "hazards", "technique")
CONDITIONS = tomllib.loads((ROOT / "tests/classroom/conditions.toml").read_text())
ONE_CONDITION = [(which, name) for name, entry in CONDITIONS.items() for which in entry["stages"]]
GRADED = list(stages.all_stages())


LAUNCHERS = (
    "FlashStatus flash_forward(", "flash::Launch plan(", "flash::Launch plan_for(", "static flash::Instance instance(",
)  # fmt: skip


def in_the_kernel(mistake) -> bool:
    """And not in the launcher, which the grader takes from stage.toml."""
    text = mistake.stage.kernel.read_text()
    for launcher in LAUNCHERS:
        text = text.partition(launcher)[0]
    return all(old in text for old, _ in mistake.edits)


OTHERS = [
    mistake
    for stage in GRADED
    if stage.slug != "shapes"  # whose many instances take ten times as long to compile
    for mistake in [  # of stages of even numbers a hazard, of odd ones a technique
        one
        for one in mistakes.mistakes(stage)
        if one.kind == ("hazard", "technique")[stage.number % 2] and not one.lives and in_the_kernel(one)
    ][:1]
]
QUICK = [("swizzle", "fp16")]  # of the quick tests


def kernel_assignment(number: int):
    """Three classes that between them have every condition of conditions.toml."""
    Br, Bc = tile(number)
    plain = Problem(Hq=2, Nq=Br, Nkv=2 * Bc, d_head=128)
    everything = Problem(B=2, Hq=2, Nq=Br, Nkv=3 * Bc, d_head=128, dtype="fp16", layout="bnhd")
    return assignment_for(
        number,
        "kernel",
        sizes=(
            Sizes("public", True, "normal", (Problem(Hq=2, Nq=2 * Br, Nkv=2 * Bc, d_head=64),)),
            Sizes("hidden", False, "large", (everything,)),
            Sizes("strides", False, "normal", (replace(plain, layout=GAPS),)),
            *ragged(number),
        ),
    )


def judged(number: int, source: str, sandbox) -> tuple[trials.Judgement, dict[str, Fact]]:
    """A whole kernel of a stage: the judgement, and by check what came of it."""
    assignment = kernel_assignment(number)
    judgement = trials.judge(stages.get(number), source, assignment, sandbox, None)
    return judgement, facts_of(assignment, ALL_CHECKS, judgement)


def mutated(number: int, name: str) -> str:
    source, old = stages.get(number).kernel.read_text(), "params.scale"
    assert old in source, f"stage {number} has no {old} any more: bring tests/classroom/conditions.toml up to date"
    return source.replace(old, f"(params.scale * ({CONDITIONS[name]['condition']} ? -1.3f : 1.0f))", 1)


def loses_by_one_condition(which: str, name: str, sandbox) -> None:
    number = stages.get(which).number
    judgement, facts = judged(number, mutated(number, name), sandbox)
    assert judgement.built.ok, judgement.built.words
    failed = [check for check, fact in facts.items() if not fact.passed]
    assert any(check.startswith("correct") for check in failed), f"nothing is lost: {facts}"
    assert judgement.cause == CONDITIONS[name]["cause"]


CAUSAL = {"causal": True, "Nq": 64, "Nkv": 192, "d_head": 64}
# Mistakes that a probe of one group of heads, or of as many rows as keys, does not show.
HIDDEN_CAUSES = {
    "params.Hkv > 1 && params.Hkv < params.Hq": ({"Hq": 4, "Hkv": 2, "Nq": 64}, "wrong only with grouped heads"),
    "params.causal && params.Nkv > params.Nq": (CAUSAL, "wrong only with a causal mask and more keys than rows"),
    "params.causal && params.dtype == FLASH_FP16": (
        CAUSAL | {"dtype": "fp16"},
        "wrong only with fp16 and a causal mask together",
    ),
}


@pytest.mark.parametrize(
    "condition",
    [pytest.param(one, marks=pytest.mark.long) for one in HIDDEN_CAUSES],
)
def test_a_cause_is_not_hidden_by_the_probe(condition, sandbox):
    fields, cause = HIDDEN_CAUSES[condition]
    source = stages.get(13).kernel.read_text()
    source = source.replace("params.scale", f"(params.scale * ({condition} ? -1.3f : 1.0f))", 1)
    sizes = (
        Sizes("public", True, "normal", (Problem(Hq=2, Nq=128, Nkv=64, d_head=64),)),
        Sizes("hidden", False, "normal", (Problem(**fields),)),
    )
    judgement = trials.judge(stages.get(13), source, assignment_for(13, "kernel", sizes=sizes), sandbox, [])
    assert judgement.first_wrong.trial.sizes == "hidden" and judgement.cause == cause


def test_there_are_sixty_mistakes():
    assert len(ONE_CONDITION) + len(OTHERS) >= 60
    assert {one.kind for one in OTHERS} == {"hazard", "technique"}


@pytest.mark.parametrize("kind, speed", (("sim", None), ("gpu", 0.0)))
def test_what_does_not_build_has_no_throughput_where_it_is_measured(kind, speed, monkeypatch):
    """And none is asked for on the simulator."""
    monkeypatch.setattr(device_code, "compile_kernel", lambda *arguments: SimpleNamespace(ok=False))
    sandbox = SimpleNamespace(device=Device(kind, None))
    assert trials.judge(stages.get("swizzle"), "", None, sandbox).speed == speed


def test_lengths_that_no_tile_divides_are_odd():
    """What takes rows by twos or by eights is wrong there, too."""
    asked = []
    assert (
        trials.cause(stages.get("masking"), lambda one: asked.append(one.problem) or SimpleNamespace(right=True)) == ""
    )
    assert any(one.Nq % 2 and one.Nkv % 2 and not one.causal for one in asked)


@pytest.mark.parametrize("which, name", QUICK)
def test_a_mistake_under_one_condition_is_named(which, name, sandbox):
    loses_by_one_condition(which, name, sandbox)


@pytest.mark.long
def test_who_takes_ks_strides_for_vs_loses_the_class_of_unequal_strides(sandbox):
    source = stages.get("vectorized_loads").kernel.read_text()
    changed = source.replace(
        "V + j * Bc * params.V.stride_row, params.V.stride_row", "V + j * Bc * params.K.stride_row, params.K.stride_row"
    )
    assert changed != source
    problems = {layout: Problem(B=2, Hq=2, Nq=64, Nkv=128, d_head=64, layout=layout) for layout in (*LAYOUTS, GAPS)}
    sizes = tuple(Sizes(name, name == "bhnd", "normal", (one,)) for name, one in problems.items())
    stage = stages.get("vectorized_loads")
    judgement = trials.judge(stage, changed, assignment_for(stage.number, "scores", sizes=sizes), sandbox, [])
    assert [judgement.right_in(name) for name in problems] == [True, True, False]
    assert judgement.cause == f"wrong only {trials.UNEQUAL}"
    right = trials.judge(stage, source, assignment_for(stage.number, "scores", sizes=sizes[2:]), sandbox, [])
    assert right.flawless, right.first_wrong


@pytest.mark.long
def test_what_is_written_between_the_rows_of_o_is_told(sandbox):
    stage, problem = stages.get(5), Problem(Hq=1, Nq=128, Nkv=64, d_head=64, layout=GAPS)
    for beyond, told in (("", ""), ("O[d_head] = T(0.0f);", "the kernel wrote between the rows of O")):
        built = device_code.compile_kernel(stage, tiny(ZEROS + beyond), sandbox)
        outcome = device_code.run(stage, built, problem, problem.random(1), sandbox)
        assert outcome.words.startswith(told) and bool(outcome.words) == bool(told)


@pytest.mark.parametrize(
    "which, name",
    share(
        [pytest.param(*one, id="-".join(one), marks=pytest.mark.long) for one in ONE_CONDITION if one not in QUICK], 12
    ),
)
def test_every_mistake_under_one_condition_is_named(which, name, sandbox):
    loses_by_one_condition(which, name, sandbox)


@pytest.mark.parametrize("mistake", share([pytest.param(one, id=one.id, marks=pytest.mark.long) for one in OTHERS], 8))
def test_a_hazard_or_a_lost_technique_loses_points(mistake, sandbox):
    judgement, facts = judged(mistake.stage.number, mistake.text(), sandbox)
    if mistake.kind == "hazard":
        assert judgement.hazards or judgement.first_wrong, f"nothing is lost: {facts}"
        return
    fact = facts["technique"]
    assert not fact.passed and fact.words.startswith("right, but"), facts


@pytest.mark.long
@pytest.mark.parametrize("stage", GRADED[3::8], ids=lambda stage: stage.name)  # with those of several instances
def test_a_whole_solution_passes_everything(stage, sandbox):
    """Else a mistake's loss would mean nothing."""
    _, facts = judged(stage.number, stage.kernel.read_text(), sandbox)
    assert all(fact.passed for fact in facts.values()), facts


def submission(stage, **wanted: str | None) -> str:
    """A file as a student hands it in: None is the solution."""
    text = exercise.starter(stage, list(wanted))
    for name, answer in wanted.items():
        one = exercise.get(stage, name)
        begin, end = text.index(one.opening) + len(one.opening), text.index(one.closing)
        text = f"{text[:begin]}\n{one.solution if answer is None else answer}\n{text[end:]}"
    return text


def graded(tmp_path, text: str, number: int, *names: str, **more):
    kernel, scratch = tmp_path / "kernel.cu", tmp_path / "scratch"
    kernel.write_text(text)
    scratch.mkdir(exist_ok=True)
    return grade(assignment_for(number, *names), kernel, scratch, where=SIMULATOR, **more)


def test_solutions_have_all_points_and_stubs_none(level, tmp_path):
    names = ("piece_address", "barriers")
    got = graded(tmp_path, submission(5, piece_address=None, barriers=None), 5, *names)
    assert got.points == 100 and all(one.points == 50 for one in got.exercises), as_json(got)
    assert got.isolation and json.loads(as_json(got)) == json.loads(json.dumps(asdict(got)))

    stubs = graded(tmp_path, exercise.starter(5, list(names)), 5, *names)
    assert stubs.points == 0 and {one.words for one in stubs.exercises} == {"not written yet"}


@pytest.mark.parametrize(
    "stage", share([pytest.param(stage, id=stage.name, marks=pytest.mark.long) for stage in GRADED], 13)
)
def test_all_solutions_of_a_stage_have_all_points(stage, level, tmp_path):
    """And no stub of it is right already, which would be refused. test_exercises.py judges those of every stage."""
    chosen = []
    for one in sorted(exercise.exercises(stage), key=lambda one: one.last - one.first):
        if all(one.last < other.first or other.last < one.first for other in chosen):
            chosen.append(one)
    names = [one.name for one in sorted(chosen, key=lambda one: one.first)]
    got = graded(tmp_path, submission(stage, **dict.fromkeys(names)), stage.number, *names)
    assert got.points == pytest.approx(100) and all(one.points == one.most for one in got.exercises), as_json(got)


@pytest.mark.long
@pytest.mark.parametrize(
    "answer",
    ["if (params.B == 1) __syncthreads();", "*(volatile int *)0x7fff00000000 = 1;", "while (clock64() >= 0) {}"],
    ids=["race", "address", "endless"],
)
def test_the_same_submission_has_the_same_grade_and_report_twice(level, tmp_path, answer):
    """Byte by byte: no address, time or order of this run is in it."""
    text, reports = submission(5, barriers=answer), []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        got = graded(tmp_path / name, text, 5, "barriers")
        result = {"grades": [asdict(got)], "pictures": {}, "key": "0"}
        one = marks.of_result("ada", "ada", assignment_for(5, "barriers"), result)
        reports.append([as_json(got), report.markdown(one), report.html(one), report.for_instructor(one)])
    assert reports[0] == reports[1]
    assert not re.search(r"0x[0-9a-f]{9,}|/tmp/", "".join(reports[0])), reports[0][1]


def judgement_of(sizes: dict[str, list[dict]]) -> trials.Judgement:
    """A right kernel with these hazards in these classes of sizes."""
    tried = []
    for number, (name, hazards) in enumerate(sizes.items()):
        outcome = device_code.Outcome("", report={"launches": [{"hazards": hazards}]})
        trial = trials.Trial(name, number == 0, Problem(Nq=64, d_head=64), "normal", 1)
        tried.append(trials.Tried(trial, outcome, RIGHT))
    return trials.Judgement(device_code.Built(b"", ""), tuple(tried))


RIGHT = type("Right", (), {"__bool__": lambda self: True, "message": ""})()


def test_part_of_the_hazards_mended_has_part_of_the_points():
    def hazard(line: int) -> dict:
        return {"kind": "shared_race", "file": "kernel.cu", "line": line}

    clean, one, four = [], [hazard(1)], [hazard(line) for line in range(4)]
    assert _mended(judgement_of({"a": four, "b": four}), 4) == 0
    assert _mended(judgement_of({"a": one, "b": one}), 4) == pytest.approx(0.375), "three of four are gone"
    assert _mended(judgement_of({"a": four[:2], "b": four[:2]}), 4) == pytest.approx(0.25)
    assert _mended(judgement_of({"a": one, "b": clean}), 1) == pytest.approx(0.25), "one of two classes is free"
    assert _mended(judgement_of({"a": clean, "b": clean}), 4) == 0, "all of them are given elsewhere"


def test_one_wrong_answer_does_not_cost_the_others_points(level, tmp_path):
    text = submission(5, piece_address="return no_such_thing;", barriers=None)
    got = graded(tmp_path, text, 5, "piece_address", "barriers")
    wrong, right = got.exercises
    assert (wrong.points, right.points) == (0, 50), as_json(got)
    line = text.splitlines().index("return no_such_thing;") + 1
    assert f'line {line}: identifier "no_such_thing" is undefined' in wrong.checks[0].words


@pytest.mark.long
def test_a_hazard_is_told_with_lines_and_leaves_the_other_points(level, tmp_path):
    """Right at B = 1, where the barrier is, and a race at B = 2."""
    text = submission(5, barriers="        if (params.B == 1) __syncthreads();")
    got = graded(tmp_path, text, 5, "barriers")
    assert 0 < got.points < 100, as_json(got)
    assert got.exercises[0].cause == "wrong only with B > 1"
    assert "__syncthreads() is missing" in got.hazards[0]["message"] and "line " in got.hazards[0]["message"]
    assert got.first_wrong == "barriers, hidden (a class that is not shown): wrong numbers"
    assert not (tmp_path / "scratch" / "wrong.npz").exists(), "a picture shows the sizes"
    assert "fp16 B=2 " in got.exercises[0].checks[2].details, "the instructor sees them"
    assert "B=2" not in got.exercises[0].checks[2].words and got.exercises[0].next.startswith(
        "25 more points (correct: hidden): "
    )
    hazards = got.exercises[0].checks[3]
    assert hazards.points == pytest.approx(hazards.most / 4), "free of them in one of two classes"


@pytest.mark.long
def test_a_stub_that_was_only_dressed_up_has_no_points(level, tmp_path):
    got = graded(tmp_path, submission(5, piece_address="return 0 + ptx::shared_address(tile);"), 5, "piece_address")
    assert got.points == 0 and got.exercises[0].written
    assert "(correct: public)" in got.exercises[0].next, "it compiles, so that is not what the next points need"


def test_the_next_points_need_what_is_not_passed():
    """Of an answer that is worth nothing no check has points, passed or not."""
    checks = [
        marks.Check("builds", True, 0.0, 2.0, ""),
        marks.Check("correct: public", False, 0.0, 3.0, "it runs for ever"),
        marks.Check("technique", False, 0.0, 10.0, "counts once all sizes are right"),
    ]
    told = "5 more points (correct: public): be right in this class of sizes: it runs for ever"
    assert _next(checks) == told
    partly = [replace(checks[0], points=2.0), marks.Check("throughput", True, 2.5, 10.0, "half")]
    assert _next(partly) == "7.5 more points (throughput): be faster: half"


@pytest.mark.long
def test_an_exercise_whose_stub_is_right_cannot_be_graded(level, tmp_path, monkeypatch):
    """Without its conflicts in the counters, the stub of tile_offset shows nothing wrong."""
    monkeypatch.setattr("flashladder.classroom.grading.techniques", lambda checks: [])
    monkeypatch.setattr("flashladder.classroom.grading.VERSION", -1)  # what is kept of the stub is another test's
    with pytest.raises(FlashLadderError, match="its stub passes all of its checks"):
        graded(tmp_path, submission(5, tile_offset=None), 5, "tile_offset")


def test_a_damaged_mark_is_refused_in_words(level, tmp_path):
    text = submission(5, barriers=None).replace("// <<< end of barriers", "")
    got = graded(tmp_path, text, 5, "barriers")
    assert got.points == 0 and "<<< end of barriers" in got.refused


@pytest.mark.long
def test_a_mended_kernel_has_its_points_and_the_mistake_none(level, tmp_path):
    mend = exercise.get(5, "mend_1")
    assert graded(tmp_path, mend.starter(), 5, "mend_1").points == 0
    got = graded(tmp_path, mend.stage.kernel.read_text(), 5, "mend_1")
    assert got.points == 100, as_json(got)


@pytest.mark.long
def test_right_without_the_technique_says_so_and_shows_the_worst_access(level, tmp_path):
    text = submission(5, tile_offset="    return row * d_head + (c ^ row % 4) * chunk;")
    got = graded(tmp_path, text, 5, "tile_offset")
    (one,) = got.exercises
    assert one.checks[-1].name == "technique" and not one.checks[-1].passed and one.cause == "", as_json(got)
    assert "right, but ldmatrix takes" in one.checks[-1].words and got.technique
    (worst,) = json.loads((tmp_path / "scratch" / "accesses.json").read_text())
    assert worst["cost"] > worst["ideal"] and "ptx::" in worst["source"] or "tile" in worst["source"]


@pytest.mark.long
def test_every_level_of_isolation_gives_the_same_points(level, tmp_path):
    text = submission(5, barriers="        if (params.B == 1) __syncthreads();")
    levels = [one for one in isolation.LEVELS if not one.missing()]
    grades = [graded(tmp_path, text, 5, "barriers", isolated=one.name) for one in levels]
    assert [one.isolation for one in grades] == [one.says for one in levels]
    assert len({one.points for one in grades}) == 1 and 0 < grades[0].points < 100


@pytest.mark.skipif(find_gpu() is None, reason="no NVIDIA GPU here")
def test_on_a_gpu_a_solution_is_run_there_and_timed(level, tmp_path):
    (tmp_path / "kernel.cu").write_text(submission(5, piece_address=None))
    credit = {"builds": 0.1, "correct": 0.4, "hazards": 0.2, "technique": 0.2, "throughput": 0.1}
    assignment = replace(assignment_for(5, "piece_address"), credit=credit)
    got = grade(assignment, tmp_path / "kernel.cu", tmp_path, where=choose(80, "gpu"))
    (one,) = got.exercises
    assert all(check.passed for check in one.checks[:-1]), as_json(got)
    assert one.checks[-1].name == "throughput" and one.checks[-1].points > 0, as_json(got)


@pytest.fixture
def gpu_of_paste(monkeypatch) -> Device:
    """The simulator in a GPU's place: what is done on a GPU, at a size that it can simulate."""
    monkeypatch.setattr(device_code, "cudart", lambda device: simulator_library())
    monkeypatch.setattr(device_code, "TURNS", 1)
    monkeypatch.setattr(trials, "TIMED", Problem(Hq=1, Nq=128, Nkv=64, d_head=64))
    return Device("gpu", Gpu("no GPU", 90, "0", 0))


@pytest.mark.long
def test_what_is_done_on_a_gpu(level, tmp_path, gpu_of_paste):
    """Run there, too, with guards around the buffers, and timed in turns; the time itself means nothing here."""
    (tmp_path / "kernel.cu").write_text(submission(5, piece_address=None))
    credit = {"builds": 0.1, "correct": 0.4, "hazards": 0.2, "technique": 0.2, "throughput": 0.1}
    assignment = replace(assignment_for(5, "piece_address"), credit=credit)
    got = grade(assignment, tmp_path / "kernel.cu", tmp_path, where=gpu_of_paste)
    *others, throughput = got.exercises[0].checks
    assert all(check.passed for check in others), as_json(got)
    assert throughput.name == "throughput" and (throughput.passed or "of the solution's" in throughput.words)
    assert got.budgets["device"] == "no GPU"

    (tmp_path / "kernel.cu").write_text(submission(5, piece_address="return 1;"))
    *_, throughput = grade(assignment, tmp_path / "kernel.cu", tmp_path, where=gpu_of_paste).exercises[0].checks
    assert throughput.name == "throughput" and not throughput.passed and throughput.points == 0


@pytest.mark.long
def test_what_is_written_beside_a_buffer_shows_on_a_gpu(level, sandbox, gpu_of_paste):
    stage, problem = stages.get(5), Problem(Hq=1, Nq=128, Nkv=64, d_head=64)
    built = device_code.compile_kernel(stage, tiny(ZEROS + "if (row == 0) O[-1] = T(1.0f);"), sandbox)
    outcome = device_code.run(stage, built, problem, problem.random(1), replace(sandbox, device=gpu_of_paste))
    assert outcome.failure == "hazard" and outcome.words == "the kernel wrote outside of O"


@pytest.mark.long
@pytest.mark.parametrize("which", ["tma", "fp8"])
def test_a_gpu_gets_tensor_maps_and_scales(which, sandbox, gpu_of_paste):
    """For buffers behind guards, and for the solution that is timed in turns."""
    stage = stages.get(which)
    problem = stage.own(Problem(B=2, Hq=2, Hkv=1, Nq=200, Nkv=300, d_head=64, layout="bnhd"))
    inputs = problem.random(1)
    built = device_code.compile_kernel(stage, stage.kernel.read_text(), sandbox)
    outcome = device_code.run(stage, built, problem, inputs, replace(sandbox, device=gpu_of_paste), rival=built)
    assert check(problem, inputs, outcome.output, outcome.log_sum_exp), outcome.words
    assert outcome.speed


@pytest.mark.long
def test_a_wait_that_never_ends_is_ended_and_told(level, tmp_path):
    """A deadlock of mbarriers: the stub that waits for itself, dressed up."""
    stub = exercise.get("tma", "load_next").stub
    waits = "ptx::mbarrier_wait(&shared.empty[write.stage], write.phase + 0);"
    got = graded(tmp_path, submission(14, load_next=f"{waits}\n{stub}"), 14, "load_next")
    assert got.points == 0 and "no thread of the block can go on" in got.hazards[0]["message"], as_json(got)


@pytest.mark.parametrize("which", ["autotune", "shapes"])
def test_every_instance_is_launched_as_its_launcher_does_it(which):
    """By stage.toml's expressions and the table; Br, Bc, threads, shared memory and grid of each."""
    stage = stages.get(which)
    built = instances(stage)
    assert len(built) > 8 and len({(one.dtype, one.d_head) for one in built}) == 4
    for one in built:
        problem = Problem(B=2, Hq=4, Nq=5 * one.Br, Nkv=3 * one.Bc, d_head=one.d_head, dtype=one.dtype)
        assert one.configuration in configurations(stage, problem)
        (launch,) = launches(stage, problem, configuration=one.configuration)
        found = describe(stage, problem, "sim", configuration=one.configuration)
        assert found["configuration"] == one.configuration
        assert (found["Br"], found["Bc"], found["threads"]) == (one.Br, one.Bc, launch.threads), one
        assert (found["shared_bytes"], tuple(found["grid"])) == (launch.shared_bytes, launch.grid), one
        assert launch.boxes in (None, (one.Br, one.Bc)), one


def test_an_instance_takes_the_lengths_that_its_tiles_divide():
    whole, ragged_ones = Problem(Nq=128, Nkv=128, d_head=64), Problem(Nq=128, Nkv=64, d_head=64)
    assert len(configurations(stages.get(12), whole)) > len(configurations(stages.get(12), ragged_ones)) > 0
    shapes = stages.get("shapes")
    assert configurations(shapes, whole) == configurations(shapes, ragged_ones)
    assert configurations(stages.get(13), whole) == [None]
    with pytest.raises(FlashLadderError, match=f"{shapes.name} has no instance '.BF16, 64, 1, 1, 1.: no'"):
        launches(shapes, whole, configuration="(BF16, 64, 1, 1, 1): no")


@pytest.mark.long
def test_what_is_wrong_in_some_instances_alone_is_told_so(sandbox):
    """Buffers of Q have 128 rows: right with one consumer and with two, and with three they lie over one another."""
    planted = next(one for one in mistakes.mistakes(stages.get("shapes")) if one.name == "q_of_128_rows")
    sizes = (Sizes("public", True, "normal", (Problem(Hq=4, Nq=400, Nkv=256, d_head=64),)),)
    judgement = trials.judge(
        planted.stage, planted.text(), assignment_for(planted.stage.number, "whole", sizes=sizes), sandbox, []
    )
    assert "(BF16, 64, 192, 128, 16): kv_buffers_" in str(judgement.first_wrong.trial)
    assert judgement.cause.startswith("wrong only as (BF16, 64, 192, 128, 16): "), judgement.cause
    assert any(one.right for one in judgement.tried)


def test_what_takes_tensor_maps_says_how_large_their_boxes_are():
    for stage in stages.all_stages():
        takes = "TensorMaps maps" in stage.kernel.read_text()
        assert takes is bool(launches(stage, problems_for(stage)[0])[-1].boxes), stage.name
