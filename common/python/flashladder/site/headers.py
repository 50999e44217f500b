"""Reads a C or C++ header's declarations with the comments that stand above them or behind them in their line.

    // What it is.
    struct Thing {
        int size;  // in bytes
    };

Taken: structs with their members, enums with their values, functions at the top or in a namespace. A function without a
comment of its own right below another one shares that one's. What has no comment and no members is left out, and so
are specialisations of templates and member functions: the header says more, and is linked.
"""

import re
from dataclasses import dataclass, field


@dataclass
class Declaration:
    kind: str  # "struct", "enum", "function", "member", "value"
    names: list[str]  # signatures: of a function all overloads that share the comment
    comment: str
    members: list["Declaration"] = field(default_factory=list)


_COMMENT = re.compile(r"\s*// ?(.*)")
_ENUM = re.compile(r"(?:typedef )?enum (?:class )?(\w+)(?: : \w+)? \{")
_STRUCT = re.compile(r"(?:typedef )?struct (\w+) \{")
# In front of a namespace's or extern "C"'s brace, preprocessor lines, and what declares nothing to be used.
_PASSED = re.compile(r"\s*(#|namespace\b|extern \"C\"|using\b|struct \w+;|class \w+;|\}|$)")
_MEMBER = re.compile(r"(?P<type>(?:[\w:]+(?:<.*>)?[ *&]+)+)(?P<names>\w+(?:\[[\w]+\])?.*);")


def read(text: str) -> list[Declaration]:
    lines = text.splitlines()
    found: list[Declaration] = []
    comment: list[str] = []
    at, separate = 0, True
    while at < len(lines):
        line = lines[at]
        note = _COMMENT.fullmatch(line)
        if note:
            comment.append(note[1])
            at += 1
        elif _PASSED.match(line):
            comment, at, separate = [], at + 1, separate or not line.strip()
        else:
            end = _end(lines, at)
            one = _declaration(lines[at:end], "\n".join(comment))
            if one and one.kind == "function" and not one.comment and not separate and found[-1].kind == "function":
                found[-1].names += one.names
            elif one and (one.comment or one.members):
                found.append(one)
            comment, at, separate = [], end, False
    return found


def _code(line: str) -> str:
    return re.sub(r"\"(?:[^\"\\]|\\.)*\"", '""', line).partition("//")[0]


def _end(lines: list[str], first: int) -> int:
    """Behind the declaration that begins in line `first`: its ; or its closing brace, outside of all brackets."""
    depth = 0
    for at in range(first, len(lines)):
        code = _code(lines[at]).rstrip()
        depth += sum(code.count(mark) for mark in "({[") - sum(code.count(mark) for mark in ")}]")
        if depth == 0 and code.endswith((";", "}")):
            return at + 1
    return len(lines)


def _declaration(lines: list[str], comment: str) -> Declaration | None:
    head = lines[0].strip()
    for kind, pattern, inner in (("enum", _ENUM, _values), ("struct", _STRUCT, _members)):
        match = pattern.match(head)
        if match:
            return Declaration(kind, [match[1]], comment, inner(lines))
    code = " ".join(" ".join(_code(line) for line in lines).split())
    if "(" not in code or code.startswith("template <>"):
        return None
    signature = re.split(r"\s*[{;]", code)[0]
    return Declaration("function", [re.sub(r"\b(__device__|inline|static)\s+", "", signature)], comment)


def _inner(lines: list[str]) -> list[tuple[str, str]]:
    """(code, comment above it and behind it) of the lines between a declaration's braces, joined up to a , or ;"""
    text = "\n".join(lines)
    body = text[text.index("{") + 1 : text.rindex("}")]
    found: list[tuple[str, str]] = []
    above: list[str] = []
    for line in body.splitlines():
        note = _COMMENT.fullmatch(line)
        if note:
            above.append(note[1])
            continue
        code, _, trailing = line.partition("//")
        if code.strip():
            found.append((code.strip(), "\n".join([*above, trailing.strip()]).strip()))
        above = []
    return found


def _values(lines: list[str]) -> list[Declaration]:
    found = []
    for code, comment in _inner(lines):
        for name in re.findall(r"(\w+)(?:\s*=\s*[^,]+)?(?:,|$)", code):
            if not name.endswith("_"):  # count_: how many there are, no value of its own
                found.append(Declaration("value", [name], comment))
    return found


def _members(lines: list[str]) -> list[Declaration]:
    found, depth = [], 0
    for code, comment in _inner(lines):
        match = _MEMBER.fullmatch(code) if depth == 0 and "(" not in code else None
        depth += code.count("{") - code.count("}")
        if match:
            names = re.split(r",\s*", re.sub(r"\s*(=\s*[^,;]+|\{[^}]*\})", "", match["names"]))
            found.append(Declaration("member", [f"{match['type'].strip()} {name}" for name in names], comment))
    return found
