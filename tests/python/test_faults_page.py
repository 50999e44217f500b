"""The tables of what a GPU made of the faulty kernels."""

import pytest

from flashladder.commands import faults_page
from flashladder.core.errors import FlashLadderError
from flashladder.measuring import recorded


def row(name, kind, gpu, words="error", expected="ab"):
    said = kind and {"kind": kind, "line": 12, "as": words}
    twin = {"expected": "ab", "outcome": "right numbers", "launches": 50}
    return {"program": "wgmma/faults.cu", "fault": name, "warpsim": said, "warpsim mended": None,
            "warpsim expected": expected, "gpu": {"launches": 50} | gpu, "gpu mended": twin}  # fmt: skip


ROWS = [
    row("a", "deadlock", {"outcome": "hang"}),
    row("b", "deadlock", {"outcome": "right numbers"}),
    row("c", "shared_race", {"outcome": "wrong numbers", "wrong launches": 3, "fewest wrong words": 7}),
    row("d", "shared_race", {"outcome": "wrong numbers", "wrong launches": 50, "fewest wrong words": 64}),
    row("e", "wgmma", {"outcome": "right numbers"}, words="note"),
    row("f", "misaligned", {"outcome": "error", "error": "cudaErrorMisalignedAddress", "launches": 0}, expected="cd"),
    row("g", "cluster", {"outcome": "not run"}),
]


@pytest.fixture(autouse=True)
def record(monkeypatch):
    source = {"device": "NVIDIA H200", "date": "2026-11-22", "commit": "0123456789ab"}
    made = {"provenance": source, "launches": 50, "faults": ROWS}
    monkeypatch.setattr(recorded, "shipped", lambda kind: [made] if kind == "faults" else [])


def test_kinds():
    text = faults_page.page()
    assert (
        "Of the 7 mended kernels 7 gave the same numbers in each of 50 launches on the GPU, 6 of them warpsim's" in text
    )
    assert "Recorded: NVIDIA H200, 2026-11-22, commit 0123456789ab." in text
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    assert lines[0] == ["", "kernels", *faults_page.OUTCOMES, "not run"]
    by_kind = {line[0]: line[1:] for line in lines[2:]}
    assert by_kind["deadlock"] == ["2", "1", "", "", "", "1", ""]
    assert by_kind["shared_race"] == ["2", "", "1", "1", "", "", ""]
    assert by_kind["wgmma (note)"] == ["1", "1", "", "", "", "", ""]
    assert by_kind["all"] == ["7", "2", "1", "1", "1", "1", "1"]


def test_list():
    text = faults_page.page("list")
    assert "| `a` | wgmma/faults.cu | 12 | deadlock | never ends |" in text
    assert "| shared_race | wrong now and then: 3 of 50, 7 words or more |" in text
    assert "| misaligned | `cudaErrorMisalignedAddress` |" in text
    with pytest.raises(FlashLadderError, match="'odd'"):
        faults_page.page("odd")
