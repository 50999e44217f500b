"""A box of a tensor in shared memory, as TMA lays it out: rows, 16-byte chunks and banks."""

from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.plot.style import GREY, RED, caption, cell, in_order, new_figure
from flashladder.simulator.accesses import CHUNK_BYTES, Box

LINE_BYTES = 128  # all 32 banks


def box_layout(box: Box, lines: int = 16, chunk: int = 0, title: str | None = None) -> Figure:
    """Lines of 128 bytes of shared memory by groups of 4 banks: which chunk of which row of the box lies where.

    lines: at most so many from the box's start. chunk: the one that has a heavy border in the first eight rows, as
    ldmatrix would read it.
    """
    chunks = -(-box.row_bytes // CHUNK_BYTES)
    if box.kind == "prefetch":
        raise FlashLadderError(f"{box.where} is a prefetch: it brings nothing to shared memory.")
    if not 0 <= chunk < chunks:
        raise FlashLadderError(f"A row of this box has the chunks 0 to {chunks - 1}; chunk {chunk} is none of them.")
    first = box.shared // LINE_BYTES
    last = min(first + lines, -(-(box.shared + len(box.rows) * box.row_bytes) // LINE_BYTES))
    figure = new_figure(
        8.0, 1.9 + 0.36 * (last - first), "Shared memory by groups of 4 banks: where each row's 16-byte chunks lie"
    )
    axes = figure.subplots()
    for row, inside in enumerate(box.rows):
        for c in range(chunks):
            line, byte = divmod(box.place(row, c), LINE_BYTES)
            if line >= last:
                continue
            wanted = c == chunk and row < 8
            colour = GREY if inside is None else in_order(c % 8, 8)
            text = f"{row}.{c}" + (" -" if inside is None else "")
            bold = "bold" if wanted else "normal"
            mark = RED if wanted else None
            cell(axes, (byte // CHUNK_BYTES, line - first), colour, text, mark=mark, size=8, weight=bold)
    axes.set_xlim(0, LINE_BYTES // CHUNK_BYTES)
    axes.set_ylim(last - first, 0)
    groups = range(LINE_BYTES // CHUNK_BYTES)
    axes.set_xticks([group + 0.5 for group in groups], [str(group) for group in groups])
    axes.set_yticks(
        [line + 0.5 for line in range(last - first)],
        [f"0x{(first + line) * LINE_BYTES:x}" for line in range(last - first)],
    )
    axes.tick_params(length=0)
    axes.set_xlabel("bank group (4 banks, 16 bytes)")
    axes.set_ylabel("address in shared memory")
    at = ", ".join(map(str, box.coordinates))
    swizzle = f"swizzle of {box.swizzle} bytes" if box.swizzle else "no swizzle"
    count = box.wavefronts(chunk)
    axes.set_title(
        f"{title or f'{box.where}: {box.kind} of the box at {{{at}}}, {swizzle}'}\n{box.source}\n"
        f"one chunk of 8 rows: {count} wavefront{'s' if count > 1 else ''}; the box: {box.sectors} sectors",
        fontsize=10,
    )
    caption(
        figure,
        "row.chunk of the box, as the simulator laid them; heavy border: one 8x8 matrix; grey with a dash: outside of "
        "the tensor.",
    )
    return figure
