"""The committed notebooks are canonical, and the check notices each way of not being so."""

import itertools
import json
import re

import pytest

from flashladder.core.paths import RECORDED
from flashladder.ladder import stages
from flashladder.lessons import notebook_format as form
from flashladder.lessons import sections
from flashladder.measuring import recorded


@pytest.mark.parametrize("file", form.files(), ids=lambda file: file.stem)
def test_canonical(file):
    assert form.faults(file) == []


@pytest.mark.parametrize("file", form.files(), ids=lambda file: file.stem)
def test_what_is_shown_as_recorded_is_still_in_a_record(file):
    """Else the notebook was saved before the records were: `notebooks --run --save NAME`. A record also has rows of
    runs before its own, which say so."""
    known = {recorded.load(one)["provenance"].get("commit") for one in RECORDED.glob("*.json")}
    for one in RECORDED.glob("*.json"):
        known |= set(re.findall(r'"run": "[^"]*, commit ([0-9a-f]{12})', one.read_text()))
    cells = form.load(file)["cells"]
    texts = [json.dumps(cell.get("outputs")) for cell in cells] + [sections.text_of(cell) for cell in cells]
    shown = {commit for text in texts for commit in re.findall(r"\bcommit ([0-9a-f]{12})\b", text)}
    assert shown
    assert shown <= known, f"no record is of commit {', '.join(sorted(shown - known))}"


def test_each_lesson_leads_on_to_the_stage_that_follows():
    """In its head and at the core path's end, under the following lesson's own title; the last one to the climb. The
    lessons on gradients follow after it, by themselves."""
    titled = {file: re.search(r"^# (.*)", markdown(file), re.M)[1] for file in form.files()}
    path = [file for stage in stages.every_stage() for file in titled if file.stem == stage.name]
    path.append(next(file for file in titled if file.stem == "the_climb"))
    assert len(path) == len(stages.every_stage()) + 1, "each stage has a notebook of its name"
    for file, following in itertools.pairwise(path):
        text = markdown(file)
        head = re.search(r"· next: \[([^\]]*)\]\(([^)]*)\)", " ".join(text.split()))
        assert head and head.groups() == (titled[following], following.name), f"{file.name} leads to {head and head[0]}"
        last = text.partition("\n## Check yourself")[2].partition("\n## Going deeper")[0]
        assert f"({following.name})" in last.rpartition("**Next.**")[2], f'the end of {file.name}: "**Next.**"?'


def test_the_map_has_each_stage_with_its_line_and_minutes():
    """`notebooks --format start_here` writes the last two columns."""
    row = r"^\| \[\d\d .*?\((\w+)\.ipynb\) \|.*\| (\w+) \| (\d+) \|$"
    rows = re.findall(row, markdown(form.FOLDER / "start_here.ipynb"), re.M)
    wanted = [(one.name, "core" if one.core else one.line, str(one.minutes)) for one in stages.every_stage()]
    assert rows == wanted


def markdown(file) -> str:
    """The prose of a notebook, or a Markdown file."""
    if file.suffix != ".ipynb":
        return file.read_text()
    cells = form.load(file)["cells"]
    return "\n\n".join(sections.text_of(cell) for cell in cells if cell["cell_type"] == "markdown")


def anchors(file) -> set[str]:
    """What a link may name behind #: Jupyter keeps a heading's words, Markdown pages make them small."""
    headings = re.findall(r"^#+ (.*)$", markdown(file), re.M)
    if file.suffix == ".ipynb":
        return {heading.replace(" ", "-") for heading in headings}
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("file", form.files(), ids=lambda file: file.stem)
def test_links_lead_somewhere(file):
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", markdown(file))
    assert links
    for path, anchor in links:
        if path.startswith("http"):
            continue
        target = (file.parent / path) if path else file
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}; there are {sorted(anchors(target))}"


@pytest.fixture
def saved(notebook):
    """A canonical notebook whose cells count as executed, and a function that changes it and returns the faults."""
    file = notebook("print(1)")
    content = form.load(file)
    for number, cell in enumerate((one for one in content["cells"] if one["cell_type"] == "code"), 1):
        cell["execution_count"] = number
    content["cells"][2]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "1\n"}]
    form.write(form.canonical(content, file), file)
    assert form.faults(file) == []

    def faults(change) -> str:
        changed = form.load(file)
        change(changed)
        form.write(changed, file)
        return " ".join(form.faults(file))

    return faults


