"""What the generated parts of the documents share: tables, captions, and the words for what is stale or missing."""

from collections.abc import Callable, Iterator

from flashladder.core.errors import FlashLadderError
from flashladder.measuring import recorded

STALE_NOTE = "\\* stale: the kernel has changed since this was measured."
NOTHING = "No results are recorded yet."


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def caption(results: dict, text: str, rows: list[dict] = ()) -> str:
    """rows: those of the table, where recorded.earlier() speaks of them below it."""
    return f"{text}. Recorded: {recorded.label(results, rows)}."


def is_causal(mask: str) -> bool:
    """What the word of a marker says, "causal" or none."""
    if mask not in ("", "causal"):
        raise FlashLadderError(f"a marker's mask is 'causal' or left out, not '{mask}'")
    return mask == "causal"


def paragraphs(blocks: Callable[..., Iterator[str]]) -> Callable[..., str]:
    """What it yields, a block for each record; NOTHING where there is none."""

    def text(*arguments: str) -> str:
        return "\n\n".join(blocks(*arguments)) or NOTHING

    return text
