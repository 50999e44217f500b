"""The card's picture of stage tma: what two buffers hold over time, and the phases of their barriers."""

from matplotlib.figure import Figure

from flashladder.plot.style import BLUE, GREY, INK, ORANGE, PALE, SKY, YELLOW, bars, new_figure, plain

WORDS = (
    "Tiles 0 to 4 pass through two buffers. The barrier full of a buffer completes a phase when a tile has arrived, "
    "the barrier empty when the warps have read it, and the parity of each changes between 0 and 1"
)
_END = 12
_bar = bars()
# For each buffer: (first tile, when its load begins). A load takes 2, and reading 2; the other buffer's lie between.
_BUFFERS = {"buffer 0": (0, 0), "buffer 1": (1, 2)}


def draw() -> Figure:
    figure = new_figure(5.2, 4.4, WORDS)
    for axes, (name, (tile, begin)) in zip(figure.subplots(2, 1), _BUFFERS.items(), strict=True):
        plain(axes)
        axes.set_title(name, fontsize=10, loc="left", weight="bold")
        axes.set_xlim(-2.2, _END)
        axes.set_ylim(-0.15, 3)
        full, empty, at = [0], [0], begin
        while at < _END:
            _bar(axes, at, at + 2, 2, ORANGE, f"load {tile}")
            _bar(axes, at + 2, at + 4, 2, BLUE, f"read {tile}")
            full.append(at + 2)
            empty.append(at + 4)
            at, tile = at + 4, tile + 2
        _phases(axes, full, 1, SKY, "full")
        _phases(axes, empty, 0, YELLOW, "empty")
    figure.supxlabel("time →     in each bar: the parity of the phase under way", fontsize=9, color=GREY)
    return figure


def _phases(axes, begins: list[int], row: float, colour: str, name: str) -> None:
    axes.text(-0.2, row + 0.47, name, ha="right", va="center", fontsize=9.5, color=INK)
    for number, left in enumerate(begins):
        right = begins[number + 1] if number + 1 < len(begins) else _END
        _bar(axes, left, right, row, colour if number % 2 else PALE, str(number % 2))
