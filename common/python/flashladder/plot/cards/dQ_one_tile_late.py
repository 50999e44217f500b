"""The card's picture of stage dQ_one_tile_late: two warpgroups with barriers in each tile, and without."""

from matplotlib.figure import Figure

from flashladder.plot.style import BLUE, GREY, ORANGE, PALE, SKY, bars, lanes, new_figure

WORDS = (
    "Two warpgroups over time. Stage 42: after the store of dS, and again after dQ, each waits for the other one. "
    "Stage 43: a warpgroup computes dQ of the tile before, whose dS both have stored, and neither waits"
)
_END = 22
_bar = bars(least=1.2)


def draw() -> Figure:
    figure = new_figure(5.2, 3.9, WORDS)
    before, after = figure.subplots(2, 1)
    lanes(before, "stage 42: dQ of this tile, two barriers", ("warpgroup 1", "warpgroup 0"), -5.2, _END)
    _tile(before, 1, 0, (2, 3, 2, 4, 1), 0)
    _tile(before, 0, 0, (2, 5, 0, 3, 2), 0)
    _tile(before, 1, 12, (2, 5, 0, 3, 1), 1)
    _tile(before, 0, 12, (2, 3, 2, 4, 1), 1)
    lanes(after, "stage 43: dQ of the tile before, no barrier", ("warpgroup 1", "warpgroup 0"), -5.2, _END)
    at = 0.0
    for tile, work in enumerate((3, 5, 3)):
        at = _free(after, 1, at, work, tile)
    at = 0.0
    for tile, work in enumerate((5, 3, 3)):
        at = _free(after, 0, at, work, tile)
    figure.supxlabel(
        "S: products S and dP      dQ: products dV, dQ, dK      +: adds dQ\n"
        "time →     order, not to scale; grey: waits for the other",
        fontsize=9, color=GREY, multialignment="left",
    )  # fmt: skip
    return figure


def _tile(axes, row: float, at: float, lengths: tuple[float, ...], tile: int) -> None:
    """A tile of stage 42: S, P and dS, a wait, the products, a wait; then the additions."""
    S, work, wait, products, second = lengths
    parts = (
        (S, BLUE, f"S{tile}"),
        (work, SKY, "P, dS"),
        (wait, PALE, ""),
        (3, BLUE, f"dQ{tile}"),
        (products - 3 + second - 1, PALE, ""),
        (1.3, ORANGE, "+"),
    )
    _draw(axes, row, at, parts)


def _free(axes, row: float, at: float, work: float, tile: int) -> float:
    """A tile of stage 43; returns when it ends."""
    parts = ((2, BLUE, f"S{tile}"), (work, SKY, "P, dS"), (3, BLUE, f"dQ{tile - 1}" if tile else "dK0"))
    parts += ((1.3, ORANGE, "+"),) if tile else ()
    return _draw(axes, row, at, parts)


def _draw(axes, row: float, at: float, parts) -> float:
    for length, colour, words in parts:
        _bar(axes, at, at + length, row, colour, words)
        at += length
    return at
