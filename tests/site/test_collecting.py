"""The site's sources: what is collected, in which order, and where links lead. Needs no Sphinx."""

import json
import re
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest

from flashladder.classroom import exercise
from flashladder.commands import docs
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.ladder import stages
from flashladder.lessons import glossary
from flashladder.measuring import recorded
from flashladder.site import (
    built,
    front,
    kernel_pages,
    lesson_pages,
    links,
    page_exercises,
    pictures,
    results_table,
    sources,
)


def project(root, **files: str):
    """A project of a few files: docs__a_md="text" becomes docs/a.md."""
    for name, text in files.items():
        file = root / name.replace("__", "/").replace("_md", ".md").replace("_ipynb", ".ipynb")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_the_projects_own_links_lead_somewhere():
    wrong = links.faults(ROOT, sources.pages())
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text, said",
    [
        ("[x](b.md)", None),
        ("[x](b.md#a-heading-of-its)", None),
        ("[x](b.md#a-heading-of-its-1)", None),
        ("[x](b.md#another)", "no heading of docs/b.md has this anchor; it has a-heading"),
        ("[x](#here)", "no heading of docs/a.md has this anchor"),
        ("# Here\n[x](#here)", None),
        ("[x](c.md)", "there is no docs/c.md"),
        ("[x](../../c.md)", "leads out of the project"),
        ("[x](../stages/)", "the folder stages has no README.md"),
        ("[x](https://example.org/c.md) [y](mailto:a@b)", None),
        ("`[x](c.md)`", None),
        ("```\n[x](c.md)\n```\n", None),
        ("~~~\n[x](c.md)\n~~~\n\n[y](d.md)", "docs/a.md:5: [...](d.md): there is no docs/d.md"),
        ("Text:\n\n    [x](c.md)\n", None),
        ("- item\n    [x](c.md)\n", "docs/a.md:2"),
        ("![picture](c.png)", "there is no docs/c.png"),
        ('[x](c.md "title")', "there is no docs/c.md"),
    ],
)
def test_links_that_lead_nowhere_are_told(tmp_path, text, said):
    root = project(tmp_path, docs__a_md=text, docs__b_md="# A heading, of `its`\n## A heading of its\n")
    (root / "stages").mkdir()
    wrong = links.faults(root, sources.pages(root))
    assert len(wrong) == (said is not None), wrong
    assert said is None or said in wrong[0]


def test_a_notebooks_anchors_are_jupyters(tmp_path):
    cell = {"cell_type": "markdown", "source": ["# The map\n", "[x](../docs/a.md)"], "metadata": {}}
    root = project(tmp_path, docs__a_md="[x](../notebooks/n.ipynb#The-map)")
    project(root, notebooks__n_ipynb=json.dumps({"cells": [cell]}))
    assert not links.faults(root, sources.pages(root))
    project(root, docs__a_md="[x](../notebooks/n.ipynb#the-map)")
    assert "The-map" in links.faults(root, sources.pages(root))[0]


def test_a_pictures_words_do_not_run_together():
    text = sources.one_line_each("![eight\nwavefronts](a.svg)\n[of\none](b)")
    assert text == "![eight wavefronts](a.svg)\n[of\none](b)"


