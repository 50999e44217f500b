"""Predictions come before what gives them away; the check notices each way of not doing so."""

import pytest

from flashladder.lessons import notebook_predictions
from flashladder.lessons.prediction import Prediction


def prose(text: str) -> dict:
    return {"cell_type": "markdown", "source": text}


def code(source: str, *texts: str) -> dict:
    """A code cell whose outputs say these texts."""
    outputs = [{"output_type": "display_data", "data": {"text/plain": text}, "metadata": {}} for text in texts]
    return {"cell_type": "code", "source": source, "outputs": outputs}


PREDICT = code('guess = predict("loads of stage 02", None)', "loads of stage 02: no guess yet")
MEASURED = f"loads of stage 02: {Prediction('', None, '', 36864).verdict()}"
SCORE = code('guess.score(lesson.count("loads"))', MEASURED)
TFLOPS = code(
    "guess.score(lesson.recorded_tflops(4096))", f"loads of stage 02: {Prediction('', None, '', 279.8).verdict()}"
)


@pytest.mark.parametrize(
    "before",
    [
        prose("16 KiB in 512 sectors, 36,863 or 136,864 of them, 36.8 or 36,864.5."),
        code("lesson.show('top')", "1  36 * 864"),
        code("lesson.resources()"),
        code("x ="),
        code("!ls"),
    ],
)
def test_what_gives_nothing_away(before):
    assert notebook_predictions.faults([before, PREDICT, code("lesson.counters()"), SCORE]) == []


@pytest.mark.parametrize(
    "before, after, words",
    [
        (prose("There are 36,864 of them."), SCORE, "its answer, 36,864, stands above it, in cell 1"),
        (prose("There are 36864."), SCORE, "its answer, 36864,"),
        (code("show()", "loads  36.86 k"), SCORE, "its answer, 36.86 k,"),
        (prose("It makes 280 TFLOP/s."), TFLOPS, "its answer, 280,"),
        (prose("It makes 279.8 TFLOP/s."), TFLOPS, "its answer, 279.8,"),
        (code("lesson.counters(lines=3)"), SCORE, "comes behind counters() in cell 1"),
        (code("lesson.throughput(d=128)"), TFLOPS, "comes behind throughput() in cell 1"),
        (code("plot.climb(runs)"), TFLOPS, "comes behind climb() in cell 1"),
        (code("lesson.counters()"), code("n = lesson.count('loads')\nguess.score(n)"), "comes behind counters()"),
        (prose("nothing"), code("other.score(1)"), "is never scored"),
    ],
)
def test_what_gives_an_answer_away(before, after, words):
    found = notebook_predictions.faults([before, PREDICT, after])
    assert any(words in fault and "loads of stage 02" in fault for fault in found), found


def test_the_words_of_a_picture_count_too():
    picture = code("plot.x()", "<picture>")
    picture["outputs"][0]["metadata"] = {"image/png": {"alt": "36,864 sectors"}}
    assert "its answer, 36,864" in notebook_predictions.faults([picture, PREDICT, SCORE])[0]


def test_a_trial_of_ones_own_is_not_given_away_by_counters():
    """It is predicted late, on purpose: the reader knows the kernel's counters, and changes the kernel."""
    trial = code('guess.score(lesson.trial.count("loads"))', MEASURED)
    assert notebook_predictions.faults([code("lesson.counters()"), PREDICT, trial]) == []


def test_short_numbers_and_sizes_prove_nothing():
    for value in (8, 64, 4096):
        score = code("guess.score(one.cost)", f"loads of stage 02: {Prediction('', None, '', value).verdict()}")
        assert notebook_predictions.faults([prose(f"{value} or {value:,}"), PREDICT, score]) == []


@pytest.mark.parametrize(
    "text, number, fault",
    [
        ("Stage 03 computes at 22 TFLOP/s.", 0, True),
        ("Stage 03 computes at 22 TFLOP/s.", 3, False),
        ("What stage 04 makes is 86.3 TFLOP/s.", 3, True),
        ("Stage 09 follows. The GPU can do 767 TFLOP/s.", 1, False),
        ("TFLOP/s of stage 09 are for later.", 1, False),
    ],
)
def test_a_later_stage_s_throughput_is_not_told(text, number, fault):
    """Its own notebook asks the reader to predict it."""
    found = notebook_predictions.later_faults([prose(text)], number)
    assert bool(found) is fault and all("cell 1 gives a later stage's throughput away" in one for one in found)
