"""What a thread of stages 04 to 09 has to hold in registers at once."""

from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.plot.style import BLUE, GREEN, INK, ORANGE, PINK, RED, SKY, caption, new_figure, stacked

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
