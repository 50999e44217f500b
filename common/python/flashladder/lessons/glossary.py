"""The terms of docs/glossary.md: below "## Terms" a heading for each, and its meaning as text.

    ### bank conflict
    Also: conflict, conflicts.
    Lanes of one access want different words of the same bank ...

A link to it is [bank conflicts](../docs/glossary.md#bank-conflict).
"""

import re
from dataclasses import dataclass

from flashladder.core.paths import ROOT

GLOSSARY = ROOT / "docs/glossary.md"


@dataclass(frozen=True)
class Term:
    name: str
    forms: tuple[str, ...]  # in lower case: the name, its plural, and what the line "Also:" lists
    meaning: str = ""  # Markdown, without the line "Also:"

    @property
    def anchor(self) -> str:
        return self.name.replace(" ", "-")

    @property
    def first_sentence(self) -> str:
        """Of the meaning, without marks of Markdown: what a pointer that rests on the word is told."""
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", lambda mark: mark[1] or "", " ".join(self.meaning.split()))
        return re.split(r"(?<=\.) (?=[A-Z])", plain)[0]


def terms(text: str) -> list[Term]:
    """The terms of a glossary's text, in its order."""
    _, _, section = f"\n{text}".partition("\n## Terms\n")
    section = re.split(r"^## ", section, flags=re.M)[0]
    found = []
    for entry in re.split(r"^### ", section, flags=re.M)[1:]:
        name, _, meaning = entry.partition("\n")
        also = re.match(r"\s*Also: (.*?)\.\n", meaning)
        forms = [name, f"{name}s", *(also[1].split(", ") if also else ())]
        meaning = meaning[also.end() :] if also else meaning
        found.append(Term(name, tuple(form.strip("` ").lower() for form in forms), meaning.strip()))
    return found


def any_of(known: list[Term]) -> tuple[re.Pattern, dict[str, Term]]:
    """(what finds a form of a term in prose, as group 1, longer ones first; form_of() what it found -> the term)."""
    by_form = {form: term for term in known for form in term.forms}
    longest_first = sorted(by_form, key=len, reverse=True)
    either = "|".join(r"\s+".join(map(re.escape, form.split())) for form in longest_first)
    return re.compile(rf"(?<![\w`])({either or '(?!)'})(?![\w`])", re.I), by_form


def form_of(found: str) -> str:
    """A form that any_of()'s pattern has found, which may go on in the next line, as its terms have it."""
    return " ".join(found.lower().split())
