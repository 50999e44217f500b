"""What an answer may not have, said before anything is compiled, in words and with the line.

The compiler is isolated in any case (classroom/isolation.py); this is for the levels that cannot hide files, and for
words that a student can use. A directive is looked for as the compiler finds it, behind blanks and comments at the
beginning of a line; one that includes is refused in comments and strings, too, in case that the two do not agree on
where these end. It takes time in proportion to the text, whatever the text is.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from flashladder.classroom.lexing import CODE, COMMENT, Lines, pieces

ALLOWED = ("define", "undef", "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif")
MOST_OBJECTIONS = 20
_HASH, _BLANKS = r"(?:\#|%:|\?\?=)", r"[ \t\v\f\r]*"
_DIRECTIVE = re.compile(rf"^{_BLANKS}({_HASH}){_BLANKS}([A-Za-z_]\w*|\d+)(?:{_BLANKS}(\w+))?", re.M)
_INCLUDING = re.compile(rf"^[ \t\v\f\r*/]*({_HASH}){_BLANKS}(include|include_next|import|embed|line)\b", re.M)
_WORDS = re.compile(r"\b(_Pragma|__pragma|__has_include|__has_embed|__has_include_next)\b")
_UNROLL = re.compile(r"\s*\(\s*\"\s*unroll\b[^\"\n]*\"")  # what _Pragma may say
_READS = re.compile(r"\.[ \t]*(incbin|include)\b")
_IN_STRING = re.compile(r"\.[ \t]*(file|section|loc)\b")  # names of members, too, and directives in a string alone


@dataclass(frozen=True)
class Objection:
    line: int  # of the text, from 1
    words: str


def objections(text: str, known: str = "") -> list[Objection]:
    """What of a text is refused, in order, the first MOST_OBJECTIONS. known: a source whose own directives are allowed,
    too."""
    spliced, line_of = _spliced(text)
    own = {_bare(line) for line in known.splitlines()}
    found: dict[int, str] = {}
    for offset, words in _found(spliced, own):
        found.setdefault(offset, words)
        if len(found) >= MOST_OBJECTIONS:
            break
    said = [Objection(line_of(offset), found[offset]) for offset in sorted(found)]
    null = text.find("\0")
    if null >= 0:
        said.append(Objection(text.count("\n", 0, null) + 1, "a null character is no C++"))
    return sorted(said, key=lambda one: one.line)


def _found(text: str, own: set[str]) -> Iterator[tuple[int, str]]:
    code = _code_alone(text)
    for match in _DIRECTIVE.finditer(code):
        word, next_word = match[2], match[3]
        if word not in ALLOWED and (word, next_word) != ("pragma", "unroll"):
            pragma = word == "pragma" and next_word
            yield from _refused(text, match.start(1), f"#{word}" + (f" {next_word}" if pragma else ""), own)
    for match in _INCLUDING.finditer(text):
        yield from _refused(text, match.start(1), f"#{match[2]}", own)
    for match in _WORDS.finditer(code):
        if match[1] != "_Pragma" or not _UNROLL.match(text, match.end()):
            yield match.start(), f"{match[1]} is not allowed in an answer"
    for match in _READS.finditer(text):
        yield match.start(), f".{match[1]} in an asm statement is not allowed in an answer"
    for match in _IN_STRING.finditer(text):
        if code[match.start()] == "x":
            yield match.start(), f".{match[1]} in an asm statement is not allowed in an answer"


def _refused(text: str, offset: int, what: str, own: set[str]) -> Iterator[tuple[int, str]]:
    begin, end = text.rfind("\n", 0, offset) + 1, text.find("\n", offset)
    if _bare(text[begin : end if end >= 0 else len(text)]) not in own:
        allowed = "#pragma unroll, #define and #if are all of the preprocessor that an answer may use"
        yield offset, f"{what} is not allowed: {allowed}"


def _code_alone(text: str) -> str:
    """As long as the text: blanks for its comments, whose line ends end no directive, and x for its strings."""
    kept = []
    for piece in pieces(text):
        words = text[piece.first : piece.end]
        size = len(words)
        kept.append(words if piece.kind == CODE else " " * size if piece.kind == COMMENT else "x" * size)
    return "".join(kept)


def _bare(line: str) -> str:
    return " ".join(line.split())


def _spliced(text: str):
    """The text without its backslash-newlines, and the line of the original for an offset in it."""
    pieces_of_text = re.split(r"\\[ \t\v\f\r]*\n", text)
    spliced = "".join(pieces_of_text)
    starts, at = [], 0
    for piece in pieces_of_text:
        starts.append(at)
        at += len(piece)
    lines = Lines(spliced)

    def line_of(offset: int) -> int:
        return lines.of(offset) + bisect_right(starts, offset) - 1

    return spliced, line_of
