"""What the browser's page runs is what the stages' programs run: the same launches, counters and hazards."""

import json
import re
import subprocess

import numpy as np
import page_runs
import pytest
from shares import share

from flashladder.building import build
from flashladder.classroom.cases import Case
from flashladder.commands import browser
from flashladder.core import device
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import stage_library, stage_runner
from flashladder.core.problem import GAPS, Problem
from flashladder.ladder import stages
from flashladder.ladder.run import describe
from flashladder.running.job import KINDS, Options, Result, StageError, run_library
from flashladder.running.verify import FROBENIUS_LIMIT, Comparison, check
from flashladder.site import page_calls, page_exercises, page_kernels
from flashladder.tuning import shapes

QUICK = {stages.get(one).id for one in ("swizzle", "tma")}  # a plain kernel, and one that takes tensor maps
OFFERED = page_kernels.offered()


def marked(offered, quick) -> list:
    cases = [pytest.param(one, id=one.id, marks=() if one.id in quick else pytest.mark.long) for one in offered]
    return share(cases, 3)


@pytest.fixture(scope="module", autouse=True)
def built():
    build.build(["browser_run", *browser.targets()])


def runner_report(stage, problem, configuration, folder) -> dict:
    """What `make stage-NN run` reports of the problem, on the same inputs."""
    words = ["--batch", problem.B, "--heads", problem.Hq, "--heads-kv", problem.Hkv]
    words += ["--seq", problem.Nq, "--seq-kv", problem.Nkv]
    words += ["--dim", problem.d_head, "--dtype", problem.dtype, "--seed", 0]
    words += ["--causal"] * problem.causal + (["--configuration", configuration] if configuration else [])
    report = folder / "runner.json"
    env = device.environment(device.choose(stage.min_compute, "sim"))
    env |= stage.simulated | {"WARPSIM_REPORT": str(report), "WARPSIM_ACCESSES": "1", "WARPSIM_DEVICE": "sm_90"}
    build.build([f"stage_{stage.id}_runner"])
    command = [stage_runner(stage.number), *words]
    done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(report.read_text())


@pytest.mark.parametrize("one", marked([one for one in OFFERED if one.kind == "stage"], QUICK))
def test_a_stage_is_reported_as_its_program_reports_it(one, tmp_path):
    problems = [one.problems()[at] for at in page_runs.some(one)]
    file = browser.kernel_file(one, problems)
    for (problem, configuration), request in zip(problems, file["requests"], strict=True):
        result = page_runs.native(file["ptx"], page_runs.with_settings(request), tmp_path)
        told = f"{one.id}, {problem}: {result['message']}"
        assert result["status"] == "right", told
        wanted = runner_report(one.stage, problem, configuration, tmp_path)
        assert page_runs.comparable(result["report"]) == page_runs.comparable(wanted), told
        assert result["worst"] <= 1 and 0 < result["frobenius"] < FROBENIUS_LIMIT[problem.dtype]


@pytest.mark.long
def test_the_boxes_are_those_of_the_configuration_that_runs(tmp_path):
    """The configurations of shapes have tiles of other heights than stage.toml's launch; its own choice may be any."""
    one = next(one for one in OFFERED if one.kind == "stage" and one.stage.slug == "shapes")
    problem = Problem(Hq=1, Nq=256, d_head=64)
    chosen = describe(one.stage, problem, device="sim")["configuration"]
    problems = [*one.stage.judged_by(), (problem, None)]
    file = browser.kernel_file(one, problems)
    boxes = [re.search(r"^boxes (.*)$", request, re.M)[1] for request in file["requests"]]
    wanted = [shapes.parse(configuration or chosen) for _, configuration in problems]
    assert boxes == [f"{configuration.Br} {configuration.Bc}" for configuration in wanted]
    assert len({configuration.Br for configuration in wanted}) > 1
    tallest = max(range(len(wanted)), key=lambda at: wanted[at].Br)
    result = page_runs.native(file["ptx"], page_runs.with_settings(file["requests"][tallest]), tmp_path)
    assert result["status"] == "right", result["message"]
    report = runner_report(one.stage, *problems[tallest], tmp_path)
    assert page_runs.comparable(result["report"]) == page_runs.comparable(report)


