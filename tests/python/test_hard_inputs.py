"""Inputs that hurt are what their descriptions say; their record becomes a table."""

import numpy as np
import pytest

from flashladder.commands import results
from flashladder.core.problem import Problem
from flashladder.ladder.ablations import ablations
from flashladder.measuring import ablation_times, recorded

PROBLEM = Problem(Hq=1, Nq=64, Nkv=1000, d_head=128)


def octaves(kind: str) -> np.ndarray:
    """Of the scores that K's first column makes with Q's, which is 1: their exponents as powers of two, by key."""
    first, _ = ablation_times.keys(kind, PROBLEM)
    return first * PROBLEM.scale * np.log2(np.e)


def test_growing_scores_grow_in_the_order_of_the_visits():
    scores = octaves("growing")
    assert scores.shape == (1000,)
    last, before = scores[896:].max(), scores[768:896].max()  # the last tile of 128 keys comes first
    assert before - last == pytest.approx(ablation_times.OCTAVES_A_TILE, rel=1e-3)
    assert (np.diff(scores) < 0).all()


def test_one_key_has_all_of_the_weight_and_is_visited_last():
    scores = octaves("one-hot")
    assert scores.argmax() == 0 and scores[0] > 200 and not scores[1:].any()


@pytest.mark.parametrize("kind", ["normal", "huge", "tiny"])
def test_others_stay_random_by_a_factor(kind):
    first, factor = ablation_times.keys(kind, PROBLEM)
    assert first is None and factor == {"normal": 1, "huge": 100, "tiny": 1e-4}[kind]


def test_the_table_has_a_row_for_each_name_and_a_column_for_each_kind(monkeypatch):
    def row(name, kind, tflops, length=16384):
        return {"name": name, "kind": "peer", "inputs": kind, "Nq": length, "d_head": 128, "tflops": tflops}

    record = {
        "provenance": {"device": "NVIDIA X", "date": "2026-01-02 00:00", "commit": "0123456789ab"},
        "inputs": {"normal": "", "growing": ""},
        "measurements": [row("a", "normal", 600.0), row("b", "normal", 500.0), row("a", "growing", 400.0),
                         row("b", "growing", 500.0), row("a", "normal", 1.0, 4096)],
    }  # fmt: skip
    monkeypatch.setattr(recorded, "shipped", lambda kind="": [record] if kind == "inputs" else [])
    table = results.inputs()
    assert "| a | 600.0 | 400.0 |" in table and "| b | 500.0 | 500.0 |" in table and "NVIDIA X" in table
    assert "1.0" not in table


def test_a_stage_stands_beside_the_fastest_peer_on_the_same_inputs(monkeypatch):
    def row(name, kind, tflops, inputs="normal"):
        return {"name": name, "kind": kind, "inputs": inputs, "Nq": 512, "d_head": 64, "tflops": tflops}

    record = {
        "provenance": {"device": "NVIDIA X", "date": "2026-01-02 00:00", "commit": "0123456789ab"},
        "inputs": {"normal": "", "huge": ""},
        "measurements": [row("23_shapes", "stage", 300.0), row("a", "peer", 400.0), row("b", "peer", 200.0),
                         row("23_shapes", "stage", 330.0, "huge"), row("a", "peer", 100.0, "huge"),
                         row("b", "peer", 300.0, "huge"), row("22_no_gap", "stage", 1.0)],
    }  # fmt: skip
    monkeypatch.setattr(recorded, "shipped", lambda kind="": [record] if kind == "inputs" else [])
    monkeypatch.setattr(recorded, "is_stale", lambda row: False)
    assert "| d = 64, N = 512 | 75 | 110 |" in results.beside_the_best("shapes")
    assert "another run" not in results.beside_the_best("shapes")
    record["measurements"][0]["run"] = "2026-01-01, commit 1"
    assert "23_shapes: of another run, 2026-01-01, commit 1." in results.beside_the_best("shapes")
    assert "23_shapes: of another run, 2026-01-01, commit 1." in results.inputs("512", "64")


def test_variants_that_hurting_inputs_are_for_are_timed_on_them():
    marked = {one.name for one in ablations() if one.inputs}
    assert {"never_looks_first", "turn_kept_for_the_maximum"} <= marked
