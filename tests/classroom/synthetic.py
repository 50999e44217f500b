"""A class of made-up submissions: solutions, stubs, planted mistakes, what does not compile or end.

    python tests/classroom/synthetic.py ASSIGNMENT COUNT FOLDER

writes COUNT of them (folders, zip and tar files) to FOLDER, and FOLDER.csv with the kind of each; the same each time.
"""

import csv
import io
import random
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flashladder.classroom import assignment as assignments
from flashladder.classroom import handout
from flashladder.classroom.assignment import Assignment
from flashladder.classroom.exercise import Exercise
from flashladder.ladder.mistakes import mistakes

SOLVED, STUB, ENDLESS = "solved", "stub", "does not end"


@dataclass(frozen=True)
class Answer:
    kind: str  # SOLVED, STUB, "planted NAME", ...
    exercise: str
    text: str


def answers(exercise: Exercise) -> Iterator[Answer]:
    """What students may write for one exercise, the kinds that there are of it."""
    solution, name = exercise.solution, exercise.name
    yield Answer(SOLVED, name, solution)
    yield Answer(STUB, name, exercise.stub)
    yield Answer("does not compile", name, f"{solution}\n    tile[")
    yield Answer(ENDLESS, name, f"    while (clock64() >= 0) {{\n    }}\n{solution}")
    for mistake in mistakes(exercise.stage):
        if not mistake.lives:
            yield from _answer(exercise, f"planted {mistake.name}", mistake.text())


def _answer(exercise: Exercise, kind: str, changed: str) -> Iterator[Answer]:
    """What a changed source has in place of the exercise's lines, if it is changed nowhere else."""
    original, lines = exercise.stage.source.read_text().splitlines(), changed.splitlines()
    before, behind = original[: exercise.first - 1], original[exercise.last :]
    end = len(lines) - len(behind)
    if lines[: len(before)] == before and lines[end:] == behind:
        yield Answer(kind, exercise.name, "\n".join(lines[len(before) : end]))


def kernel(assignment: Assignment, number: int, given: dict[str, str]) -> str:
    """The starter with these texts between the marks."""
    text = handout.starter(assignment, number)
    for exercise in handout.chosen(assignment, number):
        if exercise.name in given:
            opening, closing = re.escape(exercise.opening), re.escape(exercise.closing)
            filled = f"{exercise.opening}\n{given[exercise.name]}\n{exercise.closing}"
            text = re.sub(f"{opening}\n.*?{closing}", lambda _, filled=filled: filled, text, flags=re.S)
    return text


def submissions(assignment: Assignment, count: int, seed: int = 1) -> Iterator[tuple[str, str, dict[str, str]]]:
    """(name, kind, texts by file). Every kind of answer where count allows, other exercises solved; no two equal."""
    generator = random.Random(seed)
    exercises = {number: handout.chosen(assignment, number) for number in assignment.stages}
    every = [(number, answer) for number, some in exercises.items() for one in some for answer in answers(one)]
    endless = [pair for pair in every if pair[1].kind == ENDLESS]
    others = [pair for pair in every if pair[1].kind != ENDLESS]
    generator.shuffle(others)
    for index in range(count):
        # What does not end takes its whole budget of time: a few of a class do that.
        at, answer = endless[index // 25 % len(endless)] if index % 25 == 3 else others[index % len(others)]
        texts = {}
        for number, some in exercises.items():
            given = {one.name: f"    // {index}\n{one.solution}" for one in some}
            if number == at:
                given[answer.exercise] = f"    // {index}\n{answer.text}"
            texts[assignments.file_name(number)] = kernel(assignment, number, given)
        yield f"student{index:03d}", f"{answer.kind} ({at:02d} {answer.exercise})", texts


def write(assignment: Assignment, count: int, folder: Path, once: bool = False) -> dict[str, str]:
    """By name, the kind of each; once: of so many one of each kind, and of what is planted one."""
    folder.mkdir(parents=True)
    kinds, seen = {}, set()
    for index, (name, kind, texts) in enumerate(submissions(assignment, count)):
        alike = "planted" if kind.startswith("planted") else kind.partition(" (")[0]
        if once and alike in seen:
            continue
        seen.add(alike)
        kinds[name] = kind
        if index % 3 == 0:
            (folder / name).mkdir()
            for file, text in texts.items():
                (folder / name / file).write_text(text)
        elif index % 3 == 1:
            with zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for file, text in texts.items():
                    archive.writestr(f"{name}/{file}", text)
        else:
            with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as archive:
                for file, text in texts.items():
                    member = tarfile.TarInfo(file)
                    member.size = len(text.encode())
                    archive.addfile(member, io.BytesIO(text.encode()))
    with folder.with_suffix(".csv").open("w") as file:
        csv.writer(file).writerows([("name", "kind"), *kinds.items()])
    return kinds


if __name__ == "__main__":
    which, number_of_them, place = sys.argv[1:]
    made = write(assignments.get(which), int(number_of_them), Path(place))
    print(f"{len(made)} submissions of {len(set(made.values()))} kinds in {place}; {place}.csv says which.")
