"""Long lines of a notebook's sections are broken without a change of what they say."""

import re

import pytest

from flashladder.lessons.sections import LONGEST, wrapped

FENCED = re.compile(r"```.*?```", re.S)
markdown = pytest.importorskip("markdown_it")


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
    def rendered(text):
        return " ".join(markdown.MarkdownIt("commonmark").enable("table").render(text).split())

    broken = wrapped(text)
    assert rendered(broken) == rendered(text)
    prose = [line for line in FENCED.sub("", broken).split("\n") if not line.startswith("|")]
    assert all(len(line) <= LONGEST for line in prose), prose
    assert wrapped(broken) == broken
