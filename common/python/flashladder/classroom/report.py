"""A student's report for people: Markdown and HTML. Everything that came from the student is escaped."""

import re
from collections import Counter, defaultdict

from flashladder.classroom.marks import Exercise, Marks, number
from flashladder.classroom.text import code_block, for_html, for_markdown, one_line, plain
from flashladder.core import html_page

PICTURES = {  # by the end of a picture's name
    "errors": "Where the first wrong output differs from the reference, in units of the allowed error",
    "banks": "One access to shared memory: the lanes of a warp and the banks that serve them",
}


def _found(marks: Marks) -> list[tuple[str, list[str]]]:
    """What was found, under headings: (heading, messages)."""
    said = []
    for kernel in marks.kernels:
        file = f"{kernel.stage}.cu"
        said += [
            (f"{file}: nothing of it was run", [kernel.refused] if kernel.refused else []),
            (f"{file}: the first wrong element", [kernel.first_wrong] if kernel.first_wrong else []),
            (f"{file}: hazards", list(kernel.hazards)),
            (f"{file}: the technique", list(kernel.technique)),
            (f"{file}: remarks", list(kernel.remarks)),
        ]
    return [(heading, words) for heading, words in said if words]


def _remarks(marks: Marks) -> list[str]:
    """What the points are besides the exercises'."""
    return [*filter(None, [marks.late.words]), *(f"Corrected: {words}" for words in marks.corrected)]


def _needed(marks: Marks) -> list[tuple[str, str]]:
    return [(exercise.id, exercise.next) for exercise in marks.exercises if exercise.next]


def for_instructor(marks: Marks) -> str:
    """What a student does not see, in Markdown: at which hidden sizes something was lost. "" where there is nothing."""
    lines = [
        f"- {exercise.id}, {for_markdown(check.name)}: {for_markdown(check.details)}"
        for exercise in marks.exercises
        for check in exercise.checks
        if check.details
    ]
    head = f"# {marks.assignment.title}: {for_markdown(marks.name)}, for the instructor alone"
    return "\n".join([head, "", *lines, ""]) if lines else ""


def _graded_how(marks: Marks) -> str:
    levels = sorted({kernel.isolation for kernel in marks.kernels if kernel.isolation})
    return f"Graded in isolation: {'; '.join(levels)}." if levels else ""


def _total(marks: Marks) -> str:
    if marks.ungraded:
        return "Not graded yet: this is the grader's fault and not the submission's."
    return f"{number(marks.points)} of {number(marks.most)} points"


def _pictures(marks: Marks) -> list[tuple[str, str]]:
    """(name, caption) in order."""
    return [(name, f"{name[:2]}: {PICTURES[name[3:]]}") for name in sorted(marks.pictures)]


def markdown(marks: Marks) -> str:
    """The report; pictures are files beside it, NAME.png."""
    lines = [f"# {marks.assignment.title}: {for_markdown(marks.name)}", "", f"**{_total(marks)}**", ""]
    for words in (marks.refused, marks.ungraded, *_remarks(marks)):
        lines += [for_markdown(words), ""] if words else []
    lines += ["| exercise | check | points | |", "| --- | --- | ---: | --- |"]
    for exercise in marks.exercises:
        points = f"**{number(exercise.points)} / {number(exercise.most)}**"
        said = "; ".join(map(for_markdown, exercise.words))
        lines.append(f"| **{exercise.id}**: {for_markdown(exercise.title)} | | {points} | {said} |")
        for check in exercise.checks:
            said = "passed" if check.passed else f"**lost**: {for_markdown(check.words)}"
            lines.append(f"| | {for_markdown(check.name)} | {number(check.points)} / {number(check.most)} | {said} |")
    if _needed(marks):
        lines += ["", "## What the next points need", ""]
        lines += [f"- **{exercise}**: {for_markdown(words)}" for exercise, words in _needed(marks)]
    for heading, messages in _found(marks):
        lines += ["", f"## {heading}", "", *[code_block(words) for words in messages]]
    for name, caption in _pictures(marks):
        lines += ["", f"![{caption}]({name}.png)"]
    lines += ["", _graded_how(marks)] if _graded_how(marks) else []
    return "\n".join(lines) + "\n"