def judged(one, problem, configuration) -> tuple[dict, Comparison | None]:
    """The report of a mistake's own library, and what is to be said of its result, if there is one: as `make stage-NN
    break` runs it, but on the page's inputs. In which warp a mistake shows first may depend on them."""
    variables = one.stage.simulated | {"WARPSIM_HAZARDS": "strict", "WARPSIM_ACCESSES": "1", "WARPSIM_THREADS": "1"}
    inputs, where = page_runs.inputs(problem), device.Device("sim", None)
    options = Options(environment=variables, timeout=300, configuration=configuration)
    try:
        result = run_library(one.id, one.library(), problem, inputs, where, options)
    except StageError as error:
        return error.report, None
    return result.report, check(problem, inputs, result.bits, result.log_sum_exp)


MISTAKES = [one for one in OFFERED if one.kind == "mistake"]


def places(launches) -> list[list[tuple]]:
    """Of each hazard, by launch: what it is, and who does it where."""
    return [[(h["kind"], h["line"], h["block"], h["warp"]) for h in one["hazards"]] for one in launches]


@pytest.mark.long
@pytest.mark.parametrize("one", marked(MISTAKES, {"02-missing_barrier_after_load"}))
def test_a_mistake_is_caught_as_by_break(one, tmp_path):
    """By the same hazards at the same lines, or by the verification, at the first problem that shows it."""
    file = browser.kernel_file(one)
    for (problem, configuration), request in zip(one.problems(), file["requests"], strict=True):
        request = page_runs.with_settings(request, WARPSIM_HAZARDS="strict")
        result = page_runs.native(file["ptx"], request, tmp_path)
        launches = page_runs.comparable(result["report"])
        report, compared = judged(one, problem, configuration)
        wanted = page_runs.comparable(report)
        assert places(launches) == places(wanted)
        if compared is not None:
            assert result["status"] == ("right" if compared else "wrong"), result["message"]
            if result["frobenius"] is not None:  # of finite results
                assert result["frobenius"] == pytest.approx(compared.frobenius, rel=1e-3)
        if result["status"] != "right":
            break
    assert result["status"] != "right", f"{one.id} went unnoticed"
    kinds = [hazard["kind"] for launch in launches for hazard in launch["hazards"]]
    assert (kinds[0] if kinds else "verification") == one.cause.caught_by
    # Said with the line of the source that the page shows.
    for launch in launches:
        for hazard in launch["hazards"]:
            assert 0 < hazard["line"] <= len(file["sources"][hazard["file"]].splitlines())


@pytest.mark.parametrize("which", ("swizzle", "fp8"))
def test_tensors_can_be_given_with_any_strides(which, tmp_path):
    stage = stages.get(which)
    problem = stage.own(Problem(B=2, Hq=2, Nq=128, Nkv=256, d_head=128, layout=GAPS))
    inputs, library = problem.random(3), stage_library(stage.number)
    for name in "QKVO":
        memory = np.full(problem.bytes(name), 0xFF, np.uint8)
        if name in inputs:
            problem.view(name, memory)[...] = inputs[name]
        (tmp_path / name).write_bytes(memory.tobytes())
    for name, scales in problem.scales(inputs).items():
        (tmp_path / name).write_bytes(scales.tobytes())
    ptx = page_kernels.ptx_of(library)
    result = page_runs.native(ptx, page_exercises.request(stage, (library, ptx), Case(problem)), tmp_path)
    assert result["status"] == "ran", result["message"]
    output = problem.view("O", np.fromfile(tmp_path / "O", np.uint8))
    has_sums = (tmp_path / "log_sum_exp").exists()
    sums = np.fromfile(tmp_path / "log_sum_exp", np.float32).reshape(2, 2, 128) if has_sums else None
    comparison = check(problem, inputs, output, sums)
    assert comparison and has_sums == bool(stage.data.get("log_sum_exp")), comparison.message


