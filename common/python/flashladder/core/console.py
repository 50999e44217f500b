"""Output for people: tables, colour and progress; no progress where tqdm is not installed."""

import sys
from collections.abc import Iterable, Sequence

import rich.box
import rich.console
import rich.table
import rich.text

try:
    from tqdm import tqdm
except ImportError:
    tqdm = None

UNBOUNDED = 10_000  # columns of a file or a pipe, where no line is to be folded


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence], right: Sequence[int] = ()) -> None:
    """Prints rows under their columns; `right` lists the indices of right-aligned (numeric) columns."""
    grid = rich.table.Table(box=rich.box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for index, column in enumerate(columns):
        grid.add_column(rich.text.Text(column), justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(rich.text.Text("" if cell is None else str(cell)) for cell in row))
    terminal = sys.stdout.isatty()  # asked here: a notebook's kernel is a terminal to rich
    console = rich.console.Console(width=None if terminal else UNBOUNDED, force_terminal=terminal, force_jupyter=False)
    with console.capture() as printed:
        console.print(grid)
    say("\n".join(["", coloured(title, "bold"), *(line.rstrip() for line in printed.get().splitlines())]))


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
