"""Registers of a thread: who holds which element of mma.m16n8k16's operands (PTX ISA, "Matrix Fragments for
mma.m16n8k16"), and what a thread of stages 04 to 09 has to hold at once.
"""

import numpy as np
from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.plot.style import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PINK,
    RED,
    SKY,
    caption,
    cell,
    in_order,
    label,
    new_figure,
    plain,
    stacked,
)

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


MOST = 255  # registers of 32 bits that a thread can have
WARP_ROWS, BC = 32, 64  # of the stages' tile


def budget(d: int = 128, step: bool = False) -> dict[str, dict[str, int]]:
    """Registers by phase and by what they hold; step: fragments of one step at a time in place of a whole block."""
    if d not in (64, 128):
        raise FlashLadderError(f"d = {d}: the stages know 64 and 128.")
    m_tiles, n_tiles, steps, p_steps = WARP_ROWS // 16, BC // 8, d // 16, BC // 16
    O = WARP_ROWS * d // 32  # noqa: E741 (the output, as everywhere here)
    return {
        "S = QKᵀ": {
            "O": O,
            "S": WARP_ROWS * BC // 32,
            "Q fragments": (1 if step else steps) * m_tiles * 4,
            "K fragments": (1 if step else steps) * n_tiles * 2,
        },
        "O += PV": {
            "O": O,
            "P": p_steps * m_tiles * 4,
            "V fragments": (1 if step else p_steps) * (d // 8) * 2,
        },
    }


def registers(d: int = 128) -> Figure:
    """Bars of what is alive at once, with whole-block fragments and with one step's, beside the 255 there are."""
    looks = {"O": (BLUE, None), "S": (SKY, None), "P": (PINK, ".."), "Q fragments": (GREEN, "//"),
             "K fragments": (ORANGE, None), "V fragments": (ORANGE, "\\\\")}  # fmt: skip
    figure = new_figure(
        8.6, 3.2, "Bars of the registers that each phase holds, for whole-block fragments and for one step's"
    )
    axes = figure.subplots()
    names, seen = [], set()
    for step in (False, True):
        for phase, held in budget(d, step).items():
            y = len(names)
            parts = [(count, looks[what], None if what in seen else what) for what, count in held.items()]
            left = stacked(axes, y, parts, least=13, size=9, pad=1.0)
            seen |= held.keys()
            axes.text(left + 4, y, str(left), va="center", fontsize=9, weight="bold", color=RED if left > MOST else INK)
            names.append(f"{'one step' if step else 'whole block'}: {phase}")
    axes.axvline(MOST, color=RED, linestyle="--", linewidth=1.5)
    axes.text(MOST + 2, -0.62, f"{MOST}: all there are", color=RED, fontsize=8, va="bottom")
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(len(names) - 0.4, -0.9)
    axes.set_xlim(0, 430)
    axes.set_xlabel("registers of 32 bits in each thread")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    caption(
        figure, f"d = {d}, {WARP_ROWS} rows of Q for each warp, tiles of {BC} keys; addresses and sums come on top."
    )
    return figure