def test_a_new_page_is_listed_on_pages_that_were_built_before(tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHLADDER_BUILD", str(tmp_path))
    monkeypatch.setattr(docs, "missing", lambda: [])
    pages, asked = [PurePosixPath("a.md"), PurePosixPath("b/c.ipynb")], []
    monkeypatch.setattr(docs.sources, "collect", lambda folder: pages)
    failed = SimpleNamespace(returncode=1)
    monkeypatch.setattr(docs.subprocess, "run", lambda command, **_: asked.append(command) or failed)
    html = docs.site_directory() / "html"
    (html / "b").mkdir(parents=True)
    for name in ("a.html", "b/c.html"):
        with pytest.raises(FlashLadderError, match="Sphinx objects"):
            docs.run()
        (html / name).touch()
    with pytest.raises(FlashLadderError, match="Sphinx objects"):
        docs.run()
    assert ["-a" in command for command in asked] == [True, True, False]


def test_rewriting_leaves_code_and_the_world_alone():
    text = "[a](x/#top) `[a](x/)` [b](https://x/) ![c](x/)"
    new = links.rewritten(text, lambda target, anchor: f"{target}README.md" + f"#{anchor}" * bool(anchor))
    assert new == "[a](x/README.md#top) `[a](x/)` [b](https://x/) ![c](x/README.md)"


def test_every_page_has_one_place_and_lessons_are_in_order():
    everything = sources.pages()
    order = sources.ordered(everything)
    places = [page for _, mine in order for page in mine]
    assert sorted(places) == sorted(everything)
    lessons = [page.stem for page in dict(order)["Lessons"]]
    assert lessons[0] == "start_here" and lessons[-1] == "the_climb"
    assert lessons[1:-1] == [stage.name for stage in stages.all_parts() if kernel_pages.lesson(stage)]
    unknown = PurePosixPath("docs/a_new_page.md")
    assert unknown in dict(sources.ordered([*everything, unknown]))["Carry it on"]


def test_collecting(tmp_path):
    (tmp_path / "old.md").write_text("of a page that is gone")
    pages = sources.collect(tmp_path)
    assert not (tmp_path / "old.md").exists()
    assert all((tmp_path / page).exists() for page in pages)
    assert {"README.md", "notebooks/05_swizzle.ipynb", "stages/05_swizzle/kernel.md", "api/attention.rst"} <= {
        str(page) for page in pages
    }
    assert "(stages/05_swizzle/README.md)" in (tmp_path / "README.md").read_text()
    assert (tmp_path / "docs/results/throughput-d128.png").exists(), "pictures come with their pages"
    notebook = json.loads((tmp_path / "notebooks/05_swizzle.ipynb").read_text())
    assert "stages/05_swizzle/kernel.html" in notebook["cells"][1]["source"]
    assert notebook["cells"][2]["metadata"]["tags"] == ["hide-cell"], "the set-up"
    assert "start_here.ipynb#the-map" in json.dumps(notebook)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.md")}
    sources.collect(tmp_path)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.md")} == before, "what is as it was stays so"


def test_collecting_stops_at_a_broken_link(tmp_path):
    with pytest.raises(FlashLadderError, match="docs/a.md:1"):
        sources.collect(tmp_path / "out", project(tmp_path / "in", docs__a_md="[x](gone.md)"))


def test_a_kernels_page_has_what_it_adds_and_all_of_it():
    page = kernel_pages.page(stages.get(5))
    assert "+    return row * d_head + (c ^ row % 8) * chunk;" in page
    assert stages.get(5).kernel.read_text() in page
    assert "What it adds" not in kernel_pages.page(stages.get(1))


def test_the_table_has_every_measurement():
    shipped = recorded.shipped()
    rows = results_table.rows(shipped)
    assert len(rows) == sum(len(recorded.pick(results)) for results in shipped) > 0
    html = results_table.table(shipped)
    assert html.count("<tr") == len(rows) + 1
    assert {row["mask"] for row in rows} == {"full", "causal"}
    changed = json.loads(json.dumps(shipped[0]))
    for row in changed["measurements"]:
        row["kernel_sha256"] = "of another kernel"
    starred = [row["kernel"] for row in results_table.rows([changed]) if row["kind"] == "stage"]
    assert starred and all(name.endswith("*") for name in starred)


def test_the_front_page_has_its_buttons_and_its_picture():
    template = front.BUTTONS + "\n" + front.CLIMB + "\n" + front.SECTIONS
    with_page, without = (front.page(template, [], runs) for runs in (True, False))
    assert "Run a kernel now" in with_page and "Run a kernel now" not in without
    assert all("Start the lessons" in text and "climb.svg" in text for text in (with_page, without))
    with pytest.raises(FlashLadderError, match="site: buttons"):
        front.page("no marks", [], False)


def test_long_tables_are_folded_with_their_titles():
    rows = "<tr><td>1</td></tr>"
    most = lesson_pages.LONG_TABLE
    short, long = (f"<div><b>A &lt; B</b></div><table>{rows * n}</table>" for n in (most - 1, most))
    assert lesson_pages.folded_table(short) == short
    assert f"<summary>A &lt; B: {most - 1} rows</summary><table>" in lesson_pages.folded_table(long)
    assert lesson_pages.folded_table(f"<details>{long}</details>") == f"<details>{long}</details>"


def test_a_task_that_the_page_judges_leads_there(monkeypatch):
    stage, task = stages.get("swizzle"), {"cell_type": "code", "source": "%%write tile_offset\n..."}
    for is_built, words in ((True, 'href="../write.html#05/tile_offset"'), (False, "")):
        monkeypatch.setattr(lesson_pages.run_page, "is_built", lambda is_built=is_built: is_built)
        link = lesson_pages.in_the_page(task, stage)
        assert words in link["source"] if words else link is None
    monkeypatch.setattr(lesson_pages.run_page, "is_built", lambda: True)
    assert "Where a chunk lies" in lesson_pages.in_the_page(task, stage)["source"], "the name of the editor's frame"
    assert lesson_pages.in_the_page({"cell_type": "code", "source": "lesson.verify()"}, stage) is None
    of_decode, elsewhere = stages.entry("split_kv"), stages.entry("host_streams")
    assert f"../write.html#{of_decode.id}/" in lesson_pages.in_the_page(a_task(of_decode), of_decode)["source"]
    assert lesson_pages.in_the_page(a_task(elsewhere), elsewhere) is None


def test_each_stage_with_exercises_is_on_the_page_or_has_a_sentence():
    known = {one.id for one in page_exercises.offered()}
    others = [one for one in stages.all_parts() if exercise.exercises(one) and one.id not in known]
    told = " ".join(page_exercises.elsewhere())
    ranges = [(int(a), int(b or a)) for a, b in re.findall(r"Stages? (\d+)(?: to (\d+))?:", told)]
    assert len(known) > len(others) > 0
    for stage in others:
        assert any(first <= stage.number <= last for first, last in ranges), stage.id
        assert not lesson_pages.in_the_page(a_task(stage), stage)


def test_stages_without_exercises_are_named_on_their_page():
    without = {one.number for one in stages.all_parts() if not exercise.exercises(one)}
    numbers = re.match(r"Stages without exercises: ([\d, to]+)\. ", page_exercises.elsewhere()[-1])[1]
    rows = [[int(end) for end in row.split(" to ")] for row in numbers.split(", ")]
    assert without and without == {number for row in rows for number in range(row[0], row[-1] + 1)}


def test_a_lessons_commands_are_of_what_there_is():
    for stage in stages.all_parts():
        shown = lesson_pages.actions(stage, "../", lesson=True)
        assert (f"make exercise-{stage.id} " in shown) == bool(exercise.exercises(stage)), stage.id
        assert "make notebooks " in shown


def test_exercises_on_several_gpus_would_have_a_sentence(monkeypatch):
    """None of these stages has exercises yet."""
    monkeypatch.setattr(page_exercises, "exercises", lambda stage: [stage])
    numbers = [one.id for one in stages.ring_stages()]
    assert not {one.id for one in page_exercises.offered()} & set(numbers)
    sentence = f"Stages {numbers[0]} to {numbers[-1]}: {page_exercises.SEVERAL_GPUS}."
    assert sentence in "".join(page_exercises.elsewhere())


@pytest.mark.parametrize("stage", page_exercises.offered(), ids=lambda stage: stage.id)
def test_what_the_page_asks_for_is_device_code(stage):
    """Its launches were recorded when the site was built."""
    lines = stage.source.read_text().splitlines()
    launch = lines.index("// ---- launch ----") + 1
    assert all(one.last < launch for one in exercise.exercises(stage))
    for one in exercise.mends(stage):
        assert one.starter().splitlines()[launch - len(lines) - 1 :] == lines[launch - 1 :], one.name


def a_task(stage) -> dict:
    return {"cell_type": "code", "source": f"%%write {exercise.exercises(stage)[0].name}"}


def test_sliders_are_read_from_their_cells():
    names = {one.draw: one for one in pictures.sliders()}
    assert names["mma_fragments"].choices["lane"] == [*range(5, 32), *range(5)]
    assert names["swizzle"].choices == {"on": [True, False], "d": [128, 64], "chunk": [*range(8)]}
    text = {"cell_type": "code", "source": f"slider(plot.swizzle, d=[*range({pictures.MOST_FRAMES + 1})])"}
    assert pictures.slider_of(text, "too many") is None


def test_what_is_built_is_looked_over(tmp_path):
    (tmp_path / "a.html").write_text(
        '<script src="https://cdn.example/x.js"></script><a href="https://example.org">out</a>'
        '<a href="b.html#there">1</a><a href="b.html#gone">2</a><a href="c.html">3</a><a href="#top">4</a><p id="top">'
        '<a href="b.html#left=04">5</a><img src="data:image/png;base64,AA">'
    )
    (tmp_path / "b.html").write_text('<h1 id="there">B</h1>')
    assert [fault.split(": ", 1)[1] for fault in built.faults(tmp_path)] == [
        "https://cdn.example/x.js is loaded from elsewhere; the site has to hold it itself",
        "b.html#gone: the page has no such place",
        "c.html: there is no such page",
    ]


def test_a_terms_first_sentence_is_plain():
    known = {term.name: term for term in glossary.terms(glossary.GLOSSARY.read_text())}
    assert known["fragment"].first_sentence == "The part of a matrix that one lane holds in registers for mma."
    assert not [term.name for term in known.values() if not term.first_sentence or "](" in term.first_sentence]
