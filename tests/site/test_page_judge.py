"""The page's judge of exercises says what the judge in Python says: it draws the same inputs, finds the same numbers
and the same mistake in a wrong output, and evaluates the same expressions."""

import base64
import json
import random
import re
import shutil
from dataclasses import asdict

import numpy as np
import page_runs
import pytest

from flashladder.building import build
from flashladder.classroom import exercise
from flashladder.classroom.cases import SEED, Case
from flashladder.classroom.diagnosis import MISTAKES, computed, diagnose
from flashladder.classroom.judge import all_cases
from flashladder.commands import browser
from flashladder.core.dtypes import OUTPUT, to_bits
from flashladder.core.expression import evaluate, tree
from flashladder.core.problem import GAPS, Problem
from flashladder.ladder import overlap, stages, technique
from flashladder.ladder.kernels import Kernel
from flashladder.running import decoding, gradients, verify
from flashladder.running.job import KINDS, Result
from flashladder.site import page_exercises, page_kernels, run_page

TILE = {"Br": 32, "Bc": 64}
PROBLEMS = (
    Problem(B=2, Hq=4, Hkv=2, Nq=32, Nkv=100, d_head=64, causal=True),
    Problem(B=1, Hq=2, Nq=48, Nkv=192, d_head=128, dtype="fp16", layout="bnhd"),
    Problem(B=1, Hq=4, Hkv=2, Nq=32, Nkv=100, d_head=64, layout=GAPS),
    Problem(B=1, Hq=1, Nq=32, Nkv=128, d_head=64, scale=-0.25),
    Problem(B=2, Hq=2, Hkv=1, Nq=32, Nkv=100, d_head=128, dtype="e4m3", causal=True),
)


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "scripts"
    shutil.copytree(run_page.FILES, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


def task(problem: Problem, kind: str, seed: int, outputs=()) -> dict:
    """outputs: (B, Hq, Nq, d) of bits."""
    return {
        "problem": asdict(problem),
        "kind": kind,
        "generator": page_exercises.generator(seed),
        "bounds": page_exercises.bounds(problem.dtype),
        "tile": TILE,
        "outputs": [base64.b64encode(np.ascontiguousarray(one, "<u2").tobytes()).decode() for one in outputs],
    }


def of_page(scripts, tasks: list[dict]) -> list[dict]:
    script = page_runs.HERE / "attention_in_node.mjs"
    return json.loads(page_runs.node("--stack-size=4000", script, scripts, given=json.dumps(tasks)))


def numbers(text: str, like: np.ndarray) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), like.dtype.newbyteorder("<")).reshape(like.shape)


def test_the_page_draws_the_inputs_of_the_judge(scripts):
    """Those of all kinds, in each layout, bit by bit."""
    cases = {}
    for stage in page_exercises.offered():
        for one in all_cases(stage, exercise.CHECKS) if isinstance(stage, Kernel) else ():
            kind = one.counted.inputs if one.counted else one.inputs
            key = kind, one.problem.layout, one.problem.dtype
            if key not in cases or one.problem.flops() < cases[key][1].problem.flops():
                cases[key] = stage, one
    assert {kind for kind, *_ in cases} >= {"normal", "random", "negative", "half_negative", "lone_last", "lone_first"}
    tasks = [task(of[1].problem, kind, page_exercises.seed(*of)) for (kind, *_), of in cases.items()]
    for (stage, one), found in zip(cases.values(), of_page(scripts, tasks), strict=True):
        for name, bits in one.arrays(stage).items():
            wanted = one.problem.to_bhnd(bits) if name in "QKV" else bits
            assert (numbers(found["inputs"][name], wanted) == wanted).all(), f"{one}: {name}"


def outputs(problem: Problem, inputs: dict) -> list[np.ndarray]:
    """A right one, those of half of the common mistakes, and some with numbers in the wrong place or none."""
    right = verify.reference(problem, inputs)[0]
    some = MISTAKES[PROBLEMS.index(problem) % 2 :: 2]
    found = [right, *(computed(one, problem, inputs, TILE["Bc"])[0] for one in some)]
    found += [np.roll(right, 1, axis=axis) for axis in (1, 2, 3)]
    rows = np.arange(problem.Nq)
    found += [right[:, :, rows ^ 8], right[..., np.arange(problem.d_head) ^ 8], np.zeros_like(right)]
    missing = right.copy()
    missing[:, :, 3, 5:9] = np.nan
    holes = right.copy()
    holes[:, 0, ::4, 1] += 3
    return [*found, missing, holes]


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_the_page_says_of_outputs_what_the_judge_says(problem, scripts):
    inputs = problem.random(2)
    with np.errstate(all="ignore"):
        wanted = [to_bits(one.astype(np.float32), OUTPUT[problem.dtype]) for one in outputs(problem, inputs)]
    (found,) = of_page(scripts, [task(problem, "random", 2, wanted)])
    expected = verify.reference(problem, inputs)
    diagnoses = set()
    for bits, said in zip(wanted, found["said"], strict=True):
        own = np.ascontiguousarray(problem.to_bhnd(bits)) if problem.layout == "bnhd" else bits
        with np.errstate(all="ignore"):
            comparison = verify.compare(bits, *expected, problem.dtype)
            diagnosis = diagnose(problem, inputs, own, TILE["Br"], TILE["Bc"])
        assert said["passed"] == comparison.passed
        assert said["message"] == comparison.message
        assert said["diagnosis"] == diagnosis
        diagnoses.add(diagnosis)
    assert len(diagnoses) > len(MISTAKES) / 4


