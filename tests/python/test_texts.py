"""Texts stay readable in an editor and in a diff: no line of prose is longer than 120 characters."""

import re

import pytest

pytest.importorskip("matplotlib")

from flashladder.commands import results  # noqa: E402
from flashladder.core.paths import ROOT  # noqa: E402

LONGEST = 120
_GENERATED = re.compile(r"<!-- results:.*?<!-- end results -->", re.S)
_FENCE = re.compile(r"^( *)(```|~~~).*?^ *\2 *$", re.M | re.S)
_NO_PROSE = re.compile(r"\||<| {4}")  # a row of a table, HTML, code that is indented


def long_lines(text: str) -> list[str]:
    for code in (_GENERATED, _FENCE):
        text = code.sub(lambda match: "\n" * match[0].count("\n"), text)
    return [
        f"line {number} has {len(line)} characters: {line[:60]}..."
        for number, line in enumerate(text.split("\n"), 1)
        if len(line) > LONGEST and not _NO_PROSE.match(line)
    ]


@pytest.mark.parametrize("file", results.documents(), ids=lambda file: str(file.relative_to(ROOT)))
def test_no_line_of_prose_is_long(file):
    faults = [fault for part in results.parts_of(file) for fault in long_lines(part)]
    assert not faults, f"{file.relative_to(ROOT)}: break these lines:\n" + "\n".join(faults)


@pytest.mark.parametrize(
    "text, lines",
    [
        ("word " * 25, [1]),
        ("short\n\n- " + "word " * 25, [3]),
        ("  " + "word " * 24, [1]),
        ("word " * 24, []),
        ("| " + "word " * 25 + "|", []),
        ("```\n" + "word " * 25 + "\n```\n" + "word " * 25, [4]),
        ("<!-- results: stage 05 -->\n" + "word " * 25 + "\n<!-- end results -->\n" + "word " * 25, [4]),
        ("    make x " + "word " * 25, []),
    ],
)
def test_long_lines_are_found(text, lines):
    assert [int(fault.split()[1]) for fault in long_lines(text)] == lines
