"""What a notebook's cell shows: code, diffs, tables, pictures and one line that tells how far a long step is.

Everything is HTML with inline styles beside plain text, so it reads in a light and in a dark theme, in a saved
notebook, and on a terminal.
"""

import html
import importlib.util
import io
import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from matplotlib.figure import Figure

from flashladder.building import build
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT, build_directory
from flashladder.plot.packed import png
from flashladder.plot.style import in_words

try:
    from IPython import get_ipython
    from IPython.display import display
except ImportError:  # a plain Python: lessons print their text
    get_ipython = display = None

# Own ground and own ink: readable on whatever page it lies.
_BOX = (
    "background:#f6f8fa;color:#1f2328;border:1px solid #d0d7de;border-radius:6px;padding:8px 12px;margin:4px 0;"
    "font:12px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre;overflow-x:auto"
)
_ADDED, _REMOVED, _PLACE = "background:#d2f4dc", "background:#ffd9d5", "color:#0550ae"
PNG_DPI = 92


class Shown:
    """Something with a form for notebooks and one for terminals."""

    def __init__(self, html_text: str, text: str):
        self.html, self.text = html_text, text

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {"text/html": self.html, "text/plain": self.text}

    def __repr__(self) -> str:
        return self.text


def live() -> bool:
    """True inside a notebook's kernel."""
    return bool(get_ipython and get_ipython() and hasattr(get_ipython(), "kernel"))


def show(item) -> None:
    """Shows it now, wherever in a cell; on a terminal as text, where pictures have none."""
    if live():
        display(item)
    elif not isinstance(item, Figure):
        print(item)


def show_changing(item):
    """Shows it in a place whose content update() of the returned handle replaces; None where nothing can change."""
    return display(item, display_id=True) if live() else None


def figures_show_themselves() -> None:
    """Has a cell whose last value is a Figure show it, as a small PNG with the same bytes each time."""
    if live():
        formatter = get_ipython().display_formatter.formatters["image/png"]
        formatter.for_type(Figure, lambda figure: (png(figure, PNG_DPI), {"alt": in_words(figure)}))
        get_ipython().display_formatter.formatters["text/plain"].for_type(Figure, _figure_text)


def _figure_text(figure: Figure, printer, cycle) -> None:
    printer.text(f"<picture: {in_words(figure) or 'no title'}>")


def note(text: str, strong: str = "") -> Shown:
    """A line of text, its first words in bold, and what stands between `these` as code."""
    words = re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text))
    page = f"<div>{f'<b>{html.escape(strong)}</b> ' if strong else ''}{words}</div>"
    return Shown(page, f"{strong} {text}".strip())


def code(text: str, first: int = 1, title: str = "") -> Shown:
    """C++ source with the line numbers that it has in its file."""
    numbers = range(first, first + len(text.splitlines()))
    width = len(str(numbers[-1])) if numbers else 1
    rows = [
        f'<span style="color:#8c959f;user-select:none">{number:{width}}</span>  {line}'
        for number, line in zip(numbers, _highlighted(text).split("\n"))
    ]
    plain = [f"{number:{width}}  {line}".rstrip() for number, line in zip(numbers, text.splitlines())]
    return _box(title, "\n".join(rows), "\n".join(plain))


def whole(source: Path) -> Shown:
    """A source file as a whole, folded, below the command that compiles it; both relative to the project's folder."""
    place = source.resolve().relative_to(ROOT)
    command = _shown_command(build.compile_command(source))
    body = code(source.read_text(), title=str(place))
    lines = len(source.read_text().splitlines())
    summary = f"The whole of {place}: {lines} lines"
    page = f"<details><summary>{html.escape(summary)}</summary>{_box('', html.escape(command), '', wrap=True).html}"
    return Shown(f"{page}{body.html}</details>", f"{summary}\n{command}\n{body.text}")


def _shown_command(words: list[str]) -> str:
    """A compiler's call as one types it in the project's folder: what only CMake needs is left out."""
    first = next(number for number, word in enumerate(words) if re.match(r"nvcc|.*(\+\+|clang)", Path(word).name))
    kept = [Path(words[first]).name]
    for word in words[first + 1 :]:
        if word.startswith("-I/") and not word.startswith(f"-I{ROOT}/"):
            word = "" if kept[0] == "nvcc" else "-I$CUDA_HOME/include"  # the toolkit's, which nvcc knows
        # (-ccbin: the host compiler that CMake found; nvcc finds one by itself.)
        if word and "_EXPORTS" not in word and not word.startswith(("-forward-unknown-to-host-compiler", "-ccbin=")):
            kept.append(word.replace(f"{ROOT}/", ""))
    kept[kept.index("-o") + 1] = f"{Path(kept[kept.index('-c') + 1]).stem}.o"
    return shlex.join(kept).replace("'-I$CUDA_HOME/include'", "-I$CUDA_HOME/include")


