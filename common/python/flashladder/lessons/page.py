"""A whole kernel in a notebook: a cell that begins with `%%kernel 06` holds it, and is judged part by part, as
`make check KERNEL=my.cu STAGE=06` does. `%%kernel 06 scores` judges one part; a cell with nothing but a comment shows a
page to begin with.
"""

import re

from flashladder import plot
from flashladder.classroom import blank, whole
from flashladder.core.errors import FlashLadderError
from flashladder.lessons import display, writing
from flashladder.lessons.display import code, message, show, step

_COMMENT = re.compile(r"//.*?$|/\*.*?\*/", re.M | re.S)


def kernel(words: str, text: str) -> list[whole.Part] | None:
    """What %%kernel does with the rest of the cell. Nothing that is wrong with a kernel ends the run of a notebook."""
    which, _, part = words.strip().partition(" ")
    try:
        if not which:
            raise FlashLadderError("Of which stage? `%%kernel 06` judges the cell as a kernel of stage 06.")
        page = blank.page(which)
        if not _COMMENT.sub("", text).strip():
            show(
                message(
                    "Copy this page into the cell, below its first line, and go on from there.", f"%%kernel {which}"
                )
            )
            show(code(blank.skeleton(page), 1, "a blank page"))
            return None
        found = []
        with step(f"Building and running your kernel of stage {page.stage.id}", f"Judged as stage {page.stage.id}."):
            # Line 1 of the cell is %%kernel itself.
            for one in whole.parts(page, text, lambda line: f"line {line + 1} of the cell", part.strip()):
                found.append(one)
        whole.note(page, found, text)
    except FlashLadderError as error:
        show(message(str(error), f"%%kernel {words.strip()}"))
        return None
    for one in found:
        show(message("\n".join(_lines(one)) or one.summary, f"{one.subgoal.title}: {one.summary}."))
    wrong = found[-1].judgement and found[-1].judgement.wrong
    if wrong and not found[-1].judgement.hazards:
        show(plot.error_map(wrong.problem, wrong.inputs, wrong.output, Br=page.stage.data["launch"][-1].get("Br", 0)))
    return found if not display.live() else None  # without a value: a cell's last one is shown


def _lines(one: whole.Part) -> list[str]:
    if one.judgement:
        return [line for finding in one.judgement.findings for line in writing.lines_of(finding)]
    return list(one.words)


def register() -> None:
    """Gives a notebook's kernel the cell magic %%kernel."""
    if display.live():
        display.get_ipython().register_magic_function(kernel, "cell", "kernel")
