"""What `make check` and `make hint` do in the folder that students get (classroom/handout.py writes it).

    python -m flashladder.classroom.check [hint NAME]

There the stages are starters, exercises.toml holds no solution, and the files to write lie beside the harness.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from flashladder.classroom import judge, taking
from flashladder.classroom.exercise import Exercise, exercises
from flashladder.core.console import coloured, say
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.core.problem import Problem
from flashladder.ladder import stages


@dataclass(frozen=True)
class Sheet:
    """assignment.json: what students may know of their assignment."""

    title: str
    stages: tuple[int, ...]
    sizes: tuple[tuple[str, tuple[Problem, ...]], ...]  # of the public classes
    folder: Path  # with the files to write
    technique: bool = True  # all that the stages' counters must show is asked for

    @classmethod
    def read(cls, harness: Path = ROOT) -> "Sheet":
        file = harness / "assignment.json"
        if not file.exists():
            raise FlashLadderError(f"{file} does not exist: this works in the folder of an assignment alone.")
        data = json.loads(file.read_text())
        sizes = tuple((one["class"], tuple(Problem(**fields) for fields in one["problems"])) for one in data["sizes"])
        return cls(data["title"], tuple(data["stages"]), sizes, harness.parent, data.get("technique", True))

    def file(self, stage: int) -> Path:
        return self.folder / f"{stages.get(stage).name}.cu"


def check(sheet: Sheet) -> int:
    """Judges each file at the public sizes; 1 where there is something left to do."""
    passed = [_check(sheet, stage) for stage in sheet.stages]
    if all(passed):
        say(coloured("\nAll public checks pass. The sizes that you do not see are tried when it is graded.", "green"))
    return 0 if all(passed) else 1


def _check(sheet: Sheet, stage: int) -> bool:
    file, every = sheet.file(stage), exercises(stage)
    say(coloured(f"\n{file.name}", "bold"))
    try:
        taken = _taken(sheet, stage)
    except FlashLadderError as error:
        say(f"  {error}")
        return False
    for words in taken.remarks:
        say(f"  {words}")
    missing = [one.name for one in every if one.name not in taken.answers]
    if missing:
        say(f"  The marks of {', '.join(missing)} are gone: put `// >>> write: NAME` and `// <<< end of NAME` back.")
        return False
    open_ones = [one.name for one in every if one.is_stub(taken.answers[one.name])]
    refused = []
    for one in every:
        say(f"  {one.name}: {'not written yet' if one.name in open_ones else 'written'}")
        for said in taking.refused(one, taken.answers[one.name]) if one.name not in open_ones else ():
            refused.append(f"{file.name}:{taken.lines[one.name] + said.line - 1}: {said.words}")
    for words in refused:
        say(f"    {words}")
    if refused:
        say(f"  {coloured('REFUSED', 'red')}: nothing of such an answer is compiled, here or when it is graded.")
    if refused or len(open_ones) == len(every):
        return False
    source, line = _source(sheet, stage, taken)
    checks = list(dict.fromkeys([check for one in every for check in one.checks] + ["technique"] * sheet.technique))
    problems = [problem for _, of_class in sheet.sizes for problem in of_class]
    say("  compiling it: this may take a minute")
    judgement = judge.judge(stage, source, checks, line, problems, lambda words: say(f"  {words}"))
    for finding in judgement.findings:
        good = coloured("passed", "green") if finding.passed else coloured("FAILED", "red")
        say(f"  {finding.check}: {good}")
        for words in () if finding.passed else finding.words:
            say(f"    {words}")
    if open_ones and not judgement.passed:
        say(f"  What is not written yet ({', '.join(open_ones)}) is wrong as it stands, and the kernel with it.")
    return judgement.passed and not open_ones


def _taken(sheet: Sheet, stage: int) -> taking.Taken:
    """What the grader would take of a file. FlashLadderError where it would refuse it."""
    file = sheet.file(stage)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise FlashLadderError(f"{file.name} cannot be read: {error.strerror}") from error
    text = taking.decoded(data, file.name)
    try:
        return taking.take(stages.get(stage), text, [one.name for one in exercises(stage)])
    except FlashLadderError as error:
        raise FlashLadderError(f"{file.name}: {error}") from error


def _source(sheet: Sheet, stage: int, taken: taking.Taken) -> tuple[str, judge.Lines]:
    """The starter with the answers between its marks, as the grader fills them into the shipped kernel; and words for
    its lines. What is to be written in another file comes from there."""
    elsewhere: dict[str, str] = {}
    for other in sheet.stages:
        if other != stage:
            try:
                elsewhere |= _taken(sheet, other).answers
            except FlashLadderError:  # it is told where that file is checked
                continue
    kernel = stages.get(stage)
    filled = taking.filled_with(kernel, taken, list(taken.answers))
    places = taking.places(kernel, filled, taken)
    source, origins = taking.carried_filled(filled.source, elsewhere)
    name = sheet.file(stage).name

    def line(number: int) -> str:
        place = places.get(origins.get(number, 0))
        return f"{name}:{place}" if place else "a line outside of your answers"

    return source, line


def hint(sheet: Sheet, name: str) -> int:
    every = [one for stage in sheet.stages for one in exercises(stage)]
    chosen: list[Exercise] = [one for one in every if one.name == name]
    if not chosen:
        names = ", ".join(one.name for one in every)
        raise FlashLadderError(f"A hint for which exercise? `make hint NAME=...`: {names}.")
    for one in chosen:
        said = one.hints or ("There is no hint for this one.",)
        say("\n".join([coloured(f"{one.stage.id}, {one.title}", "bold"), *(f"- {words}" for words in said)]))
    return 0


def main(arguments: list[str]) -> int:
    try:
        sheet = Sheet.read()
        return hint(sheet, " ".join(arguments[1:])) if arguments[:1] == ["hint"] else check(sheet)
    except FlashLadderError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