def stream(text: str, name: str = "stdout") -> dict:
    return {"output_type": "stream", "name": name, "text": [text]}


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda nb: nb["cells"][2].update(execution_count=None), "execution count None"),
        (lambda nb: nb["cells"][2].update(execution_count=7), "execution count 7"),
        (lambda nb: nb["cells"][1].update(source=["print()"]), "not the set-up cell"),
        (lambda nb: nb["cells"][0].update(source=["no title"]), "not a title"),
        (lambda nb: nb["cells"][2].update(outputs=[stream("in /tmp/somewhere/x")]), "a place on this machine"),
        (lambda nb: nb["cells"][2].update(outputs=[stream("/home/me/x.py")]), "a place on this machine"),
        (lambda nb: nb["cells"][2].update(outputs=[stream("\x1b[31mred")]), "colours of a terminal"),
        (lambda nb: nb["cells"][2].update(outputs=[stream("warning", "stderr")]), "stderr"),
        (lambda nb: nb["cells"][2].update(outputs=[stream("x" * 1_100_000)]), "more than 1000000"),
        (lambda nb: nb["metadata"].update(widgets={"state": {}}), "not in canonical form"),
        (lambda nb: nb["cells"][2]["metadata"].update(collapsed=True), "not in canonical form"),
        (lambda nb: nb["cells"][2].update(id="other"), "not in canonical form"),
        (
            lambda nb: nb["cells"][2].update(
                outputs=[{"output_type": "error", "ename": "ValueError", "evalue": "", "traceback": []}]
            ),
            "an error is among its outputs: ValueError",
        ),
        (
            lambda nb: nb["cells"][2].update(
                outputs=[{"output_type": "display_data", "metadata": {}, "data": {"image/png": "AA=="}}]
            ),
            "a picture without words",
        ),
    ],
)
def test_faults_are_found(saved, change, words):
    assert words in saved(change)


def test_an_address_is_no_place_on_this_machine(saved):
    change = stream("https://example.org/home/page and build/tmp/x")
    assert saved(lambda nb: nb["cells"][2].update(outputs=[change])) == ""


def test_canonical_is_a_fixed_point_without_widgets(notebook):
    file = notebook("show()")
    content = form.load(file)
    widget = {"output_type": "display_data", "metadata": {"x": 1}, "data": {form.WIDGETS: {"model_id": "1"}}}
    words = {"image/png": {"alt": "A kernel"}}
    metadata = {"x": 1, "image/png": {"alt": "A kernel", "width": 9}}
    picture = {"output_type": "display_data", "metadata": metadata, "data": {"image/png": "AA==\n"}}
    content["cells"][2]["outputs"] = [widget, picture, stream("10%\r"), stream("100%\r\ndone \n")]
    once = form.canonical(content, file)
    outputs = once["cells"][2]["outputs"]
    assert outputs[0] == {"output_type": "display_data", "metadata": words, "data": {"image/png": "AA=="}}
    assert outputs[1]["text"] == ["100%\n", "done\n"] and len(outputs) == 2
    assert form.canonical(once, file) == once


def test_a_badge_only_where_an_address_is_configured(notebook, monkeypatch):
    file = notebook("1", name="05_swizzle.ipynb")
    hosted = {"repository": "https://git.example/x.git", "hosted": "https://lab.example/open/{path}", "badge": ""}
    monkeypatch.setattr(form, "settings", lambda: hosted)
    with_badge = form.canonical(form.load(file), file)
    title = sections.text_of(with_badge["cells"][0])
    assert "(https://lab.example/open/notebooks/05_swizzle.ipynb)" in title
    assert '"clone", "--quiet", "--depth", "1", "https://git.example/x.git"' in sections.text_of(with_badge["cells"][1])
    assert form.canonical(with_badge, file) == with_badge
    monkeypatch.setattr(form, "settings", lambda: dict.fromkeys(hosted, ""))
    assert sections.text_of(form.canonical(with_badge, file)["cells"][0]) == "# A title"


def test_going_deeper_is_folded(saved):
    """The one thing that a cell's metadata says, and only there."""

    def add(content):
        content["cells"].append({"cell_type": "markdown", "metadata": {}, "source": ["## Going deeper"]})

    assert "not in canonical form" in saved(add)
    file = "lesson.ipynb"
    cells = [{"cell_type": "markdown", "metadata": {}, "source": text} for text in ("# Title", "## Going deeper")]
    title, deeper = form.canonical({"cells": cells}, form.FOLDER / file)["cells"]
    assert title["metadata"] == {} and deeper["metadata"] == {"jp-MarkdownHeadingCollapsed": True}


def test_files_are_written_whole(notebook):
    file = notebook("1")
    form.write({"cells": []}, file)
    assert json.loads(file.read_text()) == {"cells": []}
    assert [one.name for one in file.parent.glob("*.ipynb*")] == [file.name]


# ---- long lines ----

FENCED = re.compile(r"```.*?```", re.S)


@pytest.mark.parametrize(
    "text",
    [
        "word " * 60,
        "- " + "word " * 60,
        "1. " + "`two words` " * 30,
        "see [a link of words](page.md#place) " * 12,
        "a sum a - b and " * 20 + "so 1. or 2) or # or > or | " * 8,
        "```cpp\n" + "word " * 60 + "\n```\n\n" + "word " * 60,
        "| a | b |\n| --- | --- |\n| " + "word " * 60 + " | x |",
    ],
)
def test_what_is_broken_reads_the_same(text):
    """Long lines of sections are broken without a change of what they say."""
    markdown = pytest.importorskip("markdown_it")

    def rendered(text):
        return " ".join(markdown.MarkdownIt("commonmark").enable("table").render(text).split())

    broken = sections.wrapped(text)
    assert rendered(broken) == rendered(text)
    prose = [line for line in FENCED.sub("", broken).split("\n") if not line.startswith("|")]
    assert all(len(line) <= sections.LONGEST for line in prose), prose
    assert sections.wrapped(broken) == broken
