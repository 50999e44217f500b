"""A lesson as a page of the site: what leads out of it at its head, its boilerplate folded, its sliders alive.

What is saved in the notebook stays as it is; here cells are marked, and outputs are put into boxes that open.
"""

import functools
import re
from html import escape, unescape

from flashladder.classroom.exercise import exercises
from flashladder.ladder import stages
from flashladder.ladder.stage import Stage
from flashladder.lessons import sections
from flashladder.site import kernel_pages, page_exercises, page_kernels, pictures, run_page

MOST_PICTURES = 2  # of one cell, before they are folded
LONG_TABLE = 5  # rows, with the head: from here on it is folded
SET_UP = {"tags": ["hide-cell"], "mystnb": {"code_prompt_show": "The notebook's set-up"}}


def in_the_editor(stage: Stage, to_front: str) -> str:
    """The address of the page that runs kernels, with this stage beside the one that it changes; "" where the site has
    no such page, or not with this stage."""
    if not run_page.is_built() or stage.id not in _offered():
        return ""
    before = stages.previous_of(stage)
    return f"{to_front}run.html#left={before.id if before else stage.id}&right={stage.id}"


@functools.cache
def _offered() -> set[str]:
    return {one.stage.id for one in page_kernels.offered()}


def in_the_page(cell: dict, stage: Stage) -> dict | None:
    """Behind a cell in which some lines are to be written: a link to the page that judges them, which site.js opens in
    place; None elsewhere."""
    task = re.match(r"%%write (\w+)", sections.text_of(cell))
    title = _written_in_the_page().get(stage.id, {}).get(task[1]) if task else None
    if not title or not run_page.is_built():
        return None
    address = f"../write.html#{stage.id}/{task[1]}"
    link = f'<a class="button" href="{address}" data-task="{escape(title)}">Write it in the browser</a>'
    source = f'<div class="actions write-here">{link}</div>'
    return {"cell_type": "markdown", "id": f"write-{task[1]}", "metadata": {}, "source": source}


@functools.cache
def _written_in_the_page() -> dict[str, dict[str, str]]:
    """By stage, the titles of its exercises."""
    every = page_exercises.index()["stages"]
    return {one["id"]: {each["name"]: each["title"] for each in one["exercises"]} for one in every}


def results_of(stage: Stage, to_front: str) -> str:
    return f"{to_front}docs/results_table.html#kernel={stage.name}&type={stage.measured_dtype}&d=128"


def actions(stage: Stage, to_front: str, lesson: bool) -> str:
    """The line of buttons below a lesson's or a card's title, as HTML. lesson: it is the lesson's own."""
    found = []
    editor = in_the_editor(stage, to_front)
    if editor:
        found.append(f'<a class="button" href="{editor}">Open in the editor</a>')
    if not lesson and kernel_pages.lesson(stage):
        place = kernel_pages.lesson(stage).replace(".ipynb", ".html")
        found.append(f'<a class="button" href="{to_front}{place}">The lesson</a>')
    folder = f"{to_front}stages/{stage.name}"
    added = ", and what it adds" if stage.previous is not None else ""
    found.append(f'<a href="{folder}/kernel.html">{stage.source.name}{added}</a>')
    if lesson:
        found.append(f'<a href="{folder}/README.html">the card</a>')
    if stage in stages.all_stages():
        found.append(f'<a href="{results_of(stage, to_front)}">its results</a>')
    commands = [f"make stage-{stage.id} test"]
    if exercises(stage):
        commands.append(f"make exercise-{stage.id}     # in your own editor")
    if kernel_pages.lesson(stage):
        commands.append(f"make notebooks       # {stage.name}.ipynb")
    text = escape("\n".join(commands))
    local = f'<details class="local"><summary>Run locally</summary><pre>{text}</pre></details>'
    kind = "actions lesson" if lesson else "actions"
    return f'<div class="{kind}">\n{" ".join(found)}\n{local}\n</div>'


def prepare(notebook: dict, stage: Stage | None, name: str) -> None:
    """Changes the cells of a notebook that is about to become a page."""
    for place, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        if "setup.start(" in sections.text_of(cell):
            cell["metadata"] = SET_UP
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "text/html" in data:
                data["text/html"] = folded_table(sections.joined(data["text/html"]))
        shown = sum("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
        if shown > MOST_PICTURES or sections.text_of(cell).count("lesson.throughput(") > 1:  # a screen by themselves
            cell["metadata"] = {"tags": ["hide-output"], "mystnb": {"code_prompt_show": f"{shown} pictures"}}
        slider = pictures.slider_of(cell, f"{name}-{place}")
        if slider:
            data = {"text/html": slider.control(), "text/plain": "controls"}
            cell["outputs"].insert(0, {"output_type": "display_data", "data": data, "metadata": {}})
    if stage:
        pairs = ((cell, in_the_page(cell, stage)) for cell in notebook["cells"])
        notebook["cells"] = [cell for pair in pairs for cell in pair if cell]
        head = {"cell_type": "markdown", "id": "actions", "metadata": {}, "source": actions(stage, "../", lesson=True)}
        notebook["cells"].insert(1, head)


def folded_table(html: str) -> str:
    """An output whose table has many rows, below a line that opens it: its title."""
    rows = html.count("<tr")
    if rows < LONG_TABLE or "<details" in html:
        return html
    title = re.match(r"<div><b>(.*?)</b></div>", html)
    words = unescape(title[1]) if title else "A table"
    rest = html[title.end() :] if title else html
    return f'<details class="table"><summary>{escape(words)}: {rows - 1} rows</summary>{rest}</details>'