PARTS = [one for one in page_exercises.offered() if not isinstance(one, Kernel)]
MODULES = {"forward": "forward", "decode": "decode", "backward": "gradients"}  # by kind


def part_task(stage, one: Case, outputs: list[dict] = ()) -> dict:
    """outputs: arrays by name, as they come from a run, (B, heads, rows, d)."""
    coded = [
        {name: base64.b64encode(np.ascontiguousarray(array).tobytes()).decode() for name, array in some.items()}
        for some in outputs
    ]
    generators = {str(seed): page_exercises.generator(seed) for seed in (0, SEED)}
    generators["dO"] = page_exercises.generator((SEED, 1))
    bounds = {one.problem.dtype: page_exercises.bounds(one.problem.dtype)}
    facts = {"generators": generators, "bounds": bounds, "tile": TILE}
    return {"kind": MODULES[stage.KIND], "one": page_exercises.case(stage, one), "stage": facts, "outputs": coded}


def parts_of_page(scripts, tasks: list[dict]) -> list[dict]:
    script = page_runs.HERE / "parts_in_node.mjs"
    return json.loads(page_runs.node("--stack-size=4000", script, scripts, given=json.dumps(tasks)))


def in_memory(problem: Problem, name: str, array: np.ndarray) -> np.ndarray:
    """A tensor's bits as the worker uploads them."""
    memory = np.full(problem.bytes(name), 0xFF, np.uint8)
    problem.view(name, memory)[...] = array
    return memory.view(np.uint16)


def test_the_page_draws_the_inputs_of_other_parts(scripts):
    """Of each small problem, bit by bit; but for O of gradients, which two libraries' sums round."""
    every = [(stage, one) for stage in PARTS for one in all_cases(stage, exercise.CHECKS)]
    cases = {(stage.KIND, one.problem): (stage, one) for stage, one in every if one.problem.flops() < 5e7}
    assert any(one.problem.layout == "gaps" for _, one in cases.values())
    assert any(getattr(one.problem, "page_size", 0) for _, one in cases.values())
    found = parts_of_page(scripts, [part_task(*pair) for pair in cases.values()])
    for (stage, one), page in zip(cases.values(), found, strict=True):
        inputs = one.arrays(stage)
        assert page["memory"].keys() == inputs.keys()
        for name, wanted in inputs.items():
            if name in KINDS[stage.KIND].inputs:
                wanted = in_memory(one.problem, name, wanted)
            got = numbers(page["memory"][name], wanted)
            if name == "O":
                assert (got != wanted).mean() < 1e-3
            elif name == "log_sum_exp":
                np.testing.assert_allclose(got, wanted, rtol=1e-6)
            else:
                assert (got == wanted).all(), f"{one}: {name}"


def part_outputs(stage, one: Case) -> list[dict]:
    """Right ones, and such with numbers that are missing or wrong in one place, everywhere, or in a sum."""
    problem, inputs = one.problem, one.arrays(stage)
    if stage.KIND == "backward":
        arrays = {name: wanted.value for name, wanted in gradients.expected(problem, inputs).items()}
        sums = {}
    elif stage.KIND == "decode":
        (out, *_), (values, _) = decoding.expected(problem, inputs)
        arrays, sums = {"O": out}, {"log_sum_exp": values.astype(np.float32)}
    else:
        wanted = verify.Wanted(problem, inputs)
        arrays, sums = {"O": wanted.output[0]}, {"log_sum_exp": wanted.sums[0].astype(np.float32)}
    dtype, factor, more = OUTPUT[problem.dtype], 1.02, np.float32(0.01)
    if problem.dtype == "e4m3":
        factor, more = 1.2, np.float32(0.3)
    right = {name: to_bits(array.astype(np.float32), dtype) for name, array in arrays.items()} | sums
    last, first = list(arrays)[-1], list(arrays)[0]
    missing, other = right[first].copy(), to_bits(factor * arrays[last], dtype)
    missing[-1, -1, -1, 5:9] = 0xFFFF
    found = [right, right | {first: missing}, right | {last: other}, right | {last: np.zeros_like(right[last])}]
    found.append(right | {last: np.roll(right[last], 1, axis=3)})
    return [*found, right | {"log_sum_exp": sums["log_sum_exp"] + more}] if sums else found


