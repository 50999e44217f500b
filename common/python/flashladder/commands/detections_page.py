"""Which tool notices the planted mistakes, as tables of docs/detections.md. What the simulator says of the lessons'
stands in mistakes.toml; all else is of the records that measuring/detections.py makes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from flashladder.commands.markdown import table
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.ladder.mistakes import CLASSES, everything
from flashladder.measuring import detections, recorded
from flashladder.measuring.planted import Subject

NOT_RUN = "not run"
SIMULATOR, COMPILER, RESULTS = "warpsim", "nvcc, ptxas", "results"
NUMBERS, A_TEST = "numbers", "a test"
TOOLS = (COMPILER, RESULTS, *detections.TOOLS)
# What a run on a GPU comes to, where it is not wrong numbers.
_OUTCOMES = {"right": "right", "error": "an error", "hang": "never ends", "not compiled": "not compiled"}


@dataclass(frozen=True)
class Cell:
    words: str = NOT_RUN
    noticed: bool | None = None  # None: not run, or no verdict


def _simulator(one: Subject, judged: dict | None) -> Cell:
    """Of a lesson what mistakes.toml says, as the tests hold it; of others what is recorded. Where it has nothing to
    say on the problems by which it judges, a test of the stage notices on another one."""
    if not one.mistake:
        return Cell("nothing", False)
    if one.mistake.lives:
        return Cell("equivalent", False)
    by = one.mistake.caught_by or (judged or {}).get("by", "")
    words = {"": A_TEST, "verification": NUMBERS, "error": "an error"}
    return Cell(words.get(by, by), bool(by) if by or judged else None)


def _said_kinds(said: dict) -> set[str]:
    """Of a cell's reports. Racecheck's analysis, "Race reported between ...", repeats hazards, if it is printed."""
    return {one for one in said.get("kinds", ()) if "Race reported" not in one}


def _reports(row: dict, clean: dict | None, tool: str) -> Cell:
    """Of a tool of compute-sanitizer. What it reports of the stage as it is, too, is no detection; a report of another
    kind is."""
    said = row.get(tool)
    if not said:
        return Cell()
    if said["outcome"] == "failed":
        return Cell("no verdict")
    if said["outcome"] == "nothing":
        return Cell("nothing", False)
    if said["outcome"] == "limit" and "said" not in said:
        return Cell("limit reached" + ", and without it" * said.get("without", False))
    count = said.get("reports", 1)
    more = " or more" * (said["outcome"] == "limit" or said.get("more", False))
    words = f"{count}{more} report{'s' * (count != 1 or bool(more))}"
    alarm = (clean or {}).get(tool, {"outcome": "failed"})
    if not row["mistake"] or alarm["outcome"] == "nothing":
        return Cell(words, True)
    if "said" not in alarm or alarm["outcome"] == "failed":
        return Cell(f"{words}, no verdict without it")
    if "kinds" in alarm and _said_kinds(said) - _said_kinds(alarm):
        return Cell(f"{words}, of another kind", True)
    return Cell(f"{words}, and without it", False)


def _results(row: dict) -> Cell:
    said = row.get("gpu")
    if not said or said["outcome"] in ("refused", "failed"):
        return Cell("no verdict" if said else NOT_RUN)
    if said["outcome"] == "wrong":
        return Cell(f"wrong {said['wrong']} of {said['runs']}", True)
    return Cell(_OUTCOMES[said["outcome"]], said["outcome"] != "right")


def _compiler(row: dict | None, clean: dict | None) -> Cell:
    if not row:
        return Cell()
    own = [note for note in row["notes"] if not row["mistake"] or note not in (clean or {}).get("notes", ())]
    return Cell(", ".join(own) or "nothing", bool(own))


class Matrix:
    """What is known of each mistake, and of each stage as it is, in the ladder's order."""

    def __init__(self) -> None:
        self.gpu = recorded.first(kind=detections.KIND)
        self.compiled, judged = recorded.first(kind="ptxas"), recorded.first(kind="judged")
        self.subjects = [Subject(stage) for stage in stages.all_parts()]
        self.subjects += [Subject(one.stage, one) for one in everything()]
        on_gpu, by_compiler, judged = map(self._fresh, (self.gpu, self.compiled, judged))
        self.cells: dict[tuple[str, str], dict[str, Cell]] = {}
        for one in self.subjects:
            clean = one.stage.name, ""
            row, notes = on_gpu.get(one.key), by_compiler.get(one.key) or on_gpu.get(one.key)
            cells = {SIMULATOR: _simulator(one, judged.get(one.key))}
            cells[COMPILER] = _compiler(notes, by_compiler.get(clean) or on_gpu.get(clean))
            cells[RESULTS] = _results(row or {})
            cells |= {tool: _reports(row or {}, on_gpu.get(clean), tool) for tool in detections.TOOLS}
            self.cells[one.key] = cells

    def _fresh(self, record: dict | None) -> dict[tuple[str, str], dict]:
        """The rows of a record whose sources are still those that were asked about."""
        rows = {(row["stage"], row["mistake"]): row for row in (record or {"planted": ()})["planted"]}
        known = [one for one in self.subjects if one.key in rows]
        return {one.key: rows[one.key] for one in known if rows[one.key]["digest"] == one.digest()}

    def planted(self) -> list[Subject]:
        return [one for one in self.subjects if one.mistake]

    def count(self, some: Iterable[Subject], tool: str) -> str:
        """ "3 of 7": noticed, of those with a verdict."""
        found = [self.cells[one.key][tool] for one in some]
        known = [cell.noticed for cell in found if cell.noticed is not None]
        return f"{sum(known)} of {len(known)}" if known or any(cell != Cell() for cell in found) else NOT_RUN


