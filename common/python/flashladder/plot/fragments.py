"""Who holds which element of mma.m16n8k16's operands: PTX ISA, "Matrix Fragments for mma.m16n8k16"."""

import numpy as np
from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.plot.style import INK, caption, cell, in_order, label, new_figure, plain

# Rows and columns of the operand, elements that a lane holds, elements in a register.
SHAPES = {"A": (16, 16, 8, 2), "B": (16, 8, 4, 2), "C": (16, 8, 4, 1)}
NAMES = {
    "A": "A: 16 rows of Q, 16 of d (or P)",
    "B": "B: 16 of d, 8 rows of K as columns (or V)",
    "C": "C: 16 rows, 8 columns of S (or O)",
}


def element(which: str, lane: int, i: int) -> tuple[int, int]:
    """(row, column) of the i-th element that a lane holds of operand A, B or C (D is laid out like C)."""
    group, within = lane // 4, lane % 4
    if which == "A":
        return group + 8 * (i // 2 % 2), 2 * within + i % 2 + 8 * (i // 4)
    if which == "B":
        return 2 * within + i % 2 + 8 * (i // 2), group
    if which == "C":
        return group + 8 * (i // 2), 2 * within + i % 2
    raise FlashLadderError(f"operand '{which}': choose A, B or C")


def owners(which: str) -> tuple[np.ndarray, np.ndarray]:
    """(lane, element) arrays of the operand's shape: who holds each element, as its how-manieth."""
    rows, columns, elements, _ = SHAPES[which]
    lanes = np.full((rows, columns), -1)
    numbers = np.full((rows, columns), -1)
    for lane in range(32):
        for i in range(elements):
            lanes[element(which, lane, i)] = lane
            numbers[element(which, lane, i)] = i
    return lanes, numbers


def mma_fragments(which: str | None = None, lane: int | None = None) -> Figure:
    """The operands of mma.m16n8k16 element by element: the lane that holds it, and a0, a1, ... within the lane.

    which: "A", "B" or "C", None: all three. lane: one whose elements get a heavy border.
    """
    shown = [which] if which else ["A", "B", "C"]
    if which and which not in SHAPES:
        raise FlashLadderError(f"operand '{which}': choose A, B or C")
    widths = [SHAPES[one][1] for one in shown]
    figure = new_figure(
        0.7 + 0.37 * sum(widths) + 0.4 * len(widths), 6.2, "Operands of mma.m16n8k16: the lane that holds each element"
    )
    for axes, one in zip(figure.subplots(1, len(shown), width_ratios=widths, squeeze=False)[0], shown, strict=True):
        lanes, numbers = owners(one)
        rows, columns, _, per_register = SHAPES[one]
        plain(axes)
        for row in range(rows):
            for column in range(columns):
                owner, i = int(lanes[row, column]), int(numbers[row, column])
                colour = in_order(owner // 4, 8)
                cell(axes, (column, row), colour, "", mark=INK if owner == lane else None)
                label(axes, column + 0.5, row + 0.4, colour, str(owner), weight="bold")
                label(axes, column + 0.5, row + 0.78, colour, f"{one.lower()}{i}", size=7)
        axes.set_xlim(0, columns)
        axes.set_ylim(rows, 0)
        axes.set_aspect("equal")
        registers = "2 elements a register" if per_register == 2 else "fp32, 1 element a register"
        axes.set_title(f"{NAMES[one]}\n{registers}", fontsize=8)
        for row in range(0, rows, 4):
            axes.text(-0.25, row + 0.5, str(row), ha="right", va="center", fontsize=8)
    between = " " if len(shown) > 1 else "\n"  # one operand is too narrow for a line of this length
    caption(
        figure, f"Large: the lane that holds the element.{between}Small: which of its elements it is. Colour: lane / 4."
    )
    return figure
