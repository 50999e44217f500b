"""A page's styles stand in the page, without the rules that cannot match there."""

import pytest

pytest.importorskip("tinycss2")

from flashladder.site import styles  # noqa: E402

PAGE = """<!doctype html><html><head><title>page</title>
<link rel="stylesheet" type="text/css" href="../_static/styles/theme.css?v=1" />
<link rel="stylesheet" type="text/css" href="../_static/own.css" />
</head><body class="shown"><link rel="stylesheet" href="of_the_page.css">
<p id="here">word</p></body></html>
"""


@pytest.mark.parametrize(
    ("style", "kept"),
    [
        (".shown { color: red }  .missing { color: red }", ".shown{color: red}"),
        ("p,\n.missing,\n.shown p { color: red }", "p,.shown p{color: red}"),
        ("#here:not(.missing) { color: red }", "#here:not(.missing){color: red}"),
        (":is(a, b:not(.missing), .missing) p { color: red }", ":is(a, b:not(.missing), .missing) p{color: red}"),
        ('[data-theme=".missing"] p { color: red }', '[data-theme=".missing"] p{color: red}'),
        (r".missing\:x { color: red }", r".missing\:x{color: red}"),
        ("@media print { .missing { color: red } }", ""),
        ("@media print { .shown { color: red } .missing { top: 0 } }", "@media print{.shown{color: red}}"),
        ("@keyframes turn { from { top: 0 } to { top: 1px } }", "@keyframes turn{from { top: 0 } to { top: 1px }}"),
        ('@charset "utf-8"; p { color: red }', '@charset "utf-8";p{color: red}'),
        ("/* .shown { } */ p { /* red; */ color: blue }", "p{color: blue}"),
        (".shown::before { content: '} a  b {' }", '.shown::before{content: "} a  b {"}'),
        ("p { --icon: url(data:image/svg+xml;a{b}) }", "p{--icon: url(data:image/svg+xml;a{b})}"),
        (":root { --light: ; --dark: initial }", ":root{--light: ; --dark: initial}"),
    ],
)
def test_what_can_match_is_kept_as_it_is(style, kept):
    assert styles.needed(style, {"shown", "here"}) == kept


@pytest.fixture
def built(tmp_path):
    (tmp_path / "_static/styles").mkdir(parents=True)
    (tmp_path / "_static/styles/theme.css").write_text("p { color: red } .moved { top: 0 } .missing { top: 1px }")
    (tmp_path / "_static/own.css").write_text("p { color: blue }")
    (tmp_path / "_static/site.js").write_text('box.classList.add("moved")')
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/lesson.html").write_text(PAGE)
    (tmp_path / "notebooks/of_the_page.css").write_text(".made_of_words { top: 3px }")
    return tmp_path


def test_a_page_waits_for_no_style_of_the_theme(built):
    styles.put_into_pages(built)
    page = (built / "notebooks/lesson.html").read_text()
    theme, own = "p{color: red}.moved{top: 0}p{color: blue}", ".made_of_words { top: 3px }"
    names = "_static/styles/theme.css _static/own.css notebooks/of_the_page.css"
    assert f'<style data-from="{names}">{theme}{own}</style>\n</head>' in page and "<link" not in page


def test_a_page_that_an_earlier_build_wrote_gets_the_styles_of_today(built):
    styles.put_into_pages(built)
    (built / "_static/own.css").write_text("p { color: green } .shown { top: 2px }")
    styles.put_into_pages(built)
    page = (built / "notebooks/lesson.html").read_text()
    assert page.count("<style") == 1 and "p{color: green}.shown{top: 2px}.made_of_words" in page
    assert "blue" not in page and ".missing" not in page