@cache
def matrix() -> Matrix:
    return Matrix()


def _asked(found: Matrix) -> str:
    """Which records the tables are made of; runs with the same of all else are named together."""
    said = [f"nvcc and ptxas {found.compiled['provenance']['toolkit']} for sm_90a"] if found.compiled else []
    runs: dict[str, list[str]] = {}
    for date, run in found.gpu["runs"].items() if found.gpu else ():
        tool = run["compute-sanitizer"] or "not there"
        words = f"{run['device']}, driver {run['driver']}, compute-sanitizer {tool}"
        runs.setdefault(words, []).append(f"{date}, commit {run['commit']}")
    said += [f"{words}: {', '.join(dates)}" for words, dates in runs.items()]
    return f"Asked: {'; '.join(said)}." if said else "No tool but the simulator was asked yet."


def _groups(everyone: list[Subject]) -> Iterator[tuple[str, list[Subject]]]:
    """By class, the lessons' and the others."""
    for kind, words in CLASSES.items():
        own = [one for one in everyone if one.mistake.kind == kind]
        lessons = [one for one in own if one.mistake.caught_by]
        if lessons:
            yield f"{words}, in lessons", lessons
        yield f"{words}, in no lesson", [one for one in own if one not in lessons]
    yield "all", everyone


def _counts(found: Matrix) -> str:
    """Of each group how many there are, and what notices how many."""
    rows = []
    for words, own in _groups(found.planted()):
        known = [cell for cell in (found.cells[one.key][SIMULATOR] for one in own) if cell.noticed is not None]
        by_numbers = sum(cell.words == NUMBERS for cell in known)
        counts = (sum(bool(cell.noticed) for cell in known) - by_numbers, by_numbers)
        shown = [f"{count} of {len(known)}" if known else NOT_RUN for count in counts]
        rows.append([words, str(len(own)), *shown, *(found.count(own, tool) for tool in TOOLS)])
    head = ["class", "planted", f"{SIMULATOR}: hazard", f"{SIMULATOR}: numbers", *TOOLS]
    return f"{_asked(found)}\n\n{table(head, rows)}"