def _box(title: str, body: str, plain: str, wrap: bool = False) -> Shown:
    head = f'<div style="font-size:12px;opacity:.75">{html.escape(title)}</div>' if title else ""
    style = (
        _BOX.replace("white-space:pre;", "white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;")
        if wrap
        else _BOX
    )
    return Shown(f'{head}<pre style="{style}">{body}</pre>', f"{title}\n{plain}" if title else plain)


def _highlighted(text: str) -> str:
    try:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import CppLexer
    except ImportError:
        return html.escape(text)
    formatter = HtmlFormatter(noclasses=True, nowrap=True, style="xcode", nobackground=True)
    return highlight(text, CppLexer(stripnl=False, ensurenl=False), formatter)


def diff(lines: Sequence[str], title: str = "") -> Shown:
    """A unified diff; what is added and removed tells by its sign, too."""
    rows = []
    lines = [line for line in lines if not line.startswith(("--- ", "+++ "))]
    for line in lines:
        style = {"+": _ADDED, "-": _REMOVED, "@": _PLACE}.get(line[:1], "")
        text = html.escape(line)
        rows.append(f'<span style="{style}">{text}</span>' if style else text)
    return _box(title, "\n".join(rows), "\n".join(lines))


def message(text: str, title: str = "") -> Shown:
    """What a program said, in its own words; places on this machine are cut from paths."""
    text = without_paths(text)
    return _box(title, html.escape(text), text, wrap=True)


def without_paths(text: str) -> str:
    """The text with paths relative to the project and to the build."""
    for folder, name in ((build_directory(), "build"), (ROOT, ".")):
        text = text.replace(f"{folder}/", f"{name}/").replace(str(folder), name)
    return re.sub(r"(?<![\w.])\./(?=\w)", "", text)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence], right: Sequence[int] = ()) -> Shown:
    """Rows under their columns; `right` lists the indices of right-aligned (numeric) columns."""
    from flashladder.core import console

    rows = [["" if cell is None else str(cell) for cell in row] for row in rows]

    def cells(row, tag: str) -> str:
        # A number stays on one line; its heading may take two.
        number = "text-align:right" if tag == "th" else "text-align:right;white-space:nowrap"
        styles = (number if index in right else "text-align:left" for index in range(len(columns)))
        return "".join(
            f'<{tag} style="{style};padding:2px 10px">{html.escape(cell)}</{tag}>' for style, cell in zip(styles, row)
        )

    head = f"<tr>{cells(columns, 'th')}</tr>"
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    text = io.StringIO()
    with redirect_stdout(text):
        console.table(title, columns, rows, right)
    caption = f"<div><b>{html.escape(title)}</b></div>" if title else ""
    return Shown(f'{caption}<table style="font-size:12px">{head}{body}</table>', text.getvalue().strip("\n"))


@contextmanager
def step(doing: str, done: str = ""):
    """One line that says what is going on, and afterwards what was done; what the step prints is not shown.

    Yields a function that changes the line's text meanwhile.
    """
    handle = show_changing(note(f"{doing} ..."))

    def update(text: str) -> None:
        if handle:
            handle.update(note(text))

    try:
        with redirect_stdout(_Lines(lambda line: update(f"{doing}: {line}"))):
            yield update
    except BaseException:
        update(f"{doing}: failed.")
        raise
    if handle:
        handle.update(note(done or f"{doing}: done."))
    elif done:
        print(done)


class _Lines(io.TextIOBase):
    """A stream that hands on each line."""

    def __init__(self, hand_on):
        self.hand_on, self.rest = hand_on, ""

    def write(self, text: str) -> int:
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            if line.strip():
                self.hand_on(line.strip())
        return len(text)


# ---- sliders that redraw a picture, and the plain picture where there are none ----


def slider(draw: Callable[..., Figure], **choices: Sequence) -> None:
    """A picture with a control for each argument of `draw`, e.g. slider(plot.swizzle, d=[128, 64], on=[False, True]).

    Each argument comes with its values; the first of each is shown. The picture is an ordinary output and controls
    only replace it, so it is there in a saved notebook, too, and where ipywidgets is not installed.
    """
    for name, values in choices.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise FlashLadderError(f"slider: {name} needs a list of its values, e.g. {name}=[64, 128].")
    first = {name: values[0] for name, values in choices.items()}
    if not live():
        return
    if not importlib.util.find_spec("ipywidgets"):
        show(draw(**first))
        return
    controls = {name: _control(name, values) for name, values in choices.items()}
    show(_row(list(controls.values())))
    handle = show_changing(draw(**first))

    def redraw(change) -> None:
        handle.update(draw(**{name: control.value for name, control in controls.items()}))

    for control in controls.values():
        control.observe(redraw, names="value")


def _control(name: str, values: Sequence):
    import ipywidgets

    if set(values) == {False, True} and all(isinstance(value, bool) for value in values):
        return ipywidgets.Checkbox(value=values[0], description=name)
    return ipywidgets.SelectionSlider(options=list(values), value=values[0], description=name)


def _row(controls: list):
    import ipywidgets

    return ipywidgets.HBox(controls)
