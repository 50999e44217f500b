"""Numbers that sentences quote, held against their sources. The text has the number, its list (figure_lists.py) says
where it comes from:

    "N = 4096: {} TFLOP/s at d = 128 after {}" = ["tflops(5)", "tflops(4)"]

The words are the text's own, `{}` in place of each number, and stand in one place of it alone. The source is rounded as
the text rounds: 264 or 264.3, 1,576 or 1576, +5.6, 68%.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from flashladder.commands import figure_lists, figures
from flashladder.core.errors import FlashLadderError

_GENERATED = re.compile(r"<!-- results:.*?<!-- end results -->|<!--.*?-->", re.S)
_NUMBER = re.compile(r"(?P<sign>[-+]?)(?P<whole>\d+(?:,\d{3})*)(?:\.(?P<decimals>\d+))?(?P<percent>%?)")
_QUOTED = r"(?<![\d.,])([-+]?\d+(?:,\d{3})*(?:\.\d+)?%?(?:\s+\(stale\))?|\(not\s+recorded\s+yet\))(?!\d|[.,]\d)"


@dataclass(frozen=True)
class Quote:
    words: str
    sources: tuple[str, ...]

    @property
    def pattern(self) -> re.Pattern:
        spaced = (r"\s+".join(re.escape(word) for word in part.split(" ")) for part in self.words.split("{}"))
        return re.compile(_QUOTED.join(spaced))


@dataclass(frozen=True)
class Found:
    """A number of a text: where it stands, and what its source says in the text's rounding."""

    quote: Quote
    source: str
    part: int  # of the text
    start: int
    end: int
    text: str
    right: str


def of(file: Path) -> list[Quote]:
    quotes = []
    for words, sources in figure_lists.quoted(file).items():
        quote = Quote(words, (sources,) if isinstance(sources, str) else tuple(sources))
        if words.count("{}") != len(quote.sources) or not quote.sources:
            counts = f"{words.count('{}')} numbers, and {len(quote.sources)} sources"
            raise FlashLadderError(f'{figure_lists.list_of(file)}: "{words}" has {counts}')
        quotes.append(quote)
    return quotes


def prose(text: str) -> str:
    """The text with blanks in place of what is generated, character for character."""
    return _GENERATED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def rounded(value: float, like: str) -> str:
    """The value as a text would quote it that has quoted `like`."""
    form = _NUMBER.match(like)
    if not form:  # nothing was recorded then
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    percent = form["percent"]
    comma = "" if len(form["whole"]) > 3 and "," not in form["whole"] else ","
    sign = "+" if form["sign"] == "+" else ""
    return f"{value * (100 if percent else 1):{sign}{comma}.{len(form['decimals'] or '')}f}{percent}"


def find(parts: list[str], file: Path) -> list[Found]:
    """The quoted numbers of a text, of a notebook in its cells; FlashLadderError where the words of one stand nowhere
    in it, or in several places."""
    found = []
    plain = [prose(part) for part in parts]
    for quote in of(file):
        there = [(index, match) for index, part in enumerate(plain) for match in quote.pattern.finditer(part)]
        if len(there) != 1:
            how = "stands nowhere in the text" if not there else f"stands in {len(there)} places of the text"
            raise FlashLadderError(
                f'{file}: "{quote.words}" {how}: bring {figure_lists.list_of(file).name} up to date ({_sources(quote)})'
            )
        index, match = there[0]
        for number, source in enumerate(quote.sources, 1):
            text = match[number]
            try:
                right = _right(source, text, figure_lists.gpu_of(file))
            except FlashLadderError as error:
                raise FlashLadderError(f'{file}: "{quote.words}": {source}: {error}') from error
            found.append(Found(quote, source, index, match.start(number), match.end(number), text, right))
    return found


def _sources(quote: Quote) -> str:
    return ", ".join(quote.sources)


def _right(source: str, text: str, gpu: str) -> str:
    try:
        value, stale = figures.value_of(source, gpu=gpu)
    except figures.Unrecorded:
        return figures.UNRECORDED
    return rounded(value, text) + (figures.STALE if stale else "")


def faults(parts: list[str], file: Path) -> list[str]:
    """What a text says otherwise than the records, a line each, with its place."""
    return [
        f'{_place(parts, one)}: "{one.quote.words}": the text says {one.text}, {one.source} is {one.right}'
        for one in find(parts, file)
        if " ".join(one.text.split()) != one.right
    ]


def _place(parts: list[str], one: Found) -> str:
    line = f"line {parts[one.part].count(chr(10), 0, one.start) + 1}"
    return f"cell {one.part + 1} of its text, {line}" if len(parts) > 1 else line


def fill(parts: list[str], file: Path) -> list[str]:
    """The text with its quoted numbers as the records have them."""
    filled = list(parts)
    for one in sorted(find(parts, file), key=lambda one: -one.start):
        if " ".join(one.text.split()) != one.right:
            filled[one.part] = filled[one.part][: one.start] + one.right + filled[one.part][one.end :]
    return filled