def _kinds(found: Matrix) -> str:
    """The mistakes by what warpsim calls them."""
    names: dict[str, list[Subject]] = {}
    for one in found.planted():
        if found.cells[one.key][SIMULATOR].noticed:
            names.setdefault(found.cells[one.key][SIMULATOR].words, []).append(one)
    ordered = sorted(names.items(), key=lambda item: (item[0] == NUMBERS, -len(item[1]), item[0]))
    rows = [[name, str(len(own)), *(found.count(own, tool) for tool in TOOLS)] for name, own in ordered]
    return table([SIMULATOR, "mistakes", *TOOLS], rows)


def _clean(found: Matrix) -> str:
    """What each tool says of the stages as they are; and where it says something, of their mistakes."""
    own = [one for one in found.subjects if not one.mistake]
    rows = [[SIMULATOR, str(len(own)), "0", "", "", "0", ""]]
    for tool in TOOLS:
        cells = {one.stage.name: found.cells[one.key][tool] for one in own}
        known = [name for name, cell in cells.items() if cell.noticed is not None]
        alarms = {name: f"{name} ({cells[name].words})" for name in known if cells[name].noticed}
        theirs = [found.cells[one.key][tool] for one in found.planted() if one.stage.name in alarms]
        theirs = [cell for cell in theirs if cell.noticed is not None]
        of_mistakes = [str(len(theirs)), str(sum(cell.noticed for cell in theirs))] if alarms else ["", ""]
        endless = {name: f"{name} (no end)" for name, cell in cells.items() if cell.words.startswith("limit")}
        asked = known or endless
        counts = [str(len(alarms)), *of_mistakes, str(len(endless))] if asked else [NOT_RUN, "", "", ""]
        named = [(alarms | endless)[name] for name in cells if name in alarms | endless]
        rows.append([tool, str(len(known) + len(endless) or NOT_RUN), *counts, ", ".join(named)])
    return table(["tool", "stages", "false alarms", "their mistakes", "noticed", "no end", "which stages"], rows)


def _more(found: Matrix) -> str:
    """What other tools notice and warpsim does not name, tool by tool; of results what it has no objection to."""
    lines = []
    for tool in TOOLS:
        some = [one for one in found.planted() if found.cells[one.key][tool].noticed]
        own = {one: found.cells[one.key][SIMULATOR] for one in some}
        beyond = [one for one in some if own[one].noticed is False or own[one].words == NUMBERS and tool != RESULTS]
        if some:
            named = ", ".join(f"`{one.mistake.id}`" for one in beyond) or "none"
            lines.append(f"- {tool}: {len(beyond)} of the {len(some)} that it notices: {named}")
    return "\n".join(lines) or "No other tool has noticed one yet."


def _list(found: Matrix) -> str:
    """A line for each mistake of a lesson, or that any tool was asked about; the others of a stage in one line."""
    rows = []
    for stage in stages.all_parts():
        own = [one for one in found.planted() if one.stage == stage]
        shown = [one for one in own if one.mistake.caught_by or _is_asked(found, one)]
        for one in shown:
            words = [found.cells[one.key][tool].words for tool in (SIMULATOR, *TOOLS)]
            mistake = one.mistake.mistake.replace("|", "\\|")
            rows.append([stage.name, mistake, one.mistake.kind, *words, f"`{one.name}`"])  # whole commands: a long page
        if more := len(own) - len(shown):
            command = f"`make mutants ARGS={stage.slug}`"
            rows.append([stage.name, f"{more} more, in no lesson", "", "a test", *[NOT_RUN] * len(TOOLS), command])
    return table(["stage", "mistake", "class", SIMULATOR, *TOOLS, "name"], rows)


def _is_asked(found: Matrix, one: Subject) -> bool:
    return any(found.cells[one.key][tool] != Cell() for tool in TOOLS)


_PARTS: dict[str, Callable[[Matrix], str]] = {
    "counts": _counts, "kinds": _kinds, "clean": _clean, "more": _more, "list": _list,
}  # fmt: skip


def page(what: str = "counts") -> str:
    if what not in _PARTS:
        raise FlashLadderError(f"a marker 'detections' takes {', '.join(_PARTS)}, not '{what}'")
    return _PARTS[what](matrix())
