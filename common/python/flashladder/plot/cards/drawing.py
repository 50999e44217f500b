"""What the stages' pictures share: where they are registered, boxes with words, arrows, and bars in rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from flashladder.plot.style import GREY, INK, new_figure, plain, text_on

WIDTH = 5.2  # inches: readable where a page is 390 pixels wide


@dataclass(frozen=True)
class Picture:
    height: float  # inches
    words: str  # what it shows, for those who cannot see it
    draw: Callable[[Figure], None]

    def figure(self) -> Figure:
        made = new_figure(WIDTH, self.height, self.words)
        self.draw(made)
        return made


PICTURES: dict[str, Picture] = {}  # by the stage's name without the number


def picture(height: float, words: str) -> Callable:
    """The function below it draws the picture of the stage of its name."""

    def register(draw: Callable[[Figure], None]) -> Callable[[Figure], None]:
        PICTURES[draw.__name__] = Picture(height, words, draw)
        return draw

    return register


def centred(axes, x: float, y: float, words: str, size: float = 9.5, **look) -> None:
    axes.text(x, y, words, ha="center", va="center", fontsize=size, **({"color": INK} | look))


def rectangle(axes, place: tuple[float, float], extent: tuple[float, float], colour: str, **look) -> None:
    axes.add_patch(Rectangle(place, *extent, facecolor=colour, **({"edgecolor": "white", "linewidth": 1.5} | look)))


def box(
    axes, place: tuple[float, float], extent: tuple[float, float], colour: str, words: str, size: float = 9.5, **look
) -> None:
    """A rectangle with words in its middle."""
    rectangle(axes, place, extent, colour, **look)
    centred(axes, place[0] + extent[0] / 2, place[1] + extent[1] / 2, words, size, color=text_on(colour))


def rounded(axes, place: tuple[float, float], extent: tuple[float, float], colour: str, corner: float) -> None:
    style = f"round,pad=0,rounding_size={corner}"
    axes.add_patch(FancyBboxPatch(place, *extent, boxstyle=style, facecolor=colour, edgecolor=GREY, linewidth=0.8))


def arrow(axes, start: tuple[float, float], end: tuple[float, float], size: float, **look) -> None:
    look = {"arrowstyle": "-|>", "color": INK} | look
    axes.add_patch(FancyArrowPatch(start, end, mutation_scale=size, **look))


def titled(axes, title: str) -> None:
    plain(axes)
    axes.set_title(title, fontsize=10, loc="left", weight="bold")


def lanes(axes, title: str, names: Sequence[str], left: float, right: float) -> None:
    """Axes for bars in rows: the names of the rows from the lowest up, beside them, and room from left to right."""
    titled(axes, title)
    for row, name in enumerate(names):
        beside(axes, row, name)
    axes.set(xlim=(left, right), ylim=(0, len(names)))


def beside(axes, row: float, name: str) -> None:
    """The name of a row of bars."""
    axes.text(-0.2, row + 0.47, name, ha="right", va="center", fontsize=9.5, color=INK)


@dataclass(frozen=True)
class Bars:
    """bars(axes, left, right, row, colour, words) draws one in a row of lanes(), cut where they end. It has its words
    where it is longer than least."""

    least: float = 0
    height: float = 0.75
    size: float = 9.5  # of the words

    def __call__(self, axes, left: float, right: float, row: float, colour: str, words: str) -> None:
        right = min(right, axes.get_xlim()[1])
        if left >= right:
            return
        rectangle(axes, (left, row + 0.1), (right - left, self.height), colour)
        if right - left > self.least:
            centred(axes, (left + right) / 2, row + 0.47, words, self.size, color=text_on(colour))
