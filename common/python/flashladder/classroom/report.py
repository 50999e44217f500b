"""A student's report for people: Markdown and HTML. Everything that came from the student is escaped."""

import base64

from flashladder.classroom.marks import Marks, number
from flashladder.classroom.text import code_block, for_html, for_markdown

PICTURES = {  # by the end of a picture's name
    "errors": "Where the first wrong output differs from the reference, in units of the allowed error",
    "banks": "One access to shared memory: the lanes of a warp and the banks that serve them",
}
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse } td, th { border: 1px solid #ccc; padding: .3rem .6rem; text-align: left }
td.points { text-align: right; white-space: nowrap } pre { background: #f4f4f4; padding: .6rem; overflow-x: auto;
white-space: pre-wrap } img { max-width: 100% } .lost { color: #a33d00; font-weight: 600 }
""".strip()


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
        data = base64.b64encode(marks.pictures[name]).decode()
        body.append(f'<figure><img alt="{for_html(caption)}" src="data:image/png;base64,{data}"></figure>')
    body += [f"<p>{for_html(_graded_how(marks))}</p>"] if _graded_how(marks) else []
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    head = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f"<title>{for_html(marks.assignment.title)}: {for_html(marks.name)}</title>",
        f"<style>{_STYLE}</style></head><body>",
    ]
    return "\n".join([*head, *body, "</body></html>"]) + "\n"
