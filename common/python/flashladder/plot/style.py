"""What all pictures share: figures, colours, captions, and files that do not change from run to run."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from flashladder.core.paths import whole, write
from flashladder.plot.packed import png

# Okabe and Ito's palette, made for colour-blind readers (https://jfly.uni-koeln.de/color/).
ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PINK = (
    "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7",
)  # fmt: skip
INK, GREY, PALE = "#222222", "#777777", "#f2f2f2"
# For things in order: dark to light also in grey.
SEQUENCE = "viridis"
# Of curves and points, by their place in the order.
MARKERS = "os^Dv<>ph"
DPI = 100


def new_figure(width: float, height: float, what: str) -> Figure:
    """A figure of width x height inches that no global state knows of; what: what it shows, for in_words()."""
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    figure.set_label(what)
    return figure


def in_words(figure: Figure) -> str:
    """What the picture shows, and its titles: for those who cannot see it, and where there are no pictures."""
    titles = [axes.get_title(side) for axes in figure.axes for side in ("center", "left") if axes.get_title(side)]
    return ": ".join(part for part in (figure.get_label(), " | ".join(titles).replace("\n", "; ")) if part)


def in_order(index: int, count: int) -> tuple:
    """The colour of the index-th of `count` things in order; text_on() tells which ink is readable on it."""
    return matplotlib.colormaps[SEQUENCE](0.12 + 0.83 * index / max(count - 1, 1))


def text_on(colour) -> str:
    """Black or white, whichever is readable on the colour."""
    red, green, blue = matplotlib.colors.to_rgb(colour)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


def caption(figure: Figure, text: str) -> None:
    """Where the data come from, below the picture."""
    figure.supxlabel(text, fontsize=8, color=GREY, x=0.01, ha="left")


def cell(axes, place: tuple[float, float], colour, text: str, *, mark=None, width: float = 3, **font) -> None:
    """The square of the grid at (column, row) with its text; mark: the colour of a heavy border, `width` points wide,
    None: a thin one."""
    column, row = place
    axes.add_patch(
        Rectangle(
            place,
            1,
            1,
            facecolor=colour,
            edgecolor=mark or "white",
            linewidth=width if mark else 0.7,
            zorder=3 if mark else 2,
        )
    )
    label(axes, column + 0.5, row + 0.52, colour, text, **font)


def label(axes, x: float, y: float, ground, text: str, *, size: float = 8, **font) -> None:
    """Text in the ink that is readable on the ground's colour."""
    axes.text(x, y, text, ha="center", va="center", fontsize=size, color=text_on(ground), zorder=4, **font)


Look = tuple[str, str | None]  # colour and hatch of a bar


def in_a_bar(
    axes, at: tuple[float, float], words: str, look: Look, *, size: float = 8, pad: float = 0.8, **font
) -> None:
    """Words in the ink that is readable on a bar, and on a hatched one with the bare colour behind them."""
    colour, hatch = look
    box = {"facecolor": colour, "edgecolor": "none", "pad": pad} if hatch else None
    axes.text(*at, words, ha="center", va="center", fontsize=size, color=text_on(colour), bbox=box, **font)


def stacked(axes, y: float, parts: list[tuple[float, Look, str | None]], least: float, **bar) -> float:
    """A bar of parts, (length, look, words in the legend); those longer than `least` have their number in them, as
    `text` says it and in its `size`. Returns where the bar ends."""
    text, font, left = bar.pop("text", str), {"size": bar.pop("size", 8), "pad": bar.pop("pad", 0.8)}, 0
    for length, (colour, hatch), name in parts:
        axes.barh(y, length, left=left, color=colour, hatch=hatch, edgecolor="white", label=name, **bar)
        if length > least:
            in_a_bar(axes, (left + length / 2, y), text(length), (colour, hatch), **font)
        left += length
    return left


def cells_by(axes, columns: list[str], rows: list[str], **font) -> None:
    """Axes for a grid of cell()s: their names beside the columns and the rows, from the top down."""
    axes.set(xlim=(0, len(columns)), ylim=(len(rows), 0))
    axes.set_xticks([place + 0.5 for place in range(len(columns))], columns, **font)
    axes.set_yticks([place + 0.5 for place in range(len(rows))], rows, **font)
    axes.tick_params(length=0)


def plain(axes) -> None:
    """No frame and no ticks: for drawings whose cells say all."""
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)


def save(figure: Figure, file: Path | str, dpi: int = 120) -> Path:
    """Writes a PNG or SVG, whole or not at all; the same picture gives the same bytes. Returns the file."""
    file = Path(file)
    # No date and no version of Matplotlib inside. An SVG's texts stay texts, in whatever font the reader has.
    fixed = {"svg.hashsalt": "flashladder", "svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans", "Arial"]}
    if file.suffix == ".png":
        return write(file, png(figure, dpi))
    with whole(file) as partial, matplotlib.rc_context(fixed):
        figure.savefig(partial, metadata={"Date": None, "Creator": None})
    return file
