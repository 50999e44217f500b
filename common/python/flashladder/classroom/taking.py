"""What is taken of a student's file: what stands between the marks, and nothing else. `make check` and the grader both
take it here, so that they judge the same."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from flashladder.classroom.exercise import Exercise, Filled, answer_lines, answers, fill
from flashladder.classroom.lexing import without_comments
from flashladder.classroom.screening import Objection, objections
from flashladder.core.errors import FlashLadderError
from flashladder.ladder.stage import Stage

MOST_BYTES = 256 << 10  # of a file; the stages' have 20 KB
_MARK = re.compile(r"\s*// ?(>>>|<<<) ?(?:write:|end of)")
_CARRIED = re.compile(r"\s*// === (\w+): your answer")
_CARRIED_END = re.compile(r"\s*// === end of (\w+)")
# What Python's splitlines() takes for the end of a line and a compiler does not.
_NO_LINE_ENDS = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_FARTHEST = 400  # lines that may be missing where a shipped line is looked for in a student's file


def decoded(data: bytes, name: str) -> str:
    """The text of a file that somebody handed in, its lines ended by line feeds. FlashLadderError where it is none.

    Bytes that are no UTF-8 become U+FFFD, which a compiler takes in a comment as it takes the bytes: an umlaut in
    another encoding costs no points.
    """
    if len(data) > MOST_BYTES:
        raise FlashLadderError(f"{name} has more than {MOST_BYTES >> 10} KiB")
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise FlashLadderError(f"{name} has zero bytes, as UTF-16 and programs have (line {line}): save it as UTF-8")
    text = data.decode("utf-8-sig", "replace")
    return _NO_LINE_ENDS.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))


def undecoded(text: str) -> list[str]:
    """A remark about the lines of decoded() that held bytes which are no UTF-8, where there are some."""
    lines = [number for number, line in enumerate(text.split("\n"), 1) if "\ufffd" in line]
    if not lines:
        return []
    return [f"Bytes that are no UTF-8 do no harm in a comment, elsewhere they do: {_listed(lines)}. Save it as UTF-8."]


def _listed(lines: list[int]) -> str:
    return f"line {', '.join(map(str, lines[:10]))}" + (" and more" if len(lines) > 10 else "")


@dataclass(frozen=True)
class Taken:
    text: str = field(repr=False)  # all of the file
    answers: dict[str, str]  # by exercise, also those of others than are asked for
    lines: dict[str, int]  # by exercise, the line of the file with the answer's first line
    remarks: tuple[str, ...] = ()


def take(stage: Stage, text: str, names: Sequence[str]) -> Taken:
    """The answers, and remarks by the names that are asked for. FlashLadderError says which mark is damaged."""
    found = Taken(text, answers(stage, text), answer_lines(stage, text))
    remarks = undecoded(text)
    elsewhere = changed_outside(stage, text)
    if elsewhere:
        remarks.append(f"Changes outside of the marks are ignored: {_listed(elsewhere)}.")
    others = [name for name in found.answers if name not in names]
    if others:
        remarks.append(f"Not part of this assignment, and ignored: {', '.join(others)}.")
    return Taken(text, found.answers, found.lines, tuple(remarks))


def refused(exercise: Exercise, answer: str) -> list[Objection]:
    """What an answer may not have; lines are the answer's."""
    return objections(answer, exercise.solution)


def _bare_lines(text: str) -> list[str]:
    """The lines without comments and blanks; "" where nothing else is in one."""
    return [" ".join(line.split()) for line in without_comments(text).split("\n")]


def changed_outside(stage: Stage, text: str) -> list[int]:
    """Line numbers of a student's file that stand outside of all marks and not in the stage's source. Comments and
    blanks do not count, nor what belongs to another stage's file."""
    known = set(_bare_lines(stage.source.read_text()))
    found, inside = [], False
    for number, (line, bare) in enumerate(zip(text.split("\n"), _bare_lines(text)), 1):
        if mark := _MARK.match(line):
            inside = mark[1] == ">>>"
        elif _CARRIED.match(line) or _CARRIED_END.match(line):
            inside = bool(_CARRIED.match(line))
        elif not inside and bare and bare not in known:
            found.append(number)
    return found


def carried_filled(text: str, written: dict[str, str]) -> tuple[str, dict[int, int]]:
    """A kernel in which what is to be written in other files is a stub between marks of its own, with the answers of
    those files in place of the stubs; and where the kernel's own lines were before, by line numbers."""
    lines: list[str] = []
    origins: dict[int, int] = {}
    name = ""
    for number, line in enumerate(text.split("\n"), 1):
        opened, closed = _CARRIED.match(line), _CARRIED_END.match(line)
        if closed and closed[1] == name:
            name = ""
        if not name:
            lines.append(line)
            origins[len(lines)] = number
        if opened and opened[1] in written:
            name = opened[1]
            lines += written[name].split("\n")
    return "\n".join(lines), origins


def places(stage: Stage, filled: Filled, taken: Taken) -> dict[int, int]:
    """Where the lines of a filled source stand in the student's file, by line numbers: those of the answers, and of the
    shipped lines those that he has left as they are. In time that is proportional to the two."""
    found = {number: taken.lines[name] + at - 1 for number, (name, at) in filled.lines.items() if name in taken.lines}
    where: dict[str, list[int]] = {}
    for number, bare in enumerate(_bare_lines(taken.text), 1):
        where.setdefault(bare, []).append(number)
    shipped, last = _bare_lines(stage.source.read_text()), 0
    for number, source_line in filled.others.items():
        candidates = where.get(shipped[source_line - 1], [])
        at = bisect_right(candidates, last)
        if shipped[source_line - 1] and at < len(candidates) and candidates[at] - last < _FARTHEST:
            last = found[number] = candidates[at]
    return found


def filled_with(stage: Stage, taken: Taken, names: Sequence[str]) -> Filled:
    return fill(stage, {name: taken.answers[name] for name in names})
