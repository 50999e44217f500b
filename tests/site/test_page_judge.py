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
from flashladder.classroom.diagnosis import MISTAKES, computed, diagnose
from flashladder.classroom.judge import all_cases
from flashladder.commands import browser
from flashladder.core.dtypes import OUTPUT, to_bits
from flashladder.core.expression import evaluate, tree
from flashladder.core.problem import GAPS, Problem
from flashladder.ladder import overlap, stages, technique
from flashladder.running import verify
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
        for one in all_cases(stage, exercise.CHECKS):
            kind = one.counted.inputs if one.counted else one.inputs
            key = kind, one.problem.layout, one.problem.dtype
            if key not in cases or one.problem.flops() < cases[key][1].problem.flops():
                cases[key] = stage, one
    assert {kind for kind, *_ in cases} >= {"normal", "random", "negative", "half_negative", "lone_last", "lone_first"}
    tasks = [task(one.problem, kind, page_exercises.seed(one)) for (kind, *_), (_, one) in cases.items()]
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
        assert said["message"] == ("" if comparison.passed else comparison.message)
        assert said["diagnosis"] == diagnosis
        diagnoses.add(diagnosis)
    assert len(diagnoses) > len(MISTAKES) / 4


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
