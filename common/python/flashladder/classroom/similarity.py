"""Hints of submissions that are alike, by copydetect (the extra `similarity`): numbers to look at, and no verdict.

    python -m flashladder.classroom.similarity FOLDER

Compares FOLDER/answers/*.cu with each other, without what FOLDER/given/*.cu has (the starter and the solution), and
writes FOLDER/pairs.json. It reads what students wrote, so it is started with limits.
"""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from flashladder.classroom import exercise
from flashladder.classroom.assignment import Assignment, file_name
from flashladder.classroom.taking import decoded
from flashladder.classroom.text import for_markdown
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError

SECONDS, MEMORY_BYTES = 600, 4 << 30  # of the process that compares a class
TOKENS, GUARANTEE = 20, 30  # characters of code without names that are a fingerprint; a copy that long is found
WORTH_A_LOOK = 0.5  # of the shorter one of two answers
MOST_PAIRS = 50


@dataclass(frozen=True)
class Pair:
    exercise: str
    students: tuple[str, str]
    alike: float  # part of the shorter one that the other one has, too


def require() -> None:
    if find_spec("copydetect") is None:
        raise FlashLadderError("--similarity needs copydetect: `pip install 'flashladder[similarity]'`.")


class Answers:
    """The answers of a class, one exercise after the other on disk: a class need not be in memory."""

    def __init__(self, assignment: Assignment):
        require()
        self._assignment, self._scratch = assignment, tempfile.TemporaryDirectory(prefix="flashladder-similarity-")
        self.folder = Path(self._scratch.name)

    def add(self, student: str, kernels: dict[str, bytes]) -> None:
        for number in self._assignment.stages:
            data = kernels.get(file_name(number))
            if data is None:
                continue
            try:
                found = exercise.answers(number, decoded(data, file_name(number)))
            except FlashLadderError:  # what is refused has a report of its own
                continue
            for name in self._assignment.names(number):
                one = exercise.get(number, name)
                if name in found and not one.is_stub(found[name]):
                    self._write(f"{number:02d} {name}", "answers", student, found[name])

    def _write(self, of: str, kind: str, name: str, text: str) -> None:
        folder = self.folder / of / kind
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.cu").write_text(text + "\n")

    def pairs(self) -> list[Pair]:
        """The most alike first."""
        with self._scratch:
            for item in self._assignment.items:
                one = exercise.get(item.stage, item.name)
                of = f"{item.stage:02d} {item.name}"
                self._write(of, "given", "stub", one.stub)
                self._write(of, "given", "solution", getattr(one, "solution", ""))
            command = [sys.executable, "-m", __name__, str(self.folder)]
            done = subprocess.run(command, env=for_python(), capture_output=True, text=True)
            if done.returncode:
                said = (done.stderr.strip().splitlines() or ["it took too long"])[-1]
                raise FlashLadderError(f"The submissions could not be compared: {said[:300]}")
            found = json.loads((self.folder / "pairs.json").read_text())
        pairs = [Pair(one["exercise"], tuple(one["students"]), one["alike"]) for one in found]
        return sorted(pairs, key=lambda one: (-one.alike, one.exercise, one.students))


def markdown(title: str, pairs: Iterable[Pair]) -> str:
    pairs = list(pairs)
    lines = [
        f"# {for_markdown(title)}: answers that are alike",
        "",
        "How much of the shorter one of two answers stands in the other one, too, by copydetect: names, blanks and "
        "comments do not count, nor what the stub or the shipped solution has. **This is no verdict.** Short answers "
        "to one task are alike by themselves, and who worked together as you allow it is here as well. Read both.",
        "",
        "| alike | exercise | submissions |",
        "| ---: | --- | --- |",
    ]
    for one in pairs[:MOST_PAIRS]:
        names = " and ".join(map(for_markdown, one.students))
        lines.append(f"| {one.alike:.0%} | {one.exercise} | {names} |")
    lines += [] if pairs else ["| | none is worth a look | |"]
    lines += ["", f"And {len(pairs) - MOST_PAIRS} more pairs."] if len(pairs) > MOST_PAIRS else []
    return "\n".join(lines) + "\n"


def compare(folder: Path) -> list[dict]:
    from copydetect import CodeFingerprint, compare_files

    found = []
    for of in sorted(path for path in folder.iterdir() if (path / "answers").is_dir()):
        given = [CodeFingerprint(str(file), TOKENS, 1) for file in sorted((of / "given").glob("*.cu"))]
        known = sorted({int(one) for print_of in given for one in print_of.hashes})
        prints = [
            (file.stem, CodeFingerprint(str(file), TOKENS, GUARANTEE - TOKENS + 1, boilerplate=known or None))
            for file in sorted((of / "answers").glob("*.cu"))
        ]
        prints = [(name, print_of) for name, print_of in prints if print_of.token_coverage]
        for at, (one, first) in enumerate(prints):
            for other, second in prints[at + 1 :]:
                _, parts, _ = compare_files(first, second)
                alike = min(1.0, float(max(parts)))
                if alike >= WORTH_A_LOOK:
                    found.append({"exercise": of.name, "students": [one, other], "alike": round(alike, 4)})
    return found


def main(arguments: list[str]) -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    folder = Path(arguments[0])
    (folder / "pairs.json").write_text(json.dumps(compare(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