def html(marks: Marks) -> str:
    """The report as one page with its pictures inside, which loads nothing and runs nothing."""
    body = [f"<h1>{for_html(marks.assignment.title)}: {for_html(marks.name)}</h1>", f"<p><b>{_total(marks)}</b></p>"]
    body += [f"<p>{for_html(words)}</p>" for words in (marks.refused, marks.ungraded, *_remarks(marks)) if words]
    body.append("<table><tr><th>exercise</th><th>check</th><th>points</th><th></th></tr>")
    for exercise in marks.exercises:
        points = f"<td class=points><b>{number(exercise.points)} / {number(exercise.most)}</b></td>"
        said = "; ".join(map(for_html, exercise.words))
        title = f"<b>{exercise.id}</b>: {for_html(exercise.title)}"
        body.append(f"<tr><td colspan=2>{title}</td>{points}<td>{said}</td></tr>")
        for check in exercise.checks:
            said = "passed" if check.passed else f"<span class=lost>lost</span>: {for_html(check.words)}"
            points = f"<td class=points>{number(check.points)} / {number(check.most)}</td>"
            body.append(f"<tr><td></td><td>{for_html(check.name)}</td>{points}<td>{said}</td></tr>")
    body.append("</table>")
    if _needed(marks):
        items = [f"<li><b>{exercise}</b>: {for_html(words)}</li>" for exercise, words in _needed(marks)]
        body += ["<h2>What the next points need</h2>", "<ul>", *items, "</ul>"]
    for heading, messages in _found(marks):
        body.append(f"<h2>{for_html(heading)}</h2>")
        body += [f"<pre>{for_html(words)}</pre>" for words in messages]
    for name, caption in _pictures(marks):
        body.append(html_page.picture(plain(caption), marks.pictures[name]))
    body += [f"<p>{for_html(_graded_how(marks))}</p>"] if _graded_how(marks) else []
    return html_page.page(plain(f"{marks.assignment.title}: {marks.name}"), body)


# ---- what a class has in common: which points were lost most often, and by what, with an example of each ----

MOST_MISTAKES = 5  # of an exercise
MOST_STUDENTS = 8  # that are named


class Mistakes:
    """Collects one submission after the other, and keeps words and names alone."""

    def __init__(self):
        self.submissions = 0
        self.titles: dict[str, str] = {}
        self.right: Counter[str] = Counter()
        self.unwritten: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()  # with the whole submission, or with the stage's file
        self.lost: dict[str, dict[tuple[str, str], list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))

    def add(self, marks: Marks) -> None:
        if marks.ungraded:
            return
        self.submissions += 1
        refused = {kernel.stage for kernel in marks.kernels if kernel.refused}
        for exercise in marks.exercises:
            self.titles.setdefault(exercise.id, exercise.title)
            if marks.refused or exercise.stage in refused:
                self.refused[exercise.id] += 1
            elif exercise.points >= exercise.most:
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
            told = f"{self.right[exercise]} have all points, {self.unwritten[exercise]} have not written it."
            if files := self.refused[exercise]:
                told += " The file of 1 was refused." if files == 1 else f" The files of {files} were refused."
            lines.append(told)
            mistakes = sorted(self.lost[exercise].items(), key=lambda pair: (-len(pair[1]), pair[0]))
            for (kind, _), found in mistakes[:MOST_MISTAKES]:
                found.sort()
                names = ", ".join(for_markdown(student) for student, _ in found[:MOST_STUDENTS])
                more = f" and {len(found) - MOST_STUDENTS} more" if len(found) > MOST_STUDENTS else ""
                times = "Once" if len(found) == 1 else f"{len(found)} times"
                lines += ["", f"**{times}, {for_markdown(kind)}** ({names}{more}). An example:", ""]
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
