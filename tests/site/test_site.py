"""The site as it is built: no warning, previous and next, terms, the table in a browser. Needs the extra `docs`."""

import html
import re
import shutil
import struct
import subprocess

import pytest

from flashladder.commands import docs
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.site import kernel_pages, shown_pictures

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(docs.missing()), reason=f"{', '.join(docs.missing())} not installed: extra `docs`"),
    pytest.mark.xdist_group("site"),
]


def test_lessons_have_a_previous_and_a_next_one(site):
    names = ["start_here", *(stage.name for stage in stages.all_parts() if kernel_pages.lesson(stage)), "the_climb"]
    for before, name, after in zip(names, names[1:], names[2:]):
        page = (site / f"notebooks/{name}.html").read_text()
        assert re.search(rf'<a class="prev-page" href="{before}\.html"', page), name
        assert re.search(rf'<a class="next-page" href="{after}\.html"', page), name


def test_notebooks_show_their_saved_outputs(site):
    page = (site / "notebooks/05_swizzle.html").read_text()
    assert page.count("cell_output") > 10 and "XOR" in page
    assert len(list((site / "_images").glob("*.png"))) > 50


def test_a_saved_picture_has_its_words_and_its_size_and_opens(site):
    page = (site / "notebooks/05_swizzle.html").read_text()
    shown = re.findall(r'<a class="picture" href="([^"]+)"[^>]*><img ([^>]*)>', page)
    assert len(shown) == page.count("<img ") > 3
    for address, attributes in shown:
        words, width, height = (re.search(rf'{name}="([^"]+)"', attributes)[1] for name in ("alt", "width", "height"))
        content = (site / "notebooks" / address).read_bytes()
        assert struct.unpack(">II", content[16:24]) == (int(width), int(height))
        assert len(words.split()) > 5 and ".png" not in words


def test_terms_are_linked_with_their_meaning(site):
    page = (site / "common/simulator/README.html").read_text()
    link = re.search(r'<a class="[^"]*term[^"]*" href="[./]*docs/glossary\.html#ptx" title="([^"]+)"', page)
    assert link and len(html.unescape(link[1])) > 20
    assert page.count("docs/glossary.html#ptx") == 1, "at its first use, and there alone"


def test_the_search_knows_code_and_prose(site):
    index = (site / "searchindex.js").read_text()
    for word in ("ldmatrix", "bank", "flash_forward"):
        assert f'"{word}"' in index or f"{word}:" in index, word


def test_a_warning_is_an_error(site, monkeypatch):
    monkeypatch.setenv("FLASHLADDER_BUILD", str(site.parents[1]))
    with pytest.raises(FlashLadderError, match="a warning is an error"):
        docs.run(["-b", "dummy", "-D", "no_such_setting=1"])  # the pages are read already


def in_a_browser(address: str, folder) -> str:
    """The page as its scripts have made it."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("no chromium on PATH: apt install chromium")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--dump-dom"]
    return subprocess.run([*command, address], capture_output=True, text=True, timeout=120).stdout


def test_the_search_finds_in_a_browser(site, tmp_path):
    """Its scripts come one after the other, after the page."""
    page = in_a_browser((site / "search.html").as_uri() + "?q=swizzle", tmp_path)
    assert 'href="api/python.html#flashladder.plot.swizzle"' in page.split('id="search-results"')[1]


def test_the_table_filters_in_a_browser(site, tmp_path):
    page = in_a_browser((site / "docs/results_table.html").as_uri() + "#type=bf16&d=64&mask=causal&n=", tmp_path)
    rows = re.findall(r'<tr class="(?:stage|peer)"([^>]*)>', page)
    shown = [row for row in rows if "hidden" not in row]
    chosen = [row for row in rows if 'data-type="bf16" data-d="64" data-mask="causal"' in row]
    assert 0 < len(shown) < len(rows)
    assert shown == chosen


def test_a_long_table_shows_the_rows_with_some_words(site, tmp_path):
    page = in_a_browser((site / "docs/detections.html").as_uri() + "?rows=swizzle+shared_race", tmp_path)
    rows = re.findall(r'<tr class="row-(?:odd|even)"([^>]*)>(.*?)</tr>', page.split('id="each-mistake"')[1], re.S)[1:]
    words = [re.sub("<[^>]*>", "", text) for _, text in rows]
    shown = [text for (attributes, _), text in zip(rows, words) if "hidden" not in attributes]
    assert 0 < len(shown) < len(rows)
    assert shown == [text for text in words if "swizzle" in text and "shared_race" in text]
    assert f"{len(shown)} of {len(rows)} rows" in page


def test_a_picture_that_is_a_link_already_stays_one(tmp_path):
    file, picture = tmp_path / "a.png", '<img alt="" src="_images/a.png" />'
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480))
    linked, alone = f'<a href="there">{picture}</a>', shown_pictures.dress(picture, {"a.png": file}, {"a.png": "Bars"})
    assert shown_pictures.dress(linked, {"a.png": file}, {}) == linked
    assert alone.startswith('<a class="picture" href="_images/a.png"') and alone.endswith("</a>")
    assert 'alt="Bars"' in alone and 'width="640" height="480"' in alone
