"""Which techniques are on: stages 04 to 11, and other configurations of stage 12's kernel, side by side."""

from matplotlib.figure import Figure

from flashladder.plot.style import BLUE, GREY, INK, PALE, cell, new_figure
from flashladder.tuning.configuration import Configuration, of_stage

# A row of the picture: what it is called, the stage that brings it, and its value in a configuration. False, 1 and
# "whole" are what the ladder begins with.
_ROWS = (
    ("swizzled", 5, lambda c: c.swizzled),
    ("async", 6, lambda c: c.async_copy),
    ("eager", 7, lambda c: c.eager),
    ("load_Q", 8, lambda c: c.load_Q or "whole"),
    ("load_K", 8, lambda c: c.load_K or "whole"),
    ("load_V", 8, lambda c: c.load_V or "whole"),
    ("kv_buffers", 9, lambda c: c.kv_stages),
    ("fragment_buffers", 9, lambda c: c.fragment_stages),
    ("opt_softmax", 10, lambda c: c.fast_softmax),
    ("skip_rescale", 10, lambda c: c.skip_rescale),
    ("lean", 11, lambda c: c.lean),
    ("lean_ldmatrix", 11, lambda c: c.lean_ldmatrix),
    ("Q_registers", 12, lambda c: c.Q_in_registers),
    ("blocks", 12, lambda c: c.resident_blocks or "-"),
    ("Br", 12, lambda c: c.Br),
    ("Bc", 12, lambda c: c.Bc),
    ("warps", 12, lambda c: c.warps),
)


def configurations(*others: Configuration) -> Figure:
    """A column for each stage from 04 to 11, and for each of the others; a row for each field of the short form."""
    columns = [(f"{number:02d}", of_stage(number)) for number in range(4, 12)]
    columns += [(f"({chr(ord('a') + number)})", one) for number, one in enumerate(others)]
    figure = new_figure(4.2 + 0.62 * len(columns), 0.32 * len(_ROWS) + 1.1 + 0.22 * len(others),
                        "Which fields of a configuration each stage sets")  # fmt: skip
    axes = figure.subplots()
    first = columns[0][1]
    for row, (name, stage, value_of) in enumerate(_ROWS):
        where = f"from stage {stage:02d}" if stage < 12 else "stage 12 alone"
        axes.text(-0.2, row + 0.5, f"{name}  ({where})", ha="right", va="center", fontsize=9, color=INK)
        for column, (_, one) in enumerate(columns):
            value = value_of(one)
            told = {True: "on", False: ""}.get(value, str(value)) if isinstance(value, bool) else str(value)
            cell(axes, (column, row), PALE if value == value_of(first) else BLUE, told)
    for column, (title, _) in enumerate(columns):
        axes.text(column + 0.5, -0.2, title, ha="center", va="bottom", fontsize=10, color=INK)
    axes.set(xlim=(-0.05, len(columns) + 0.05), ylim=(len(_ROWS) + 0.05, -0.9))
    axes.set_axis_off()
    axes.set_title("Blue: not as in stage 04", loc="left", fontsize=10, color=GREY)
    told = "\n".join(f"{title} {one}" for title, one in columns[8:])
    figure.supxlabel(told, fontsize=8, color=GREY, x=0.01, ha="left")
    return figure
