"""Numbers that texts quote are what the records and the simulator say, in every document and notebook."""

import json
import re

import pytest

pytest.importorskip("matplotlib")

from flashladder.commands import figure_lists, figures, results
from flashladder.core.errors import FlashLadderError  # noqa: E402
from flashladder.core.paths import ROOT  # noqa: E402
from flashladder.lessons import notebook_format, sections  # noqa: E402
from flashladder.measuring import recorded  # noqa: E402


def place(file) -> str:
    return str(file.relative_to(ROOT))


@pytest.mark.parametrize("file", results.documents(), ids=place)
def test_numbers_in_sentences_are_what_is_recorded(file):
    faults = figure_lists.faults(results.parts_of(file), file)
    assert not faults, f"{place(file)}: run `make results`, and read the sentences again:\n" + "\n".join(faults)


# Timelines are simulated anew.
LONG = ("docs/results/beside_nsight_compute.md", "notebooks/05_swizzle.ipynb")


def marked(file):
    return pytest.param(file, id=place(file), marks=pytest.mark.long if place(file) in LONG else ())


@pytest.mark.parametrize("file", [marked(file) for file in results.documents()])
def test_tables_are_what_is_recorded(file):
    for part in results.parts_of(file):
        for block in results._BLOCK.finditer(part):
            fresh = results.fill(block[0], file)
            assert fresh == block[0], f"{place(file)}, `{block['what']}`: run `make results`"


@pytest.mark.parametrize("file", figure_lists.lists(), ids=place)
def test_a_list_calls_stages_by_their_names(file):
    """So it stays as it is when a stage moves."""
    functions = "|".join(sorted(set(figures.FUNCTIONS) - {"record", "busy"}))
    numbers = re.findall(rf"\b(?:{functions})\(\s*\d+\s*[,)]", file.read_text())
    assert not numbers, f"{place(file)}: a stage's name in the place of its number: {numbers}"


