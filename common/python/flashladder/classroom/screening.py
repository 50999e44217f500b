"""What an answer may not have, said before anything is compiled, in words and with the line.

The compiler is isolated in any case (classroom/isolation.py); this is for the levels that cannot hide files, and for
words that a student can use. It looks for directives wherever they stand, in comments and strings, too: so nothing that
hides one from this module hides it any better from a compiler.
"""

import re
from dataclasses import dataclass

ALLOWED = ("define", "undef", "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif")
_GAP = r"(?:[ \t\v\f]|/\*.*?\*/)*"
_DIRECTIVE = re.compile(rf"(?:\#|%:|\?\?=){_GAP}([A-Za-z_]\w*|\d+)(?:{_GAP}(\w+))?", re.S)
_WORDS = re.compile(r"\b(_Pragma|__pragma|__has_include|__has_embed|__has_include_next)\b")
_IN_ASM = re.compile(r"\.\s*(incbin|include|file|section|loc)\b")


@dataclass(frozen=True)
class Objection:
    line: int  # of the text, from 1
    words: str


def objections(text: str, known: str = "") -> list[Objection]:
    """What of a text is refused, in order. known: a source whose own directives are allowed, too."""
    spliced, line_of = _spliced(text)
    own = {_bare(line) for line in known.splitlines()}
    found = []
    for match in _DIRECTIVE.finditer(spliced):
        word, next_word = match[1], match[2]
        begin = spliced.rfind("\n", 0, match.start()) + 1
        whole = spliced[begin : (spliced.find("\n", match.start()) + 1 or len(spliced) + 1) - 1]
        if word in ALLOWED or (word, next_word) == ("pragma", "unroll") or _bare(whole) in own:
            continue
        what = f"#{word}" + (f" {next_word}" if word == "pragma" and next_word else "")
        allowed = "#pragma unroll, #define and #if are all of the preprocessor that an answer may use"
        found.append(Objection(line_of(match.start()), f"{what} is not allowed: {allowed}"))
    for match in _WORDS.finditer(spliced):
        found.append(Objection(line_of(match.start()), f"{match[1]} is not allowed in an answer"))
    for match in _IN_ASM.finditer(spliced):
        found.append(Objection(line_of(match.start()), f".{match[1]} in an asm statement is not allowed in an answer"))
    for match in re.finditer("\0", text):
        found.append(Objection(text.count("\n", 0, match.start()) + 1, "a null character is no C++"))
    return sorted(found, key=lambda one: one.line)


def _bare(line: str) -> str:
    return re.sub(r"\s+", " ", line).strip()


def _spliced(text: str):
    """The text without its backslash-newlines, and the line of the original for an offset in it."""
    pieces = re.split(r"\\[ \t\v\f\r]*\n", text)
    spliced, starts, line = "", [], 1
    for piece in pieces:
        starts.append((len(spliced), line))
        spliced += piece
        line += piece.count("\n") + 1

    def line_of(offset: int) -> int:
        start, first = max(pair for pair in starts if pair[0] <= offset)
        return first + spliced.count("\n", start, offset)

    return spliced, line_of