@pytest.mark.parametrize("slug", ["backward_naive", "paged_kv", "masking", "fp8"])
def test_the_page_says_of_a_run_what_the_judge_says(slug, scripts):
    stage = stages.entry(slug)
    some = [one for one in all_cases(stage, exercise.CHECKS) if one.problem.flops() < 2e7]
    every = [(one, part_outputs(stage, one)) for one in some]
    found = parts_of_page(scripts, [part_task(stage, *pair) for pair in every])
    wrong = 0
    for (one, outputs), page in zip(every, found, strict=True):
        inputs = one.arrays(stage)
        for bits, said in zip(outputs, page["said"], strict=True):
            names = KINDS[stage.KIND].outputs
            own = {name: one.problem.to_bhnd(array) if name in names else array for name, array in bits.items()}
            result = Result(own, one.problem, None, {})
            with np.errstate(all="ignore"):
                comparison = stage.compared(one.problem, inputs, result)
            assert said["passed"] == comparison.passed, f"{one}: {comparison.message}"
            assert comparison.passed or said["message"] == comparison.message
            wrong += not comparison.passed
    assert wrong > 2 * len(some)


def every_expression() -> list[str]:
    found = [one for stage in stages.all_parts() for one in technique.expectations(stage)]
    return sorted({text for one in found for text in (one.left, one.right, one.when) if text})


def test_the_page_evaluates_expressions_as_python_does(scripts):
    dice, calls, wanted = random.Random(7), [], []
    for text in [*every_expression(), "-a % 3 + b / -4", "not a or b <= 2 and a != b", "max(a, b, 3) - min(a, 1)"]:
        names = {name: dice.randrange(64, 300) for name in re.findall(r"[A-Za-z_][\w.]*", text)}
        names |= {"Br": 128, "Bc": 64, "threads": 128}  # what is divided by is not 0
        calls.append(["technique.js", "evaluate", tree(text), names])
        wanted.append(int(evaluate(text, names)))
    found = json.loads(page_runs.node(page_runs.HERE / "pages_in_node.mjs", scripts, given=json.dumps(calls)))
    assert found == wanted


def test_the_page_counts_in_a_trace_what_python_counts(scripts, tmp_path):
    """Of a kernel that computes under its products, and waits for turns."""
    one = next(one for one in page_kernels.offered() if one.kind == "stage" and one.stage.slug == "overlap")
    build.build(["browser_run", f"stage_{one.id}", "warpsim_cudart", "warpsim-inspect"])
    file = browser.kernel_file(one, one.problems()[:1])
    traced = page_runs.with_settings(file["requests"][0], WARPSIM_TRACE_BLOCKS="1")
    trace = page_runs.native(file["ptx"], traced, tmp_path)["trace"]
    call = json.dumps([["overlap.js", "overlap", trace]])
    (found,) = json.loads(page_runs.node(page_runs.HERE / "pages_in_node.mjs", scripts, given=call))
    assert found == overlap.of_trace(trace) and all(found.values())


def test_the_page_counts_what_stands_between_a_product_and_its_group(scripts):
    """Three of four exponentials: asked for, committed, all but one group waited for; not after the last wait."""
    committed, waited = "wgmma.commit_group", "wgmma.wait_group"
    texts = ("wgmma.mma_async", "ex2", committed, "ex2", waited, "ex2", waited, "ex2")
    kinds = {"ex2": "special_function"}
    ops = [[at, kinds.get(text, ""), text, 0, 0, int(at == 4)] for at, text in enumerate(texts)]
    traced = [{"pieces": [[1, 7]], "warps": [[["warpgroup", 0], ["run", 0], ["sync", 0]]]}]
    trace = {"launches": [{"ops": ops, "traced": traced}]}
    call = json.dumps([["overlap.js", "overlap", trace]])
    (found,) = json.loads(page_runs.node(page_runs.HERE / "pages_in_node.mjs", scripts, given=call))
    assert found == overlap.of_trace(trace) == {"special_during_wgmma": 3, "barrier_waits": 1}


def test_each_case_has_inputs_that_the_page_can_draw():
    known = re.search(r"KINDS = \{(.*?)^\};", (run_page.FILES / "attention.js").read_text(), re.S | re.M)[1]
    for stage in page_exercises.offered():
        for one in all_cases(stage, exercise.CHECKS):
            kind = one.counted.inputs if one.counted else one.inputs
            assert kind == "random" or f"  {kind}: " in known, f"{one} of stage {stage.id}"


def test_figures_are_rounded_as_in_python(scripts):
    dice = random.Random(3)
    values = [0, 0.5, 2.5, -2.828125, 1e-5, 0.00012345678, 999999.5, 1234565, 1e22, 2**-30, 0.125, 0.0625]
    values += [dice.choice((-1, 1)) * dice.randrange(1, 1 << 11) * 2.0 ** dice.randrange(-20, 20) for _ in range(300)]
    calls = [["attention.js", "general", value, digits] for value in values for digits in (3, 6)]
    found = json.loads(page_runs.node(page_runs.HERE / "pages_in_node.mjs", scripts, given=json.dumps(calls)))
    assert found == [f"{value:.{digits}g}" for _, _, value, digits in calls]