def test_each_list_is_of_texts_that_there_are():
    texts = {place(file): file for file in results.documents()}
    assert len(figure_lists.lists()) > 25
    for file in figure_lists.lists():
        declared = dict(figure_lists.read(file))
        tables = declared.pop("tables", {})
        assert declared.keys() <= texts.keys(), file
        assert all(figure_lists.list_of(texts[name]) == file for name in declared), file
        mine = [text for text in texts.values() if figure_lists.list_of(text) == file]
        parts = [part for text in mine for part in results.parts_of(text)]
        shown = {block["what"] for part in parts for block in results._BLOCK.finditer(part)}
        unused = {name for name in tables if f"table {name}" not in shown}
        assert not unused, f"{place(file)}: no text shows {unused}"


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Records with known figures: stage 9 makes 300, stage 8 makes 200, its kernel has changed since."""
    from flashladder.ladder import stages

    def row(name, tflops, kernel, **more):
        row = {"name": name, "kind": "stage", "tflops": tflops, "Nq": 4096, "d_head": 128, "dtype": "bf16"}
        return row | {"causal": False, "kernel_sha256": kernel, "registers": 255} | more

    fresh = stages.get(9).kernel_hash()
    waits_apart, packed_gqa = stages.entry("waits_apart"), stages.entry("packed_gqa")
    shape = {"B": 8, "Nkv": 4096, "Hq": 32, "Hkv": 8, "d_head": 128, "us": {"median": 12.5}, "of_reading": 0.75}
    runs = {
        "backward": [
            row(waits_apart.name, 500.0, waits_apart.kernel_hash()),
            row("cuDNN attention", 400.0, None, kind="peer"),
            row("FlashAttention-3", 510.0, None, kind="peer"),
            row(waits_apart.name, 100.0, waits_apart.kernel_hash(), Nq=512),
            row("cuDNN attention", 100.1, None, kind="peer", Nq=512),
        ],
        "ring": [
            {"name": "63_one_launch", "kind": "stage", "kernel_sha256": stages.entry("one_launch").kernel_hash()}
            | {"N": 65536, "ranks": 2, "Hq": 16, "Hkv": 16, "causal": True, "tflops_per_gpu": 700.0, "of_ideal": 0.95}
        ],
        "decode": [
            {"name": packed_gqa.name, "kind": "stage", "kernel_sha256": packed_gqa.kernel_hash()} | shape,
            {"name": packed_gqa.name, "kind": "stage", "kernel_sha256": packed_gqa.kernel_hash()}
            | shape
            | {"d_head": 64, "us": {"median": 25.0}},
            {"name": "reading K and V", "kind": "ceiling"} | shape,
            {"name": "cuDNN attention", "kind": "peer"} | shape | {"us": {"median": 9.5}},
        ],
        "": [
            row("09_double_buffering", 300.0, fresh),
            row("08_fragment_tiles", 200.0, "another"),
            row("09_double_buffering", 90.0, fresh, Nq=512, d_head=64),
            row("08_fragment_tiles", 100.0, "another", Nq=512, d_head=64),
        ],
        "ablations": [
            row("09_double_buffering", 310.0, fresh),
            row("09 no swizzle", 100.0, fresh),
            row("29 no turns", 700.0, None, dtype="e4m3", kind="variant"),
        ],
    }
    other = {"provenance": {"device": "NVIDIA H100"}, "measurements": [row("09_double_buffering", 150.0, fresh)]}
    monkeypatch.setattr(recorded, "shipped", lambda kind="": [{"measurements": runs[kind]}, other])
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
        ('lead(9, "fragment_tiles") : .0f', "-10 (stale)"),
        ('lead(9, "fragment_tiles", most=True) : .0f', "50 (stale)"),
        ('lead(9, "fragment_tiles", d=128, causal=False) : .0f', "50 (stale)"),
        ('lead("shapes", "fragment_tiles") : .0f', "(not recorded yet)"),
        ('-ablation("09 no swizzle") / ablation(9) + 1 : .0%', "68%"),
        ('ablation("29 no turns") : .0f', "700"),  # of a type that it has alone
        ('resource(9, "registers") : ,d', "255"),
        ('gradients("waits_apart") : .0f', "500"),
        ('gradients("no_scratch_pass") : .0f', "(not recorded yet)"),
        ('gradients_ahead("waits_apart", "cuDNN attention") : .0f', "1"),
        ('gradients_ahead("no_scratch_pass", "cuDNN attention") : .0f', "(not recorded yet)"),
        ('gradients("fastest peer") : .0f', "510"),
        ('gradients("fastest peer", N=512) : .1f', "100.1"),
        ('gradients_ahead("waits_apart", "fastest peer") : .0f', "0"),
        ('gradients("FlashAttention-3", N=512) : .0f', "(not recorded yet)"),  # without a kernel for this shape
        ('gradients("cuDNN attention, deterministic") : .0f', "(not recorded yet)"),
        ('decode("packed_gqa", B=8) : .1f', "12.5"),
        ('decode("packed_gqa", B=8, of_reading=1) : .2f', "0.75"),
        ('decode("packed_gqa", B=8, d=64) : .1f', "25.0"),
        ('decode_shapes("packed_gqa") : d', "1"),
        ('decode_ahead("cuDNN attention", "packed_gqa") : d', "1"),
        ('decode_ahead("packed_gqa", "cuDNN attention") : d', "0"),
        ('decode_ahead("lean", "packed_gqa") : d', "(not recorded yet)"),
        ('ring("one_launch", causal=True) : .0f', "700"),
        ('ring("one_launch", causal=True, of_ideal=1) : .2f', "0.95"),
        ('record("G.json", "rows", "name=a", "x") : .1f', "1.5"),
        ('record("G.json", "rows", 0, "n", 1) : d', "2"),
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
        ('decode("packed_gqa", B=3) : .1f', "is not recorded; there is: 52_packed_gqa"),
        ('resource(9, "hue") : d', 'no figure "hue"'),
        ('tflops(9, gpu="B200") : .1f', "there is: nothing"),
        ('record("G.json", "rows", "name=b") : d', "nothing at 'name=b'"),
        ('record("G.json", "rows") : d', "no number"),
        ('counter(5, "wavefront") : d', "no counter"),
        ('counter("05_nothing", "instructions") : d', "no stage and no ablation"),
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


@pytest.mark.long
def test_counters_of_a_stage_and_of_a_variant():
    assert figures.text_of('counter(5, "shared ldmatrix excess") : d') == "0"
    assert figures.text_of('counter("09_kv_stages_1", "barriers") / counter(9, "barriers") : .0f') == "3"


@pytest.mark.parametrize(
    "value, like, text",
    [
        (264.31, "1.0", "264.3"),
        (264.31, "7", "264"),
        (1576, "999", "1,576"),
        (1576, "1174", "1576"),
        (5.64, "+1.0", "+5.6"),
        (-5.64, "+1.0", "-5.6"),
        (0.6789, "1%", "68%"),
        (0.6789, "1.0% (stale)", "67.9%"),
        (12.3456, "(not recorded yet)", "12.35"),
    ],
)
def test_a_source_is_rounded_as_the_text_rounds(value, like, text):
    assert figure_lists.rounded(value, like) == text


@pytest.fixture
def listed(monkeypatch):
    """Gives a text its list."""

    def listed(sources: dict, tables: dict | None = None) -> None:
        declared = {"a.md": sources, "b.ipynb": sources, "tables": tables or {}}
        monkeypatch.setattr(figure_lists, "read", lambda file: declared)

    return listed


QUOTED = "Stage 09 makes 300\nTFLOP/s, +50% (stale) more than 08.\n\nIn all 1,000 and 5."


def test_numbers_are_found_by_their_words(measured, listed, tmp_path):
    file = tmp_path / "a.md"
    listed({"makes {} TFLOP/s, {} more": ["tflops(9)", "tflops(9) / tflops(8) - 1"], "In all {} and": "1000"})
    assert figure_lists.faults([QUOTED], file) == []
    assert figure_lists.fill([QUOTED], file) == [QUOTED]
    wrong = QUOTED.replace("300", "299.0").replace("1,000", "999")
    assert figure_lists.faults([wrong], file) == [
        'line 1: "makes {} TFLOP/s, {} more": the text says 299.0, tflops(9) is 300.0',
        'line 4: "In all {} and": the text says 999, 1000 is 1,000',
    ]
    assert figure_lists.fill([wrong], file) == [QUOTED.replace("300", "300.0")]
    assert "cell 2 of its text, line 4" in figure_lists.faults(["# Title", wrong], file)[1]


@pytest.mark.parametrize(
    "sources, words",
    [
        ({"makes {} GFLOP/s": "tflops(9)"}, 'a.md: "makes {} GFLOP/s" stands nowhere in the text.*tflops\\(9\\)'),
        ({"{}": "5"}, "stands in 6 places"),
        ({"makes {} TFLOP/s, {} more": "tflops(9)"}, "has 2 numbers, and 1 sources"),
        ({"makes 300": []}, "has 0 numbers, and 0 sources"),
        (
            {"makes {} TFLOP/s": "tflops(9, N=77)"},
            r'"makes {} TFLOP/s": tflops\(9, N=77\): "09_double_buffering"',
        ),
    ],
)
def test_what_a_list_cannot_say(measured, listed, tmp_path, sources, words):
    listed(sources)
    with pytest.raises(FlashLadderError, match=words):
        figure_lists.faults([QUOTED], tmp_path / "a.md")


def test_words_in_a_table_that_is_generated_are_no_sentence(listed, tmp_path):
    listed({"all {} and": "7"})
    block = "<!-- results: table x -->\nall 8 and\n<!-- end results -->\n"
    assert figure_lists.faults([block + "all 7 and"], tmp_path / "a.md") == []


DECLARED = {
    "cell": "{tflops(9, N=N) / 3 : .0f}{unit}",
    "columns": {"N": [4096]},
    "rows": [{"head": "a", "unit": " s"}, {"head": "{tflops(9) : .0f}", "cell": "none"}],
}


def test_a_declared_table(measured, listed, tmp_path):
    assert figure_lists.page(DECLARED).splitlines() == [
        "|  | N = 4096 |", "| --- | --- |", "| a | 100 s |", "| 300 | none |"]  # fmt: skip
    product = {"head": "of", "cell": "{d + N : .0f}", "columns": {"N": [1, 2]}}
    product["rows"] = {"d": [64, 128], "causal": [False, True]}
    page = figure_lists.page(product)
    assert "| of | N = 1 | N = 2 |" in page and "| d = 64, causal | 65 | 66 |" in page and page.count("\n") == 5
    single = {"head": ["x", "y"], "rows": [["one", "{tflops(8) :\n .0f}"]]}
    assert figure_lists.page(single).endswith("| one | 200 (stale) |")
    with pytest.raises(FlashLadderError, match='no cell is declared for "r", "N = 1"'):
        figure_lists.page({"columns": {"N": [1]}, "rows": [{"head": "r"}]})
    listed({}, {"x": DECLARED})
    with pytest.raises(FlashLadderError, match='declares no table "y"; there are: x'):
        results.fill("<!-- results: table y -->\n<!-- end results -->", tmp_path / "a.md")
    with pytest.raises(FlashLadderError, match="wrong words after it"):
        results.fill("<!-- results: table -->\n<!-- end results -->", tmp_path / "a.md")


def test_documents_and_notebooks_are_filled(measured, listed, monkeypatch, tmp_path):
    text, notebook = tmp_path / "a.md", tmp_path / "b.ipynb"
    listed({"It makes {} TFLOP/s": "tflops(9)"}, {"x": DECLARED})
    text.write_text("It makes 7 TFLOP/s.")
    source = "# Title\n\nIt makes 7\nTFLOP/s.\n\n<!-- results: table x -->\n<!-- end results -->"
    cells = [{"cell_type": "markdown", "metadata": {}, "source": source}]
    notebook_format.write(notebook_format.canonical({"cells": cells}, notebook), notebook)
    monkeypatch.setattr(results, "documents", lambda: [text, notebook])
    monkeypatch.setattr(results.result_pictures, "draw", lambda folder: [])
    monkeypatch.setattr(results, "_write_instances", list)
    assert results.regenerate() == [text, notebook]
    (part,) = results.parts_of(notebook)
    assert text.read_text() == "It makes 300 TFLOP/s." and "makes 300\nTFLOP/s" in part and "| a | 100 s |" in part
    saved = notebook_format.load(notebook)
    assert notebook_format.canonical(saved, notebook) == saved
    assert results.regenerate() == []
    text.write_text("It makes nothing.")
    notebook.write_text(notebook.read_text().replace("| a | 100 s |", "| a | 1 s |"))
    with pytest.raises(FlashLadderError, match="All is written but these:\n.*a.md.*stands nowhere"):
        results.regenerate()
    assert "| a | 100 s |" in results.parts_of(notebook)[0], "one text keeps no other one back"


def test_a_text_shows_each_picture_of_the_results():
    texts = "".join(file.read_text() for file in results.documents())
    drawn = [file.name for file in (ROOT / "docs/results").iterdir() if file.suffix in (".png", ".svg")]
    assert drawn and not [name for name in drawn if name not in texts]


# ---- no figure is typed by hand ----

LESSONS = [
    one
    for one in results.documents()
    if one.is_relative_to(ROOT / "notebooks") or one.is_relative_to(ROOT / "stages") and one.name == "README.md"
]
_TYPED = re.compile(r"(?<![\w.,/])(?P<number>\d[\d.,]*\d|\d) TFLOP/s")
FP32 = "67 TFLOP/s"  # of the data sheet, which cells reckon with


def cells_of(file, kind: str) -> list[str]:
    if file.suffix != ".ipynb":
        return [file.read_text()] if kind == "markdown" else []
    cells = notebook_format.load(file)["cells"]
    return [sections.text_of(cell) for cell in cells if cell["cell_type"] == kind]


@pytest.mark.parametrize("file", LESSONS, ids=place)
def test_a_throughput_in_a_lesson_has_a_source(file):
    parts = results.parts_of(file)
    sourced = {(one.part, one.start) for one in figure_lists.find(parts, file)}
    faults = [
        match[0]
        for index, part in enumerate(parts)
        for match in _TYPED.finditer(figure_lists.prose(part))
        if (index, match.start("number")) not in sourced
    ]
    assert not faults, f"{place(file)}: {', '.join(faults)}: say where it comes from in {figure_lists.list_of(file)}"
    typed = [match[0] for cell in cells_of(file, "code") for match in _TYPED.finditer(cell)]
    typed = [one for one in typed if one != FP32]
    assert not typed, f"{place(file)}: {', '.join(typed)}: in a cell, ask lesson.recorded_tflops()"


@pytest.mark.parametrize("file", [one for one in LESSONS if one.suffix == ".ipynb"], ids=place)
def test_a_prediction_quotes_no_typed_result_of_another_stage(file):
    """`(stage 04: 86 TFLOP/s)` was right once."""
    lines = [line for text in cells_of(file, "code") for line in text.splitlines() if "throughput" in line]
    wrong = [match for line in lines for match in re.findall(r"stage \d\d: \d[\d.,]*", line)]
    assert not wrong, f"{wrong}: write the figure as {{lesson.recorded_tflops(stage=...):.0f}}"


_THROUGHPUT = re.compile(r"\b(?:tflops|ablation|on_inputs|ran|change)\(")


@pytest.mark.parametrize("file", LESSONS, ids=place)
def test_a_lesson_names_the_gpu_that_it_quotes(file):
    """Its figures are of one GPU, whose name stands in it: MAIN, or the one that its stage is recorded on. Those of
    another say gpu=, in a paragraph with its name."""
    parts = results.parts_of(file)
    text = "\n\n".join(parts + cells_of(file, "code"))
    found = figure_lists.find(parts, file)
    main = (figure_lists.gpu_of(file) or recorded.MAIN).split()[1]
    if any(_THROUGHPUT.search(one.source) for one in found):
        assert main in text, f"it quotes throughputs and does not name the {main}"
    for one in found:
        part = parts[one.part]
        start, end = part.rfind("\n\n", 0, one.start) + 1, part.find("\n\n", one.end)
        paragraph = part[start : end if end >= 0 else len(part)]
        for other in set(re.findall(r'gpu="(\w+)"', one.source)):
            assert other in paragraph, f"{one.source}: its paragraph does not name the {other}:\n{paragraph}"


def test_an_ablation_that_a_cell_prints_says_which_head_dim():
    for file in LESSONS:
        for text in cells_of(file, "code"):
            if "recorded.pick(" in text and "print(" in text and "tflops" in text:
                assert "d_head" in text, (
                    f"{file.name}: a cell prints throughputs of several head dims without saying so"
                )
