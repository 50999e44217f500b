"""Predictions of a notebook: each is scored, and nothing before it gives its answer away.

What can be checked without a reader: the order of calls, and whether the number that a saved output says was measured
stands in prose, in an output or in the words of a picture above the prediction.
"""

import ast
import re
from dataclasses import dataclass

from flashladder.core import console
from flashladder.lessons import sections

# What a prediction is about, by what its score is computed from, and the calls that show it to a reader.
GIVEN_AWAY_BY = {
    "tflops": ("throughput", "ablations", "climb", "roofline", "resources"),
    "count": ("counters",),
    "spill": ("resources",),
    "registers": ("resources", "registers"),
}
_MEASURED = re.compile(r"^(?P<question>.*): measured (?P<value>-?[\d,]*\.?\d+(?:e[+-]?\d+)?)\b", re.M)
_THROUGHPUT = re.compile(r"\bstage (?P<stage>\d\d)\b[^.\n]*?\d+(\.\d+)? TFLOP/s", re.I)
DIGITS = 3  # a number with fewer stands in many places by chance, and so does a power of two: sizes are such


@dataclass
class Prediction:
    name: str
    question: str
    cell: int  # index among all cells
    score: str = ""  # the source of what it is scored with; "" where it never is


def predictions(cells: list[dict]) -> list[Prediction]:
    """Of a notebook's cells: `name = predict("question", ...)`, and `name.score(...)` anywhere behind it."""
    found: list[Prediction] = []
    for index, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        calls = [node for node in ast.walk(_parsed(cell)) if isinstance(node, ast.Call)]
        for node in ast.walk(_parsed(cell)):
            if (
                isinstance(node, ast.Assign)
                and _called(node.value) == "predict"
                and isinstance(node.targets[0], ast.Name)
            ):
                question = node.value.args[0] if node.value.args else None
                text = question.value if isinstance(question, ast.Constant) else ""
                found.append(Prediction(node.targets[0].id, text, index))
        for call in calls:
            if _called(call) == "score" and isinstance(call.func, ast.Attribute) and call.args:
                for one in found:
                    if isinstance(call.func.value, ast.Name) and call.func.value.id == one.name and not one.score:
                        one.score = _with_names(call.args[0], _parsed(cell))
    return found


def faults(cells: list[dict]) -> list[str]:
    """What is wrong with a notebook's predictions, one sentence each."""
    found = []
    measured = _measured(cells)
    for one in predictions(cells):
        what = f'the prediction "{one.question or one.name}"'
        if not one.score:
            found.append(f"{what} is never scored")
        for index, call in _shown_before(cells, one):
            found.append(f"{what} comes behind {call}() in cell {index + 1}, which gives it away")
        value = measured.get(one.question)
        if value is not None:
            for form in _forms(value):
                for index, text in _texts(cells[: one.cell]):
                    if re.search(rf"(?<![\d.,]){re.escape(form)}(?![\d]|[.,]\d)", text):
                        found.append(f"{what}: its answer, {form}, stands above it, in cell {index + 1}")
    return found


def later_faults(cells: list[dict], number: int) -> list[str]:
    """Sentences of stage `number`'s notebook that tell a later one's throughput, for which its own notebook asks."""
    found = []
    for index, text in _texts(cells):
        for match in _THROUGHPUT.finditer(text):
            if int(match["stage"]) > number:
                found.append(f'cell {index + 1} gives a later stage\'s throughput away: "{match[0]}"')
    return found


def _parsed(cell: dict) -> ast.AST:
    try:
        return ast.parse(sections.text_of(cell))
    except SyntaxError:  # a line for the shell or for IPython
        return ast.Module([], [])


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _with_names(value: ast.expr, cell: ast.AST) -> str:
    """The source of a value, with that of what its names were given in the same cell."""
    text = ast.unparse(value)
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    for node in ast.walk(cell):
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id in names for one in node.targets):
            text += " " + ast.unparse(node.value)
    return text


def _shown_before(cells: list[dict], one: Prediction) -> list[tuple[int, str]]:
    """Calls above a prediction that show what it is about. A reader's own trial is not shown by anything."""
    if "trial" in one.score:
        return []
    spoiling = {call for word, calls in GIVEN_AWAY_BY.items() if word in one.score for call in calls}
    found = []
    for index, cell in enumerate(cells[: one.cell]):
        if cell["cell_type"] == "code":
            calls = {_called(node) for node in ast.walk(_parsed(cell))} & spoiling
            found += [(index, call) for call in sorted(calls)]
    return found


def _measured(cells: list[dict]) -> dict[str, float]:
    """What the saved outputs of score() say, by question."""
    found = {}
    for _, text in _texts(cells):
        for match in _MEASURED.finditer(text):
            found.setdefault(match["question"].strip(), float(match["value"].replace(",", "")))
    return found


def _forms(value: float) -> list[str]:
    """How a text may write the number; none where it has too few digits to be known by them."""
    if value.is_integer() and value > 0 and int(value) & (int(value) - 1) == 0:
        return []
    texts = {f"{value:,.0f}", f"{value:.0f}", console.count(value)} if value.is_integer() else {f"{value:g}"}
    if abs(value) >= 100:
        texts |= {f"{value:.0f}", f"{value:,.0f}"}
    digits = {text: re.sub(r"\D", "", text).lstrip("0") for text in texts}
    return sorted(text for text in texts if len(digits[text]) >= DIGITS and len(digits[text].strip("0")) > 1)


def _texts(cells: list[dict]):
    """(index, text) of prose, and of what saved outputs say and pictures are described by."""
    for index, cell in enumerate(cells):
        if cell["cell_type"] == "markdown":
            yield index, sections.text_of(cell)
        for output in cell.get("outputs", []):
            yield index, sections.joined(output.get("text", ""))
            yield index, sections.joined(output.get("data", {}).get("text/plain", ""))
            yield index, output.get("metadata", {}).get("image/png", {}).get("alt", "")
