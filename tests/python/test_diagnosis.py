"""A wrong output is told the mistake that it fits, a right one none. Outputs are computed, or a broken kernel's."""

import functools
from dataclasses import replace

import numpy as np
import pytest

from flashladder.classroom import diagnosis, exercise, judge
from flashladder.classroom.diagnosis import MISTAKES, Mistake, computed, diagnose, where
from flashladder.core.dtypes import to_bits
from flashladder.core.problem import Problem
from flashladder.ladder import mistakes
from flashladder.running import verify

Bc = 64
RAGGED = Problem(B=2, Hq=4, Hkv=2, Nq=96, Nkv=150, d_head=64, causal=True)
WHOLE = Problem(B=1, Hq=2, Nq=64, Nkv=192, d_head=128, dtype="fp16", layout="bnhd")
PLAIN_RAGGED = Problem(B=1, Hq=4, Hkv=2, Nq=64, Nkv=150, d_head=64)
NEGATIVE = Problem(B=1, Hq=1, Nq=32, Nkv=128, d_head=64, scale=-0.25)
PROBLEMS = (RAGGED, WHOLE, PLAIN_RAGGED, NEGATIVE)


def bits(problem: Problem, out: np.ndarray) -> np.ndarray:
    """(B, Hq, Nq, d) as an output in the problem's layout."""
    return to_bits(np.ascontiguousarray(problem.to_bhnd(out)).astype(np.float32), problem.dtype)


def said(problem: Problem, inputs: dict, out: np.ndarray) -> str:
    return diagnose(problem, inputs, bits(problem, out), 32, Bc)


def right(problem: Problem, inputs: dict) -> np.ndarray:
    return verify.reference(problem, inputs)[0]


@functools.cache
def kept(mistake: Mistake, problem: Problem):
    """What the mistake computes, for a test that compares each with each."""
    return computed(mistake, problem, problem.random(2), Bc)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.words[:50])
def test_each_mistake_is_told(mistake, monkeypatch):
    monkeypatch.setattr(diagnosis, "computed", lambda one, problem, inputs, columns: kept(one, problem))
    told = 0
    for problem in PROBLEMS:
        inputs = problem.random(2)
        out = kept(mistake, problem)[0]
        words = said(problem, inputs, out)
        if words.endswith(mistake.words):
            told += 1
        elif words:  # another mistake comes to the same
            same = [one for one in MISTAKES if words.endswith(one.words)]
            assert same, f"{problem}: {mistake.words}: told {words}"
            again = said(problem, inputs, kept(same[0], problem)[0])
            assert again == words, f"{problem}: {mistake.words}: told {words}"
    assert told, f"{mistake.words}: told in none of the problems"


@pytest.mark.parametrize("one", [one for one in MISTAKES if "second tile" in one.words], ids=lambda one: one.words[:9])
def test_of_two_tiles_the_second_is_all_that_rescales(one):
    problem = replace(WHOLE, Nkv=2 * Bc)
    words = f"{one.words.partition(' is')[0]} is not rescaled when a row's maximum grows"
    (never,) = [other for other in MISTAKES if other.words == words and other.backwards == one.backwards]
    assert (kept(one, problem)[0] == kept(never, problem)[0]).all()
    assert not np.allclose(kept(one, problem)[0], kept(Mistake(""), problem)[0])


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("share", (0.0, 0.45, -0.45))
def test_a_right_output_has_no_diagnosis(problem, share):
    inputs = problem.random(3)
    out, magnitude, fine = verify.reference(problem, inputs)
    signs = np.random.default_rng(1).choice((-1, 1), out.shape)
    assert said(problem, inputs, out + share * signs * verify.element_bound(magnitude, fine, problem.dtype)) == ""


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_what_fits_no_mistake_is_shown_where_it_is(problem):
    inputs = problem.random(4)
    out = right(problem, inputs)
    out[-1, -1, 17, 5] += 1
    words = said(problem, inputs, out)
    assert words.startswith("wrong: ") and "; row 17" in words and words.endswith("; column 5"), words


