"""A section of a notebook that is written from data: a heading, then a task and a magic's cell for each thing in it."""


def text_of(cell: dict) -> str:
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def written(cell: dict, magic: str) -> tuple[str, str]:
    """Argument and text of a cell that begins with the magic; empty of another one."""
    first, _, text = text_of(cell).partition("\n")
    if cell["cell_type"] == "code" and first.startswith(magic):
        return first.removeprefix(magic).strip(), text
    return "", ""


def found(cells: list[dict], heading: str, magic: str) -> tuple[int, int]:
    """Where the section stands: index of its first cell and of the one behind it; (0, 0) where there is none."""
    for first, cell in enumerate(cells):
        if text_of(cell).startswith(heading):
            last = first + 1
            while last < len(cells) and (text_of(cells[last]).startswith("### ") or written(cells[last], magic)[0]):
                last += 1
            return first, last
    return 0, 0
