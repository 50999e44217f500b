"""Words that came from a student (names, compiler output, messages about his lines), made fit for a place where
characters have a meaning."""

import html
import re

MOST = 4000  # characters of one message
# Control characters but for line feed and tab; and those that turn the direction of what follows, for show.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]"
)
_ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def plain(words: str, limit: int = MOST) -> str:
    """Without control characters, colours and turns of direction; not longer than `limit`."""
    words = _UNFIT.sub("", _ESCAPE_SEQUENCE.sub("", words.replace("\r\n", "\n"))).strip("\n")
    return words if len(words) <= limit else f"{words[:limit]} [... {len(words) - limit} characters more]"


def one_line(words: str, limit: int = 300) -> str:
    return re.sub(r"\s+", " ", plain(words, limit)).strip()


def for_html(words: str) -> str:
    return html.escape(plain(words))


def for_markdown(words: str) -> str:
    """In a paragraph or a table's cell: shown as it stands, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~$&@-])", r"\\\1", one_line(words))


def code_block(words: str) -> str:
    """A block of code whose fence is longer than any in it."""
    words = plain(words)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", words)), default=0))
    return f"{fence}text\n{words}\n{fence}"


def for_csv(words: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    words = one_line(words)
    return f"'{words}" if words[:1] in ("=", "+", "-", "@", "|", "%") else words
