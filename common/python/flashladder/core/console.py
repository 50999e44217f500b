"""Output for people: tables, colour and progress; no progress where tqdm is not installed."""

import sys
import textwrap
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import rich.box
import rich.console
import rich.table
import rich.text
from rich.cells import cell_len

try:
    from tqdm import tqdm
except ImportError:
    tqdm = None

UNBOUNDED = 10_000  # columns of a file or a pipe, where no line is to be folded
LEAST = 24  # columns of a terminal in which a text can be read


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence], right: Sequence[int] = ()) -> None:
    """Prints rows under their columns; `right` lists the indices of right-aligned (numeric) columns.

    Where a terminal is too narrow, headings stand in several lines, and a text in the last column is folded between
    words. Where little room is left for it, it stands below its row."""
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    terminal = sys.stdout.isatty()  # asked here: a notebook's kernel is a terminal to rich
    console = rich.console.Console(width=None if terminal else UNBOUNDED, force_terminal=terminal, force_jupyter=False)
    heads, narrow, below = list(columns), _width(columns, cells, 3) > console.width, []
    if narrow:
        heads = [head.replace(" ", "\n") for head in heads]
    kept = len(heads)  # so many columns, from the first one on, are not folded
    if narrow and _width(heads, cells, 2) > console.width:
        kept = kept - 1 if kept - 1 not in right else 0
        room = console.width - _width(heads[:kept], [row[:kept] for row in cells], 2) - 2
        if kept and -2 <= room < LEAST and not any("\n" in cell for row in cells for cell in row):
            heads, cells, below = heads[:kept], [row[:kept] for row in cells], [row[kept] for row in cells]
        elif room < LEAST:
            kept = 0
    grid = rich.table.Table(box=rich.box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=narrow)
    for index, head in enumerate(heads):
        justify = "right" if index in right else "left"
        grid.add_column(rich.text.Text(head), justify=justify, overflow="fold", no_wrap=narrow and index < kept)
    for row in cells:
        grid.add_row(*map(rich.text.Text, row))
    with console.capture() as printed:
        console.print(grid)
    lines = [line.rstrip() for line in printed.get().splitlines()]
    if below:  # each row is one line
        first = len(lines) - len(cells)
        texts = (textwrap.wrap(text, console.width, initial_indent="  ", subsequent_indent="  ") for text in below)
        lines[first:] = [line for row, text in zip(lines[first:], texts, strict=True) for line in (row, *text)]
    say("\n".join(["", coloured(title, "bold"), *lines]))


def _width(heads: Sequence[str], cells: Sequence[Sequence[str]], between: int) -> int:
    """Columns of a terminal that a table takes whose cells are not folded, with so many between two of them."""
    lines = [[part for cell in (head, *column) for part in cell.split("\n")] for head, *column in zip(heads, *cells)]
    return sum(max(map(cell_len, parts)) for parts in lines) + between * (len(heads) - 1)


def progress(items: Iterable, what: str, total: int | None = None):
    """Iterates over items and shows how far it is, on a terminal only. total: how many, where items has no length."""
    if tqdm and sys.stderr.isatty():
        return tqdm(items, desc=what, total=total, leave=False, unit="")
    return items


def remark(text: str) -> None:
    """Prints a line while progress() shows a bar."""
    if tqdm and sys.stderr.isatty():
        tqdm.write(text, file=sys.stdout)
    else:
        say(text)


def say(text: str = "") -> None:
    print(text, flush=True)


@contextmanager
def simulating(seconds: float = 10) -> Iterator[None]:
    """Says on stderr what the time depends on, if what is simulated inside takes longer than so many seconds."""
    text = "Still running: on the simulator the time grows with batches, heads and the square of --seq. Ctrl-C ends it."
    timer = threading.Timer(seconds, lambda: print(text, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def coloured(text: str, colour: str) -> str:
    """text in "red", "green", "cyan" or "bold" on a terminal, unchanged elsewhere."""
    if not sys.stdout.isatty():
        return text
    return f"\033[{ {'red': 31, 'green': 32, 'cyan': 36, 'bold': 1}[colour] }m{text}\033[0m"


def duration(minutes: int) -> str:
    """50 min, 3 h 20 min"""
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours and rest else f"{hours} h" if hours else f"{minutes} min"


def plural(number: int, thing: str) -> str:
    """1 point, 3 points"""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def count(number: float | None) -> str:
    """1234567 -> 1.23 M; None -> a dash."""
    if number is None:
        return "-"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= 10 * size or (abs(number) >= size and unit != "k"):
            return f"{number / size:.4g} {unit}"
    return f"{number:g}"
