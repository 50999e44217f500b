"""Where comments and strings of a C++ text lie. Each character is looked at a fixed number of times, whatever the text
is: it is of unknown origin, and a pattern that goes back over it would take hours for some."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

CODE, COMMENT, STRING = "code", "comment", "string"
_BEGIN = re.compile(r"//|/\*|\"|'")
_RAW = re.compile(r"(?:^|(?<!\w))(?:u8|[uUL])?R$")
_RAW_OPENING = re.compile(r"\"([^ ()\\\t\v\f\r\n]{0,16})\(")
# What a string or a character ends with: its quote, or the line that it should have ended in.
_STRING_END = {quote: re.compile(rf"(?:[^{quote}\\\n]|\\.)*{quote}?") for quote in "\"'"}


@dataclass(frozen=True)
class Piece:
    """A part of a text, of one kind."""

    kind: str
    first: int  # offsets
    end: int


def pieces(text: str) -> Iterator[Piece]:
    """All of a text in order: code, comments, strings (with characters and raw strings)."""
    at = code = 0
    while found := _BEGIN.search(text, at):
        first, opening = found.start(), found[0]
        if opening == "'" and _is_separator(text, first):
            at = first + 1
            continue
        if opening == "//":
            kind, end = COMMENT, _find(text, "\n", first)
        elif opening == "/*":
            kind, end = COMMENT, _find(text, "*/", first + 2, 2)
        else:
            kind, end = STRING, _string_end(text, first, opening)
        if code < first:
            yield Piece(CODE, code, first)
        yield Piece(kind, first, end)
        at = code = end
    if code < len(text):
        yield Piece(CODE, code, len(text))


def _find(text: str, words: str, first: int, more: int = 0) -> int:
    found = text.find(words, first)
    return len(text) if found < 0 else found + more


def _is_separator(text: str, at: int) -> bool:
    """The quote in 1'000."""
    before, after = text[max(0, at - 1) : at], text[at + 1 : at + 2]
    return before.isalnum() and after.isalnum() and text[max(0, at - 2) : at] not in ("u8",) and before not in "uUL"


def _string_end(text: str, first: int, quote: str) -> int:
    raw = quote == '"' and _RAW.search(text[max(0, first - 4) : first]) and _RAW_OPENING.match(text, first)
    if raw:
        closing = f'){raw[1]}"'
        return _find(text, closing, raw.end(), len(closing))
    return _STRING_END[quote].match(text, first + 1).end()


def without_comments(text: str) -> str:
    """The text with a blank in place of each comment; the line ends of a comment stay, so lines keep their numbers."""
    kept = []
    for piece in pieces(text):
        words = text[piece.first : piece.end]
        kept.append(words if piece.kind != COMMENT else " " + "\n" * words.count("\n"))
    return "".join(kept)


class Lines:
    """The line numbers, from 1, of offsets in a text."""

    def __init__(self, text: str):
        self._ends = [found.start() for found in re.finditer("\n", text)]

    def of(self, offset: int) -> int:
        return bisect_right(self._ends, offset - 1) + 1
