"""What a class has in common: which points were lost most often, and by what, with an example of each."""

import re
from collections import Counter, defaultdict

from flashladder.classroom.marks import Exercise, Marks
from flashladder.classroom.text import code_block, for_markdown, one_line

MOST_MISTAKES = 5  # of an exercise
MOST_STUDENTS = 8  # that are named


class Mistakes:
    """Collects one submission after the other, and keeps words and names alone."""

    def __init__(self):
        self.submissions = 0
        self.titles: dict[str, str] = {}
        self.right: Counter[str] = Counter()
        self.unwritten: Counter[str] = Counter()
        self.lost: dict[str, dict[tuple[str, str], list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))

    def add(self, marks: Marks) -> None:
        if marks.ungraded:
            return
        self.submissions += 1
        for exercise in marks.exercises:
            self.titles.setdefault(exercise.id, exercise.title)
            if exercise.points >= exercise.most:
                self.right[exercise.id] += 1
            elif not any(check.passed for check in exercise.checks) and not exercise.checks:
                self.unwritten[exercise.id] += 1
            else:
                kind, words = _mistake(exercise)
                self.lost[exercise.id][kind, _general(words)].append((marks.id, words))

    def markdown(self, title: str) -> str:
        lines = [f"# {for_markdown(title)}: what the class has in common", ""]
        lines.append(f"{self.submissions} submissions were graded. Of each exercise the first thing that costs points:")
        for exercise, name in self.titles.items():
            lines += ["", f"## {exercise}: {for_markdown(name)}", ""]
            lines.append(f"{self.right[exercise]} have all points, {self.unwritten[exercise]} have not written it.")
            mistakes = sorted(self.lost[exercise].items(), key=lambda pair: (-len(pair[1]), pair[0]))
            for (kind, _), found in mistakes[:MOST_MISTAKES]:
                found.sort()
                names = ", ".join(for_markdown(student) for student, _ in found[:MOST_STUDENTS])
                more = f" and {len(found) - MOST_STUDENTS} more" if len(found) > MOST_STUDENTS else ""
                lines += ["", f"**{len(found)} times, {for_markdown(kind)}** ({names}{more}). An example:", ""]
                lines.append(code_block(found[0][1]))
            left = len(mistakes) - MOST_MISTAKES
            lines += ["", f"And {left} others, of which each is rarer."] if left > 0 else []
        return "\n".join(lines) + "\n"


def _mistake(exercise: Exercise) -> tuple[str, str]:
    """The first check that lost points, and words: what all wrong sizes have in common, where that is known."""
    check = next((one for one in exercise.checks if not one.passed), None)
    if check is None:
        return "nothing but the stub", "; ".join(exercise.words) or "it does what the stub does"
    causes = [words for words in exercise.words if words.startswith("wrong ")]
    said = causes[0] if check.name.startswith("correct") and causes else check.words
    return check.name, one_line(said or "; ".join(exercise.words) or "no words", 600)


def _general(words: str) -> str:
    """Without numbers, names and what follows the first sentence: equal for equal mistakes."""
    return re.sub(r"\d+", "N", re.sub(r"\[[^\]]*\]", "", words.partition("; ")[0]))[:120]