def test_without_a_mistake_it_is_the_reference():
    for problem in PROBLEMS:
        inputs = problem.random(5)
        assert np.allclose(computed(Mistake(""), problem, inputs, Bc)[0], right(problem, inputs), rtol=1e-9, atol=1e-12)


def moved(problem: Problem, change) -> str:
    inputs = problem.random(6)
    return said(problem, inputs, change(right(problem, inputs)))


def test_right_numbers_in_wrong_places():
    swap = np.arange(64) ^ 8
    assert "rows 8 to 15 of each 16 rows are exchanged" in moved(WHOLE, lambda out: out[:, :, swap])
    assert "row 0 of O holds the numbers of row 1" in moved(WHOLE, lambda out: np.roll(out, -1, axis=2))
    assert "O of batch 0, head 0 holds what belongs to batch 0, head 1" in moved(WHOLE, lambda out: out[:, ::-1])
    turned = Problem(Nq=64, Nkv=128, d_head=64)
    columns = np.arange(64)
    places = ((columns // 8)[None, :] ^ (np.arange(64) % 8)[:, None]) * 8 + columns % 8
    words = moved(turned, lambda out: np.take_along_axis(out, np.broadcast_to(places, out.shape), axis=3))
    assert "swizzled on one side alone" in words and "chunk 0 of row 1 of O holds the numbers of chunk 1" in words
    words = moved(turned, lambda out: np.roll(out, 8, axis=3))
    assert "chunks of a row are in each other's place: chunk 0 of row 0 of O holds the numbers of chunk 7" in words


@pytest.mark.parametrize(
    "place, words",
    [
        (np.s_[:], "wrong: all heads; all rows; all columns"),
        (np.s_[0, 1], "wrong: batch and head (0, 1); all rows; all columns"),
        (np.s_[:, :, 64:], "wrong: all heads; rows 64 to 95 (query tile 2); all columns"),
        (np.s_[:, :, 95], "row 95 (query tile 2)"),
        (np.s_[:, :, :, 32:], "columns 32 to 63"),
        (np.s_[:, :, 1::2], "rows whose number modulo 2 is 1"),
        (np.s_[:, :, [3, 4, 9, 20, 30]], "rows 3 to 4, 9, 20 and 1 more (query tile 0)"),
    ],
)
def test_where_it_is_wrong(place, words):
    wrong = np.zeros((2, 4, 96, 64), bool)
    wrong[place] = True
    assert words in where(wrong, np.zeros_like(wrong), 32)


def test_rows_of_fragments_and_what_was_never_written():
    wrong = np.zeros((1, 1, 128, 64), bool)
    wrong[:, :, np.arange(128) % 16 >= 8] = True
    assert "rows whose number modulo 16 is 8 to 15" in where(wrong, wrong, 64)
    assert where(wrong, wrong, 64).endswith("; all of it not finite, or never written")
    problem = Problem(Hq=1, Nq=64, Nkv=64)
    unwritten = np.full(problem.shape("O"), verify.POISON, np.uint16)
    assert "never written" in diagnose(problem, problem.random(1), unwritten)


@pytest.fixture
def on_the_simulator(monkeypatch):
    monkeypatch.setenv("FLASHLADDER_DEVICE", "sim")


@pytest.mark.long
def test_a_real_kernel_is_told_its_mistake(on_the_simulator):
    one = exercise.get(2, "rescale")
    found = judge.attempt(one, "rescale[r] = expf(row_max[r] - new_max); if (rescale[r] > 0.0f) rescale[r] = 1.0f;")
    assert "neither O nor row_sum is rescaled when a row's maximum grows" in found.words[1], found.words


@pytest.mark.long
@pytest.mark.parametrize("number, name, words", [(2, "no_scale", "the scores are not scaled")])
def test_planted_mistakes_are_told_by_their_outputs(on_the_simulator, number, name, words):
    found = judge.judge(number, mistakes.get(number, name).text())
    assert any(words in one for one in found.words), found.words
