"""The online softmax of one row, tile by tile: running maximum, running sum, and what older parts shrink by."""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.plot.style import BLUE, GREY, INK, ORANGE, RED, SKY, caption, in_order, new_figure


@dataclass(frozen=True)
class Step:
    """After one tile."""

    row_max: float
    rescale: float  # exp(old maximum - new maximum): what the older sum and outputs are multiplied by
    row_sum: float


def steps(scores: np.ndarray, tiles: int) -> list[Step]:
    """The recurrence of the stages: one row of scores, [N], in `tiles` tiles of equal length."""
    if tiles < 1 or len(scores) % tiles:
        raise FlashLadderError(f"{len(scores)} scores do not divide into {tiles} tiles of equal length.")
    row_max, row_sum, found = -np.inf, 0.0, []
    for tile in np.asarray(scores, np.float64).reshape(tiles, -1):
        new_max = max(row_max, tile.max())
        rescale = float(np.exp(row_max - new_max))  # exp(-inf) = 0 on the first tile
        row_sum = row_sum * rescale + float(np.exp(tile - new_max).sum())
        row_max = new_max
        found.append(Step(float(row_max), rescale, row_sum))
    return found


def online_softmax(scores: np.ndarray | None = None, tiles: int = 4) -> Figure:
    """Three panels over the tiles of one row: scores with the running maximum, the factor, the running sum."""
    if scores is None:
        scores = np.random.default_rng(4).standard_normal(32) * 1.5
        scores[[11, 19]] = 3.1, 4.4  # so that the maximum grows twice after the first tile
    scores = np.asarray(scores, np.float64)
    found = steps(scores, tiles)
    length = len(scores) // tiles
    figure = new_figure(
        9, 5.6, "Scores of a row with the running maximum, the rescaling factor and the running sum, by tile"
    )
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(3, 1.3, 1.7))
    for j in range(tiles):
        x = np.arange(j * length, (j + 1) * length)
        top.bar(x, scores[x], color=in_order(j, tiles), width=0.85)
        for axes in (top, middle, bottom):
            axes.axvline((j + 1) * length - 0.5, color="#cccccc", linewidth=1)
    edges = np.arange(tiles + 1) * length - 0.5
    top.stairs([step.row_max for step in found], edges, color=RED, linewidth=2, baseline=None, label="row_max so far")
    top.axhline(0, color=INK, linewidth=0.6)
    top.set_ylabel("score")
    top.legend(fontsize=8, loc="upper left")
    centres = (edges[:-1] + edges[1:]) / 2
    middle.bar(
        centres, [step.rescale for step in found], width=length * 0.5, color=ORANGE, hatch="//", edgecolor="white"
    )
    for x, step, j in zip(centres, found, range(tiles)):
        middle.text(
            x, step.rescale + 0.06, "0 (nothing older)" if j == 0 else f"× {step.rescale:.3g}", ha="center", fontsize=8
        )
    middle.set_ylim(0, 1.45)
    middle.set_ylabel("rescale")
    kept = [0.0] + [before.row_sum * step.rescale for before, step in zip(found, found[1:])]
    bottom.bar(centres, kept, width=length * 0.5, color=SKY, label="older tiles, rescaled")
    added = [step.row_sum - old for step, old in zip(found, kept)]
    bottom.bar(
        centres, added, width=length * 0.5, bottom=kept, color=BLUE, hatch="..", edgecolor="white", label="this tile"
    )
    for x, step in zip(centres, found):
        bottom.text(x, step.row_sum + 0.15, f"{step.row_sum:.3g}", ha="center", fontsize=8)
    bottom.set_ylim(0, max(step.row_sum for step in found) * 1.75)
    bottom.set_ylabel("row_sum")
    bottom.legend(fontsize=8, loc="upper right")
    bottom.set_xticks(centres, [f"tile {j}" for j in range(tiles)])
    direct = float(np.exp(scores - scores.max()).sum())
    top.set_title(
        f"One row of S, {len(scores)} keys in {tiles} tiles; the end: row_sum = {found[-1].row_sum:.6g}, "
        f"all at once: {direct:.6g}",
        fontsize=10,
    )
    for axes in (top, middle, bottom):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(axis="x", length=0)
        axes.yaxis.label.set_color(GREY)
    caption(figure, "Computed in float64 with the stages' recurrence.")
    return figure
