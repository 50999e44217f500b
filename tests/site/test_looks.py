"""How the built pages look in a browser: how long they are, that nothing is wider than the screen, and what axe objects
to, at the width of a laptop and of a telephone, and what the browser loads before the first paint. What they weigh,
from the files."""

import functools
import http.server
import json
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from page_runs import axe

from flashladder.commands import docs
from flashladder.ladder import stages
from flashladder.site import built, kernel_pages, pictures

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(docs.missing()), reason=f"{', '.join(docs.missing())} not installed: extra `docs`"),
    pytest.mark.xdist_group("site"),
]

LAPTOP, TELEPHONE = 1280, 390
MOST_SCREENS, MOST_BYTES = 6, 600_000
# Files that are asked for before a page's first paint, which waits for none of them.
MOST_BEFORE, MOST_SHIFT = 16, 0.1
LESSONS = [f"{kernel_pages.lesson(one)[:-6]}.html" for one in stages.all_parts() if kernel_pages.lesson(one)]
LESSONS = ["notebooks/start_here.html", *LESSONS, "notebooks/the_climb.html"]
OTHERS = ["index.html", "stages/05_swizzle/README.html", "stages/05_swizzle/kernel.html", "docs/results_table.html",
          "docs/results.html", "docs/glossary.html", "search.html", LESSONS[0]]  # fmt: skip
LOOKED_AT = [*OTHERS, *(page for page in LESSONS if page[10:12] in ("04", "16", "44"))]


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        own = {"/_looks.html": Path(__file__).with_name("looks.html").read_bytes(), "/_wanted.json": self.server.wanted}
        own["/_axe.js"] = axe().read_bytes() if axe() else b""
        if self.path not in own:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(self.path))
        self.end_headers()
        self.wfile.write(own[self.path])

    def do_POST(self):
        self.server.results = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self.server.done.set()

    def log_message(self, *_):
        pass


def seen(site: Path, pages: list[tuple[str, int]], profile: Path, with_axe: bool = False) -> list[dict]:
    """What looks.html sees of each page at its width."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if not program:
        pytest.skip("no chromium on PATH: apt install chromium")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site)))
    wanted = {"pages": [{"page": page, "width": width} for page, width in pages], "axe": with_axe}
    server.wanted, server.done, server.results = json.dumps(wanted).encode(), threading.Event(), []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--window-size=1400,900"]
    address = f"http://127.0.0.1:{server.server_port}/_looks.html"
    command = [program, *options, f"--user-data-dir={profile}", address]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        try:
            assert server.done.wait(900), "the browser has sent nothing"
        finally:
            browser.terminate()
            server.shutdown()
            server.server_close()
    return server.results


@pytest.fixture(scope="module")
def lessons(site, tmp_path_factory) -> list[dict]:
    pages = [(page, width) for page in LESSONS for width in (LAPTOP, TELEPHONE)]
    return seen(site, pages, tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def looked_at(site, tmp_path_factory) -> list[dict]:
    running = [page for page in ("run.html", "write.html") if (site / page).is_file()]  # where the site has them
    pages = [(page, width) for page in [*LOOKED_AT, *running] for width in (LAPTOP, TELEPHONE)]
    return seen(site, pages, tmp_path_factory.mktemp("profile"), with_axe=axe() is not None)


def test_a_lesson_is_short_until_its_parts_are_opened(lessons):
    long = {(one["page"], one["width"]): one["screens"] for one in lessons if one["screens"] > MOST_SCREENS}
    assert len(lessons) == 2 * len(LESSONS) and not long


def test_nothing_is_wider_than_the_screen(lessons, looked_at):
    for one in [*lessons, *looked_at]:
        assert one["pageWidth"] <= one["width"] and not one["wide"], (one["page"], one["width"])


def test_titles_begin_where_the_text_does(lessons, looked_at):
    for one in [*lessons, *looked_at]:
        assert len(one["edges"]) <= 1, (one["page"], one["width"], one["edges"])


def test_signs_of_a_pages_head_stand_apart(lessons):
    gaps = [gap for one in lessons if one["width"] == TELEPHONE for gap in one["gaps"]]
    assert len(gaps) >= len(LESSONS) and min(gaps) >= 6


def test_the_front_page_says_it_in_one_screen(looked_at):
    (front,) = (one for one in looked_at if (one["page"], one["width"]) == ("index.html", LAPTOP))
    assert {"FIGURE", "PRE", "DIV"} <= set(front["bottoms"])
    assert max(front["bottoms"].values()) <= 800


def test_axe_has_no_objection(looked_at):
    if axe() is None:
        pytest.skip("axe-core is not there: pip install axe-playwright-python")
    objections = [(one["page"], one["width"], one["violations"]) for one in looked_at if one["violations"]]
    assert not objections


def test_a_slider_shows_the_picture_of_what_is_chosen(site, looked_at):
    moved = {one["page"]: one["moved"] for one in looked_at if "moved" in one}
    (address,) = moved.values()
    assert address.endswith("-1-0.png") and (site / "notebooks" / address).is_file()
    for one in pictures.sliders():
        drawn = list((site / "_static" / pictures.SLIDERS).glob(f"{one.name}-*.png"))
        assert len({file.read_bytes() for file in drawn}) > 1, one


def test_pages_are_light(site):
    """Before the reader asks for anything: a search loads its index, a run the simulator. The table of all results is
    one page, so that it can be read without JavaScript."""
    heavy = {}
    for page in site.rglob("*.html"):
        if page.name not in ("search.html", "results_table.html") and built.weight(page) > MOST_BYTES:
            heavy[str(page.relative_to(site))] = built.weight(page)
    assert not heavy


def test_little_comes_before_the_first_paint(looked_at):
    """Of the front page and a lesson, as a browser counts it; the times are only printed."""
    asked = [one for one in looked_at if one["page"] in ("index.html", "notebooks/04_tensor_cores.html")]
    assert len(asked) == 4
    for one in asked:
        loaded, where = one["loaded"], f"{one['page']} at {one['width']}"
        print(where, {name: loaded[name] for name in ("milliseconds", "before", "bytes", "shift")})
        assert not loaded["blocking"], (where, loaded["blocking"])
        assert loaded["before"] <= MOST_BEFORE and loaded["bytes"] <= MOST_BYTES, (where, loaded)


def test_what_is_shown_stays_where_it_is(lessons, looked_at):
    """Of the table of all results, rows go when its script has come."""
    for one in [*lessons, *looked_at]:
        if one["page"] == "docs/results_table.html":
            continue
        assert one["loaded"]["shift"] <= MOST_SHIFT, (one["page"], one["width"], one["loaded"])


def test_a_shared_page_has_a_title_a_picture_and_an_icon(site):
    for page in ("index.html", "notebooks/05_swizzle.html"):
        text = (site / page).read_text()
        for wanted in ('property="og:title"', 'property="og:description"', "_static/climb.png", "_static/favicon.svg"):
            assert wanted in text, (page, wanted)
    assert (site / "_static/climb.png").stat().st_size > 10_000


def test_a_lesson_leads_on(site):
    text = (site / "notebooks/16_warp_specialization.html").read_text()
    for wanted in ("stages/16_warp_specialization/kernel.html", "results_table.html#kernel=16_", "make exercise-16"):
        assert wanted in text
    card = (site / "stages/16_warp_specialization/README.html").read_text()
    assert 'href="../../notebooks/16_warp_specialization.html"' in card
