"""Where an output is wrong: its error against the reference, element by element."""

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from flashladder.core.dtypes import OUTPUT, from_bits
from flashladder.core.problem import Problem
from flashladder.plot.style import INK, RED, caption, new_figure
from flashladder.running import verify


def error_ratio(problem: Problem, inputs: dict, output: np.ndarray, batch: int = 0, head: int = 0) -> np.ndarray:
    """|O - reference| over the element's bound, [Nq, d]: above 1 is wrong; infinity where O is not finite.

    inputs, output: bit patterns in the problem's layout.
    """
    expected, magnitude, fine = verify.reference(problem, inputs, heads=[(batch, head)])
    values = from_bits(problem.to_bhnd(output)[batch, head], OUTPUT[problem.dtype]).astype(np.float64)
    return verify.error_ratio(values, expected[0], verify.element_bound(magnitude[0], fine[0], problem.dtype))


def first_wrong(problem: Problem, inputs: dict, output: np.ndarray) -> tuple[int, int]:
    """Batch and head of the first O with an element beyond its bound; (0, 0) if there is none."""
    heads = np.ndindex(problem.B, problem.Hq)
    return next((one for one in heads if (error_ratio(problem, inputs, output, *one) > 1).any()), (0, 0))


def error_map(
    problem: Problem, inputs: dict, output: np.ndarray, of: tuple[int, int] | None = None, Br: int = 0
) -> Figure:
    """The error of one head's O as a picture, in units of the allowed error.

    of: batch and head; None: the first that is wrong. Br: rows of a tile, drawn as lines.
    """
    batch, head = of or first_wrong(problem, inputs, output)
    ratio = error_ratio(problem, inputs, output, batch, head)
    unwritten = ~np.isfinite(ratio)
    wrong = ratio > 1
    figure = new_figure(
        7.6,
        min(8.0, 2.4 + 0.02 * ratio.shape[0]),
        "Map of the error of O by row and column, in units of the allowed error",
    )
    axes = figure.subplots()
    shown = np.where(unwritten, np.nan, np.clip(ratio, 1e-2, 1e3))
    image = axes.imshow(shown, norm=LogNorm(1e-2, 1e3), cmap="cividis_r", aspect="auto", interpolation="nearest")
    if unwritten.any():
        axes.contourf(unwritten, levels=[0.5, 1.5], hatches=["xxx"], colors="none")
    bar = figure.colorbar(image, ax=axes, label="error / allowed error")
    bar.ax.axhline(1, color=RED, linewidth=2)
    for row in range(Br, ratio.shape[0], Br) if Br else ():
        axes.axhline(row - 0.5, color="white", linewidth=1)
    title = f"{problem}: batch {batch}, head {head}\n"
    if wrong.any():
        first = np.unravel_index(int(wrong.argmax()), ratio.shape)
        worst = np.unravel_index(int(ratio.argmax()), ratio.shape)
        for (row, column), colour in ((first, RED), (worst, INK)):
            axes.plot(
                column, row, "o", markersize=13, markerfacecolor="none", markeredgecolor=colour, markeredgewidth=2.2,
                clip_on=False, path_effects=[withStroke(linewidth=4.5, foreground="white")],
            )  # fmt: skip
        title += (
            f"{int(wrong.sum())} of {ratio.size} elements are wrong; first at row {first[0]}, column {first[1]} (red), "
            f"worst at row {worst[0]}, column {worst[1]} (black)"
        )
    else:
        title += f"every element is within its bound; the worst uses {float(ratio.max()):.0%} of it"
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("column of O (d)")
    axes.set_ylabel("row of O (query)")
    caption(
        figure,
        "Against the float64 reference." + (" Hatched: not finite, or never written." if unwritten.any() else ""),
    )
    return figure
