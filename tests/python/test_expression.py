"""Expressions of stage.toml: what they mean, and that they are no Python."""

import pytest
from hostcc import ROOT  # noqa: F401  puts the package on the path

from flashladder.core.errors import FlashLadderError
from flashladder.core.expression import evaluate
from flashladder.core.problem import Problem
from flashladder.ladder import launches, stages

NAMES = {"Nq": 200, "Br": 128, "causal": 1, "global.load.bytes": 512}


@pytest.mark.parametrize(
    "text, value",
    (
        ("(Nq + Br - 1) / Br", 2),
        ("-7 / 2", -4),
        ("Nq % Br", 72),
        ("global.load.bytes / 512", 1),
        ("max(Nq, Br) - min(Nq, Br, 7)", 193),
        ("causal and Nq > Br", True),
        ("not causal or Nq == Br", False),
    ),
)
def test_values(text, value):
    assert evaluate(text, NAMES) == value


@pytest.mark.parametrize(
    "text, words",
    (
        ("__import__('os').system('true')", "it may not have '__import__('os').system('true')'"),
        ("().__class__", "there is no '().__class__'"),
        ("[1 for _ in (1,)]", "it may not have '[1 for _ in (1,)]'"),
        ("2 ** 100000", "it may not have '2 ** 100000'"),
        ("1.5", "it may not have '1.5'"),
        ("'text'", "it may not have"),
        ("lambda: 1", "it may not have"),
        ("max()", "it may not have 'max()'"),
        ("1 < 2 < 3", "it may not have '1 < 2 < 3'"),
        ("Nkv", "there is no 'Nkv'; there are Nq, Br, causal, global.load.bytes"),
        ("1 / (Br - Br)", "'1 / (Br - Br)' is no expression of stage.toml: "),
        ("1 +", "'1 +' is no expression of stage.toml: invalid syntax"),
        ("", "'' is no expression of stage.toml: "),
        ("1" * 1001, "more than 1000 characters"),
        ("(" * 400 + "1" + ")" * 400, "is no expression of stage.toml"),
    ),
)
def test_anything_else_is_refused(text, words):
    with pytest.raises(FlashLadderError) as caught:
        evaluate(text, NAMES)
    assert words in str(caught.value)


def named(monkeypatch, names: dict[str, str]) -> dict[str, int]:
    stage = stages.get("swizzle")
    monkeypatch.setitem(stage.data, "names", names)
    return launches.own_names(stage, Problem(Nq=200))


def test_a_name_may_use_those_before_it(monkeypatch):
    assert named(monkeypatch, {}) == {"splits": 1}
    tiles = {"tiles": "(Nq + Br - 1) / Br", "more": "tiles * 10"}
    assert named(monkeypatch, tiles) == {"splits": 1, "tiles": 2, "more": 20}


@pytest.mark.parametrize(
    "names, words",
    (
        ({"Br": "1"}, r"\[names\] has 'Br', which stands for something else"),
        ({"more": "tiles", "tiles": "1"}, "there is no 'tiles'"),
    ),
)
def test_a_name_that_cannot_be_is_told(monkeypatch, names, words):
    with pytest.raises(FlashLadderError, match=words):
        named(monkeypatch, names)