def launched(report: dict) -> list[list]:
    return [[one[name] for name in ("kernel", "grid", "block", "shared_bytes")] for one in report["launches"]]


# All that a call may have: tensor maps, a workspace; several kernels; a launch that may begin early, bytes to be zero.
CALLS = {"backward_wgmma": r"^workspace \d+ 0$", "short_ends": r"^workspace \d+ 16\n[^$]* early$"}


@pytest.mark.parametrize("which", CALLS)
def test_a_recorded_call_is_played_with_all_its_arguments(which, tmp_path):
    stage = stages.entry(which)
    kind, problem = KINDS[stage.KIND], stage.judged_by()[0][0]
    (request,) = page_calls.requests(stage, stage_library(stage.number), [Case(problem)])
    inputs, ptx = stage.random_inputs(problem, 3), page_kernels.ptx_of(stage_library(stage.number))
    for name, size in re.findall(r"^(?:input|output) (\w+) (\d+)$", request, re.M):
        memory = np.full(int(size), 0xFF, np.uint8)
        if name in kind.inputs:
            problem.view(name, memory)[...] = inputs[name]
        elif name in inputs:
            memory = inputs[name]
        (tmp_path / name).write_bytes(memory.tobytes())
    result = page_runs.native(ptx, page_runs.with_settings(request), tmp_path)
    assert result["status"] == "ran", result["message"]
    outputs = {name: problem.view(name, np.fromfile(tmp_path / name, np.uint8)) for name in kind.outputs}
    for name in kind.sums:
        outputs[name] = np.fromfile(tmp_path / name, np.float32).reshape(problem.B, problem.Hq, problem.Nq)
    own = stage.run(problem, inputs, "sim")
    assert stage.compared(problem, inputs, Result(outputs, problem, own.device, {}))
    assert launched(result["report"]) == launched(own.report)
    assert re.search(r"^map \d+ [KV] 0 5 ", request, re.M) and re.search(CALLS[which], request, re.M)


def test_what_a_call_leaves_in_its_workspace_is_told(tmp_path):
    """A kernel that writes to the second of two bytes that have to be zero."""
    ptx = (
        ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 to) {\n"
        ".reg .b64 %rd<2>;\n.reg .b16 %rs;\nld.param.u64 %rd1, [to];\nmov.b16 %rs, 7;\n"
        "st.global.u8 [%rd1], %rs;\nret;\n}\n"
    )
    (tmp_path / "Q").write_bytes(bytes(16))
    request = "input Q 16\nworkspace 64 2\nlaunch k 1 1 1 1 0\nargument 0000000000000000\npointer 0 workspace 1\n"
    result = page_runs.native(ptx, request, tmp_path)
    assert result["status"] == "failed", result
    assert result["message"] == "1 of 2 bytes of the workspace are not zero after the call"
    missing = page_runs.native(ptx, request.replace("workspace 1\n", "K 0\n"), tmp_path)
    assert (missing["status"], missing["message"]) == ("refused", "the request has no memory K")


@pytest.mark.parametrize(
    "request_text, words",
    (
        ("", "no line `launch`"),
        ("problem 1 1 1 64 64 64 bf16\nlaunch k 1 1 1 32\n", "a word is missing"),
        ("problem 1 1 1 64 64 64 bf17\nlaunch k 1 1 1 32 0\n", "the type is bf16, fp16 or e4m3"),
        ("problem 1 1 1 99999 64 64 bf16\nlaunch k 1 1 1 32 0\n", "99999 is no whole number from 1 to 8192"),
        ("problem 1 3 2 64 64 64 bf16\nlaunch k 1 1 1 32 0\n", "no such heads"),
        ("launch k 1 1 1 32 0 7\n", "a launch is `early` or nothing"),
        ("launch k 1 1 1 32 0 early 7\n", "7 is one word too many"),
        ("argument 00\n", "there is no launch before"),
        ("launch k 1 1 1 32 0\nargument 0g\n", "pairs of hexadecimal digits"),
        ("launch k 1 1 1 32 0\npointer 0 Q 0\n", "there is no argument before"),
        ("launch k 1 1 1 32 0\nargument 00000000\npointer 0 Q 0\n", "the argument is too small"),
        ("launch k 1 1 1 32 0\nargument 0000000000000000\npointer 1 Q 0\n", "1 is no whole number from 0 to 0"),
        ("launch k 1 1 1 -1 0\n", "-1 is no whole number from 1 to 1024"),
        ("colour green\nlaunch k 1 1 1 32 0\n", "nobody knows 'colour'"),
    ),
)
def test_a_wrong_request_is_refused_in_words(request_text, words, tmp_path):
    result = page_runs.native("", request_text, tmp_path)
    assert result["status"] == "refused" and words in result["message"], result
    assert result["report"] is None


