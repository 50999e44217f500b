"""What `make check` and `make hint` do in the folder that students get (classroom/handout.py writes it).

    python -m flashladder.classroom.check [hint NAME]

There the stages are starters, exercises.toml holds no solution, and the files to write lie beside the harness.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from flashladder.classroom import judge
from flashladder.classroom.exercise import Exercise, answers, exercises
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

    @classmethod
    def read(cls, harness: Path = ROOT) -> "Sheet":
        file = harness / "assignment.json"
        if not file.exists():
            raise FlashLadderError(f"{file} does not exist: this works in the folder of an assignment alone.")
        data = json.loads(file.read_text())
        sizes = tuple((one["class"], tuple(Problem(**fields) for fields in one["problems"])) for one in data["sizes"])
        return cls(data["title"], tuple(data["stages"]), sizes, harness.parent)

    def file(self, stage: int) -> Path:
        return self.folder / f"{stages.get(stage).name}.cu"


def check(sheet: Sheet) -> int:
    """Judges each file at the public sizes; 1 where there is something left to do."""
    passed = [_check(sheet, stage) for stage in sheet.stages]
    if all(passed):
        say(coloured("\nAll public checks pass. The sizes that you do not see are tried when it is graded.", "green"))
    return 0 if all(passed) else 1


def _check(sheet: Sheet, stage: int) -> bool:
    file = sheet.file(stage)
    say(coloured(f"\n{file.name}", "bold"))
    try:
        text = file.read_text()
        found = answers(stage, text)
    except (OSError, UnicodeDecodeError, FlashLadderError) as error:
        say(f"  {file.name} cannot be read: {error}")
        return False
    every = exercises(stage)
    missing = [one.name for one in every if one.name not in found]
    if missing:
        say(f"  The marks of {', '.join(missing)} are gone: put `// >>> write: NAME` and `// <<< end of NAME` back.")
        return False
    open_ones = [one.name for one in every if one.is_stub(found[one.name])]
    for one in every:
        say(f"  {one.name}: {'not written yet' if one.name in open_ones else 'written'}")
    if len(open_ones) == len(every):
        return False
    checks = list(dict.fromkeys(check for one in every for check in one.checks))
    problems = [problem for _, of_class in sheet.sizes for problem in of_class]
    say("  compiling it: this may take a minute")
    doing = "  {}".format
    judgement = judge.judge(stage, text, checks, f"{file.name}:{{}}".format, problems, lambda words: say(doing(words)))
    for finding in judgement.findings:
        good = coloured("passed", "green") if finding.passed else coloured("FAILED", "red")
        say(f"  {finding.check}: {good}")
        for words in () if finding.passed else finding.words:
            say(f"    {words}")
    if open_ones and not judgement.passed:
        say(f"  What is not written yet ({', '.join(open_ones)}) is wrong as it stands, and the kernel with it.")
    return judgement.passed and not open_ones


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
