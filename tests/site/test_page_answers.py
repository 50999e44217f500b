"""The page judges answers to exercises as Python does: the shipped kernel, those with a planted mistake, wrong answers
and right ones, of some of the stages whose exercises the page has, drawn anew after each change of a kernel
(FLASHLADDER_WHOLE=1: of all). The page's scripts, compiler and simulator run in node."""

import concurrent.futures
import gzip
import json
import random
import re
import shutil
from pathlib import Path

import answers
import page_runs
import pytest
from shares import WHOLE, kernels, share

from flashladder.classroom import exercise, judge, remembered
from flashladder.classroom.exercise import Mend
from flashladder.ladder import stages
from flashladder.site import page_compiler, page_exercises, run_page

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("browser")]

# Wrong and right answers of each stage, others after each change of a kernel; FLASHLADDER_WHOLE=1: all.
SOME_WRONG, SOME_RIGHT = 2, 1
# Two compilers leave a value in another register, or read in another order: which thread meets a hazard first, how many
# of its kind are told, and what comes of a race are theirs.
HAZARDS = {"hazards", "correct"}
# Of what is used before it has a value clang keeps nothing that the simulator could object to: the result is wrong.
WITHOUT_HAZARD = {"wgmma-scores-adds_to_what_is_there"}


# From here on instructions are counted, and the two compilers write others.
INSTRUCTIONS = stages.get("fast_softmax").number


@pytest.fixture(scope="module")
def scripts(shipped, tmp_path_factory):
    """The page's files, as modules, with what is packed unpacked."""
    clang = page_compiler.find_clang()
    if not clang:
        pytest.skip(f"no clang for WebAssembly: pip install {page_compiler.PACKAGE}")
    folder = tmp_path_factory.mktemp("page") / "scripts"
    shutil.copytree(run_page.FILES, folder)
    shutil.copytree(shipped, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.wasm.gz", "kernels"))
    shutil.copy(clang / "Compiler.wasm", folder / "clang")
    for file in (folder / "exercises").glob("*.json.gz"):
        file.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


def tried(stage) -> list[tuple[str, str, str]]:
    """(key, exercise, the reader's whole file): the shipped kernel, those to mend, wrong and right answers."""
    every, dice = answers.read(stage.slug), random.Random(kernels() + stage.slug)
    wrong, right = ([one for one in every if bool(one.because) == is_wrong] for is_wrong in (True, False))
    drawn = every if WHOLE else dice.sample(wrong, SOME_WRONG) + dice.sample(right, SOME_RIGHT)
    found = [("shipped", "", stage.source.read_text())]
    found += [(one.name, "", one.starter()) for one in exercise.mends(stage)]
    return found + [(one.id, one.exercise.name, file_of(one)) for one in drawn]


def file_of(answer) -> str:
    """What `start` hands out, with the answer between its marks."""
    one = answer.exercise
    if isinstance(one, Mend):
        return answer.text
    lines = one.starter([other.name for other in exercise.exercises(one.stage) if other.name != one.name]).splitlines()
    first, last = (next(at for at, line in enumerate(lines) if mark in line) for mark in (">>> write", "<<< end"))
    return "\n".join([*lines[: first + 1], *answer.text.splitlines(), *lines[last:]])


def by_python(stage, name: str, text: str) -> judge.Judgement:
    """What the judge says, or has said before: kept by the hash of all that it follows from."""
    one = exercise.get(stage, name) if name else exercise.mends(stage)[0]  # a whole source is judged as one mended
    is_whole = isinstance(one, Mend)
    answer = text if is_whole else exercise.answers(stage, text)[name]
    key = remembered.key(one, answer, "line {}".format)
    found = remembered.recall(key)
    if not found:
        found = judge.judge(stage, answer, one.checks) if is_whole else judge.attempt(one, answer)
        remembered.keep(key, found)
    return found


def without_places(words: list[str]) -> list[str]:
    return [re.sub(r"\bline \d+|kernel\.cu:\d+", "LINE", re.sub(r"0x[0-9a-f]+", "0x", text)) for text in words]


def without_counts(words: list[str]) -> list[str]:
    """Sentences on the technique; what is wasted where is the compilers' matter, too."""
    kept = [text for text in words if not text.startswith("most ")]
    return [re.sub(r"\d[\d,]*", "N", text) for text in kept]


def said_by_the_page(scripts, folder: Path, asked: list[dict]) -> list[dict]:
    (folder / "answers").write_text(json.dumps(asked))
    script = page_runs.HERE / "judge_in_node.mjs"
    said = page_runs.node("--stack-size=8000", script, scripts, folder / "answers", limit=1800)
    return [json.loads(line) for line in said.splitlines()]


def test_the_page_compiles_every_stage(scripts, tmp_path):
    """All instances that its exercises launch: the headers for clang declare what the stages' own name."""
    every = page_exercises.offered()
    asked = [{"key": one.id, "stage": one.id, "exercise": None, "text": one.source.read_text()} for one in every]
    refused = {one["key"]: one["words"] for one in said_by_the_page(scripts, tmp_path, asked) if one["words"]}
    assert len(every) > 30 and not refused


STAGES = [pytest.param(one, id=one.id, marks=pytest.mark.long) for one in page_exercises.offered()]


@pytest.mark.parametrize("stage", share(STAGES, 4))
def test_the_page_and_python_say_the_same(stage, scripts, tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHLADDER_DEVICE", "sim")
    every = tried(stage)
    asked = [{"key": key, "stage": stage.id, "exercise": name, "text": text} for key, name, text in every]
    with concurrent.futures.ThreadPoolExecutor() as pool:  # the page needs one core
        by_page = pool.submit(said_by_the_page, scripts, tmp_path, asked)
        judged = [by_python(stage, name, text) for _, name, text in every]
    for (key, _, _), page, python in zip(every, by_page.result(), judged, strict=True):
        told = f"{key}:\nPython: {python.findings}\nthe page: {page['findings']}"
        assert not page["isStub"] and page["remarks"] == []
        if key in WITHOUT_HAZARD:
            assert (page["summary"], python.summary) == ("wrong", "wrong, and with a hazard"), told
            continue
        assert page["summary"] == python.summary, told
        assert [(one["check"], one["passed"]) for one in page["findings"]] == [
            (one.check, one.passed) for one in python.findings
        ], told
        for ours, theirs in zip(page["findings"], python.findings, strict=True):
            if theirs.check == "builds" or (theirs.check in HAZARDS and python.hazards):
                kinds = [{text.partition(":")[0] for text in words} for words in (ours["words"], theirs.words)]
                assert theirs.passed or theirs.check != "hazards" or kinds[0] & kinds[1], told
            elif theirs.check == "technique" and stage.number >= INSTRUCTIONS:
                assert without_counts(ours["words"]) == without_counts(theirs.words), told
            elif theirs.check != "correct" or theirs.passed:
                assert without_places(ours["words"]) == without_places(theirs.words), told
            else:  # what lies behind a tensor's rows is another process's, and may be read
                assert ours["words"][0].partition(":")[0] == theirs.words[0].partition(":")[0], told