@pytest.mark.parametrize(
    "ptx, symbol, words",
    (
        ("this is no PTX", "k", "PTX"),
        (".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry other() { ret; }\n", "k", "kernel k"),
        (".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n", "k", "never written"),
    ),
)
def test_a_kernel_that_does_not_run_is_told_so(ptx, symbol, words, tmp_path):
    request = page_runs.with_settings(f"problem 1 1 1 64 64 64 bf16\nlaunch {symbol} 1 1 1 32 0\n")
    result = page_runs.native(ptx, request, tmp_path)
    assert result["status"] in ("failed", "wrong") and words in result["message"], result


def test_files_of_one_name_are_not_mixed_up():
    ptx = '\t.file\t1 "/a/kernel.cu"\n\t.file\t2 "/b/ptx.cuh"\n'
    text, places = page_kernels.without_folders(ptx)
    assert text == '\t.file\t1 "kernel.cu"\n\t.file\t2 "ptx.cuh"\n'
    assert places == {"kernel.cu": "/a/kernel.cu", "ptx.cuh": "/b/ptx.cuh"}
    with pytest.raises(FlashLadderError, match="cannot tell them apart"):
        page_kernels.without_folders('.file 1 "/a/kernel.cu"\n.file 2 "/b/kernel.cu"\n')


def test_a_folders_letters_are_read_as_nvcc_writes_them():
    text, places = page_kernels.without_folders(r'.file 1 "/\303\274 \347\214\253/kernel.cu"')
    assert text == '.file 1 "kernel.cu"' and places == {"kernel.cu": "/ü 猫/kernel.cu"}


def test_only_what_is_launched_is_shipped():
    """The second kernel has a line with a brace alone within it, as inline assembly has."""
    kernels = [f".visible .entry {name}(\n)\n{{\n{body}ret;\n\n}}\n" for name, body in
               (("first", ""), ("second", "{\n.reg .pred p;\n}\n"), ("third", ""))]  # fmt: skip
    ptx = ".version 9.0\n\n" + "".join(kernels) + '\t.file\t1 "kernel.cu"\n'
    empty = ["\n" * kernel.count("\n") for kernel in kernels]
    without = ptx.replace(kernels[0], empty[0]).replace(kernels[2], empty[2])
    assert page_kernels.of_these(ptx, ["launch second 1 1 1 32 0\n"]) == without
    without = ptx.replace(kernels[1], empty[1])
    assert page_kernels.of_these(ptx, ["x\nlaunch third 1\n", "launch first 1\n"]) == without


def test_every_stage_is_offered_and_each_kernel_once():
    wanted = [stage.id for stage in stages.all_stages()]
    assert [one.id for one in OFFERED if one.kind == "stage"] == wanted
    assert len({one.id for one in OFFERED}) == len(OFFERED)
    named = {name for names in page_kernels.VARIANTS.values() for name in names}
    assert named == {one.cause.name for one in OFFERED if one.kind == "variant"}


def test_where_emcc_is_missing_the_way_to_it_is_said(monkeypatch):
    monkeypatch.setattr(browser, "find_emscripten", lambda: None)
    with pytest.raises(FlashLadderError, match="apt install emscripten"):
        browser.build_modules()
