"""Figures in prose are what the records and the simulator say, in every document and notebook."""

import json
import re

import pytest

pytest.importorskip("matplotlib")

from flashladder.commands import (
    figures,
    results,
)
from flashladder.core.errors import FlashLadderError  # noqa: E402
from flashladder.core.paths import ROOT  # noqa: E402
from flashladder.lessons import notebook_format  # noqa: E402
from flashladder.measuring import recorded  # noqa: E402


def prose(file) -> str:
    if file.suffix != ".ipynb":
        return file.read_text()
    cells = notebook_format.load(file)["cells"]
    return "\n\n".join(notebook_format.text_of(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


@pytest.mark.parametrize("file", results.documents(), ids=lambda file: str(file.relative_to(ROOT)))
def test_figures_are_what_is_recorded(file):
    faults = []
    for mark in figures.MARK.finditer(prose(file)):
        try:
            right = figures.text_of(mark["what"])
        except FlashLadderError as error:
            faults.append(f"{mark['what']}: {error}")
            continue
        if mark["text"] != right:
            faults.append(f'"{mark["text"]}" should be "{right}" ({mark["what"]})')
    place = file.relative_to(ROOT)
    assert not faults, f"{place}: run `make results`, and read the sentences again:\n" + "\n".join(faults)


@pytest.mark.parametrize("file", results.documents(), ids=lambda file: str(file.relative_to(ROOT)))
def test_every_mark_is_whole(file):
    text = prose(file)
    assert text.count("<!-- figure:") == len(figures.MARK.findall(text)), "a figure's mark has no end"
    assert not any("<!-- figure:" in mark["text"] for mark in figures.MARK.finditer(text)), "a figure's mark has no end"


@pytest.mark.parametrize(
    "file", [one for one in results.documents() if one.suffix == ".md"], ids=lambda file: file.stem
)
def test_tables_are_what_is_recorded(file):
    for block in results._BLOCK.finditer(file.read_text()):
        fresh = results.fill(block[0], file)
        assert fresh == block[0], f"{file.relative_to(ROOT)}, `{block['what']}`: run `make results`"


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Records with known figures: stage 9 makes 300, stage 8 makes 200, its kernel has changed since."""
    from flashladder.ladder import stages

    def row(name, tflops, kernel, **more):
        row = {"name": name, "kind": "stage", "tflops": tflops, "Nq": 4096, "d_head": 128, "dtype": "bf16"}
        return row | {"causal": False, "kernel_sha256": kernel, "registers": 255} | more

    fresh = stages.get(9).kernel_hash()
    runs = {
        "": [row("09_double_buffering", 300.0, fresh), row("08_fragment_tiles", 200.0, "another")],
        "ablations": [
            row("09_double_buffering", 310.0, fresh),
            row("09 no swizzle", 100.0, fresh),
            row("29 no turns", 700.0, None, dtype="e4m3", kind="variant"),
        ],
    }
    runs["shapes"] = [row("(A)", 500.0, None, kind="configuration"), row("09_double_buffering", 250.0, None)]
    shapes = {"provenance": {"kernels": {"09_double_buffering": fresh}}, "kernel_sha256": "another"}
    other = {"provenance": {"device": "NVIDIA H100"}, "measurements": [row("09_double_buffering", 150.0, fresh)]}
    monkeypatch.setattr(recorded, "shipped", lambda kind="": [shapes | {"measurements": runs[kind]}, other])
    monkeypatch.setattr(recorded, "RECORDED", tmp_path)
    record = {"version": 1, "provenance": {}, "rows": [{"name": "a", "x": 1.5, "n": [1, 2]}]}
    (tmp_path / "G.json").write_text(json.dumps(record))


@pytest.mark.parametrize(
    "what, text",
    [
        ("tflops(9) : .1f", "300.0"),
        ("tflops(9) - 2 * 50 : .0f", "200"),
        ("tflops(9) / tflops(8) : .2f", "1.50 (stale)"),
        ('tflops(9, gpu="H100") / tflops(9) : .1f', "0.5"),
        ('-ablation("09 no swizzle") / ablation(9) + 1 : .0%', "68%"),
        ('ablation("29 no turns") : .0f', "700"),  # of a type that it has alone
        ("shape(9) : .0f", "250"),
        ('shape("(A)") / shape(9) : .1f', "2.0 (stale)"),
        ('resource(9, "registers") : ,d', "255"),
        ('record("G.json", "rows", "name=a", "x") : .1f', "1.5"),
        ('record("G.json", "rows", 0, "n", 1) : d', "2"),
        ("1000 * 95.3 : count", "95.3 k"),
        ("tflops(7) / tflops(9) : .2f", "(not recorded yet)"),  # a stage that this record is older than
        ('ablation("09 kv_stages 1") : .1f', "(not recorded yet)"),
    ],
)
def test_a_figure_is_computed(measured, what, text):
    assert figures.text_of(what) == text


@pytest.mark.parametrize(
    "what, words",
    [
        ("tflops(9)", "needs a format"),
        ("tflops(9, N=77) : .1f", "is not recorded; there is: 09_double_buffering"),
        ('resource(9, "hue") : d', 'no figure "hue"'),
        ('tflops(9, gpu="B200") : .1f', "there is: nothing"),
        ('record("G.json", "rows", "name=b") : d', "nothing at 'name=b'"),
        ('record("G.json", "rows") : d', "no number"),
        ('counter(5, "wavefront") : d', "no counter"),
        ('counter("05_nothing", "instructions") : d', "no ablation"),
        ("open('/etc/passwd') : s", "are known, not: open"),
        ("(1).real : d", "are known, not"),
        ("tflops(9 : .1f", "never closed"),
        ("1 / 0 : .1f", "division by zero"),
        ("tflops(9) : nonsense", "Invalid format"),
        ("tflops(9, M=1) : .1f", "unexpected keyword"),
    ],
)
def test_what_a_mark_cannot_ask_for(measured, what, words):
    with pytest.raises(FlashLadderError, match=words):
        figures.text_of(what)


def test_counters_of_a_stage_and_of_a_variant():
    assert figures.text_of('counter(5, "shared ldmatrix excess") : d') == "0"
    assert figures.text_of('counter("09_kv_stages_1", "barriers") / counter(9, "barriers") : .0f') == "3"


def test_documents_and_notebooks_are_filled(measured, monkeypatch, tmp_path):
    text, notebook = tmp_path / "a.md", tmp_path / "b.ipynb"
    text.write_text("It makes <!-- figure: tflops(9) : .0f -->7<!-- end --> TFLOP/s.")
    source = "# Title\n\n<!-- figure: tflops(9) : .0f -->7<!-- end -->"
    cells = [{"cell_type": "markdown", "metadata": {}, "source": source}]
    notebook_format.write(notebook_format.canonical({"cells": cells}, notebook), notebook)
    monkeypatch.setattr(results, "documents", lambda: [text, notebook])
    monkeypatch.setattr(results, "_draw", lambda folder: [])
    monkeypatch.setattr(results, "_write_instances", list)
    assert results.regenerate() == [text, notebook]
    assert ">300<" in text.read_text() and ">300<" in prose(notebook)
    saved = notebook_format.load(notebook)
    assert notebook_format.canonical(saved, notebook) == saved
    assert results.regenerate() == []
    with pytest.raises(FlashLadderError, match="a.md: figure: tflops"):
        results.fill("<!-- figure: tflops(9) -->7<!-- end -->", text)


# ---- no figure is typed by hand ----

LESSONS = [
    one
    for one in results.documents()
    if one.is_relative_to(ROOT / "notebooks") or one.is_relative_to(ROOT / "stages") and one.name == "README.md"
]
_GENERATED = re.compile(r"<!-- figure:.*?<!-- end -->|<!-- results:.*?<!-- end results -->", re.S)
_TYPED = re.compile(r"(?<![\w.,/])(\d[\d.,]*\d|\d) TFLOP/s")
# What stands in a lesson as plain text: figures of a data sheet, what a reader works out himself from numbers beside
# it, and runs that no record keeps. Each with how it comes about.
PLAIN = {
    "02_online_softmax": {"67": "data sheet: fp32"},
    "03_vectorized_loads": {"67": "data sheet: fp32"},
    "07_eager_kv": {"132": "multiprocessors, which share what stands before it"},
    "23_schedule": {"490": 4 * 512 * 16384 * 16 * 128 / (5 * 134e6 / 4.8e12) / 1e12,
                    "1,230": 4 * 512 * 16384 * 16 * 128 / (2 * 134e6 / 4.8e12) / 1e12},
    "26_last_rounds": {"713": "two orders in turn on an H100, not recorded", "524": "the same"},
}  # fmt: skip


def cells_of(file, kind: str) -> list[str]:
    if file.suffix != ".ipynb":
        return [file.read_text()] if kind == "markdown" else []
    cells = notebook_format.load(file)["cells"]
    return [notebook_format.text_of(cell["source"]) for cell in cells if cell["cell_type"] == kind]


def name_of(file) -> str:
    return file.stem if file.suffix == ".ipynb" else file.parent.name


def typed(file) -> set[str]:
    """The throughputs that stand in a lesson as plain text."""
    texts = [_GENERATED.sub("", text) for text in cells_of(file, "markdown")] + cells_of(file, "code")
    return {found for text in texts for found in _TYPED.findall(text)}


@pytest.mark.parametrize("file", LESSONS, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_throughput_in_a_lesson_comes_from_a_record(file):
    faults = typed(file) - PLAIN.get(name_of(file), {}).keys()
    hint = "put it between the marks of a figure (docs/contributing.md); in a cell, ask lesson.recorded_tflops()"
    assert not faults, f"{file.relative_to(ROOT)}: {', '.join(sorted(faults))} TFLOP/s: {hint}"


def test_what_is_plain_text_is_there_and_right():
    found = {}
    for file in LESSONS:
        found.setdefault(name_of(file), set()).update(typed(file))
    for name, known in PLAIN.items():
        assert known.keys() <= found[name], (
            f"{name} says no longer {sorted(known.keys() - found[name])}: take it out here"
        )
        for text, value in known.items():
            if not isinstance(value, str):
                assert float(text.replace(",", "")) == pytest.approx(value, rel=0.02), (name, text, value)


@pytest.mark.parametrize(
    "file", [one for one in LESSONS if one.suffix == ".ipynb"], ids=lambda file: str(file.relative_to(ROOT))
)
def test_a_prediction_quotes_no_typed_result_of_another_stage(file):
    """`(stage 04: 86 TFLOP/s)` was right once."""
    lines = [line for text in cells_of(file, "code") for line in text.splitlines() if "throughput" in line]
    wrong = [match for line in lines for match in re.findall(r"stage \d\d: \d[\d.,]*", line)]
    assert not wrong, f"{wrong}: write the figure as {{lesson.recorded_tflops(stage=...):.0f}}"


@pytest.mark.parametrize("file", LESSONS, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_lesson_names_the_gpu_that_it_quotes(file):
    """Its figures are of one GPU, MAIN, whose name stands in it; another's say gpu=, in a paragraph with its name."""
    text = "\n\n".join(cells_of(file, "markdown") + cells_of(file, "code"))
    throughput = re.compile(r"<!-- figure: [^>]*\b(?:tflops|ablation|on_inputs|shape|tuned|ran|change)\(")
    main = recorded.MAIN.split()[-1]
    if throughput.search(text):
        assert main in text, f"it quotes throughputs and does not name the {main}"
    for paragraph in text.split("\n\n"):
        for other in set(re.findall(r'gpu="(\w+)"', paragraph)):
            plain = _GENERATED.sub("", paragraph)
            assert other in plain, (
                f"a figure of the {other} stands in a paragraph that does not name it:\n{plain[:300]}"
            )


def test_an_ablation_that_a_cell_prints_says_which_head_dim():
    for file in LESSONS:
        for text in cells_of(file, "code"):
            if "recorded.pick(" in text and "print(" in text and "tflops" in text:
                assert "d_head" in text, (
                    f"{file.name}: a cell prints throughputs of several head dims without saying so"
                )
